//! The sessions as clients of the mediator: one client and one task for each. IO.
//!
//! Each session is a separate client, so the mediator and the drivers can distinguish foreign
//! users, and drivers learn when one is gone.

use std::collections::HashMap;

use amber_driver::client::proxy::{CollisionAvoidance, DriveToPoint, Mapping, Roboclaw};
use amber_driver::client::{Client, Error, Proxy};
use amber_proto::mapping::SaveMap;
use amber_proto::{Device, DeviceType, DriverMsg, MsgType};
use amber_values::{Target, WheelSpeeds};
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::robot::{Event, Order, User};
use crate::limits::{LAST_WORDS, MAX_ORDERS, MEDIATOR_RETRY, MOTION_DEADLINE, MOTION_LIFE};

/// All open users.
pub(super) struct Users {
    mediator: String,
    events: mpsc::Sender<Event>,
    handles: HashMap<User, Handle>,
    tasks: JoinSet<()>,
}

struct Handle {
    /// Only the newest motion matters.
    motion: watch::Sender<Option<(Device, WheelSpeeds)>>,
    orders: mpsc::Sender<Order>,
}

impl Users {
    pub(super) fn new(mediator: String, events: mpsc::Sender<Event>) -> Self {
        Self {
            mediator,
            events,
            handles: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    pub(super) fn open(&mut self, user: User) {
        let (motion, motions) = watch::channel(None);
        let (orders, received) = mpsc::channel(MAX_ORDERS);
        let task = Task {
            user,
            mediator: self.mediator.clone(),
            events: self.events.clone(),
            subscriptions: HashMap::new(),
        };
        self.tasks.spawn(task.run(motions, received));
        self.handles.insert(user, Handle { motion, orders });
        // Forgets those that have ended.
        while self.tasks.try_join_next().is_some() {}
    }

    /// The user leaves the mediator, after the last motion and all orders are sent.
    pub(super) fn close(&mut self, user: User) {
        self.handles.remove(&user);
    }

    /// Forwards an order; `false` if it is dropped because too many wait.
    pub(super) fn order(&self, user: User, order: Order) -> bool {
        let Some(handle) = self.handles.get(&user) else {
            return false;
        };
        match order {
            Order::Drive(device, speeds) => {
                handle.motion.send_replace(Some((device, speeds)));
                true
            }
            order => handle.orders.try_send(order).is_ok(),
        }
    }

    /// Closes all, and waits until they have left.
    pub(super) async fn end(&mut self) {
        self.handles.clear();
        let left = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(LAST_WORDS, left).await.is_err() {
            tracing::warn!(
                "the mediator did not accept the final messages of all sessions in time"
            );
        }
    }
}

/// One user.
struct Task {
    user: User,
    mediator: String,
    events: mpsc::Sender<Event>,
    subscriptions: HashMap<Device, AbortHandle>,
}

impl Task {
    async fn run(
        mut self,
        mut motions: watch::Receiver<Option<(Device, WheelSpeeds)>>,
        mut orders: mpsc::Receiver<Order>,
    ) {
        let Some(client) = connected(&self.mediator, &motions).await else {
            return;
        };
        loop {
            tokio::select! {
                biased;
                // If the user is closed, this still returns the last motion first.
                changed = motions.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let motion = *motions.borrow_and_update();
                    if let Some((device, speeds)) = motion {
                        self.drive(&client, device, speeds).await;
                    }
                }
                Some(order) = orders.recv() => self.perform(&client, order).await,
            }
        }
        // The session is closed. Its earlier orders are still valid.
        while let Ok(order) = orders.try_recv() {
            self.perform(&client, order).await;
        }
        for subscription in self.subscriptions.values() {
            subscription.abort();
        }
        client.close().await;
    }

    async fn drive(&self, client: &Client, device: Device, speeds: WheelSpeeds) {
        let proxy = without_waiting(client, device);
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
        self.report(device, sent);
    }

    async fn perform(&mut self, client: &Client, order: Order) {
        match order {
            Order::Drive(device, speeds) => self.drive(client, device, speeds).await,
            Order::Targets(device, targets) => {
                let driver = DriveToPoint::new(without_waiting(client, device));
                let targets: Vec<Target> = targets;
                self.report(device, driver.set_targets(&targets).await);
            }
            Order::SaveMap(device, name) => self.save_map(client, device, name),
            Order::Message(device, message) => self.send_message(client, device, message).await,
        }
    }

    /// Saves a map, which takes a while.
    fn save_map(&self, client: &Client, device: Device, name: String) {
        let mapping = Mapping::new(client.device(device));
        let (user, events) = (self.user, self.events.clone());
        tokio::spawn(async move {
            let wanted = SaveMap {
                name: Some(name),
                // As the map savers of ROS.
                replace: Some(true),
                ..SaveMap::default()
            };
            let saved = mapping.save_map(wanted).await;
            let saved = saved.map(drop).map_err(|error| error.to_string());
            let _ = events.send(Event::Saved(user, saved)).await;
        });
    }

    /// Handles this message like a client of Amber.
    async fn send_message(&mut self, client: &Client, device: Device, message: Bytes) {
        let Ok(head) = DriverMsg::decode(message.clone()) else {
            return;
        };
        let proxy = client.device(device);
        match (MsgType::try_from(head.r#type).ok(), head.syn_num) {
            (Some(MsgType::Data), None) => self.report(device, proxy.send_raw(message).await),
            (Some(MsgType::Data), Some(syn)) => {
                let (user, events) = (self.user, self.events.clone());
                tokio::spawn(async move {
                    if let Ok(answer) = proxy.request_raw(message).await {
                        let answer = with_ack(&answer, syn);
                        let _ = events.send(Event::Message(user, device, answer)).await;
                    }
                });
            }
            (Some(MsgType::Ping), syn) => {
                let (user, events) = (self.user, self.events.clone());
                tokio::spawn(async move {
                    if proxy.ping().await.is_ok() {
                        let pong = DriverMsg {
                            r#type: MsgType::Pong.into(),
                            ack_num: syn,
                            ..DriverMsg::default()
                        };
                        let pong = pong.encode_to_vec().into();
                        let _ = events.send(Event::Message(user, device, pong)).await;
                    }
                });
            }
            (Some(MsgType::Subscribe), _) => {
                let (user, events) = (self.user, self.events.clone());
                let task = tokio::spawn(async move {
                    let Ok(mut published) = proxy.subscribe_raw().await else {
                        return;
                    };
                    while let Some(update) = published.next().await {
                        let event = Event::Message(user, device, update.message);
                        if events.send(event).await.is_err() {
                            return;
                        }
                    }
                });
                let before = self.subscriptions.insert(device, task.abort_handle());
                before.inspect(AbortHandle::abort);
            }
            (Some(MsgType::Unsubscribe), _) => {
                let subscription = self.subscriptions.remove(&device);
                subscription.inspect(AbortHandle::abort);
            }
            // The rest is between the client and the mediator.
            _ => {}
        }
    }

    fn report(&self, device: Device, sent: Result<(), Error>) {
        if let Err(error) = sent {
            let user = self.user.0;
            tracing::warn!(user, %device, "a command was not sent: {error}");
        }
    }
}

/// The next command of a user must not wait for the driver of the last one.
fn without_waiting(client: &Client, device: Device) -> Proxy {
    let refused =
        move |error: Error| tracing::debug!(%device, "a command was not carried out: {error}");
    client.device(device).without_waiting(refused)
}

/// Connects to the mediator; `None` if the user is closed before.
async fn connected(
    mediator: &str,
    motions: &watch::Receiver<Option<(Device, WheelSpeeds)>>,
) -> Option<Client> {
    loop {
        match Client::connect(mediator).await {
            Ok(client) => return Some(client),
            Err(error) => tracing::warn!("cannot reach the mediator: {error}"),
        }
        if motions.has_changed().is_err() {
            return None;
        }
        sleep(MEDIATOR_RETRY).await;
    }
}

/// The message with another ackNum: of two fields with the same number, the last counts.
fn with_ack(message: &Bytes, ack: u32) -> Bytes {
    const ACK_NUM: u32 = 4;
    let mut changed = BytesMut::with_capacity(message.len() + 6);
    changed.put_slice(message);
    prost::encoding::uint32::encode(ACK_NUM, &ack, &mut changed);
    changed.freeze()
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;
    use amber_proto::codec::Packet;

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

    #[tokio::test]
    async fn what_a_session_has_ordered_is_sent_before_it_leaves() {
        let mediator = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (events, _received) = mpsc::channel(1);
        let mut users = Users::new(mediator.local_addr().unwrap().to_string(), events);
        let (user, device) = (User(1), Device::new(DeviceType::DRIVE_TO_POINT, 0));
        users.open(user);
        for x_m in [1.0, 2.0, 3.0] {
            let target = Target {
                x_m,
                y_m: 0.0,
                radius_m: 0.1,
            };
            assert!(users.order(user, Order::Targets(device, vec![target])));
        }
        users.close(user);
        let served = async {
            let (mut buffer, mut to_device) = (vec![0; 2048], Vec::new());
            loop {
                let (length, from) = mediator.recv_from(&mut buffer).await.unwrap();
                let packet = Packet::from_datagram(&buffer[..length].to_vec().into()).unwrap();
                let message = DriverMsg::decode(packet.message).unwrap();
                let is_for_device = packet.header.device_type == Some(device.device_type.0);
                match message.r#type() {
                    MsgType::Data if is_for_device => to_device.push(MsgType::Data),
                    MsgType::Ping => {
                        let pong = DriverMsg {
                            r#type: MsgType::Pong.into(),
                            ack_num: message.syn_num,
                            ..DriverMsg::default()
                        };
                        let pong = Packet {
                            message: pong.encode_to_vec().into(),
                            ..Packet::default()
                        };
                        mediator
                            .send_to(&pong.encode().unwrap(), from)
                            .await
                            .unwrap();
                    }
                    MsgType::ClientDied => return to_device,
                    _ => {}
                }
            }
        };
        let (to_device, ()) = tokio::join!(served, users.end());
        assert_eq!(to_device, [MsgType::Data; 3]);
    }
}
