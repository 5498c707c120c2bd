//! The orders of one user, carried out by one client of the mediator. IO.
//!
//! A user takes the lease of what it moves, so that no other program moves it at the same time.

use std::sync::Arc;

use amber_client::lease::{Claims, Terms, Use};
use amber_client::proxy::{CollisionAvoidance, DriveToPoint, LocationService, Roboclaw};
use amber_client::{Client, Error, Proxy};
use amber_proto::{Device, DeviceType};
use amber_scene::moving;
use amber_values::WheelSpeeds;
use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use crate::controls::Seat;
use crate::limits::{LEASE_PERIOD, MEDIATOR_RETRY, MOTION_DEADLINE, MOTION_LIFE, SEAT_HOLD};
use crate::robot::UserOrder;
use crate::trips::Trips;

/// The newest motion of a user. Its sender is dropped when the user is gone.
pub type Motions = watch::Receiver<Option<(Device, WheelSpeeds)>>;

/// Hears what becomes of the commands of a user.
pub trait Report: Send + Sync + 'static {
    /// A device has not carried a command out, for example because another program drives.
    fn refused(&self, device: Device, error: &Error);
    /// A command was sent, or not.
    fn sent(&self, device: Device, sent: &Result<(), Error>);
}

/// The client of one user.
pub struct Hands {
    name: String,
    seat: Seat,
    client: Client,
    claims: Claims,
    trips: Trips,
    report: Arc<dyn Report>,
}

impl Hands {
    /// Connects to the mediator. `name` says to people who drives. With shared controls, the user takes
    /// no leases: the newest command counts.
    ///
    /// # Errors
    /// The user is gone before the mediator can be reached.
    pub async fn connect(
        mediator: &str,
        motions: &Motions,
        name: String,
        seat: Seat,
        trips: Trips,
        report: Arc<dyn Report>,
    ) -> Result<Self, Trips> {
        let client = loop {
            match Client::connect(mediator).await {
                Ok(client) => break client,
                Err(error) => tracing::warn!("cannot reach the mediator: {error}"),
            }
            if motions.has_changed().is_err() {
                return Err(trips);
            }
            sleep(MEDIATOR_RETRY).await;
        };
        let terms = Terms::new(name.clone()).with_period(LEASE_PERIOD);
        Ok(Self {
            claims: Claims::new(terms, SEAT_HOLD),
            name,
            seat,
            client,
            trips,
            report,
        })
    }

    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Keeps and releases leases. Dropping the future loses nothing; call it again after each command.
    pub async fn keep(&mut self) {
        let due = self.claims.next_due();
        let lost = tokio::select! {
            (device, error) = self.claims.lost() => Some((device, error)),
            () = until(due) => None,
        };
        match lost {
            Some((device, error)) => self.report.refused(device, &error),
            None => self.claims.expire(),
        }
    }

    /// Sends the newest motion, if this user may move the device.
    pub async fn drive(&mut self, motions: &mut Motions) {
        loop {
            let newest = *motions.borrow_and_update();
            let Some((device, speeds)) = newest else {
                return;
            };
            if speeds == WheelSpeeds::STOP {
                // A stick that comes to rest must not stop the robot of another program.
                if !self.claims.is_denied(device) {
                    self.send_speeds(device, speeds).await;
                }
                return;
            }
            if self.claim(device, Use::Command).await.is_err() {
                return;
            }
            // The user may have let go in the meantime.
            let is_newest = *motions.borrow() == newest;
            if is_newest {
                return self.send_speeds(device, speeds).await;
            }
        }
    }

    /// Takes the lease for an errand that begins. The caller sends its message.
    ///
    /// # Errors
    /// The user may not move the device: the error says who drives.
    pub async fn begin(&mut self, device: Device) -> Result<(), Error> {
        self.trips.supersede(device);
        self.claim(device, Use::Errand).await
    }

    /// An errand of a device ends by a message that the caller sends.
    pub fn end(&mut self, device: Device) {
        self.trips.supersede(device);
        self.claims.release(device);
    }

