//! A fake mediator with devices, controlled by tests of clients and commands. IO.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use amber_proto::mediator::{Driver, DriverMsg, Reply, reply, request};
use amber_proto::pieces::Ability;
use amber_proto::{Device, DeviceMessage, MsgType, Packet};
use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;

use crate::client::Client;
use crate::transport::{ChannelTransport, Role};
use crate::wire::{self, Envelope};

/// The mediator at the other end of a client.
pub struct Fake {
    sent: mpsc::Receiver<Packet>,
    incoming: mpsc::Sender<Packet>,
    driver: Option<Driver>,
}

/// A message of a client.
pub struct Sent {
    /// The device that it is for.
    pub device: Device,
    /// The message.
    pub bytes: Bytes,
}

impl Fake {
    /// A client and its mediator.
    pub fn new() -> (Client, Self) {
        let (outgoing, sent) = mpsc::channel(64);
        let (incoming, received) = mpsc::channel(64);
        let transport = ChannelTransport::new(outgoing, received, Role::Client);
        let fake = Self {
            sent,
            incoming,
            driver: None,
        };
        (Client::over(transport), fake)
    }

    /// A client and its mediator, which answers PINGs, and describes this driver if asked for any.
    /// It does so while it waits for the next message.
    pub fn knowing(driver: Driver) -> (Client, Self) {
        let (client, mut fake) = Self::new();
        fake.driver = Some(driver);
        (client, fake)
    }

    /// The next message to a device, apart from what the client and the
    /// mediator have to say to each other; `None` when the client has ended.
    pub async fn receive(&mut self) -> Option<Sent> {
        loop {
            let packet = self.sent.recv().await?;
            let device = wire::sender(&packet.header).unwrap();
            let bytes = packet.message;
            let sent = Sent { device, bytes };
            if device != Device::MEDIATOR {
                return Some(sent);
            }
            if let Some(answer) = self.mediator_says(&sent) {
                self.answer(&sent, &answer.encode_to_vec()).await;
            }
        }
    }

    fn mediator_says(&self, asked: &Sent) -> Option<DriverMsg> {
        let driver = self.driver.as_ref()?;
        let message = DriverMsg::decode(asked.bytes.clone()).unwrap();
        message.syn()?;
        if message.kind() == Some(MsgType::Ping) {
            return Some(DriverMsg::of_kind(MsgType::Pong));
        }
        let request::What::DescribeDriver(_) = message.request?.what? else {
            return None;
        };
        let what = Some(reply::What::Driver(driver.clone()));
        Some(DriverMsg {
            reply: Some(Reply { what }),
            ..DriverMsg::data()
        })
    }

    /// Sends a message on behalf of a device.
    pub async fn say(&self, device: Device, bytes: &[u8]) {
        let packet = wire::packet(device, Bytes::copy_from_slice(bytes));
        self.incoming.send(packet).await.unwrap();
    }

    /// Sends an encoded answer, whatever ackNum it has, as the answer to `asked`.
    pub async fn answer(&self, asked: &Sent, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        // Of a field that comes twice the last one counts.
        prost::encoding::uint32::encode(4, &asked.syn(), &mut bytes);
        self.say(asked.device, &bytes).await;
    }
}

impl Sent {
    /// The number of the request.
    pub fn syn(&self) -> u32 {
        let envelope = Envelope::decode(self.bytes.clone()).unwrap();
        envelope.syn().unwrap().0
    }

    /// The message before the client appended that it joins pieces, and a synNum.
    pub fn without_syn(&self) -> &[u8] {
        let mut syn = Vec::new();
        prost::encoding::uint32::encode(3, &self.syn(), &mut syn);
        let bytes = self.bytes.strip_suffix(&syn[..]).unwrap();
        let joins = Ability::of_client(true).to_append();
        bytes.strip_suffix(&joins[..]).unwrap_or(bytes)
    }
}
