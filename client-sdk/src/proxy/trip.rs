//! Orders with ids: trips to targets and along trajectories, up to their end. IO.
//!
//! The driver tells how an order has ended, so nothing here compares places. Published data have the
//! newest order. A client whose order is no longer the newest one asks for its own.

use std::collections::hash_map::RandomState;
use std::env;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::path::Path;

use amber_proto::Device;
use amber_proto::order::Order;
use amber_proto::pid_follow_trajectory::Configuration;
use amber_values::{MapPose, Target, TrajectoryPoint};

pub use amber_proto::order::order::State as OrderState;

use super::{
    DriveToPoint, DriveToPointProgressUpdates, PidFollowTrajectory,
    PidFollowTrajectoryProgressUpdates,
};
use crate::error::{Error, Reason, Result};
use crate::subscription::{Event, Subscription};

/// How often a request is repeated, because UDP loses datagrams. A driver does not start an order
/// twice.
const ATTEMPTS: u32 = 3;
/// The ids that clients choose. A number in JavaScript can be any of them.
const IDS: Range<u64> = 1 << 32..1 << 53;

/// Repeats a request whose answer is lost.
macro_rules! repeated {
    ($request:expr) => {{
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            match $request.await {
                Err(Error::TimedOut { .. }) if left > 0 => {}
                answered => break answered,
            }
        }
    }};
}

/// Begins an order, and tells an old driver from a bad network by a request that each driver of the
/// device answers.
macro_rules! begun {
    ($device:expr, $begin:expr, $known_to_all:expr) => {{
        let mut left = ATTEMPTS;
        loop {
            match $begin.await {
                Err(Error::TimedOut { .. }) if left > 0 => {
                    left -= 1;
                    if let Err(error) = $known_to_all.await {
                        break Err(error);
                    }
                }
                Err(Error::TimedOut { .. }) => break Err(knows_no_orders($device.address())),
                begun => break begun,
            }
        }
    }};
}

/// A new id for an order, at random: that two clients choose the same one is as good as impossible.
pub fn new_order_id() -> u64 {
    // The standard library seeds each of these at random.
    let random = RandomState::new().build_hasher().finish();
    IDS.start + random % (IDS.end - IDS.start)
}

/// How a trip to targets ended.
#[derive(Clone, Debug, PartialEq)]
pub enum DriveEnd {
    /// The robot has visited all targets: its pose.
    Arrived(MapPose),
    /// The order has ended otherwise. Its state tells how: the driver gave up a target
    /// ([`OrderState::Skipped`]), another client gave a newer order ([`OrderState::Replaced`]),
    /// somebody stopped or halted the robot, and so on. Its reason is a sentence for people.
    Ended(Order),
}

impl fmt::Display for DriveEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrived(pose) => write!(f, "arrived at {:.2} m, {:.2} m", pose.x_m, pose.y_m),
            Self::Ended(order) => f.write_str(order.reason()),
        }
    }
}

impl DriveToPoint {
    /// Drives to one target and waits for the end. This replaces all other targets.
    ///
    /// `progress` receives the published data, five times per second; its error ends the waiting.
    /// The robot may wait forever, for example for a lost laser, so use a timeout if you need one.
    ///
    /// Dropping the future, or an error, does not stop the robot: call [`DriveToPoint::stop`], or close
    /// the client. To stop only what you have started, use [`DriveToPoint::drive_as`].
    ///
    /// # Errors
    /// Those of [`DriveToPoint::drive_as`].
    pub async fn drive_to<E: From<Error>>(
        &self,
        target: Target,
        progress: impl FnMut(&DriveToPointProgressUpdates) -> std::result::Result<(), E>,
    ) -> std::result::Result<DriveEnd, E> {
        self.drive_as(new_order_id(), &[target], progress).await
    }

    /// Like [`DriveToPoint::drive_to`], with any number of targets and an id of yours, from
    /// [`new_order_id`]. With the id, [`DriveToPoint::cancel_order`] stops this trip and no other one.
    ///
    /// # Errors
    /// The driver refuses the targets, does not work, dies, or does not know orders; the client is
    /// closed; or the error of `progress`.
    pub async fn drive_as<E: From<Error>>(
        &self,
        id: u64,
        targets: &[Target],
        progress: impl FnMut(&DriveToPointProgressUpdates) -> std::result::Result<(), E>,
    ) -> std::result::Result<DriveEnd, E> {
        self.begin_order(id, targets, None).await?;
        self.order_end(id, progress).await
    }

