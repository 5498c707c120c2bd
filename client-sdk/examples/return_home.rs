//! Drives back to the start position each time you press Enter.
//!
//! ```sh
//! cargo run --release -- demo                      # in one terminal
//! cargo run --example return_home                  # in another
//! amber drive                                      # in a third: drive somewhere, and press q
//! ```
//!
//! Then press Enter in the second terminal. `return_home --home 3.5,2.6` sets a different home. A
//! program that knows when to return, for example from the voltage of a battery, calls `go_home`
//! instead of waiting for Enter.

#![allow(clippy::print_stdout, clippy::print_stderr)] // For people.

use std::env;
use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use amber_sdk::{Client, DriveEnd, Error, Robot, Target, sleep};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Poses with a lower quality may be wrong.
const SURE: f64 = 0.9;
/// How long the location driver may need to find the robot.
const SEARCH: Duration = Duration::from_secs(30);
const BETWEEN_POSES: Duration = Duration::from_millis(200);

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<_> = env::args().skip(1).collect();
    let home = match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => here(&robot).await?,
        ["--home", home] => place(home).ok_or("write `--home 3.5,2.6`, in metres with y down")?,
        _ => return Err("the only option is --home X,Y".into()),
    };
    Ok(on_request(&robot, home).await?)
}

/// Drives home each time the user presses Enter. Returns at the end of stdin.
async fn on_request(client: &Client, home: Target) -> amber_sdk::Result<()> {
    let mut lines = lines();
    loop {
        println!(
            "home is {:.2}, {:.2}: press Enter to drive there",
            home.x_m, home.y_m
        );
        if lines.recv().await.is_none() {
            return Ok(());
        }
        match go_home(client, home).await {
            Ok(end) => println!("{end}"),
            // The driver may recover.
            Err(error) => eprintln!("{}", error.explained()),
        }
    }
}

/// The position of the robot, as soon as it is reliable.
pub(crate) async fn here(client: &Client) -> amber_sdk::Result<Target> {
    let location = client.location(0);
    let search = async {
        loop {
            let pose = location.pose().await?;
            if pose.quality > SURE {
                return Ok(Target::new(pose.x_m, pose.y_m));
            }
            sleep(BETWEEN_POSES).await;
        }
    };
    let device = location.address();
    let found = timeout(SEARCH, search).await;
    found.unwrap_or(Err(Error::TimedOut {
        device,
        waited: SEARCH,
    }))
}

/// Drives home and waits for the end. The heading there is any.
pub(crate) async fn go_home(client: &Client, home: Target) -> amber_sdk::Result<DriveEnd> {
    let drive = client.drive_to_point(0);
    let mut remaining_m = f64::INFINITY;
    let mut trip = drive.drive_to(home);
    while let Some(update) = trip.next().await? {
        let now_m = update.progress.remaining();
        // A line for each metre.
        if now_m > 0.0 && now_m < remaining_m - 1.0 {
            println!("{now_m:.1} m left");
            remaining_m = now_m;
        }
    }
    trip.await
}

/// The lines of stdin, read in a separate thread: reading cannot be cancelled.
fn lines() -> mpsc::Receiver<()> {
    let (sender, lines) = mpsc::channel(1);
    thread::spawn(move || {
        let mut input = io::stdin().lock().lines().map_while(io::Result::ok);
        while input.next().is_some() && sender.blocking_send(()).is_ok() {}
    });
    lines
}

fn place(word: &str) -> Option<Target> {
    let (x_m, y_m) = word.split_once(',')?;
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    Some(Target::new(number(x_m)?, number(y_m)?))
}
