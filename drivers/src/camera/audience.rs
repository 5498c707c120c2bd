//! The clients that want pictures: how often, and of which kind. PURE.
//!
//! Pictures come when the camera has them. A client gets one if its period is over, or almost: half a
//! period of the camera early is nearer than half a period late. Its times are kept, so a client that
//! wants five pictures per second from a camera with thirty gets each sixth.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin};
use amber_proto::Device;
use amber_proto::camera::{Format, PictureRequest, PictureStream};

use super::pixels::Recipe;

/// The most clients with a stream.
const MAX_CLIENTS: usize = 64;
/// The most kinds of pictures that are made for streams besides that of the camera: each costs time.
const MAX_KINDS: usize = 3;
/// How often a picture can be made smaller: to this part of its width.
const MAX_DIVISOR: u32 = 64;

/// The kind of picture that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// In pixels; `None` for that of the camera.
    pub max_width: Option<u32>,
    /// 1 to 100.
    pub quality: Option<u8>,
    /// How the bytes are to be read.
    pub format: Format,
}

impl Wish {
    fn new(max_width: Option<u32>, quality: Option<u32>, format: Format) -> Self {
        let quality = quality.map(|quality| quality.clamp(1, 100));
        Self {
            max_width: max_width.map(|width| width.max(1)),
            quality: quality.and_then(|quality| u8::try_from(quality).ok()),
            format,
        }
    }

    /// How to make it from pictures of this width.
    #[must_use]
    pub fn recipe(&self, width: u32) -> Recipe {
        let divisor = self.max_width.map_or(1, |max| width.div_ceil(max));
        Recipe {
            divisor: divisor.clamp(1, MAX_DIVISOR),
            quality: self.quality,
            format: self.format,
        }
    }

    /// Whether it is the file of the camera, whatever its size.
    fn is_original(&self) -> bool {
        *self == Self::new(None, None, Format::Jpeg)
    }
}

impl From<&PictureRequest> for Wish {
    fn from(request: &PictureRequest) -> Self {
        Self::new(request.max_width, request.quality, request.format())
    }
}

impl From<&PictureStream> for Wish {
    fn from(stream: &PictureStream) -> Self {
        Self::new(stream.max_width, stream.quality, stream.format())
    }
}

#[derive(Clone, Copy, Debug)]
struct Viewer {
    wish: Wish,
    period: Duration,
    /// `None` before the first picture, which comes at once.
    due: Option<Instant>,
}

/// All clients with a stream.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    viewers: BTreeMap<(ClientId, Option<Device>), Viewer>,
}

impl Audience {
    /// A client starts its stream, or changes it.
    ///
    /// # Errors
    /// There are too many clients.
    pub fn start(&mut self, origin: &Origin, stream: &PictureStream) -> Result<(), String> {
        let period = Duration::from_millis(stream.period().into());
        for client in &origin.clients {
            let key = (*client, origin.device);
            self.viewers.remove(&key);
            if self.viewers.len() >= MAX_CLIENTS {
                return Err(format!("{MAX_CLIENTS} clients already watch this camera"));
            }
            let wish = self.possible(stream.into());
            let due = None;
            let viewer = Viewer { wish, period, due };
            self.viewers.insert(key, viewer);
        }
        Ok(())
    }

    /// A client stops its stream.
    pub fn stop(&mut self, origin: &Origin) {
        for client in &origin.clients {
            self.viewers.remove(&(*client, origin.device));
        }
    }

    /// A client is gone.
    pub fn remove(&mut self, client: ClientId) {
        self.viewers.retain(|(other, _), _| *other != client);
    }

