//! The sessions as clients of the mediator: one client and one task for each. IO.
//!
//! Each session is a separate client, so the mediator and the drivers can distinguish foreign
//! users, and drivers learn when one is gone. A session takes the lease of what it moves, so that no
//! program outside of this gateway moves it at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use amber_client::proxy::MappingService;
use amber_client::{Client, Error};
use amber_proto::mapping::SaveMap;
use amber_proto::{Device, DriverMsg, MsgType};
use amber_values::WheelSpeeds;
use bytes::Bytes;
use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use crate::controls::Seat;
use crate::hands::{Hands, Motions, Report, with_ack};
use crate::limits::{LAST_WORDS, MAX_ORDERS, TELL_AGAIN};
use crate::motion::{self, Motion};
use crate::robot::{News, User, UserOrder};
use crate::trips::{Trips, UNREACHABLE};

/// All open users.
pub struct Users {
    mediator: String,
    seat: Seat,
    news: mpsc::Sender<News>,
    handles: HashMap<User, Handle>,
    tasks: JoinSet<()>,
}

struct Handle {
    /// Only the newest motion matters.
    motion: watch::Sender<Option<(Device, WheelSpeeds)>>,
    orders: mpsc::Sender<UserOrder>,
    refusals: Refusals,
}

impl Users {
    /// With shared controls, users take no leases: the newest command counts.
    pub fn new(mediator: String, seat: Seat, news: mpsc::Sender<News>) -> Self {
        Self {
            mediator,
            seat,
            news,
            handles: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// `name` says to people who drives.
    pub fn open(&mut self, user: User, name: String) {
        let (motion, motions) = watch::channel(None);
        let (orders, received) = mpsc::channel(MAX_ORDERS);
        let refusals = Refusals {
            user,
            news: self.news.clone(),
            last: Arc::default(),
        };
        let task = Task {
            user,
            name,
            seat: self.seat,
            mediator: self.mediator.clone(),
            news: self.news.clone(),
            refusals: refusals.clone(),
            subscriptions: HashMap::new(),
        };
        self.tasks.spawn(task.run(motions, received));
        let handle = Handle {
            motion,
            orders,
            refusals,
        };
        self.handles.insert(user, handle);
        // Forgets those that have ended.
        while self.tasks.try_join_next().is_some() {}
    }

    /// The user leaves the mediator, after the last motion and all orders are sent.
    pub fn close(&mut self, user: User) {
        self.handles.remove(&user);
    }

    /// Why the robot does not obey a user now.
    pub fn refused(&self, user: User) -> Option<String> {
        self.handles.get(&user)?.refusals.now()
    }

    /// Forwards an order; `false` if it is dropped because too many wait.
    pub fn order(&self, user: User, order: UserOrder) -> bool {
        let Some(handle) = self.handles.get(&user) else {
            return false;
        };
        match order {
            UserOrder::Drive(device, speeds) => {
                handle.motion.send_replace(Some((device, speeds)));
                true
            }
            order => handle.orders.try_send(order).is_ok(),
        }
    }

    /// Closes all, and waits until they have left.
    pub async fn end(&mut self) {
        self.handles.clear();
        let left = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(LAST_WORDS, left).await.is_err() {
            tracing::warn!(
                "the mediator did not accept the final messages of all sessions in time"
            );
        }
    }
}

/// Why the robot does not obey a user: for its peer, and for the status.
#[derive(Clone)]
struct Refusals {
    user: User,
    news: mpsc::Sender<News>,
    last: Arc<Mutex<LastRefusal>>,
}

#[derive(Default)]
struct LastRefusal {
    text: String,
    at: Option<Instant>,
    /// When the peer was told this text.
    told: Option<Instant>,
}

impl Report for Refusals {
    /// A device refuses. The peer is told, but not for each of many commands.
    fn refused(&self, device: Device, error: &Error) {
        let Error::Refused { .. } = error else {
            return tracing::debug!(%device, "a command was not carried out: {error}");
        };
        let (text, now) = (error.to_string(), Instant::now());
        {
            let mut last = self.lock();
            last.at = Some(now);
            let is_recent = |told| now.duration_since(told) < TELL_AGAIN;
            if last.text == text && last.told.is_some_and(is_recent) {
                return;
            }
            last.text.clone_from(&text);
            last.told = Some(now);
        }
        if (self.news.try_send(News::Refused(self.user, text))).is_err() {
            tracing::debug!("dropped a refusal: the gateway is busy");
        }
    }

    fn sent(&self, device: Device, sent: &Result<(), Error>) {
        if let Err(error) = sent {
            let user = self.user.0;
            tracing::warn!(user, %device, "a command was not sent: {error}");
        }
    }
}

impl Refusals {
    fn now(&self) -> Option<String> {
        let last = self.lock();
        let is_recent = last.at.is_some_and(|at| at.elapsed() < TELL_AGAIN);
        is_recent.then(|| last.text.clone())
    }

    fn lock(&self) -> MutexGuard<'_, LastRefusal> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One user.
struct Task {
    user: User,
    name: String,
    seat: Seat,
    mediator: String,
    news: mpsc::Sender<News>,
    refusals: Refusals,
    subscriptions: HashMap<Device, AbortHandle>,
}

impl Task {
    async fn run(mut self, mut motions: Motions, mut orders: mpsc::Receiver<UserOrder>) {
        let report = Arc::new(self.refusals.clone());
        let (name, seat) = (self.name.clone(), self.seat);
        let trips = Trips::new(self.user, name.clone(), self.news.clone());
        let connected = Hands::connect(&self.mediator, &motions, name, seat, trips, report);
        let mut hands = match connected.await {
            Ok(hands) => hands,
            Err(trips) => {
                while let Ok(order) = orders.try_recv() {
                    if let UserOrder::Trip(_, trip, _) = order {
                        trips.refuse(trip, UNREACHABLE.to_owned()).await;
                    }
                }
                return;
            }
        };
        loop {
            tokio::select! {
                biased;
                // If the user is closed, this still returns the last motion first.
                changed = motions.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    hands.drive(&mut motions).await;
                }
                Some(order) = orders.recv() => self.perform(&mut hands, order).await,
                () = hands.keep() => {}
            }
        }
        // The session is closed. Its earlier orders are still valid.
        while let Ok(order) = orders.try_recv() {
            self.perform(&mut hands, order).await;
        }
        for subscription in self.subscriptions.values() {
            subscription.abort();
        }
        hands.close().await;
    }

    async fn perform(&mut self, hands: &mut Hands, order: UserOrder) {
        let Some(order) = hands.perform(order).await else {
            return;
        };
        match order {
            UserOrder::Message(device, message) => {
                let motion = motion::of(device, Device::MEDIATOR, &message);
                if let Ok(Motion::Begin(_)) = motion
                    && hands.begin(device).await.is_err()
                {
                    return;
                }
                self.send_message(hands.client(), device, message).await;
                if let Ok(Motion::End(_)) = motion {
                    hands.end(device);
                }
            }
            UserOrder::SaveMap(device, number, name) => {
                self.save_map(hands.client(), device, number, name);
            }
            // The hands have carried out the others.
            _ => {}
        }
    }

    /// Saves a map, which takes a while.
    fn save_map(&self, client: &Client, device: Device, number: u32, name: String) {
        let mapping = MappingService::new(client.device(device));
        let (user, news) = (self.user, self.news.clone());
        tokio::spawn(async move {
            let wanted = SaveMap {
                name: Some(name),
                // As the map savers of ROS.
                replace: Some(true),
                ..SaveMap::default()
            };
            let saved = mapping.save_map(wanted).await;
            let saved = saved.map(drop).map_err(|error| error.to_string());
            let _ = news.send(News::Saved(user, number, saved)).await;
        });
    }

    /// Handles this message like a client of Amber.
    async fn send_message(&mut self, client: &Client, device: Device, message: Bytes) {
        let Ok(head) = DriverMsg::decode(message.clone()) else {
            return;
        };
        let proxy = client.device(device);
        match (MsgType::try_from(head.r#type).ok(), head.syn_num) {
            (Some(MsgType::Data), None) => {
                self.refusals.sent(device, &proxy.send_raw(message).await)
            }
            (Some(MsgType::Data), Some(syn)) => {
                let (user, news) = (self.user, self.news.clone());
                tokio::spawn(async move {
                    if let Ok(answer) = proxy.request_raw(message).await {
                        let answer = with_ack(&answer, syn);
                        let _ = news.send(News::Message(user, device, answer)).await;
                    }
                });
            }
            (Some(MsgType::Ping), syn) => {
                let (user, news) = (self.user, self.news.clone());
                tokio::spawn(async move {
                    if proxy.ping().await.is_ok() {
                        let pong = DriverMsg {
                            r#type: MsgType::Pong.into(),
                            ack_num: syn,
                            ..DriverMsg::default()
                        };
                        let pong = pong.encode_to_vec().into();
                        let _ = news.send(News::Message(user, device, pong)).await;
                    }
                });
            }
            (Some(MsgType::Subscribe), _) => {
                let (user, news) = (self.user, self.news.clone());
                let task = tokio::spawn(async move {
                    let Ok(mut published) = proxy.subscribe_raw().await else {
                        return;
                    };
                    while let Some(update) = published.next().await {
                        let report = News::Message(user, device, update.message);
                        if news.send(report).await.is_err() {
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
}

#[cfg(test)]
mod tests {
    use amber_proto::codec::Packet;
    use amber_proto::{
        DeviceMessage, DeviceType, drive_to_point, motion as motion_proto, roboclaw,
    };
    use amber_values::Target;
    use tokio::net::UdpSocket;

    use super::*;

    /// A mediator with devices that `answer`, until a client leaves.
    async fn serve(
        mediator: UdpSocket,
        mut answer: impl FnMut(DeviceType, Bytes) -> Option<Vec<u8>>,
    ) {
        let mut buffer = vec![0; 2048];
        loop {
            let (length, from) = mediator.recv_from(&mut buffer).await.unwrap();
            let packet = Packet::from_datagram(&buffer[..length].to_vec().into()).unwrap();
            let message = DriverMsg::decode(packet.message.clone()).unwrap();
            let answer = match (message.r#type(), packet.header.device_type) {
                (MsgType::Ping, _) => {
                    let pong = DriverMsg {
                        r#type: MsgType::Pong.into(),
                        ..DriverMsg::default()
                    };
                    Some(pong.encode_to_vec())
                }
                (MsgType::Data, Some(device)) => answer(DeviceType(device), packet.message),
                (MsgType::ClientDied, _) => return,
                _ => None,
            };
            if let (Some(answer), Some(syn)) = (answer, message.syn_num) {
                let answer = Packet {
                    header: packet.header,
                    message: with_ack(&answer.into(), syn),
                };
                let answer = answer.encode().unwrap();
                mediator.send_to(&answer, from).await.unwrap();
            }
        }
    }

    async fn users() -> (Users, UdpSocket, mpsc::Receiver<News>) {
        let mediator = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (news, received) = mpsc::channel(8);
        let address = mediator.local_addr().unwrap().to_string();
        (
            Users::new(address, Seat::Exclusive, news),
            mediator,
            received,
        )
    }

    #[tokio::test]
    async fn what_a_session_has_ordered_is_sent_before_it_leaves() {
        let (mut users, mediator, _news) = users().await;
        let (user, device) = (User(1), Device::new(DeviceType::DRIVE_TO_POINT, 0));
        users.open(user, "galileo".into());
        for x_m in [1.0, 2.0, 3.0] {
            let target = Target::new(x_m, 0.0);
            assert!(users.order(user, UserOrder::Targets(device, vec![target])));
        }
        users.close(user);
        let mut targets = 0;
        let served = serve(mediator, |_, message| {
            let message = drive_to_point::DriverMsg::decode(message).unwrap();
            targets += u32::from(message.set_targets.is_some());
            None
        });
        tokio::join!(served, users.end());
        assert_eq!(targets, 3);
    }

    #[tokio::test]
    async fn a_session_that_is_refused_is_told_who_drives_and_neither_moves_nor_stops_the_wheels() {
        let why = "amber goto holds the lease of this device";
        let (mut users, mediator, mut news) = users().await;
        let (user, wheels) = (User(1), Device::new(DeviceType::ROBOCLAW, 0));
        users.open(user, "galileo 10.0.0.7:5".into());
        users.order(user, UserOrder::Drive(wheels, WheelSpeeds::all(200)));
        let (mut names, mut commands) = (Vec::new(), Vec::new());
        let served = serve(mediator, |_, message| {
            let command = roboclaw::DriverMsg::decode(message.clone()).unwrap();
            commands.extend(command.motors_command.map(WheelSpeeds::from));
            let request = motion_proto::DriverMsg::decode(message).unwrap();
            names.push(request.lease_request?.name().to_owned());
            let answer = motion_proto::DriverMsg {
                motion_state: Some(motion_proto::MotionState {
                    yours: Some(false),
                    refused: Some(why.into()),
                    ..motion_proto::MotionState::default()
                }),
                ..motion_proto::DriverMsg::data()
            };
            Some(answer.encode_to_vec())
        });
        let told = format!("roboclaw:0 refused the request: {why}");
        let scenario = async {
            let refused = Some(News::Refused(user, told.clone()));
            assert_eq!(news.recv().await, refused);
            assert_eq!(users.refused(user), Some(told.clone()));
            users.order(user, UserOrder::Drive(wheels, WheelSpeeds::STOP));
            // A person asks for this stop.
            users.order(user, UserOrder::Stop(wheels));
            users.end().await;
        };
        tokio::join!(served, scenario);
        assert!(names.iter().all(|name| name == "galileo 10.0.0.7:5"));
        assert_eq!(commands, [WheelSpeeds::STOP]);
    }
}
