//! Visits one room after the other, until Ctrl-C.
//!
//! ```sh
//! cargo run --release -- demo                      # in one terminal
//! cargo run --example tour                         # in another; Ctrl-C stops
//! cargo run --example tour 3.35,1 5.5,1            # only these points: X,Y in metres, y down
//! ```
//!
//! The driver drive_to_point finds the path. A point that it cannot reach is skipped until the next
//! round. `amber map show --live` shows the robot.

#![allow(clippy::print_stdout, clippy::print_stderr)] // For people.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use amber_client::lease::Terms;
use amber_client::proxy::DriveToPointProgressUpdates;
use amber_client::values::Target;
use amber_client::{Client, DriveEnd, DriveToPoint, Result};

/// The rooms of the demo's flat: kitchen, bath, bedroom, study, living room.
const ROOMS: [Target; 5] = [
    Target::new(1.4, 1.0),
    Target::new(3.35, 1.0),
    Target::new(5.5, 1.0),
    Target::new(5.7, 4.4),
    Target::new(2.1, 4.3),
];
/// How long the robot stays in a room, and how long it waits after an error.
const PAUSE: Duration = Duration::from_secs(1);

const HELP: &str = "\
Visits one room after the other, endlessly; Ctrl-C stops the robot.

Usage: tour [X,Y]... [--help]

X,Y are points on the map in metres, with y down [default: the rooms of the demo's flat].
AMBER_MEDIATOR is the address of the mediator [default: 127.0.0.1:26233].";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    if words.iter().any(|word| word == "-h" || word == "--help") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let places: Option<Vec<_>> = words.iter().map(|word| place(word)).collect();
    let Some(places) = places else {
        eprintln!("error: a point is X,Y, such as 3.35,1\nhint: `--help` shows the usage");
        return ExitCode::from(2);
    };
    let rooms = if places.is_empty() {
        ROOMS.to_vec()
    } else {
        places
    };
    match run(&rooms).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.explained());
            ExitCode::FAILURE
        }
    }
}

async fn run(rooms: &[Target]) -> Result<()> {
    let mediator = env::var("AMBER_MEDIATOR").unwrap_or_else(|_| "127.0.0.1".into());
    let client = Client::connect(mediator).await?;
    let drive = client.drive_to_point(0);
    // An error at the start is one that the user must correct.
    drive.configuration().await?;
    // No other program drives the robot meanwhile, and it stops if this program freezes.
    let terms = Terms::new("tour").with_period(Duration::from_millis(500));
    let lease = terms.take(&client.device(drive.address())).await?;
    let visited = tokio::select! {
        error = lease.lost() => return Err(error),
        visited = tour(&drive, rooms, |text| println!("{text}")) => visited,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    // Deletes the targets, and the driver stops the wheels.
    drive.stop().await?;
    client.close().await;
    println!("the robot was stopped");
    visited
}

/// Visits the rooms endlessly, and prints its progress. After dropping this, stop the robot.
pub(crate) async fn tour(
    drive: &DriveToPoint,
    rooms: &[Target],
    mut say: impl FnMut(String),
) -> Result<()> {
    loop {
        for room in rooms {
            let (x_m, y_m) = (room.x_m, room.y_m);
            say(format!("driving to {x_m}, {y_m}"));
            let mut last = String::new();
            let driven = drive.drive_to(*room, |update| {
                // Prints each new reason to stand still once.
                let reason = standing(update);
                if reason != last && !reason.is_empty() {
                    say(format!("waits: {reason}"));
                }
                last = reason;
                Ok(())
            });
            match driven.await {
                Ok(DriveEnd::Arrived(pose)) => {
                    say(format!("arrived at {:.2}, {:.2}", pose.x_m, pose.y_m));
                }
                Ok(end) => say(format!("does not reach {x_m}, {y_m}: {end}")),
                Err(error @ amber_client::Error::Closed { .. }) => return Err(error),
                // The driver may recover.
                Err(error) => say(error.explained()),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The reason why the robot stands still, if it has a target.
fn standing(update: &DriveToPointProgressUpdates) -> String {
    use amber_client::proto::drive_to_point::progress::State;
    let waits = matches!(
        update.progress.state(),
        State::NoPose
            | State::PoseJumped
            | State::PoseLost
            | State::Searching
            | State::Blocked
            | State::Waiting
    );
    if !waits {
        return String::new();
    }
    let state = update.progress.state().as_str_name().to_lowercase();
    format!("{} ({})", state.replace('_', " "), update.progress.reason())
}

fn place(word: &str) -> Option<Target> {
    let (x_m, y_m) = word.split_once(',')?;
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    Some(Target::new(number(x_m)?, number(y_m)?))
}