    /// Gives an order and does not wait for its end: [`DriveToPoint::go`], repeated if an answer is
    /// lost. `name` says to people who drives; without it, it is the name of this program.
    ///
    /// # Errors
    /// The driver refuses the targets, does not work, dies, or does not know orders; or the client is
    /// closed.
    pub async fn begin_order(
        &self,
        id: u64,
        targets: &[Target],
        name: Option<&str>,
    ) -> Result<Order> {
        let program = program();
        let name = name.or(program.as_deref());
        begun!(self, self.go(id, targets, name), self.configuration())
    }

    /// Waits for the end of an order, which may have begun a while ago. `progress` receives the
    /// published data while it runs.
    ///
    /// # Errors
    /// The driver does not work, or dies; the client is closed; or the error of `progress`.
    pub async fn order_end<E: From<Error>>(
        &self,
        id: u64,
        mut progress: impl FnMut(&DriveToPointProgressUpdates) -> std::result::Result<(), E>,
    ) -> std::result::Result<DriveEnd, E> {
        let mut updates = self.progress_updates().await?;
        let mut order = repeated!(self.order(id))?;
        let mut pose = None;
        while order.state() == OrderState::Running {
            let Some(update) = next(&mut updates).await? else {
                order = repeated!(self.order(id))?;
                continue;
            };
            order = match &update.order {
                Some(newest) if newest.id == Some(id) => {
                    progress(&update)?;
                    pose = Some(update.location);
                    newest.clone()
                }
                // It is older than the order, or there is a newer order.
                _ => repeated!(self.order(id))?,
            };
        }
        if order.state() != OrderState::Arrived {
            return Ok(DriveEnd::Ended(explained(order)));
        }
        Ok(DriveEnd::Arrived(match pose {
            Some(pose) => pose,
            None => repeated!(self.progress())?.location,
        }))
    }
}

impl PidFollowTrajectory {
    /// Follows a trajectory and waits for the end: the result tells how the order ended. This replaces
    /// the trajectory that the robot follows, if any.
    ///
    /// `progress`, dropping the future and errors are as for [`DriveToPoint::drive_to`]; the id is that
    /// for [`PidFollowTrajectory::cancel_order`].
    ///
    /// # Errors
    /// The driver refuses the trajectory, does not work, dies, or does not know orders; the client is
    /// closed; or the error of `progress`.
    pub async fn drive_along<E: From<Error>>(
        &self,
        id: u64,
        points: &[TrajectoryPoint],
        configuration: Configuration,
        mut progress: impl FnMut(&PidFollowTrajectoryProgressUpdates) -> std::result::Result<(), E>,
    ) -> std::result::Result<Order, E> {
        let program = program();
        let mut updates = self.progress_updates().await?;
        let mut order = begun!(
            self,
            self.follow(id, points, configuration, program.as_deref()),
            self.next_targets()
        )?;
        while order.state() == OrderState::Running {
            let update = next(&mut updates).await?;
            let newest = update.as_ref().and_then(|it| it.order.as_ref());
            order = match (&update, newest) {
                (Some(update), Some(newest)) if newest.id == Some(id) => {
                    progress(update)?;
                    newest.clone()
                }
                _ => repeated!(self.order(id))?,
            };
        }
        Ok(explained(order))
    }
}

/// The next published data; `None` if the driver may not work now.
async fn next<T>(updates: &mut Subscription<T>) -> Result<Option<T>> {
    match updates.next_event().await {
        Some(Event::Message(update)) => Ok(Some(update.message)),
        Some(Event::Interrupted(_) | Event::Resumed) => Ok(None),
        None => Err(Error::Closed {
            cause: "the subscription has ended".into(),
        }),
    }
}

fn knows_no_orders(device: Device) -> Error {
    Error::Refused {
        device,
        reason: Reason::BadRequest,
        message: "its driver knows no orders with ids".into(),
        hint: Some(
            "use the driver of this version of Amber; or set the targets without an id, and ask \
             for the next targets until none are left"
                .into(),
        ),
    }
}

/// An ended order with a reason in any case.
fn explained(mut order: Order) -> Order {
    if order.state() == OrderState::Unknown && order.reason.is_none() {
        let text =
            "the driver no longer knows the order: it was restarted, or many orders came since";
        order.reason = Some(text.to_owned());
    }
    order
}

/// The name of this program, for people who ask who drives.
fn program() -> Option<String> {
    let path = env::args_os().next()?;
    let name = Path::new(&path).file_name()?;
    Some(name.to_string_lossy().into_owned())
}
