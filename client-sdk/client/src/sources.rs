//! Endless measurements for programs that navigate: scans and wheel speeds. IO.
//!
//! A driver reaches other devices over its own stdin and stdout, or as a client of a mediator over
//! UDP. Each function here runs until the client ends, and forwards measurements and errors. When
//! its future is dropped, it ends; a subscription ends with it.

use std::time::{Duration, Instant, SystemTime};

use amber_proto::DeviceType;
use amber_proto::hokuyo::Scanner;
use amber_proto::location::Quality;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::{
    Client, Error, Hokuyo, LocationService, MapPose, Roboclaw, RoboclawSpeedUpdates, Scan,
    WheelSpeeds,
};

/// A scanner that publishes nothing for this time gets requests instead. A scanner that works
/// publishes ten times in this time, and the drivers of the original system need not publish at all.
const SILENCE: Duration = Duration::from_secs(1);
/// The same for wheels, which publish 20 times per second.
const SILENCE_OF_WHEELS: Duration = Duration::from_millis(300);
/// The time between two requests for a scan; a scan takes 25 to 100 ms.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// The time between two requests after an error.
const RETRY: Duration = Duration::from_millis(250);
/// The time between two requests for the description of a scanner: another one may be plugged in.
const DESCRIBE_EVERY: Duration = Duration::from_secs(10);
/// The same while it does not answer. Drivers of the original system never do.
const DESCRIBE_AGAIN: Duration = Duration::from_secs(60);
/// The first requests without an answer are repeated sooner: the scanner may be starting.
const DESCRIBE_SOON: Duration = Duration::from_secs(1);
const SOON_TIMES: u32 = 10;
/// If even the measurement with the smallest delay seems older than this, the clocks disagree.
const MAX_AGE_MS: i64 = 1_000;
/// The time in which at least one measurement comes without delay.
pub const CLOCK_WINDOW: Duration = Duration::from_secs(30);

/// The client for other devices: `own`, or one for a mediator at this address. Retries until the
/// address is usable, and forwards each error.
pub async fn client(own: &Client, mediator: Option<&str>, mut failed: impl FnMut(Error)) -> Client {
    let Some(mediator) = mediator else {
        return own.clone();
    };
    loop {
        match Client::connect(mediator).await {
            Ok(client) => return client,
            Err(error) => failed(error),
        }
        sleep(SILENCE).await;
    }
}

/// Subscribes to the scans of a scanner. While it publishes none, requests them.
pub async fn watch_scans(scanner: Hokuyo, mut take: impl FnMut(Result<Scan, Error>)) {
    let mut published = match scanner.scans().await {
        Ok(published) => published,
        Err(error) => return take(Err(error)),
    };
    loop {
        while let Ok(next) = timeout(SILENCE, published.next()).await {
            match next {
                Some(update) => take(Ok(update.message)),
                None => return,
            }
        }
        loop {
            let asking = async {
                let answer = scanner.scan().await;
                let wait = if answer.is_ok() { ASK_EVERY } else { RETRY };
                (answer, wait)
            };
            let (answer, wait) = tokio::select! {
                biased;
                next = published.next() => match next {
                    Some(update) => {
                        take(Ok(update.message));
                        break;
                    }
                    None => return,
                },
                asked = asking => asked,
            };
            take(answer);
            sleep(wait).await;
        }
    }
}

/// Asks a scanner now and then what it can measure, and forwards each change. A scanner that does not
/// tell is asked less often.
pub async fn watch_scanner(scanner: Hokuyo, mut take: impl FnMut(Scanner)) {
    let (mut last, mut failures) = (None, 0);
    loop {
        let wait = match scanner.scanner().await {
            Ok(told) => {
                failures = 0;
                if last.as_ref() != Some(&told) {
                    last = Some(told.clone());
                    take(told);
                }
                DESCRIBE_EVERY
            }
            Err(Error::Closed { .. }) => return,
            Err(_) => {
                failures += 1;
                match failures <= SOON_TIMES {
                    true => DESCRIBE_SOON,
                    false => DESCRIBE_AGAIN,
                }
            }
        };
        sleep(wait).await;
    }
}

