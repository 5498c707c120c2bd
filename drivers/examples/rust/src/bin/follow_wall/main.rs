//! A driver that uses other devices: it keeps a wall at its right hand.
//!
//! ```sh
//! amber demo --driver '202:0=target/debug/follow_wall'
//! ```
//!
//! Its messages are in `follow_wall.proto`. It speaks with the Hokuyo and the
//! Roboclaw over its own stdin and stdout, as the mediator allows every driver;
//! so it needs no address, and knows when they die.

mod steer;

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use amber_client::{Roboclaw, WheelSpeeds};
use amber_driver::{ClientId, Driver, Link, Request};
use amber_examples::follow_wall::{DriverMsg, Status};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use steer::{Step, steer};

/// Scans come ten times a second; after so long without any, it stands still.
const BLIND: Duration = Duration::from_millis(500);

#[derive(Default)]
struct FollowWall {
    /// Those who want it to go. With the last of them it stops: nobody drives
    /// a robot from the grave.
    followers: BTreeSet<ClientId>,
    /// Whether it is to go: from the handlers to the task that drives.
    go: watch::Sender<bool>,
    /// What that task did last.
    step: watch::Sender<Option<Step>>,
    driving: Option<(JoinHandle<()>, Roboclaw)>,
}

impl Driver for FollowWall {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let wheels = link.devices().roboclaw(0);
        let task = drive(link, wheels.clone(), self.go.subscribe(), self.step.clone());
        self.driving = Some((tokio::spawn(task), wheels));
        Ok(())
    }

    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        match (request.message.follow, request.message.get_status) {
            (Some(true), _) => self.followers.extend(request.client()),
            // Whoever says stop, says it for all.
            (Some(false), _) => self.followers.clear(),
            (None, Some(_)) => {}
            (None, None) => {
                eprintln!("not a request for a wall follower");
                return None;
            }
        }
        self.tell();
        Some(status(*self.go.borrow(), *self.step.borrow()))
    }

    async fn client_died(&mut self, client: ClientId) {
        self.followers.remove(&client);
        self.tell();
    }

    async fn shutdown(&mut self) {
        let Some((task, wheels)) = self.driving.take() else {
            return;
        };
        // First the task, so that our word is the last.
        task.abort();
        let _ = task.await;
        if *self.go.borrow() {
            let _ = wheels.stop().await;
        }
    }
}

impl FollowWall {
    /// Tells the task that drives, if that is news.
    fn tell(&self) {
        let goes = !self.followers.is_empty();
        self.go
            .send_if_modified(|go| std::mem::replace(go, goes) != goes);
    }
}

/// Makes a command of every scan. All commands come from here, so that none
/// overtakes another; while it is not to go, there are none.
async fn drive(
    link: Link<DriverMsg>,
    wheels: Roboclaw,
    mut go: watch::Receiver<bool>,
    last: watch::Sender<Option<Step>>,
) {
    let Ok(mut scans) = link.devices().hokuyo(0).subscribe().await else {
        return; // only at the very end
    };
    loop {
        let step = tokio::select! {
            Ok(()) = go.changed() => {
                if !*go.borrow() {
                    let _ = wheels.stop().await;
                }
                continue; // to go takes a fresh scan
            }
            scan = timeout(BLIND, scans.next()) => match scan {
                Ok(Some(scan)) => {
                    link.recovered();
                    Some(steer(&scan.message))
                }
                Ok(None) => return,
                Err(_) => {
                    link.trouble("no scans come from hokuyo:0");
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
        // Who does not read misses something.
        let _ = link.publish(status(goes, step));
    }
}

fn status(following: bool, step: Option<Step>) -> DriverMsg {
    let speeds = step
        .filter(|_| following)
        .map_or(WheelSpeeds::STOP, |step| step.speeds);
    DriverMsg {
        status: Some(Status {
            following: Some(following),
            wall_mm: step.and_then(|step| step.wall_mm),
            left_mm_s: Some(speeds.front_left_mm_s),
            right_mm_s: Some(speeds.front_right_mm_s),
        }),
        ..DriverMsg::default()
    }
}

fn main() -> ExitCode {
    amber_driver::serve(FollowWall::default())
}
