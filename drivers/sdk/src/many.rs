//! Several devices of any types in one process. IO.
//!
//! ```text
//!                      +--> pipe of one device --+
//! stdin --> addressee -+--> pipe of one device --+--> stdout
//!                      +--> answers of other devices, to the one client that all share
//! ```
//!
//! Each device has its own pipe, as if it were alone: subscribers, a queue, and handlers that
//! do not wait for those of other devices.

use std::fmt;
use std::future::pending;
use std::io;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};

use amber_client::Client;
use amber_client::transport::{ChannelTransport, Role};
use amber_proto::{Device, DeviceId, DeviceMessage, DeviceType, FrameCodec, MsgType, Packet};
use amber_proto::{DriverHdr, mediator};
use bytes::BytesMut;
use prost::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;
use tokio_util::codec::{Decoder, Encoder};

use crate::pipe::{Hosting, LAST_WORDS, MAX_PACKETS, Peer, serve_as};
use crate::{Driver, ServeError};

/// The capacity of the pipe of one device, in bytes: that of a pipe of Linux, twice the longest
/// frame.
const PIPE: usize = 64 * 1024;

type Served = Pin<Box<dyn Future<Output = Result<(), ServeError>>>>;

/// The devices that one process serves, each with its driver.
///
/// ```no_run
/// use amber_driver::devices::dummy::{self, DummyDriver};
/// use amber_driver::devices::hokuyo::{self, HokuyoDriver};
/// use amber_driver::proto::{Device, DeviceType};
///
/// # fn serve(lamp: impl DummyDriver + 'static, scanner: impl HokuyoDriver + 'static) {
/// let devices = amber_driver::Devices::new()
///     .add(Device::new(DeviceType::DUMMY, 0), dummy::driver(lamp))
///     .add(Device::new(DeviceType::HOKUYO, 0), hokuyo::driver(scanner));
/// amber_driver::serve_many(devices);
/// # }
/// ```
///
/// Each device is served as if it were alone in its process. A client that no longer uses one
/// device is gone for that device only. [`Link::trouble`](crate::Link::trouble) reports about the
/// device of the driver. If a driver cannot start, all are shut down and the process ends.
#[derive(Default)]
pub struct Devices {
    devices: Vec<(Device, Start)>,
}

/// Starts to serve one device.
type Start = Box<dyn FnOnce(Hosting, watch::Receiver<bool>, DuplexStream, DuplexStream) -> Served>;

impl Devices {
    /// No devices yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a device. Its type and id are those in the configuration of the mediator.
    #[must_use]
    pub fn add<D: Driver + 'static>(mut self, device: Device, driver: D) -> Self {
        let start: Start = Box::new(move |hosting, mut stopped, reader, writer| {
            Box::pin(async move {
                let stop = async {
                    // Without a sender, nothing can stop it.
                    if stopped.wait_for(|stopped| *stopped).await.is_err() {
                        pending::<()>().await;
                    }
                };
                serve_as(hosting, stop, driver, reader, writer).await
            })
        });
        self.devices.push((device, start));
        self
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.devices.iter().map(|(device, _)| device);
        f.debug_list().entries(names).finish()
    }
}

