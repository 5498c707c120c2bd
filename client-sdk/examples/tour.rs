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

#![allow(clippy::print_stdout)] // For people.

use std::env;
use std::error::Error;
use std::time::Duration;

use amber_sdk::devices::{DriveToPoint, DriveToPointProgressUpdates};
use amber_sdk::lease::Terms;
use amber_sdk::{DriveEnd, Robot, Target, sleep};

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

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<(), Box<dyn Error>> {
    let places: Vec<_> = env::args().skip(1).map(place).collect::<Result<_, _>>()?;
    let rooms = if places.is_empty() {
        ROOMS.to_vec()
    } else {
        places
    };
    let drive = robot.drive_to_point(0);
    // An error at the start is one that the user must correct.
    drive.configuration().await?;
    // No other program drives the robot meanwhile, and it stops if this program freezes.
    let terms = Terms::new("tour").with_period(Duration::from_millis(500));
    let lease = terms.take(&robot.device(drive.address())).await?;
    tokio::select! {
        error = lease.lost() => Err(error.into()),
        visited = tour(&drive, &rooms, |text| println!("{text}")) => Ok(visited?),
    }
}

/// Visits the rooms endlessly, and prints its progress. After dropping this, stop the robot.
pub(crate) async fn tour(
    drive: &DriveToPoint,
    rooms: &[Target],
    mut say: impl FnMut(String),
) -> amber_sdk::Result<()> {
    loop {
        for room in rooms {
            let (x_m, y_m) = (room.x_m, room.y_m);
            say(format!("driving to {x_m}, {y_m}"));
            match drive_there(drive, *room, &mut say).await {
                Ok(DriveEnd::Arrived(pose)) => {
                    say(format!("arrived at {:.2}, {:.2}", pose.x_m, pose.y_m));
                }
                Ok(end) => say(format!("does not reach {x_m}, {y_m}: {end}")),
                Err(error @ amber_sdk::Error::Closed { .. }) => return Err(error),
                // The driver may recover.
                Err(error) => say(error.explained()),
            }
            sleep(PAUSE).await;
        }
    }
}

async fn drive_there(
    drive: &DriveToPoint,
    room: Target,
    say: &mut impl FnMut(String),
) -> amber_sdk::Result<DriveEnd> {
    let mut trip = drive.drive_to(room);
    let mut last = String::new();
    while let Some(update) = trip.next().await? {
        // Prints each new reason to stand still once.
        let reason = standing(&update);
        if reason != last && !reason.is_empty() {
            say(format!("waits: {reason}"));
        }
        last = reason;
    }
    trip.await
}

/// The reason why the robot stands still, if it has a target.
fn standing(update: &DriveToPointProgressUpdates) -> String {
    use amber_sdk::proto::drive_to_point::progress::State;
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

fn place(word: String) -> Result<Target, String> {
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    (word.split_once(','))
        .and_then(|(x_m, y_m)| Some(Target::new(number(x_m)?, number(y_m)?)))
        .ok_or_else(|| format!("{word} is not a point\nhint: write X,Y, such as 3.35,1"))
}
