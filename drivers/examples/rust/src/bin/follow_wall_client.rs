//! Makes the robot follow a wall until Ctrl-C, and shows its progress.
//!
//! ```sh
//! target/debug/follow_wall_client [HOST:PORT [STEPS]]
//! ```
//!
//! With STEPS, it ends after this number of steps (ten per second).

use std::env;
use std::process::ExitCode;

use amber_examples::follow_wall::{FollowWall, Status};
use amber_sdk::{Client, Result};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.explained());
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let address = env::args()
        .nth(1)
        .or_else(|| env::var("AMBER_MEDIATOR").ok());
    let steps = env::args().nth(2).and_then(|steps| steps.parse().ok());
    let client = Client::connect(address.unwrap_or_else(|| "127.0.0.1".into())).await?;
    let robot = FollowWall::of(&client, 0);
    let mut statuses = robot.statuses().await?;
    robot.follow(true).await?;
    tokio::select! {
        () = async {
            for _ in 0..steps.unwrap_or(u64::MAX) {
                let Some(update) = statuses.next().await else { return };
                show(&update.message);
            }
        } => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    let stopped = robot.follow(false).await;
    client.close().await;
    stopped.map(drop)
}

fn show(status: &Status) {
    let wall = match status.wall_mm {
        Some(wall_mm) => format!("the wall is {wall_mm} mm away"),
        None => "no wall is near".to_owned(),
    };
    let (left, right) = (status.left_mm_s(), status.right_mm_s());
    println!("{wall}, the wheels turn at {left} and {right} mm/s");
}
