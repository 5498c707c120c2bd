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
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use amber_client::values::Target;
use amber_client::{Client, DriveEnd, Error, Result};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Poses with a lower quality may be wrong.
const SURE: f64 = 0.9;
/// How long the location driver may need to find the robot.
const SEARCH: Duration = Duration::from_secs(30);
const BETWEEN_POSES: Duration = Duration::from_millis(200);

const HELP: &str = "\
Drives back to the start position each time you press Enter; Ctrl-C stops the robot.

Usage: return_home [--home X,Y] [--help]

X,Y is the home in metres on the map, with y down [default: the current position].
AMBER_MEDIATOR is the address of the mediator [default: 127.0.0.1:26233].";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    if words.iter().any(|word| word == "-h" || word == "--help") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let home = match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Some(None),
        ["--home", home] => place(home).map(Some),
        _ => None,
    };
    let Some(home) = home else {
        eprintln!(
            "error: invalid arguments\nhint: write `--home 3.5,2.6`; `--help` shows the usage"
        );
        return ExitCode::from(2);
    };
    match run(home).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.explained());
            ExitCode::FAILURE
        }
    }
}

async fn run(home: Option<Target>) -> Result<()> {
    let mediator = env::var("AMBER_MEDIATOR").unwrap_or_else(|_| "127.0.0.1".into());
    let client = Client::connect(mediator).await?;
    let done = tokio::select! {
        done = on_request(&client, home) => done,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    // The driver also stops the wheels when this client leaves.
    client.drive_to_point(0).stop().await?;
    client.close().await;
    done
}

/// Drives home each time the user presses Enter. Returns at the end of stdin.
async fn on_request(client: &Client, home: Option<Target>) -> Result<()> {
    let home = match home {
        Some(home) => home,
        None => here(client).await?,
    };
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
pub(crate) async fn here(client: &Client) -> Result<Target> {
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
pub(crate) async fn go_home(client: &Client, home: Target) -> Result<DriveEnd> {
    let drive = client.drive_to_point(0);
    let mut remaining_m = f64::INFINITY;
    let show = |update: &amber_client::proxy::DriveToPointProgressUpdates| {
        let now_m = update.progress.remaining();
        // A line for each metre.
        if now_m > 0.0 && now_m < remaining_m - 1.0 {
            println!("{now_m:.1} m left");
            remaining_m = now_m;
        }
        Ok(())
    };
    drive.drive_to(home, show).await
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
