//! A driver between two pipes; the test is the mediator at their other ends.

mod calls;
mod ending;
mod lease;
mod long;
mod publishing;
mod requests;
mod trouble;

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

use amber_proto::dummy::DriverMsg;
use amber_proto::limits::MAX_LONG;
use amber_proto::{ClientId, DeviceMessage, DeviceType, DriverHdr, MsgType, SynNum, mediator};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;
use crate::{Origin, Request, SendError};

/// A driver that records events, and whose behaviour depends on the text of a request.
#[derive(Default)]
struct Probe {
    notes: Notes,
    link: Option<Link<DriverMsg>>,
    period: Option<Duration>,
    publishing_takes: Duration,
    published: u64,
    description: Option<&'static [u8]>,
    go: Rc<Notify>,
}

type Notes = Rc<RefCell<Vec<String>>>;

impl Probe {
    fn note(&self, text: impl Into<String>) {
        self.notes.borrow_mut().push(text.into());
    }
}

impl Driver for Probe {
    type Message = DriverMsg;

    fn description(&self) -> Option<&'static [u8]> {
        self.description
    }

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
        Ok(())
    }

    async fn request(&mut self, request: Request<DriverMsg>) -> Option<DriverMsg> {
        let text = request.message.message.unwrap_or_default();
        self.note(text.clone());
        let link = self.link.clone().unwrap();
        match text.as_str() {
            "wait" => self.go.notified().await,
            "publish" => link.publish(data("published")).unwrap(),
            "publish to it" => {
                link.publish_to(&request.origin, data("published")).unwrap();
                return None;
            }
            "answer later" => {
                let go = self.go.clone();
                spawn_local(async move {
                    go.notified().await;
                    link.answer(&request.origin, data("later")).unwrap();
                });
                return None;
            }
            "break" => link.trouble("it is\nbroken"),
            "break one" => link.trouble_for(Device::new(DeviceType::DUMMY, 0), "loose"),
            "recover" => link.recovered(),
            "recover one" => link.recovered_for(Device::new(DeviceType::DUMMY, 0)),
            "call" => {
                let status = link.devices().dummy(1).status().await;
                return Some(data(&match status {
                    Ok(status) => status.message,
                    Err(error) => error.to_string(),
                }));
            }
            "answer too much" => return Some(data(&"x".repeat(32_768))),
            "publish too much" => {
                let error = link.publish(data(&"x".repeat(MAX_LONG))).unwrap_err();
                assert!(matches!(error, SendError::TooLong(_)));
                return Some(data(&error.to_string()));
            }
            _ => {}
        }
        Some(data(&text))
    }

    fn period(&self) -> Option<Duration> {
        self.period
    }

    async fn publish(&mut self) -> Option<DriverMsg> {
        sleep(self.publishing_takes).await;
        self.published += 1;
        Some(data(&self.published.to_string()))
    }

    async fn subscribed(&mut self, client: ClientId) {
        self.note(format!("{client} subscribed"));
    }

    async fn client_died(&mut self, client: ClientId) {
        self.note(format!("{client} died"));
    }

    async fn shutdown(&mut self) {
        self.note("shutdown");
        sleep(Duration::from_millis(1)).await;
        let everybody = Origin {
            clients: vec![ClientId(99)],
            ..Origin::default()
        };
        let link = self.link.as_ref().unwrap();
        link.publish_to(&everybody, data("bye")).unwrap();
    }
}

/// The mediator's ends of the pipes.
struct Mediator {
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    buffer: BytesMut,
    notes: Notes,
    go: Rc<Notify>,
    stop: Rc<Notify>,
    served: JoinHandle<Result<(), ServeError>>,
}

impl Mediator {
    fn start(probe: Probe) -> Self {
        Self::with_pipes(probe, 64 * 1024)
    }

    fn with_pipes(probe: Probe, bytes: usize) -> Self {
        Self::of_peer(Peer::Amber, probe, bytes)
    }

    fn of_peer(peer: Peer, probe: Probe, bytes: usize) -> Self {
        let (to_driver, reader) = duplex(bytes);
        let (writer, from_driver) = duplex(bytes);
        let (notes, go) = (probe.notes.clone(), probe.go.clone());
        let stop = Rc::new(Notify::new());
        let stopped = stop.clone();
        let served = spawn_local(async move {
            let hosting = Hosting::Alone(peer);
            serve_as(hosting, stopped.notified(), probe, reader, writer).await
        });
        Self {
            to_driver,
            from_driver,
            buffer: BytesMut::new(),
            notes,
            go,
            stop,
            served,
        }
    }

    async fn write(&mut self, client: i32, message: DriverMsg) {
        self.write_packet(packet(client, &message)).await;
    }

    async fn write_packet(&mut self, packet: Packet) {
        self.write_bytes(&packet.encode().unwrap()).await;
    }

    async fn write_bytes(&mut self, bytes: &[u8]) {
        self.to_driver.write_all(bytes).await.unwrap();
    }

    async fn ask(&mut self, syn: u32, text: &str) {
        let mut message = data(text);
        message.set_syn(Some(SynNum(syn)));
        self.write(5, message).await;
    }

    async fn tell(&mut self, client: i32, kind: MsgType) {
        self.write(client, DriverMsg::of_kind(kind)).await;
    }

    async fn ping(&mut self, syn: u32) {
        let mut message = DriverMsg::of_kind(MsgType::Ping);
        message.set_syn(Some(SynNum(syn)));
        self.write(5, message).await;
    }

    /// The next frame; `None` at the end.
    async fn read(&mut self) -> Option<Packet> {
        loop {
            if let Some(packet) = FrameCodec.decode(&mut self.buffer).unwrap() {
                return Some(packet);
            }
            if self.from_driver.read_buf(&mut self.buffer).await.unwrap() == 0 {
                assert!(self.buffer.is_empty());
                return None;
            }
        }
    }

    /// The next message and its receivers.
    async fn hear(&mut self) -> (Vec<i32>, DriverMsg) {
        let packet = self.read().await.expect("the driver still runs");
        let message = DriverMsg::decode(packet.message).unwrap();
        (packet.header.client_ids, message)
    }

    async fn expect(&mut self, client: i32, ack: u32, text: &str) {
        let mut message = data(text);
        message.set_ack(Some(SynNum(ack)));
        assert_eq!(self.hear().await, (vec![client], message));
    }

    async fn expect_pong(&mut self, syn: u32) {
        let mut message = DriverMsg::of_kind(MsgType::Pong);
        message.set_ack(Some(SynNum(syn)));
        assert_eq!(self.hear().await, (vec![5], message));
    }

    /// Closes stdin and waits for the end.
    async fn end(mut self) -> Result<(), ServeError> {
        self.to_driver.shutdown().await.unwrap();
        self.expect(99, 0, "bye").await;
        assert_eq!(self.read().await, None);
        let result = (&mut self.served).await.unwrap();
        assert_eq!(self.notes.borrow().last().unwrap(), "shutdown");
        result
    }
}

fn data(text: &str) -> DriverMsg {
    DriverMsg {
        message: Some(text.into()),
        ..DriverMsg::data()
    }
}

fn published(text: &str) -> DriverMsg {
    DriverMsg {
        ack_num: Some(0),
        ..data(text)
    }
}

fn packet(client: i32, message: &DriverMsg) -> Packet {
    Packet {
        header: DriverHdr {
            client_ids: vec![client],
            ..DriverHdr::default()
        },
        message: message.encode_to_vec().into(),
    }
}

/// Runs on one thread with a clock that jumps to the next event.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}
