//! The client against a mediator played here, over real sockets on loopback.

#![allow(clippy::unwrap_used)] // Helpers of tests, which clippy does not see as such.

use std::net::SocketAddr;
use std::net::UdpSocket as StdSocket;

use amber_client::proto::{
    Device, DeviceMessage, MsgType, Packet, dummy, hokuyo, mediator, roboclaw,
};
use amber_client::{Announcement, Client, Error, WheelSpeeds};
use bytes::Bytes;
use prost::Message;
use tokio::net::UdpSocket;

/// A mediator with a dummy, wheels and a scanner.
struct Mediator {
    socket: UdpSocket,
}

impl Mediator {
    async fn new() -> (Self, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        (Self { socket }, address)
    }

    async fn receive(&self) -> (Packet, dummy::DriverMsg, SocketAddr) {
        let mut buffer = [0; 2000];
        let (length, client) = self.socket.recv_from(&mut buffer).await.unwrap();
        let packet = Packet::from_datagram(&Bytes::copy_from_slice(&buffer[..length])).unwrap();
        let message = dummy::DriverMsg::decode(packet.message.clone()).unwrap();
        (packet, message, client)
    }

    async fn answer(&self, to: SocketAddr, asked: &Packet, message: impl Message) {
        let packet = Packet {
            header: asked.header.clone(),
            message: message.encode_to_vec().into(),
        };
        self.socket
            .send_to(&packet.encode().unwrap(), to)
            .await
            .unwrap();
    }