/// Subscribes to the speeds of the wheels, and forwards them with the time of the measurement. While
/// the driver publishes none, as drivers of the original system, requests them once per period.
pub async fn watch_wheels(
    wheels: Roboclaw,
    period: Duration,
    mut take: impl FnMut(Result<(Instant, WheelSpeeds), Error>),
) {
    // CollisionAvoidance also accepts the messages of Roboclaw, but it publishes whole scans. It
    // answers from memory, so requests load no bus.
    if wheels.address().device_type != DeviceType::ROBOCLAW {
        return poll_wheels(&wheels, period, &mut take).await;
    }
    let mut published = match wheels.speed_updates().await {
        Ok(published) => published,
        Err(error) => return take(Err(error)),
    };
    let measured = |update: RoboclawSpeedUpdates| {
        let age = Duration::from_micros(update.speed_age_us.unwrap_or(0).into());
        let now = now();
        (now.checked_sub(age).unwrap_or(now), update.current_speed)
    };
    loop {
        while let Ok(next) = timeout(SILENCE_OF_WHEELS, published.next()).await {
            match next {
                Some(update) => take(Ok(measured(update.message))),
                None => return,
            }
        }
        tokio::select! {
            biased;
            next = published.next() => match next {
                Some(update) => take(Ok(measured(update.message))),
                None => return,
            },
            () = poll_wheels(&wheels, period, &mut take) => return,
        }
    }
}

/// Subscribes to the poses of the robot, and forwards them with what the driver says of their quality.
/// While it publishes none, as drivers of the original system, requests them once per period.
///
/// A pose that is not decided is a guess, or old: it is forwarded as an unknown one, all zero.
pub async fn watch_poses(
    location: LocationService,
    period: Duration,
    mut take: impl FnMut(Result<(MapPose, Option<Quality>), Error>),
) {
    let mut published = match location.poses().await {
        Ok(published) => published,
        Err(error) => return take(Err(error)),
    };
    // Drivers without a quality have another measure of `p`.
    let mut tells_quality = false;
    loop {
        let asked = match timeout(SILENCE, published.next()).await {
            Ok(next) => Some(next),
            Err(_) => loop {
                tokio::select! {
                    biased;
                    next = published.next() => break Some(next),
                    answer = location.pose() => match answer {
                        Ok(pose) => {
                            take(Ok((decided(pose, tells_quality), None)));
                            sleep(period).await;
                        }
                        Err(error @ Error::Closed { .. }) => {
                            take(Err(error));
                            break None;
                        }
                        Err(error) => {
                            take(Err(error));
                            sleep(RETRY).await;
                        }
                    },
                }
            },
        };
        let Some(Some(update)) = asked else {
            return;
        };
        let quality = update.message.quality;
        tells_quality |= quality.is_some();
        take(Ok((
            decided(update.message.current_location, tells_quality),
            quality,
        )));
    }
}

/// The pose, or an unknown one.
fn decided(pose: MapPose, tells_quality: bool) -> MapPose {
    match pose.is_decided(tells_quality) {
        true => pose,
        false => MapPose::default(),
    }
}

/// Requests the speeds of the wheels once per period. Forwards them with the time in the middle
/// between request and answer.
async fn poll_wheels(
    wheels: &Roboclaw,
    period: Duration,
    take: &mut impl FnMut(Result<(Instant, WheelSpeeds), Error>),
) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let asked = now();
        match wheels.speeds().await {
            Ok(speeds) => take(Ok((asked + now().duration_since(asked) / 2, speeds))),
            Err(Error::Closed { .. }) => return,
            Err(error) => {
                take(Err(error));
                sleep(RETRY).await;
            }
        }
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Compares the clock of a robot with that of this machine, to tell how old its measurements are.
///
/// The clocks may disagree: then the measurement with the smallest delay counts as new, and others
/// are older than that. So a late measurement is always detected, with one exception: if all
/// measurements of a robot with a different clock are late for [`CLOCK_WINDOW`], their delay counts
/// as the difference of the clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RobotClock {
    /// The smallest differences of this and the last window, in milliseconds.
    smallest_ms: Option<i64>,
    smallest_before_ms: Option<i64>,
    since: Option<SystemTime>,
}