    /// Whether nobody watches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.viewers.is_empty()
    }

    /// The clients that get a picture now, those with the same wish together. `interval` is the time
    /// between pictures of the camera.
    pub fn take_due(&mut self, now: Instant, interval: Duration) -> Vec<(Wish, Origin)> {
        let mut taken: Vec<(Wish, Origin)> = Vec::new();
        for ((client, device), viewer) in &mut self.viewers {
            if viewer.due.is_some_and(|due| due > now + interval / 2) {
                continue;
            }
            // Keeps the times, unless it is late.
            let due = viewer.due.unwrap_or(now) + viewer.period;
            viewer.due = Some(due.max(now));
            let is_same = |(wish, origin): &&mut (Wish, Origin)| {
                *wish == viewer.wish && origin.device == *device
            };
            match taken.iter_mut().find(is_same) {
                Some((_, origin)) => origin.clients.push(*client),
                None => {
                    let origin = Origin {
                        device: *device,
                        ..Origin::of(*client)
                    };
                    taken.push((viewer.wish, origin));
                }
            }
        }
        taken
    }

    /// This wish, or the most similar one that others have if too many kinds are made already.
    fn possible(&self, wish: Wish) -> Wish {
        let mut kinds: Vec<Wish> = Vec::new();
        for viewer in self.viewers.values() {
            if !viewer.wish.is_original() && !kinds.contains(&viewer.wish) {
                kinds.push(viewer.wish);
            }
        }
        if wish.is_original() || kinds.contains(&wish) || kinds.len() < MAX_KINDS {
            return wish;
        }
        let width = |wish: &Wish| wish.max_width.unwrap_or(u32::MAX);
        let same = || kinds.iter().filter(|kind| kind.format == wish.format);
        // The largest that is not too large, or else the smallest.
        let fits = same().filter(|kind| width(kind) <= width(&wish));
        let found = fits.max_by_key(|kind| width(kind));
        let found = found.or_else(|| same().min_by_key(|kind| width(kind)));
        // A format that nobody else has is not replaced by another.
        found.copied().unwrap_or(wish)
    }
}

/// The rate of pictures in the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rate {
    last: Option<Instant>,
    interval_s: Option<f64>,
}

impl Rate {
    /// How much a new interval counts.
    const WEIGHT: f64 = 0.1;
    /// A longer interval is a pause, and counts for nothing.
    const PAUSE: Duration = Duration::from_secs(3);

    /// A picture has come.
    pub fn count(&mut self, now: Instant) {
        let last = self.last.replace(now);
        let interval = last.map(|last| now.saturating_duration_since(last));
        if let Some(interval) = interval.filter(|it| *it < Self::PAUSE) {
            let new_s = interval.as_secs_f64();
            let old_s = self.interval_s.unwrap_or(new_s);
            self.interval_s = Some(old_s + (new_s - old_s) * Self::WEIGHT);
        }
    }

