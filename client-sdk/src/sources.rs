//! Measurements for programs that navigate: scans and wheel speeds, without an end. IO.
//!
//! A driver reaches other devices over its own stdin and stdout, or as a client of a mediator over
//! UDP. Each function here runs until the client ends, and passes on measurements and errors. When
//! its future is dropped, it ends; a subscription ends with it.

use std::time::{Duration, Instant, SystemTime};

use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::{Client, Error, Hokuyo, Roboclaw, Scan, WheelSpeeds};

/// A scanner that publishes nothing for this time is asked for scans instead. A scanner that works
/// publishes ten times in this time, and the drivers of the original system need not publish at all.
const SILENCE: Duration = Duration::from_secs(1);
/// The time between two requests for a scan; a scan takes 25 to 100 ms.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// The time between two requests after an error.
const RETRY: Duration = Duration::from_millis(250);
/// A measurement older than this has a wrong clock rather than a long way.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The client for other devices: `own`, or one for a mediator at this address. Tries again until
/// the address can be used, and passes on each error.
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

/// Subscribes to the scans of a scanner. While it publishes none, asks for them.
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

/// Asks for the speeds of the wheels once per period. Passes on the time in the middle between
/// request and answer.
pub async fn poll_wheels(
    wheels: Roboclaw,
    period: Duration,
    mut take: impl FnMut(Result<(Instant, WheelSpeeds), Error>),
) {
    let now = || tokio::time::Instant::now().into_std();
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

/// How long ago a device measured something, by the clock of the robot. If the clocks of the robot
/// and of this machine disagree, it was just now.
#[must_use]
pub fn age(timestamp_ms: Option<i64>, wall: SystemTime) -> Duration {
    timestamp_ms
        .and_then(|ms| u64::try_from(ms).ok())
        .and_then(|ms| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms)))
        .and_then(|time| wall.duration_since(time).ok())
        .filter(|age| *age <= MAX_AGE)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_0_if_the_clocks_disagree() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        for (timestamp_ms, age_ms) in [
            (Some(999_950), 50),
            (Some(999_000), 1_000),
            (Some(998_999), 0),
            (Some(1_000_001), 0),
            (Some(-5), 0),
            (Some(i64::MAX), 0),
            (None, 0),
        ] {
            let found = age(timestamp_ms, wall);
            assert_eq!(found, Duration::from_millis(age_ms), "{timestamp_ms:?}");
        }
    }
}