impl RobotClock {
    /// The age of a measurement, by the clock of the robot. Without a time, the age is zero.
    #[must_use]
    pub fn age(&mut self, timestamp_ms: Option<i64>, wall: SystemTime) -> Duration {
        let Some((timestamp_ms, wall_ms)) = timestamp_ms.zip(millis(wall)) else {
            return Duration::ZERO;
        };
        let behind_ms = wall_ms.saturating_sub(timestamp_ms);
        let in_window = self.since.is_some_and(|since| {
            let passed = wall.duration_since(since);
            passed.is_ok_and(|passed| passed < CLOCK_WINDOW)
        });
        if !in_window {
            self.smallest_before_ms = self.smallest_ms.take();
            self.since = Some(wall);
        }
        let smallest_ms = self.smallest_ms.map_or(behind_ms, |it| it.min(behind_ms));
        self.smallest_ms = Some(smallest_ms);
        let soonest_ms = self
            .smallest_before_ms
            .map_or(smallest_ms, |it| it.min(smallest_ms));
        let agree = (0..=MAX_AGE_MS).contains(&soonest_ms);
        let age_ms = if agree {
            behind_ms
        } else {
            behind_ms.saturating_sub(soonest_ms)
        };
        Duration::from_millis(age_ms.try_into().unwrap_or(0))
    }
}

fn millis(time: SystemTime) -> Option<i64> {
    let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    since_epoch.as_millis().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(ms: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
    }

    /// The ages of measurements with these times, which arrive at these times.
    fn ages(measured_and_arrived_ms: &[(i64, u64)]) -> Vec<u64> {
        let mut clock = RobotClock::default();
        let age = |(measured_ms, arrived_ms): &(i64, u64)| {
            let age = clock.age(Some(*measured_ms), wall(*arrived_ms));
            age.as_millis().try_into().unwrap()
        };
        measured_and_arrived_ms.iter().map(age).collect()
    }

    #[test]
    fn an_old_measurement_is_not_new() {
        let late = [
            (1_000_000, 1_000_050),
            (1_000_100, 1_003_100),
            (1_003_110, 1_003_150),
        ];
        assert_eq!(ages(&late), [50, 3_000, 40]);
        let late_by_another_clock = [(5_000, 1_000_050), (5_100, 1_003_100), (8_110, 1_003_150)];
        assert_eq!(ages(&late_by_another_clock), [0, 2_950, 0]);
        let ahead = [
            (9_000_000, 1_000_050),
            (9_000_100, 1_000_190),
            (9_000_200, 1_002_250),
        ];
        assert_eq!(ages(&ahead), [0, 40, 2_000]);
    }

    #[test]
    fn a_clock_that_is_set_is_believed_after_a_while() {
        let mut clock = RobotClock::default();
        let mut age = |second: u64, off_ms: i64| {
            let measured_ms = 1_000_000 + second as i64 * 1_000 + off_ms;
            let arrived = wall(1_000_020 + second * 1_000);
            clock.age(Some(measured_ms), arrived).as_millis()
        };
        assert_eq!(age(0, 0), 20);
        // Forwards, it is believed at once.
        assert_eq!(age(1, 60_000), 0);
        assert_eq!(age(2, 60_000), 0);
        let windows_s = 2 * CLOCK_WINDOW.as_secs();
        let set_back: Vec<_> = (3..=windows_s + 3)
            .map(|second| age(second, -60_000))
            .collect();
        assert_eq!(set_back[0], 120_000);
        assert_eq!(set_back.last(), Some(&0));
    }

    #[test]
    fn times_that_are_none_are_now() {
        let mut clock = RobotClock::default();
        assert_eq!(clock.age(None, wall(1_000_000)), Duration::ZERO);
        for timestamp_ms in [-5, i64::MIN, i64::MAX] {
            let mut clock = RobotClock::default();
            let age = clock.age(Some(timestamp_ms), wall(1_000_000));
            assert_eq!(age, Duration::ZERO, "{timestamp_ms}");
        }
    }
}
