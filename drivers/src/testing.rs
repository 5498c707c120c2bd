//! Both ends of a driver in a test: an in-memory device behind a plug that can be pulled, and a
//! fake mediator. The clock advances only when all tasks are idle. IO.

use std::fmt::Debug;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use amber_driver::proto::{DeviceMessage, DriverHdr, FrameCodec, Packet, mediator};
use amber_driver::{Driver, serve_on};
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::codec::Decoder;

use crate::connection::Connection;

/// The task at the other end of an open port.
type Serve<D> = fn(Plug<D>, DuplexStream) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// A device, and whether it is connected.
pub(crate) struct Plug<D> {
    shared: Arc<Mutex<Shared<D>>>,
    serve: Serve<D>,
}

struct Shared<D> {
    device: D,
    plugged: bool,
    /// The task that serves the open port.
    task: Option<JoinHandle<()>>,
}

impl<D> Clone for Plug<D> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            serve: self.serve,
        }
    }
}

impl<D: Send + 'static> Plug<D> {
    pub(crate) fn new(device: D, serve: Serve<D>) -> Self {
        let shared = Shared {
            device,
            plugged: true,
            task: None,
        };
        Self {
            shared: Arc::new(Mutex::new(shared)),
            serve,
        }
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut D) -> T) -> T {
        act(&mut self.shared.lock().unwrap().device)
    }

    /// Plugs the device in or pulls it out. Bytes in transit are lost.
    pub(crate) fn plug(&self, plugged: bool) {
        let mut shared = self.shared.lock().unwrap();
        shared.plugged = plugged;
        if let Some(task) = shared.task.take().filter(|_| !plugged) {
            task.abort();
        }
    }

    /// Called by the driver to connect.
    pub(crate) fn connect(&self) -> io::Result<Box<dyn Connection>> {
        let mut shared = self.shared.lock().unwrap();
        if !shared.plugged {
            return Err(io::ErrorKind::NotFound.into());
        }
        let (ours, theirs) = duplex(1024);
        shared.task = Some(tokio::spawn((self.serve)(self.clone(), theirs)));
        Ok(Box::new(ours))
    }
}

/// The fake mediator, and the device.
pub(crate) struct Mediator<D> {
    pub(crate) port: Plug<D>,
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    input: BytesMut,
    /// Health reports of the driver that the test has not checked yet.
    health: Vec<Option<String>>,
}

/// Runs a driver during the scenario, then shuts it down.
pub(crate) async fn run<D: Send + 'static>(
    port: Plug<D>,
    driver: impl Driver,
    scenario: impl AsyncFnOnce(&mut Mediator<D>),
) {
    let (to_driver, reader) = duplex(4096);
    let (writer, from_driver) = duplex(4096);
    let mut mediator = Mediator {
        port,
        to_driver,
        from_driver,
        input: BytesMut::new(),
        health: Vec::new(),
    };
    let (served, ()) = tokio::join!(serve_on(driver, reader, writer), async move {
        scenario(&mut mediator).await;
    });
    served.unwrap();
}

impl<D: Send + 'static> Mediator<D> {
    /// Sends a message from client 7.
    pub(crate) async fn tell(&mut self, message: &[u8]) {
        let packet = Packet {
            header: header(),
            message: message.to_vec().into(),
        };
        let frame = packet.encode().unwrap();
        self.to_driver.write_all(&frame).await.unwrap();
    }

    /// The driver's next message to client 7 within one second.
    pub(crate) async fn hear(&mut self) -> Option<Vec<u8>> {
        loop {
            let packet = timeout(Duration::from_secs(1), self.read()).await.ok()?;
            if let Some(packet) = packet {
                return Some(packet);
            }
        }
    }

    /// Waits until the driver reports that its device works, or this problem.
    pub(crate) async fn expect_health(&mut self, trouble: Option<&str>) {
        let said = self.health().await;
        assert_eq!(said.as_deref(), trouble);
    }

    /// Waits for the next report: a problem, or that the device works.
    pub(crate) async fn health(&mut self) -> Option<String> {
        let saying = async {
            while self.health.is_empty() {
                self.read().await;
            }
        };
        let said = timeout(Duration::from_secs(30), saying).await;
        assert!(said.is_ok(), "no health report");
        self.health.remove(0)
    }

    /// Checks that the driver sent no further health report.
    pub(crate) fn expect_no_more_health(&self) {
        assert_eq!(self.health, []);
    }

    /// Waits for a condition.
    pub(crate) async fn until(&self, what: &str, condition: impl Fn(&mut D) -> bool) {
        let waiting = async {
            while !self.port.with(&condition) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(Duration::from_secs(10), waiting).await;
        assert!(waited.is_ok(), "{what}");
    }

    /// Reads one frame: a message for the client, or a health report.
    async fn read(&mut self) -> Option<Vec<u8>> {
        let packet = loop {
            if let Some(packet) = FrameCodec.decode(&mut self.input).unwrap() {
                break packet;
            }
            let read = self.from_driver.read_buf(&mut self.input).await.unwrap();
            assert_ne!(read, 0, "the driver has ended");
        };
        if packet.header == header() {
            return Some(packet.message.to_vec());
        }
        assert_eq!(packet.header, DriverHdr::default());
        let message = mediator::DriverMsg::decode(packet.message).unwrap();
        assert!(message.kind().is_some());
        self.health.push(message.health.unwrap().trouble().unwrap());
        None
    }
}

fn header() -> DriverHdr {
    DriverHdr {
        client_ids: vec![7],
        ..DriverHdr::default()
    }
}

/// Checks that the bytes decode to the message, and the message encodes to the bytes.
#[track_caller]
pub(crate) fn check_bytes<M: Message + Default + PartialEq + Debug>(hex: &str, message: M) {
    let digits = hex.split_ascii_whitespace();
    let bytes: Vec<u8> = digits
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect();
    assert_eq!(M::decode(&*bytes).unwrap(), message);
    assert_eq!(message.encode_to_vec(), bytes);
}