    /// Carries an order out; returns those that concern the caller: messages, and maps to save.
    pub async fn perform(&mut self, order: UserOrder) -> Option<UserOrder> {
        match order {
            UserOrder::Drive(device, speeds) => self.send_speeds(device, speeds).await,
            UserOrder::Stop(device) if device.device_type == DeviceType::DRIVE_TO_POINT => {
                self.trips.supersede(device);
                let driver = DriveToPoint::new(self.without_waiting(device));
                self.report.sent(device, &driver.stop().await);
                self.claims.release(device);
            }
            UserOrder::Stop(device) => self.send_speeds(device, WheelSpeeds::STOP).await,
            UserOrder::Halt(is_halted) => self.halt(is_halted),
            UserOrder::Targets(device, targets) => {
                self.trips.supersede(device);
                // The end of an errand: the targets of others are no business of this user.
                let may = match targets.is_empty() {
                    true => !self.claims.is_denied(device),
                    false => self.claim(device, Use::Errand).await.is_ok(),
                };
                if may {
                    let driver = DriveToPoint::new(self.without_waiting(device));
                    let sent = driver.set_targets(&targets).await;
                    self.report.sent(device, &sent);
                }
                if targets.is_empty() {
                    self.claims.release(device);
                }
            }
            UserOrder::Here(device, known) => {
                let driver = LocationService::new(self.without_waiting(device));
                self.report.sent(device, &driver.set_pose(known).await);
            }
            UserOrder::Trip(device, trip, targets) => match self.begin(device).await {
                Ok(()) => self.trips.begin(&self.client, device, trip, targets),
                Err(error) => self.trips.refuse(trip, error.to_string()).await,
            },
            UserOrder::CancelTrip(trip) => self.trips.cancel(trip),
            UserOrder::Message(..) | UserOrder::SaveMap(..) => return Some(order),
        }
        None
    }

    /// The next command of a user must not wait for the driver of the last one.
    #[must_use]
    pub fn without_waiting(&self, device: Device) -> Proxy {
        let report = self.report.clone();
        let refused = move |error: Error| report.refused(device, &error);
        self.client.device(device).without_waiting(refused)
    }

    /// Leaves the mediator.
    pub async fn close(self) {
        self.client.close().await;
    }

    /// Takes the lease of a device. Without it, the refusal says who drives.
    async fn claim(&mut self, device: Device, what: Use) -> Result<(), Error> {
        if self.seat == Seat::Shared {
            return Ok(());
        }
        let claimed = self.claims.claim(&self.client.device(device), what).await;
        claimed.inspect_err(|error| self.report.refused(device, error))
    }

    async fn send_speeds(&self, device: Device, speeds: WheelSpeeds) {
        let proxy = self.without_waiting(device);
        let sent = match device.device_type {
            // The original drivers of this type do not accept the commands of a Roboclaw.
            DeviceType::COLLISION_AVOIDANCE => {
                let wheels = CollisionAvoidance::new(proxy).with_deadline(MOTION_DEADLINE);
                wheels.with_validity(MOTION_LIFE).drive(speeds).await
            }
            _ => {
                let wheels = Roboclaw::new(proxy).with_deadline(MOTION_DEADLINE);
                wheels.with_validity(MOTION_LIFE).drive(speeds).await
            }
        };
        self.report.sent(device, &sent);
    }

    /// Halts all devices that move, or releases the halt, while other orders go on.
    fn halt(&self, is_halted: bool) {
        let (client, name) = (self.client.clone(), self.name.clone());
        let report = self.report.clone();
        tokio::spawn(async move {
            let devices = match moving::devices(&client).await {
                Ok(devices) => devices,
                Err(error) => return tracing::warn!("cannot change the halt: {error}"),
            };
            for (device, done) in moving::change_halts(&client, devices, is_halted, &name).await {
                if let Err(error) = done {
                    tracing::warn!(%device, "cannot change the halt: {error}");
                    report.refused(device, &error);
                }
            }
        });
    }
}

/// The message with another ackNum: of two fields with the same number, the last counts.
#[must_use]
pub fn with_ack(message: &Bytes, ack: u32) -> Bytes {
    const ACK_NUM: u32 = 4;
    let mut changed = BytesMut::with_capacity(message.len() + 6);
    changed.put_slice(message);
    prost::encoding::uint32::encode(ACK_NUM, &ack, &mut changed);
    changed.freeze()
}

/// Waits until this time, or endlessly.
async fn until(due: Option<std::time::Instant>) {
    match due {
        Some(due) => sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::{DriverMsg, MsgType};
    use prost::Message;

    use super::*;

    #[test]
    fn the_ack_num_of_an_answer_is_replaced() {
        let answer = DriverMsg {
            r#type: MsgType::Data.into(),
            ack_num: Some(7),
            ..DriverMsg::default()
        };
        let changed = with_ack(&answer.encode_to_vec().into(), 300);
        let read = DriverMsg::decode(changed).unwrap();
        assert_eq!(read.ack_num, Some(300));
    }
}