    /// The time between two pictures; zero before the second one.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.interval_s
            .map_or(Duration::ZERO, Duration::from_secs_f64)
    }

    /// In pictures per second.
    #[must_use]
    pub fn hz(&self) -> Option<f64> {
        self.interval_s.filter(|it| *it > 0.0).map(|it| 1.0 / it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn stream(period: u32, max_width: Option<u32>, quality: Option<u32>) -> PictureStream {
        PictureStream {
            period: Some(period),
            max_width,
            quality,
            ..PictureStream::default()
        }
    }

    fn client(id: i32) -> Origin {
        Origin::of(ClientId(id))
    }

    /// The numbers of the pictures that a client gets in two seconds from a camera with 30 Hz, whose
    /// pictures come up to 8 ms early or late.
    fn pictures(period: u32) -> Vec<u64> {
        let start = Instant::now();
        let mut audience = Audience::default();
        audience
            .start(&client(1), &stream(period, None, None))
            .unwrap();
        let jitter = [3, -8, 0, 8, -2, 5, -7];
        let at = |number: u64| 20 + number as i64 * 1000 / 30 + jitter[number as usize % 7];
        let is_taken = |number: &u64| {
            let now = start + MS * u32::try_from(at(*number)).unwrap();
            !audience.take_due(now, 33 * MS).is_empty()
        };
        (0..60).filter(is_taken).collect()
    }

    #[test]
    fn each_client_gets_its_own_rate() {
        assert_eq!(pictures(1).len(), 60);
        assert_eq!(pictures(33).len(), 60);
        let fifth = pictures(200);
        assert_eq!(fifth.len(), 10, "{fifth:?}");
        assert!(
            fifth[1..].windows(2).all(|two| two[1] - two[0] == 6),
            "{fifth:?}"
        );
        let odd = pictures(70);
        assert!((28..=30).contains(&odd.len()), "{odd:?}");
        assert_eq!(pictures(10_000), [0]);
    }

    #[test]
    fn a_pause_of_the_camera_is_not_made_up_for() {
        let start = Instant::now();
        let mut audience = Audience::default();
        audience
            .start(&client(1), &stream(100, None, None))
            .unwrap();
        assert_eq!(audience.take_due(start, MS).len(), 1);
        let later = start + 5_000 * MS;
        assert_eq!(audience.take_due(later, MS).len(), 1);
        assert_eq!(
            audience.take_due(later + MS, MS).len(),
            1,
            "at most one more"
        );
        assert_eq!(audience.take_due(later + 2 * MS, MS).len(), 0);
    }

    #[test]
    fn clients_with_the_same_wish_share_a_message() {
        let now = Instant::now();
        let mut audience = Audience::default();
        for (id, width) in [(1, None), (2, Some(320)), (3, None), (4, Some(320))] {
            audience
                .start(&client(id), &stream(100, width, None))
                .unwrap();
        }
        let taken = audience.take_due(now, MS);
        let clients: Vec<_> = taken
            .iter()
            .map(|(wish, origin)| {
                (
                    wish.max_width,
                    origin.clients.iter().map(|it| it.0).collect(),
                )
            })
            .collect::<Vec<(_, Vec<_>)>>();
        assert_eq!(clients, [(None, vec![1, 3]), (Some(320), vec![2, 4])]);
        audience.stop(&client(1));
        audience.remove(ClientId(3));
        assert!(!audience.is_empty());
        assert_eq!(audience.take_due(now + 100 * MS, MS).len(), 1);
    }

    #[test]
    fn sizes_are_whole_parts_that_are_not_too_large() {
        let divisor = |max_width, width| {
            let wish = Wish::new(max_width, None, Format::Jpeg);
            wish.recipe(width).divisor
        };
        assert_eq!(divisor(None, 1280), 1);
        assert_eq!(divisor(Some(1280), 1280), 1);
        assert_eq!(divisor(Some(4000), 1280), 1);
        assert_eq!(divisor(Some(1279), 1280), 2);
        assert_eq!(divisor(Some(320), 640), 2);
        assert_eq!(divisor(Some(300), 640), 3);
        assert_eq!(divisor(Some(0), 640), MAX_DIVISOR);
        let wish = Wish::new(None, Some(500), Format::Gray8);
        assert_eq!(
            (wish.quality, wish.recipe(5).quality),
            (Some(100), Some(100))
        );
    }

    #[test]
    fn a_fourth_kind_of_picture_is_one_of_the_others() {
        let now = Instant::now();
        let mut audience = Audience::default();
        let widths = [
            (1, Some(640)),
            (2, Some(320)),
            (3, Some(160)),
            (4, Some(500)),
            (5, Some(100)),
            (6, None),
        ];
        for (id, width) in widths {
            audience
                .start(&client(id), &stream(100, width, None))
                .unwrap();
        }
        let mut given: Vec<_> = (audience.take_due(now, MS).iter())
            .flat_map(|(wish, origin)| origin.clients.iter().map(move |it| (it.0, wish.max_width)))
            .collect();
        given.sort_unstable();
        let expected = [
            (1, Some(640)),
            (2, Some(320)),
            (3, Some(160)),
            (4, Some(320)),
            (5, Some(160)),
            (6, None),
        ];
        assert_eq!(given, expected);
        // A client that changes its own wish does not count as another one.
        audience
            .start(&client(1), &stream(100, Some(400), None))
            .unwrap();
        let taken = audience.take_due(now + 200 * MS, MS);
        assert!(taken.iter().any(|(wish, _)| wish.max_width == Some(400)));
    }

    #[test]
    fn the_number_of_clients_is_limited() {
        let mut audience = Audience::default();
        for id in 1..=64 {
            audience
                .start(&client(id), &stream(100, None, None))
                .unwrap();
        }
        let refused = audience.start(&client(65), &stream(100, None, None));
        assert_eq!(refused.unwrap_err(), "64 clients already watch this camera");
        audience.start(&client(5), &stream(50, None, None)).unwrap();
    }

    #[test]
    fn the_rate_follows_the_camera() {
        let start = Instant::now();
        let mut rate = Rate::default();
        assert_eq!((rate.hz(), rate.interval()), (None, Duration::ZERO));
        for number in 0..100 {
            rate.count(start + 50 * MS * number);
        }
        assert!((rate.hz().unwrap() - 20.0).abs() < 0.1);
        // A pause, and half the rate in the dark.
        for number in 0..100 {
            rate.count(start + 60_000 * MS + 100 * MS * number);
        }
        assert!((rate.hz().unwrap() - 10.0).abs() < 0.1);
    }
}
