//! A driver that uses other devices: it keeps a wall on its right-hand side.
//!
//! ```sh
//! amber demo --driver '202:0=target/debug/follow_wall'
//! ```
//!
//! Its messages are in `follow_wall.proto`. It uses the Hokuyo and the Roboclaw over its own stdin
//! and stdout, like every driver can; it needs no address, and notices when they die.

mod steer;

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use amber_examples::follow_wall::{self, FollowWallDriver, FollowWallLink, Status};
use amber_sdk::WheelSpeeds;
use amber_sdk::devices::Roboclaw;
use amber_sdk::driver::{ClientId, Reply};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use steer::{Reaction, steer};

/// Stop after this time without a scan; scans come ten times per second.
const BLIND: Duration = Duration::from_millis(500);

#[derive(Default)]
struct FollowWall {
    /// The clients that want the robot to go. It stops when the last of them leaves or dies.
    followers: BTreeSet<ClientId>,
    /// Whether to go: from the handlers to the task that drives.
    go: watch::Sender<bool>,
    /// The last step of that task.
    step: watch::Sender<Option<Reaction>>,
    driving: Option<(JoinHandle<()>, Roboclaw)>,
}

impl FollowWallDriver for FollowWall {
    async fn start(&mut self, link: FollowWallLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        let wheels = link.devices().roboclaw(0);
        let task = drive(link, wheels.clone(), self.go.subscribe(), self.step.clone());
        self.driving = Some((tokio::spawn(task), wheels));
        Ok(())
    }

    async fn follow(&mut self, follow: bool, reply: Reply<Status>) {
        match follow {
            true => self.followers.extend(reply.client()),
            // A stop from one client stops the robot for all.
            false => self.followers.clear(),
        }
        self.tell();
        self.status(reply).await;
    }

    async fn status(&mut self, reply: Reply<Status>) {
        reply.send(status(*self.go.borrow(), *self.step.borrow()));
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.followers.remove(&client);
        self.tell();
    }

    async fn shutdown(&mut self) {
        let Some((task, wheels)) = self.driving.take() else {
            return;
        };
        // End the task first, so that the stop is the last command.
        task.abort();
        let _ = task.await;
        if *self.go.borrow() {
            let _ = wheels.stop().await;
        }
    }
}

impl FollowWall {
    /// Notifies the task that drives, if the state has changed.
    fn tell(&self) {
        let goes = !self.followers.is_empty();
        self.go
            .send_if_modified(|go| std::mem::replace(go, goes) != goes);
    }
}

/// Turns every scan into a command. All commands come from here, so none can overtake another.
/// While the robot must not go, there are none.
async fn drive(
    link: FollowWallLink,
    wheels: Roboclaw,
    mut go: watch::Receiver<bool>,
    last: watch::Sender<Option<Reaction>>,
) {
    let Ok(mut scans) = link.devices().hokuyo(0).scans().await else {
        return; // only at the end of the driver
    };
    loop {
        let step = tokio::select! {
            Ok(()) = go.changed() => {
                if !*go.borrow() {
                    let _ = wheels.stop().await;
                }
                continue; // driving needs a fresh scan
            }
            scan = timeout(BLIND, scans.next()) => match scan {
                Ok(Some(scan)) => {
                    link.recovered();
                    Some(steer(&scan.message))
                }
                Ok(None) => return,
                Err(_) => {
                    link.trouble("no scans from hokuyo:0");
                    None
                }
            },
        };
        let goes = *go.borrow();
        if goes {
            let speeds = step.map_or(WheelSpeeds::STOP, |step| step.speeds);
            let _ = wheels.drive(speeds).await;
        }
        last.send_replace(step);
        // A mediator that does not read misses a status.
        let _ = link.statuses(status(goes, step));
    }
}

fn status(following: bool, step: Option<Reaction>) -> Status {
    let speeds = step
        .filter(|_| following)
        .map_or(WheelSpeeds::STOP, |step| step.speeds);
    Status {
        following: Some(following),
        wall_mm: step.and_then(|step| step.wall_mm),
        left_mm_s: Some(speeds.front_left_mm_s),
        right_mm_s: Some(speeds.front_right_mm_s),
    }
}

fn main() -> ExitCode {
    amber_sdk::driver::serve(follow_wall::driver(FollowWall::default()))
}