    /// Plays until the client leaves; gives what it was sent.
    async fn play(self) -> Vec<(MsgType, Option<i32>)> {
        let mut seen = Vec::new();
        let mut commanded = None;
        loop {
            let (packet, message, client) = self.receive().await;
            let kind = message.kind().unwrap();
            seen.push((kind, packet.header.device_type));
            let mut reply = dummy::DriverMsg::data();
            reply.ack_num = message.syn_num;
            match kind {
                MsgType::Ping => {
                    reply.set_kind(MsgType::Pong);
                    self.answer(client, &packet, reply).await;
                }
                MsgType::Data if message.get_status.is_some() => {
                    reply.enable = Some(true);
                    reply.message = Some("hello".into());
                    self.answer(client, &packet, reply).await;
                }
                MsgType::Subscribe => {
                    for k in 1..=3 {
                        let mut data = dummy::DriverMsg::data();
                        data.ack_num = Some(0);
                        data.message = Some(format!("Response {k}"));
                        self.answer(client, &packet, data).await;
                    }
                }
                MsgType::Data if packet.header.device_type == Some(2) => {
                    let asked = roboclaw::DriverMsg::decode(packet.message.clone()).unwrap();
                    if asked.current_speed_request.is_some() {
                        let mut reply = roboclaw::DriverMsg::data();
                        reply.ack_num = message.syn_num;
                        reply.current_speed = commanded;
                        self.answer(client, &packet, reply).await;
                    } else {
                        commanded = asked.motors_command;
                    }
                }
                MsgType::Data if packet.header.device_type == Some(4) => {
                    let mut reply = hokuyo::DriverMsg::data();
                    reply.ack_num = message.syn_num;
                    reply.scan = Some(hokuyo::Scan {
                        angles: vec![-90.0, 90.0],
                        distances: vec![1000, 2000],
                    });
                    self.answer(client, &packet, reply).await;
                }
                MsgType::Data if packet.header.device_type == Some(0) => {
                    let mut reply = mediator::DriverMsg::data();
                    reply.ack_num = message.syn_num;
                    self.answer(client, &packet, reply).await;
                }
                MsgType::ClientDied => return seen,
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn connect_ask_listen_leave() {
    let (mediator, address) = Mediator::new().await;
    let mediator = tokio::spawn(mediator.play());
    let client = Client::connect(address).await.unwrap();
    assert_eq!(client.announcement(), Announcement::Answered);
    let dummy = client.dummy(0);
    let status = dummy.status().await.unwrap();
    assert_eq!((status.enable, status.message.as_str()), (true, "hello"));
    let mut updates = dummy.messages().await.unwrap();
    for k in 1..=3 {
        let update = updates.next().await.unwrap();
        assert_eq!(
            (update.message, update.missed),
            (format!("Response {k}"), 0)
        );
    }
    // The last handles go one after the other.
    drop((updates, dummy, client));
    let seen = mediator.await.unwrap();
    assert_eq!(seen.first(), Some(&(MsgType::Ping, Some(0))));
    assert_eq!(seen.last(), Some(&(MsgType::ClientDied, Some(0))));
    let subscribes = seen.iter().filter(|(kind, _)| *kind == MsgType::Subscribe);
    assert_eq!(subscribes.count(), 1);
}

#[tokio::test]
async fn a_mediator_that_never_answers_is_no_error_but_is_known() {
    let (_mediator, address) = Mediator::new().await;
    let client = Client::connect(address).await.unwrap();
    assert_eq!(client.announcement(), Announcement::Silent);
}

#[tokio::test]
async fn an_unreachable_mediator_is_a_clear_error() {
    let address = StdSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    match Client::connect(address).await {
        Err(error @ Error::Unreachable { .. }) => {
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("no mediator at {address}: "))
            );
            assert!(error.hint().is_some());
        }
        other => panic!("{other:?}"),
    }
    match Client::connect("neither host nor port").await {
        Err(Error::UnknownHost { .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// Whether a mediator runs on the default port or not: that is where it looks.
#[tokio::test]
async fn an_address_needs_no_port() {
    let mediator = match Client::connect("127.0.0.1").await {
        Ok(client) => client.mediator_address().to_owned(),
        Err(Error::Unreachable { mediator, .. }) => mediator,
        other => panic!("{other:?}"),
    };
    assert_eq!(mediator, "127.0.0.1:26233");
}

#[test]
fn an_address_needs_no_port_without_async() {
    let mediator = match amber_client::blocking::Client::connect("127.0.0.1") {
        Ok(client) => client.mediator_address().to_owned(),
        Err(Error::Unreachable { mediator, .. }) => mediator,
        other => panic!("{other:?}"),
    };
    assert_eq!(mediator, "127.0.0.1:26233");
}

#[tokio::test]
async fn an_invalid_address_is_explained() {
    let error = Client::connect("robot:70000").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot find the mediator robot:70000: invalid port '70000'"
    );
}

#[tokio::test]
async fn a_call_in_flight_fails_when_the_mediator_goes() {
    let (mediator, address) = Mediator::new().await;
    let connect = tokio::spawn(Client::connect(address));
    let (packet, message, from) = mediator.receive().await;
    let mut pong = dummy::DriverMsg::of_kind(MsgType::Pong);
    pong.ack_num = message.syn_num;
    mediator.answer(from, &packet, pong).await;
    let client = connect.await.unwrap().unwrap();
    drop(mediator);
    match client.dummy(0).status().await {
        Err(Error::Unreachable { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_async() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mediator, address) = runtime.block_on(Mediator::new());
    let mediator = runtime.spawn(mediator.play());
    let client = amber_client::blocking::Client::connect(address).unwrap();
    assert_eq!(client.dummy(0).status().unwrap().message, "hello");
    let updates = client.dummy(0).messages().unwrap();
    let messages: Vec<_> = updates.take(3).map(|update| update.message).collect();
    assert_eq!(messages, ["Response 1", "Response 2", "Response 3"]);
    let curve = WheelSpeeds::sides(300, -200);
    client.roboclaw(0).drive(curve).unwrap();
    assert_eq!(client.roboclaw(0).speeds().unwrap(), curve);
    client.roboclaw(0).stop().unwrap();
    assert_eq!(client.roboclaw(0).speeds().unwrap(), WheelSpeeds::STOP);
    let scan = client.hokuyo(0).scan().unwrap();
    assert_eq!(scan.points()[1].distance_mm, 2000);
    assert!(client.device(Device::MEDIATOR).ping().is_ok());
    client.close();
    let seen = runtime.block_on(mediator).unwrap();
    assert_eq!(seen.last(), Some(&(MsgType::ClientDied, Some(0))));
}
