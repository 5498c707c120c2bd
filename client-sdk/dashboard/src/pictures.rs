//! The pictures of a camera for one page: the newest, one at a time. PURE.
//!
//! The page confirms each picture that it has drawn, and gets the next one only then. So a slow page
//! gets fewer pictures, but none that waited in the network behind others.

use std::mem;
use std::time::{Duration, SystemTime};

use amber_client::sources::RobotClock;
use amber_proto::camera::Picture;
use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;

use crate::limits::{MAX_RATE, MIN_WIDTH};

/// A message of a page about pictures.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum Wanted {
    /// Show the pictures of a camera until the connection ends, or show others of it.
    Show {
        /// The camera.
        device: String,
        /// In ms.
        period: u32,
        /// In pixels; absent for the width of the camera.
        max_width: Option<u32>,
    },
    /// The page has drawn the picture with this number, or cannot draw it.
    Drawn {
        /// See [`Pictures::take`].
        number: u32,
    },
    /// Send one picture of the camera's own size.
    Still,
}

/// The period and the width that a page gets: what it wants, within the limits.
#[must_use]
pub fn limited(period_ms: u32, max_width: Option<u32>) -> (Duration, Option<u32>) {
    let period = Duration::from_millis(period_ms.into());
    let shortest = Duration::from_secs(1) / MAX_RATE;
    (period.max(shortest), max_width.map(|it| it.max(MIN_WIDTH)))
}

/// The flag of a picture that a page has asked for with [`Wanted::Still`].
const STILL: u32 = 1;
/// The flag of a picture whose end is missing.
const DAMAGED: u32 = 2;
/// The length of what comes before the JPEG file.
const HEADER: usize = 28;

/// What waits for one page, and what is on its way to it.
#[derive(Debug, Default)]
pub struct Pictures {
    waiting: Option<Waiting>,
    /// The number of the picture that is not confirmed yet, and when it was sent.
    sent: Option<(u32, Duration)>,
    last_number: u32,
    /// How long it took from sending the last picture to its confirmation.
    trip: Duration,
    dropped: u64,
    clock: RobotClock,
}

#[derive(Debug)]
struct Waiting {
    picture: Picture,
    /// Its age when it came, and when it came.
    age: Duration,
    since: Duration,
}

impl Pictures {
    /// The camera has sent a picture, after so many that got lost. One that still waits is dropped.
    pub fn add(&mut self, now: Duration, wall: SystemTime, picture: Picture, lost: u64) {
        let waiting = self.aged(now, wall, picture);
        self.dropped += lost + u64::from(self.waiting.is_some());
        self.waiting = Some(waiting);
    }

    /// The page has drawn a picture.
    pub fn drawn(&mut self, now: Duration, number: u32) {
        if let Some((_, sent)) = self.sent.take_if(|(sent, _)| *sent == number) {
            self.trip = now.saturating_sub(sent);
        }
    }

    /// The page wants pictures of another kind.
    pub fn change(&mut self) {
        self.waiting = None;
    }

    /// The message with the next picture, if there is one and the page has drawn the last one.
    ///
    /// Before the JPEG file come, with the lowest byte first: the flags, the number of the picture
    /// (`u32`), when it was taken in µs since 1970 (`i64`), its age in ms, the time from sending the
    /// last picture to its confirmation in ms, and how many were dropped (`u32`).
    pub fn take(&mut self, now: Duration) -> Option<Bytes> {
        if self.sent.is_some() {
            return None;
        }
        let waiting = self.waiting.take()?;
        self.last_number = self.last_number.wrapping_add(1);
        self.sent = Some((self.last_number, now));
        Some(self.message(now, waiting, self.last_number, 0))
    }

    /// The message with a picture that the page has asked for. It needs no confirmation.
    pub fn still(&mut self, now: Duration, wall: SystemTime, picture: Picture) -> Bytes {
        let waiting = self.aged(now, wall, picture);
        self.message(now, waiting, 0, STILL)
    }

    /// How many pictures the page did not get although it wanted them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn aged(&mut self, now: Duration, wall: SystemTime, picture: Picture) -> Waiting {
        let captured_ms = picture.captured.map(|us| us / 1000);
        Waiting {
            age: self.clock.age(captured_ms, wall),
            since: now,
            picture,
        }
    }

    fn message(&self, now: Duration, waiting: Waiting, number: u32, flags: u32) -> Bytes {
        let Waiting {
            mut picture,
            age,
            since,
        } = waiting;
        let flags = match picture.damaged() {
            true => flags | DAMAGED,
            false => flags,
        };
        let jpeg = mem::take(&mut picture.data).unwrap_or_default();
        let mut bytes = BytesMut::with_capacity(HEADER + jpeg.len());
        bytes.put_u32_le(flags);
        bytes.put_u32_le(number);
        bytes.put_i64_le(picture.captured());
        bytes.put_u32_le(millis(age + now.saturating_sub(since)));
        bytes.put_u32_le(millis(self.trip));
        bytes.put_u32_le(u32::try_from(self.dropped).unwrap_or(u32::MAX));
        bytes.put_slice(&jpeg);
        bytes.freeze()
    }
}

