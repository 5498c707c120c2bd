//! Requests the seat of a robot: `amber-zenoh seat`. IO.

use std::time::Duration;

use amber_terminal::Human;
use serde::Serialize;
use tokio::time::{Instant, sleep};
use zenoh::Session;

use crate::health::SeatInfo;
use crate::keys::RobotKeys;
use crate::names::Name;
use crate::problem::{Kind, Problem};

/// The time between two requests while waiting for a seat.
const PERIOD: Duration = Duration::from_millis(300);

/// How long to wait for one answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// An action on the seat of a robot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Action {
    /// Show who holds it, and who waits for it
    #[default]
    Show,
    /// Take it when it is free
    Take,
    /// Release it; the wheels stop
    Release,
    /// Take it from another operator, which the configuration of the robot must allow
    Force,
    /// Halt everything of the robot that moves, until the release
    Halt,
    /// Allow motion again
    ReleaseHalt,
}

impl Action {
    fn parameter(self) -> &'static str {
        match self {
            Self::Show => "",
            Self::Take => "action=take",
            Self::Release => "action=release",
            Self::Force => "action=force",
            Self::Halt => "action=halt",
            Self::ReleaseHalt => "action=release-halt",
        }
    }
}

/// The seat of a robot.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    robot: Name,
    seat: SeatInfo,
}

/// Requests a seat. Taking it waits until it is free, at most until the deadline.
///
/// # Errors
/// The robot refuses or does not answer, or the seat is not free in time.
pub async fn ask(
    session: &Session,
    robot: &Name,
    who: &Name,
    action: Action,
    deadline: Duration,
) -> Result<Shown, Problem> {
    let end = Instant::now() + deadline;
    let key = RobotKeys::new(robot).seat(who);
    loop {
        let seat = once(session, robot, &format!("{key}?{}", action.parameter())).await?;
        let holder = seat.holder.as_ref().map(|it| &it.who);
        let is_done = action != Action::Take || holder == Some(who);
        if is_done {
            let robot = robot.clone();
            return Ok(Shown { robot, seat });
        }
        if Instant::now() + PERIOD > end {
            // Otherwise the claim would still win when nobody waits for it any more.
            let release = format!("{key}?{}", Action::Release.parameter());
            once(session, robot, &release).await?;
            let holder = holder.map_or("nobody".to_owned(), ToString::to_string);
            let problem = format!("{holder} keeps the seat of {robot}");
            return Err(Problem::new(Kind::Occupied, problem)
                .hint("wait longer with --deadline, or ask the operator to release it"));
        }
        sleep(PERIOD).await;
    }
}

async fn once(session: &Session, robot: &Name, selector: &str) -> Result<SeatInfo, Problem> {
    let failed = |error: zenoh::Error| Problem::new(Kind::Failed, error.to_string());
    let answers = session
        .get(selector)
        .timeout(PATIENCE)
        .await
        .map_err(failed)?;
    let Ok(answer) = answers.recv_async().await else {
        let problem = format!(
            "no answer: {robot} is not in the fleet, or the rights of this operator do not allow it"
        );
        return Err(
            Problem::new(Kind::TimedOut, problem).hint("`amber-zenoh fleet` lists the robots")
        );
    };
    let unreadable = |_| Problem::new(Kind::Failed, format!("{robot} sent an invalid answer"));
    match answer.result() {
        Ok(sample) => serde_json::from_slice(&sample.payload().to_bytes()).map_err(unreadable),
        Err(error) => {
            let problem = serde_json::from_slice(&error.payload().to_bytes());
            Err(problem.unwrap_or_else(unreadable))
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        let seconds = |ms: u64| format!("{:.1} s", ms as f64 / 1000.0);
        let robot = &self.robot;
        let mut text = match &self.seat.holder {
            None => format!("nobody drives {robot}\n"),
            Some(holder) => {
                let way = if holder.drives {
                    "drives"
                } else {
                    "has the seat of"
                };
                format!(
                    "{} {way} {robot}, for {}; free in {}\n",
                    holder.who,
                    seconds(holder.held_ms),
                    seconds(holder.free_in_ms)
                )
            }
        };
        for waiting in &self.seat.waiting {
            text += &format!("{} waits, for {}\n", waiting.who, seconds(waiting.waits_ms));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use crate::health::{SeatHolder, SeatWaiting};

    use super::*;

    #[test]
    fn the_seat_is_shown_in_words() {
        let name = |name: &str| name.parse::<Name>().unwrap();
        let mut shown = Shown {
            robot: name("r2"),
            seat: SeatInfo::free(0),
        };
        assert_eq!(shown.human(), "nobody drives r2\n");
        shown.seat.holder = Some(SeatHolder {
            who: name("bob"),
            held_ms: 2_340,
            free_in_ms: 600,
            drives: true,
        });
        shown.seat.waiting.push(SeatWaiting {
            who: name("alice"),
            waits_ms: 100,
        });
        let expected = "bob drives r2, for 2.3 s; free in 0.6 s\nalice waits, for 0.1 s\n";
        assert_eq!(shown.human(), expected);
    }
}
