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
use std::pin::Pin;

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

/// Makes the waiting for the end of an order: a stream of published data, and a future. The type has
/// `begin` and `finish` of its own.
macro_rules! trip {
    ($(#[$docs:meta])* $trip:ident of $device:ident, $given:ty, $updates:ident, $end:ty) => {
        $(#[$docs])*
        #[must_use = "it begins when it is awaited"]
        #[derive(Debug)]
        pub struct $trip {
            device: $device,
            id: u64,
            /// What the driver has not got yet.
            given: Option<$given>,
            updates: Option<Subscription<$updates>>,
            order: Option<Order>,
            /// The newest data of this order.
            newest: Option<$updates>,
        }

        impl $trip {
            fn new(device: &$device, given: Option<$given>) -> Self {
                Self {
                    device: device.clone(),
                    id: new_order_id(),
                    given,
                    updates: None,
                    order: None,
                    newest: None,
                }
            }

            /// The same with an id of yours, from [`new_order_id`]. It must not have begun.
            pub fn with_id(mut self, id: u64) -> Self {
                self.id = id;
                self
            }

            /// The id of the order. With it, `cancel_order` stops this order and no other one.
            pub fn id(&self) -> u64 {
                self.id
            }

            /// Begins the order, if it has not begun, and waits for the next published data of it, which
            /// come five times per second. `None` when the order has ended: then await the trip itself to
            /// learn how.
            ///
            /// The robot may wait forever, for example for a lost laser, so use a timeout if you need one.
            /// If you drop the future, the next call goes on. That does not stop the robot.
            ///
            /// # Errors
            /// The driver refuses the order, does not work, dies, or does not know orders; or the client is
            /// closed.
            pub async fn next(&mut self) -> Result<Option<$updates>> {
                if let Some(given) = &self.given {
                    // It is asked for again below: it may end before the subscription begins.
                    self.begin(given).await?;
                    self.given = None;
                }
                let updates = match &mut self.updates {
                    Some(updates) => updates,
                    none => none.insert(self.device.progress_updates().await?),
                };
                loop {
                    match &self.order {
                        Some(order) if order.state() != OrderState::Running => return Ok(None),
                        Some(_) => {}
                        None => {
                            self.order = Some(repeated!(self.device.order(self.id))?);
                            continue;
                        }
                    }
                    let Some(update) = next(updates).await? else {
                        // The driver may not work now.
                        self.order = None;
                        continue;
                    };
                    match &update.order {
                        Some(newest) if newest.id == Some(self.id) => {
                            self.order = Some(newest.clone());
                            self.newest = Some(update.clone());
                            return Ok(Some(update));
                        }
                        // It is older than the order, or there is a newer order.
                        _ => self.order = None,
                    }
                }
            }

            async fn end(mut self) -> Result<$end> {
                while self.next().await?.is_some() {}
                let order = self.order.take().map(explained).unwrap_or_default();
                self.finish(order).await
            }
        }

        /// Begins the order, if it has not begun, and waits for its end.
        ///
        /// Dropping the future, or an error, does not stop the robot: the driver stops it when the client
        /// leaves, or at a request.
        ///
        /// # Errors
        /// Those of `next`.
        impl IntoFuture for $trip {
            type Output = Result<$end>;
            type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.end())
            }
        }
    };
}

trip! {
    /// A trip to targets, from [`DriveToPoint::drive_to`]: await it to drive there, or read its
    /// progress on the way with [`Trip::next`].
    ///
    /// ```no_run
    /// # async fn run(drive: amber_client::DriveToPoint) -> amber_client::Result<()> {
    /// let mut trip = drive.drive_to(amber_client::Target::new(1.4, 1.0));
    /// while let Some(update) = trip.next().await? {
    ///     println!("{:.1} m left", update.progress.remaining());
    /// }
    /// println!("{}", trip.await?);
    /// # Ok(())
    /// # }
    /// ```
    Trip of DriveToPoint, Vec<Target>, DriveToPointProgressUpdates, DriveEnd
}

impl DriveToPoint {
    /// Drives to one target. This replaces all other targets, when the trip is awaited.
    pub fn drive_to(&self, target: Target) -> Trip {
        self.drive_through(&[target])
    }

    /// Drives to targets, one after the other. This replaces all other targets, when the trip is
    /// awaited.
    pub fn drive_through(&self, targets: &[Target]) -> Trip {
        Trip::new(self, Some(targets.to_vec()))
    }

    /// The trip of an order that has begun, perhaps a while ago.
    pub fn trip(&self, order: u64) -> Trip {
        Trip::new(self, None).with_id(order)
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
}

impl Trip {
    async fn begin(&self, targets: &[Target]) -> Result<Order> {
        self.device.begin_order(self.id, targets, None).await
    }

    async fn finish(self, order: Order) -> Result<DriveEnd> {
        if order.state() != OrderState::Arrived {
            return Ok(DriveEnd::Ended(order));
        }
        Ok(DriveEnd::Arrived(match self.newest {
            Some(newest) => newest.location,
            None => repeated!(self.device.progress())?.location,
        }))
    }
}

trip! {
    /// A run along a trajectory, from [`PidFollowTrajectory::drive_along`]: await it to drive it, or read
    /// its progress on the way with [`TrajectoryTrip::next`]. The result tells how the order ended.
    TrajectoryTrip of PidFollowTrajectory, (Vec<TrajectoryPoint>, Configuration),
    PidFollowTrajectoryProgressUpdates, Order
}

impl PidFollowTrajectory {
    /// Follows a trajectory. This replaces the trajectory that the robot follows, if any, when the trip
    /// is awaited.
    pub fn drive_along(
        &self,
        points: &[TrajectoryPoint],
        configuration: Configuration,
    ) -> TrajectoryTrip {
        TrajectoryTrip::new(self, Some((points.to_vec(), configuration)))
    }
}

impl TrajectoryTrip {
    async fn begin(
        &self,
        (points, configuration): &(Vec<TrajectoryPoint>, Configuration),
    ) -> Result<Order> {
        let (device, program) = (&self.device, program());
        begun!(
            device,
            device.follow(self.id, points, *configuration, program.as_deref()),
            device.next_targets()
        )
    }

    async fn finish(self, order: Order) -> Result<Order> {
        Ok(order)
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