/// Serves several devices until the reader ends or `stop` is ready. The error is the first one of any
/// device.
pub(crate) async fn serve_many_as(
    peer: Peer,
    stop: impl Future<Output = ()>,
    devices: Devices,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> Result<(), ServeError> {
    let serving = async {
        let (requests, to_devices) = mpsc::channel(MAX_PACKETS);
        let (from_devices, answers) = mpsc::channel(MAX_PACKETS);
        let client = Client::over(ChannelTransport::new(requests, answers, Role::Driver));
        let (outbox, packets) = mpsc::channel(MAX_PACKETS);
        let (stop_all, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let mut inlets = Vec::new();
        for (device, start) in devices.devices {
            let (inlet, reader) = duplex(PIPE);
            let (writer, outlet) = duplex(PIPE);
            let hosting = Hosting::OneOf {
                peer,
                device,
                client: client.clone(),
            };
            inlets.push((device, inlet));
            let served = start(hosting, stopped.clone(), reader, writer);
            let outbox = outbox.clone();
            tasks.spawn_local(async move { tokio::join!(served, collect(outlet, outbox)).0 });
        }
        // It closes when the last device has ended.
        drop(outbox);
        let input = Input {
            inlets,
            from_devices,
            has_warned: false,
        };
        let ended = run(
            stop,
            stop_all,
            tasks,
            input.route(reader),
            write(writer, packets, to_devices),
        );
        ended.await
    };
    match LocalSet::new().run_until(serving).await {
        // The mediator closed its end first, so nothing can be delivered any more.
        Err(ServeError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Waits until every device has ended and its last messages are written. The first error stops
/// all devices.
async fn run(
    stop: impl Future<Output = ()>,
    stop_all: watch::Sender<bool>,
    mut tasks: JoinSet<Result<(), ServeError>>,
    input: impl Future<Output = Result<(), ServeError>>,
    output: impl Future<Output = Result<(), ServeError>>,
) -> Result<(), ServeError> {
    let (mut stop, mut input, mut output) = (pin!(stop), pin!(input), pin!(output));
    let (mut is_stopping, mut reads, mut writes) = (false, true, true);
    let mut result = Ok(());
    while !tasks.is_empty() {
        let done = tokio::select! {
            Some(ended) = tasks.join_next() => {
                ended.unwrap_or_else(|error| resume_unwind(error.into_panic()))
            }
            read = &mut input, if reads => {
                reads = false;
                read
            }
            written = &mut output, if writes => {
                writes = false;
                written
            }
            () = &mut stop, if !is_stopping => {
                is_stopping = true;
                stop_all.send_replace(true);
                Ok(())
            }
        };
        if done.is_err() {
            is_stopping = true;
            stop_all.send_replace(true);
            result = result.and(done);
        }
    }
    if writes {
        tokio::select! {
            written = output => result = result.and(written),
            () = sleep(LAST_WORDS) => {}
        }
    }
    result
}

/// The destinations of frames from the mediator.
struct Input {
    /// The input of each device.
    inlets: Vec<(Device, DuplexStream)>,
    from_devices: mpsc::Sender<Packet>,
    has_warned: bool,
}

/// The receiver of a frame from the mediator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addressee {
    /// The client, with an answer or publication of another device.
    Client,
    /// One of the devices, by its place in the list.
    One(usize),
    /// All devices.
    All,
    /// A device that this process does not serve.
    Nobody,
}

impl Input {
    /// Forwards frames until the reader ends.
    async fn route(mut self, mut reader: impl AsyncRead + Unpin) -> Result<(), ServeError> {
        let mut input = BytesMut::new();
        loop {
            while let Some(packet) = FrameCodec.decode(&mut input).map_err(ServeError::Read)? {
                self.pass_on(packet).await;
            }
            let read = reader.read_buf(&mut input).await;
            if read.map_err(ServeError::Read)? == 0 {
                if !input.is_empty() {
                    let bytes = input.len();
                    tracing::warn!(bytes, "the mediator's last frame is incomplete");
                }
                return Ok(());
            }
        }
    }

    async fn pass_on(&mut self, packet: Packet) {
        let devices: Vec<Device> = self.inlets.iter().map(|(device, _)| *device).collect();
        let receivers = match addressee(&devices, &packet) {
            Addressee::Client => {
                if self.from_devices.try_send(packet).is_err() {
                    tracing::debug!("dropped a message from another device: the queue is full");
                }
                return;
            }
            Addressee::One(index) => &mut self.inlets[index..=index],
            Addressee::All => &mut self.inlets[..],
            Addressee::Nobody => {
                if !std::mem::replace(&mut self.has_warned, true) {
                    let device = device_of(&packet.header).map(tracing::field::display);
                    tracing::warn!(device, "ignored a message for another device (logged once)");
                }
                return;
            }
        };
        let mut frame = BytesMut::new();
        if let Err(error) = FrameCodec.encode(packet, &mut frame) {
            tracing::error!("a message was not forwarded: {error}");
        }
        for (_, inlet) in receivers {
            // A device that has ended reads nothing.
            let _ = inlet.write_all(&frame).await;
        }
    }
}

/// The receiver of a frame, in a process with these devices. PURE.
fn addressee(devices: &[Device], packet: &Packet) -> Addressee {
    match device_of(&packet.header) {
        Some(_) if packet.header.client_ids.is_empty() => Addressee::Client,
        Some(device) => (devices.iter().position(|other| *other == device))
            .map_or(Addressee::Nobody, Addressee::One),
        // From the mediator itself, or from one that does not support several devices.
        None => match kind(packet) {
            Some(MsgType::ClientDied) => Addressee::All,
            Some(MsgType::Ping) if !devices.is_empty() => Addressee::One(0),
            _ if devices.len() == 1 => Addressee::One(0),
            _ => Addressee::Nobody,
        },
    }
}

fn kind(packet: &Packet) -> Option<MsgType> {
    let message = mediator::DriverMsg::decode(packet.message.clone());
    message.ok().and_then(|message| message.kind())
}

fn device_of(header: &DriverHdr) -> Option<Device> {
    Some(Device {
        device_type: DeviceType(header.device_type?),
        id: DeviceId(header.device_id?),
    })
}

/// Collects the frames of one device until it ends.
async fn collect(mut outlet: DuplexStream, outbox: mpsc::Sender<Packet>) {
    let mut output = BytesMut::new();
    loop {
        while let Ok(Some(packet)) = FrameCodec.decode(&mut output) {
            // At the end, the writer may be gone.
            let _ = outbox.send(packet).await;
        }
        if !matches!(outlet.read_buf(&mut output).await, Ok(1..)) {
            return;
        }
    }
}

/// Writes the frames of all devices until the last has ended.
async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut packets: mpsc::Receiver<Packet>,
    mut to_devices: mpsc::Receiver<Packet>,
) -> Result<(), ServeError> {
    let mut output = BytesMut::new();
    loop {
        let packet = tokio::select! {
            packet = packets.recv() => match packet {
                Some(packet) => packet,
                None => return Ok(()),
            },
            Some(packet) = to_devices.recv() => packet,
        };
        let mut next = Some(packet);
        // What is ready shares a write.
        while let Some(packet) = next.take() {
            if let Err(error) = FrameCodec.encode(packet, &mut output) {
                tracing::error!("a message was not sent: {error}");
            }
            if output.len() < PIPE {
                next = packets.try_recv().ok();
            }
        }
        let written = async {
            writer.write_all_buf(&mut output).await?;
            writer.flush().await
        };
        written.await.map_err(ServeError::Write)?;
    }
}

#[cfg(test)]
mod tests;
