//! `amber camera --watch`: shows pictures one after the other. IO.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_client::{Client, Event};
use amber_proto::camera::{Picture, PictureStream};
use amber_terminal::{Failure, show};
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::pixels::Pixels;
use super::{Drawing, Options, Taken, why_silent};
use crate::drive;
use crate::end::End;
use crate::screen::{self, Quit, Screen};

/// Enough to follow the robot, and little enough for a terminal over a network: a drawing in colours
/// has some 100 kB.
const USUAL_HZ: f64 = 5.0;
/// The update interval of the line about the stream.
const LINE: Duration = Duration::from_millis(500);
/// The rate is that of so much time.
const MEASURED: Duration = Duration::from_secs(3);
/// After so much time without a picture, the reason is asked for.
const SILENCE: Duration = Duration::from_secs(3);

pub(super) async fn run(client: &Client, options: &Options, json: bool) -> Result<(), Failure> {
    // From here on, signals restore the terminal before this process ends.
    let mut end = End::new()?;
    let mut screen = (!json).then(Screen::open).transpose()?;
    let mut quit = Quit::new(!json)?;
    let shown = async {
        match &mut screen {
            None => lines(client, options).await,
            Some(screen) => draw(client, options, screen).await,
        }
    };
    tokio::select! {
        done = shown => done,
        () = quit.pressed() => Ok(()),
        () = end.wait() => Ok(()),
    }
}

/// One JSON object for each picture.
async fn lines(client: &Client, options: &Options) -> Result<(), Failure> {
    let camera = client.camera(options.device.id.0);
    let period = options.period(USUAL_HZ);
    let mut pictures = camera.pictures(period, options.stream()).await?;
    let mut count = 0;
    while options.count.is_none_or(|most| count < most) {
        let update = crate::message::next(&mut pictures, options.device).await?;
        let line = Line {
            taken: Taken::of(options.device, &update.message),
            missed: update.missed,
        };
        show(&line, true)?;
        count += 1;
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    taken: Taken,
    /// The pictures since the last one that were lost on the way.
    missed: u64,
}

impl amber_terminal::Human for Line {
    fn human(&self) -> String {
        self.taken.human()
    }
}

async fn draw(client: &Client, options: &Options, screen: &mut Screen) -> Result<(), Failure> {
    let (device, drawing) = (options.device, Drawing::new());
    let stream = PictureStream {
        max_width: Some(drawing.max_width(options)),
        format: Some(drawing.format().into()),
        ..options.stream()
    };
    let camera = client.camera(device.id.0);
    let mut pictures = camera.pictures(options.period(USUAL_HZ), stream).await?;
    let mut seen = Seen::new(Instant::now());
    let mut newest: Option<(Picture, Pixels)> = None;
    let mut count = 0;
    let mut ticks = interval(LINE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while options.count.is_none_or(|most| count < most) {
        tokio::select! {
            event = pictures.next_event() => match event {
                Some(Event::Message(update)) => {
                    seen.count(Instant::now(), update.missed);
                    match Pixels::of(&update.message) {
                        Ok(pixels) => newest = Some((update.message, pixels)),
                        Err(why) => seen.trouble = Some(why),
                    }
                    count += 1;
                }
                Some(Event::Interrupted(why)) => seen.trouble = Some(why.to_string()),
                Some(Event::Resumed) => continue,
                None => return Err(Failure::new("the connection to the mediator has ended")),
            },
            _ = ticks.tick() => if seen.silence(Instant::now()) >= SILENCE {
                seen.trouble = Some(why_silent(client, device).await);
            } else if newest.is_some() {
                continue;
            },
        }
        let (columns, rows) = screen::size();
        let drawn = newest.as_ref().map(|(_, pixels)| {
            let size = (columns, rows.saturating_sub(1));
            drawing.draw(pixels, size)
        });
        let taken = newest.as_ref();
        let taken = taken.map(|(picture, _)| Taken::of(device, picture));
        let line = seen.line(Instant::now(), taken.as_ref(), &device.to_string());
        let line = amber_proto::printable_line(&line).into_owned();
        screen.draw(&format!(
            "{}{}",
            drawn.unwrap_or_default(),
            drive::fit(&line)
        ))?;
    }
    Ok(())
}

/// What has come of a stream.
#[derive(Debug)]
struct Seen {
    since: Instant,
    /// The times of the last pictures.
    times: VecDeque<Instant>,
    lost: u64,
    /// Why there are no pictures now.
    trouble: Option<String>,
}

impl Seen {
    fn new(now: Instant) -> Self {
        Self {
            since: now,
            times: VecDeque::new(),
            lost: 0,
            trouble: None,
        }
    }

    fn count(&mut self, now: Instant, missed: u64) {
        self.times.push_back(now);
        self.lost += missed;
        self.trouble = None;
        while let Some(first) = self.times.front()
            && now.saturating_duration_since(*first) > MEASURED
        {
            self.times.pop_front();
        }
    }

    fn silence(&self, now: Instant) -> Duration {
        let last = self.times.back().copied().unwrap_or(self.since);
        now.saturating_duration_since(last)
    }

    /// Pictures per second of the last seconds, if there were several.
    fn rate_hz(&self) -> Option<f64> {
        let (first, last) = (self.times.front()?, self.times.back()?);
        let time = last.saturating_duration_since(*first).as_secs_f64();
        (time > 0.0).then(|| (self.times.len() - 1) as f64 / time)
    }

    /// The most important things first: a narrow terminal cuts the line.
    fn line(&self, now: Instant, taken: Option<&Taken>, device: &str) -> String {
        if let Some(trouble) = &self.trouble {
            return format!("{device}: {trouble}");
        }
        let Some(taken) = taken else {
            return format!("{device}: waits for a picture");
        };
        let old = self.silence(now) >= SILENCE;
        let rate = self.rate_hz().filter(|_| !old);
        let rate = rate.map_or(String::new(), |rate| format!("{rate:.1} Hz, "));
        format!("{rate}{} lost, {}", self.lost, taken.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut seen = Seen::new(start);
        assert_eq!(seen.rate_hz(), None);
        assert_eq!(
            seen.line(start, None, "camera:0"),
            "camera:0: waits for a picture"
        );
        for ms in [0, 100, 200] {
            seen.count(at(ms), 0);
        }
        seen.count(at(400), 1);
        assert!((seen.rate_hz().unwrap() - 7.5).abs() < 1e-9);
        assert_eq!(seen.lost, 1);
        // A slower rate counts alone when its time has come.
        for ms in (1_000..=9_000).step_by(1_000) {
            seen.count(at(ms), 0);
        }
        assert!((seen.rate_hz().unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(seen.silence(at(12_500)), Duration::from_millis(3_500));
        seen.trouble = Some("unplugged".into());
        assert_eq!(seen.line(start, None, "camera:0"), "camera:0: unplugged");
    }
}