fn millis(duration: Duration) -> u32 {
    duration.as_millis().try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The wall clock at a time of the tests.
    fn wall(now: Duration) -> SystemTime {
        SystemTime::UNIX_EPOCH + ms(1_000_000) + now
    }

    /// A picture that was taken at a time of the tests.
    fn taken(at: Duration, jpeg: &'static str) -> Picture {
        let captured = (ms(1_000_000) + at).as_micros();
        Picture {
            data: Some(jpeg.into()),
            captured: Some(captured.try_into().unwrap()),
            ..Picture::default()
        }
    }

    /// The content of a message: flags, number, captured (ms of the tests), age, trip, dropped, file.
    type Read = (u32, u32, i64, u32, u32, u32, String);

    fn read(message: &Bytes) -> Read {
        let number = |at: usize| u32::from_le_bytes(message[at..at + 4].try_into().unwrap());
        let captured = i64::from_le_bytes(message[8..16].try_into().unwrap());
        (
            number(0),
            number(4),
            captured / 1000 - 1_000_000,
            number(16),
            number(20),
            number(24),
            String::from_utf8(message[HEADER..].to_vec()).unwrap(),
        )
    }

    fn add(pictures: &mut Pictures, now: Duration, picture: Picture) {
        pictures.add(now, wall(now), picture, 0);
    }

    #[test]
    fn a_page_gets_the_newest_picture_when_it_has_drawn_the_last_one() {
        let mut pictures = Pictures::default();
        assert_eq!(pictures.take(ms(0)), None);
        add(&mut pictures, ms(130), taken(ms(100), "a"));
        let first = read(&pictures.take(ms(150)).unwrap());
        assert_eq!(first, (0, 1, 100, 50, 0, 0, "a".into()));
        for (at, jpeg) in [(200, "b"), (300, "c"), (400, "d")] {
            add(&mut pictures, ms(at + 30), taken(ms(at), jpeg));
            assert_eq!(pictures.take(ms(at + 30)), None, "the page draws");
        }
        pictures.drawn(ms(445), 7);
        assert_eq!(pictures.take(ms(445)), None, "no picture has this number");
        pictures.drawn(ms(450), 1);
        let next = read(&pictures.take(ms(460)).unwrap());
        assert_eq!(next, (0, 2, 400, 60, 300, 2, "d".into()));
        pictures.drawn(ms(480), 2);
        assert_eq!(pictures.take(ms(480)), None, "none is shown twice");
        assert_eq!(pictures.dropped(), 2);
        pictures.add(ms(530), wall(ms(530)), taken(ms(500), "e"), 3);
        assert_eq!(pictures.dropped(), 5, "lost on the way from the camera");
    }

    #[test]
    fn a_picture_of_the_old_kind_is_not_sent_and_not_counted() {
        let mut pictures = Pictures::default();
        add(&mut pictures, ms(30), taken(ms(0), "large"));
        pictures.change();
        assert_eq!(pictures.take(ms(40)), None);
        assert_eq!(pictures.dropped(), 0);
    }

    #[test]
    fn a_still_does_not_wait_for_the_page_and_a_half_picture_is_marked() {
        let mut pictures = Pictures::default();
        add(&mut pictures, ms(30), taken(ms(0), "a"));
        pictures.take(ms(30)).unwrap();
        let half = Picture {
            damaged: Some(true),
            ..taken(ms(100), "still")
        };
        let still = pictures.still(ms(140), wall(ms(140)), half);
        assert_eq!(
            read(&still),
            (STILL | DAMAGED, 0, 100, 40, 0, 0, "still".into())
        );
    }

    #[test]
    fn a_camera_with_another_clock_does_not_make_pictures_old() {
        let mut pictures = Pictures::default();
        // An hour behind.
        let picture = |at| Picture {
            captured: Some(taken(at, "").captured() - 3_600_000_000),
            ..taken(at, "p")
        };
        add(&mut pictures, ms(40), picture(ms(0)));
        assert_eq!(read(&pictures.take(ms(40)).unwrap()).3, 0);
        pictures.drawn(ms(50), 1);
        add(&mut pictures, ms(340), picture(ms(100)));
        assert_eq!(read(&pictures.take(ms(340)).unwrap()).3, 200);
    }

    #[test]
    fn wishes_are_limited() {
        assert_eq!(limited(100, Some(640)), (ms(100), Some(640)));
        let (period, width) = limited(0, Some(0));
        assert_eq!(width, Some(MIN_WIDTH));
        assert!(period >= ms(16), "{period:?}");
        assert_eq!(limited(1_000, None), (ms(1_000), None));
    }

    #[test]
    fn messages_of_pages_are_read() {
        let read = |text: &str| serde_json::from_str::<Wanted>(text).ok();
        let shown = Wanted::Show {
            device: "camera:0".into(),
            period: 100,
            max_width: None,
        };
        let text = r#"{"t":"show","device":"camera:0","period":100,"max_width":null,"at":5.5}"#;
        assert_eq!(read(text), Some(shown));
        let drawn = r#"{"t":"drawn","number":4}"#;
        assert_eq!(read(drawn), Some(Wanted::Drawn { number: 4 }));
        assert_eq!(read(r#"{"t":"still"}"#), Some(Wanted::Still));
        assert_eq!(read(r#"{"t":"drive"}"#), None);
    }
}
