//! The robot as its drivers know it: from their own options, or from the robot device. IO.
//!
//! A driver whose options do not say where the laser is waits at its start for the robot device, and
//! says so. When that device says something else, [`Described::changed`] has it.

use std::future::pending;
use std::pin::pin;
use std::time::{Duration, Instant};

use amber_driver::client::proxy::Robot;
use amber_driver::client::{Client, Error};
use amber_driver::{Link, now};
use amber_proto::DeviceMessage;
use amber_proto::robot::Shape;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::followed::follow_shape;
use crate::robot_file::RobotFile;
use crate::robot_options::{Setup, Stated};
use crate::sources;

/// At first, the robot device may still be starting.
const START: Duration = Duration::from_secs(3);
/// How often a driver looks for a change.
const LOOK: Duration = Duration::from_secs(1);
/// The robot device answers from memory.
const DEADLINE: Duration = Duration::from_millis(500);

/// What a driver knows of its robot.
#[derive(Debug)]
pub(crate) struct Described {
    stated: Stated,
    follows: Option<Following>,
}

/// The robot device is followed.
#[derive(Debug)]
struct Following {
    found: watch::Receiver<Result<Setup, String>>,
    task: AbortHandle,
    look_at: Instant,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Described {
    pub(crate) fn new(stated: Stated) -> Self {
        Self {
            stated,
            follows: None,
        }
    }

    /// The setup. Waits until the robot device says what the options do not; meanwhile, the driver
    /// reports what is missing.
    pub(crate) async fn setup<M: DeviceMessage>(&mut self, link: &Link<M>) -> Setup {
        if let Ok(setup) = self.stated.setup() {
            return setup;
        }
        let device = self.stated.shape_of();
        let (sender, mut found) = watch::channel(Err(format!("waits for the shape of {device}")));
        let follow = follow(link.devices().clone(), self.stated.clone(), sender);
        let task = tokio::spawn(follow).abort_handle();
        let mut start = pin!(sleep(START));
        let mut is_late = false;
        let setup = loop {
            match &*found.borrow_and_update() {
                Ok(setup) => break setup.clone(),
                Err(why) if is_late => link.trouble(why),
                Err(_) => {}
            }
            tokio::select! {
                changed = found.changed() => if changed.is_err() {
                    // The driver is shut down.
                    pending::<()>().await;
                },
                () = &mut start, if !is_late => is_late = true,
            }
        };
        link.recovered();
        self.follows = Some(Following {
            found,
            task,
            look_at: now() + LOOK,
        });
        setup
    }

    /// When to call [`Described::changed`].
    pub(crate) fn look_at(&self) -> Option<Instant> {
        self.follows.as_ref().map(|following| following.look_at)
    }

    /// The setup if it has changed since the last one.
    pub(crate) fn changed(&mut self) -> Option<Setup> {
        let following = self.follows.as_mut()?;
        following.look_at = now() + LOOK;
        if !following.found.has_changed().is_ok_and(|changed| changed) {
            return None;
        }
        let setup = following.found.borrow_and_update().clone().ok()?;
        tracing::info!("the robot has changed: starts again with its new shape");
        Some(setup)
    }
}

/// Follows the robot device until the client ends or the receiver is dropped.
async fn follow(own: Client, stated: Stated, found: watch::Sender<Result<Setup, String>>) {
    let device = stated.shape_of();
    let failed = |why: String| {
        found.send_if_modified(|before| {
            // A shape that is known stays in use.
            let is_news = before.as_ref().is_err_and(|known| *known != why);
            if is_news {
                *before = Err(why);
            }
            is_news
        });
    };
    let client = sources::client(&own, stated.devices_of(), |error| {
        failed(error.to_string());
    });
    let robot = Robot::new(client.await.device(device)).with_deadline(DEADLINE);
    let learn = |shape: Result<Shape, Error>| {
        let shape = shape.map_err(|error| unknown(&error));
        match shape.and_then(|shape| setup(&stated, &shape)) {
            Ok(setup) => {
                found.send_if_modified(|before| {
                    let is_news = before.as_ref() != Ok(&setup);
                    if is_news {
                        *before = Ok(setup);
                    }
                    is_news
                });
            }
            Err(why) => failed(why),
        }
    };
    follow_shape(&robot, learn).await;
}

/// The setup of one undertaking: what the options do not say, the robot device is asked once.
///
/// # Errors
/// The robot device does not answer, or its shape is of no use.
pub(crate) async fn setup_once(own: &Client, stated: &Stated) -> Result<Setup, String> {
    if let Ok(setup) = stated.setup() {
        return Ok(setup);
    }
    let device = stated.shape_of();
    let client = sources::client(own, stated.devices_of(), |_| {});
    let client = timeout(START, client).await;
    let client = client.map_err(|_| "cannot reach the mediator of --devices-of".to_owned())?;
    let robot = Robot::new(client.device(device)).with_deadline(DEADLINE);
    let shape = robot.shape().await.map_err(|error| unknown(&error))?;
    setup(stated, &shape)
}

fn unknown(error: &Error) -> String {
    format!(
        "the shape of the robot is unknown: {error}; run `amber driver robot`, or say \
         --laser-offset-mm"
    )
}

fn setup(stated: &Stated, shape: &Shape) -> Result<Setup, String> {
    let device = stated.shape_of();
    if shape.laser.is_none() {
        return Err(format!(
            "{device} does not say where the laser is: set laser_offset_mm in its file"
        ));
    }
    let setup = stated.setup_with(RobotFile::from(shape));
    setup.map_err(|error| format!("the shape of {device} is invalid: {error}"))
}
