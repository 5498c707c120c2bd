//! A driver between two byte streams. IO.
//!
//! One task does everything. While a handler of the driver waits, the same task continues to read
//! and write: it answers PINGs, records subscribers, and queues requests.

use std::env;
use std::future::{pending, poll_fn};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use amber_client::Client;
use amber_client::transport::{ChannelTransport, Role};
use amber_proto::{Device, DeviceMessage, DriverHdr, FrameCodec, Packet, mediator};
use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};
use tokio_util::codec::{Decoder, Encoder};
use tokio_util::io::{poll_read_buf, poll_write_buf};

use crate::link::{Command, Link, Linked, lock};
use crate::motion::{Holder, read_halts};
use crate::queue::{MAX_REQUESTS, Work};
use crate::request::MessageTooLong;
use crate::session::Session;
use crate::{Driver, ServeError};

/// The maximum output that may wait before the driver must write it: several times the capacity of
/// a pipe.
const MAX_OUTPUT: usize = 256 * 1024;

/// The maximum number of handler calls before their output is written: enough to share a write, but
/// too few to delay it.
const MAX_BATCH: usize = 16;

/// The size of a read, in bytes. It holds fewer requests (of at least 9 bytes) than the queue, so
/// none is dropped while the handlers are fast.
const READ: usize = 8 * 1024;
const _: () = assert!(READ / 9 < MAX_REQUESTS);

/// The maximum number of packets in transit to and from other devices.
pub(crate) const MAX_PACKETS: usize = 256;

/// The maximum pause of reading while there is work. Handlers that compute without waiting must not
/// delay PINGs.
const MAX_READ_PAUSE: Duration = Duration::from_millis(100);

/// Time limit for the queued requests after the end of the stream.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

/// Time limit for the mediator to read the last messages.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(1);

/// The process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A mediator of this project.
    Amber,
    /// Possibly one that does not understand reports about devices.
    Unknown,
}

/// The environment of a driver.
#[derive(Clone, Debug)]
pub(crate) enum Hosting {
    /// Alone in its process.
    Alone(Peer),
    /// One of several devices of the process, which share the client for calls to other devices.
    OneOf {
        peer: Peer,
        device: Device,
        client: Client,
    },
}

/// Serves within this process, for tests of a driver: until the reader ends, which leaves a running
/// handler a second. Then shuts the driver down. Assumes a mediator of this project at the other end,
/// which receives [`Link::trouble`].
///
/// The streams are those of tokio 1, such as the halves of [`tokio::io::duplex`].
///
/// # Errors
/// The driver could not start, the reader delivers an invalid frame, or one of
/// the streams fails. The driver is also shut down in these cases.
pub async fn serve_on<D: Driver>(
    driver: D,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> Result<(), ServeError> {
    let hosting = Hosting::Alone(Peer::Amber);
    serve_as(hosting, pending(), driver, reader, writer).await
}

/// Serves until the reader ends or `stop` is ready, and then shuts the driver down. `stop` also
/// cancels a running handler.
pub(crate) async fn serve_as<D: Driver>(
    hosting: Hosting,
    stop: impl Future<Output = ()>,
    mut driver: D,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> Result<(), ServeError> {
    let (mut pipe, link, ended) = Pipe::new(hosting, reader, writer);
    let overtime = async {
        if ended.await.is_ok() {
            sleep(LAST_REQUESTS).await;
        }
    };
    let served = tokio::select! {
        served = pipe.serve(&mut driver, link) => served,
        () = stop => Ok(()),
        () = overtime => Ok(()),
    };
    match served.and(pipe.shut_down(&mut driver).await) {
        // The mediator closed its end first, so nothing can be delivered any more.
        Err(ServeError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

struct Pipe<D: Driver, R, W> {
    peer: Peer,
    /// The device, in a process that serves several.
    device: Option<Device>,
    session: Session<D::Message>,
    reader: R,
    writer: W,
    input: BytesMut,
    last_read: Instant,
    output: BytesMut,
    /// Files and similar outputs have their own buffers.
    flushed: bool,
    /// `None` after the end of the reader.
    ended: Option<oneshot::Sender<()>>,
    linked: Linked<D::Message>,
    subscriptions: watch::Sender<usize>,
    holder: watch::Sender<Option<Holder>>,
    to_devices: mpsc::Receiver<Packet>,
    from_devices: mpsc::Sender<Packet>,
    /// Wakes for the next pieces of long messages.
    pieces: Pin<Box<Sleep>>,
}

impl<D: Driver, R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Pipe<D, R, W> {
    fn new(
        hosting: Hosting,
        reader: R,
        writer: W,
    ) -> (Self, Link<D::Message>, oneshot::Receiver<()>) {
        let (requests, to_devices) = mpsc::channel(MAX_PACKETS);
        let (from_devices, answers) = mpsc::channel(MAX_PACKETS);
        let (peer, device, client) = match hosting {
            Hosting::Alone(peer) => {
                let transport = ChannelTransport::new(requests, answers, Role::Driver);
                (peer, None, Client::over(transport))
            }
            Hosting::OneOf {
                peer,
                device,
                client,
            } => (peer, Some(device), client),
        };
        let (subscriptions, watched) = watch::channel(0);
        let (holder, held) = watch::channel(None);
        let (link, linked) = Link::new(device, client, watched, held);
        let (ended, end) = oneshot::channel();
        let pipe = Self {
            peer,
            device,
            session: Session::default().with_last_number(anything()),
            reader,
            writer,
            input: BytesMut::new(),
            last_read: Instant::now(),
            output: BytesMut::new(),
            flushed: true,
            ended: Some(ended),
            linked,
            subscriptions,
            holder,
            to_devices,
            from_devices,
            pieces: Box::pin(sleep(Duration::ZERO)),
        };
        (pipe, link, end)
    }

    async fn serve(&mut self, driver: &mut D, link: Link<D::Message>) -> Result<(), ServeError> {
        if let Some(moves) = driver.moves() {
            let reports = self.peer == Peer::Amber;
            let halted = env::var("AMBER_HALTED").unwrap_or_default();
            self.session.set_moves(moves, read_halts(&halted), reports);
        }
        if driver.reports_outcomes() {
            self.session.set_reports_outcomes();
        }
        self.during(driver.start(link))
            .await?
            .map_err(ServeError::Start)?;
        if let Some(files) = driver.description()
            && self.peer == Peer::Amber
        {
            self.encode(description(self.device, files));
        }
        let mut batch = 0;
        let mut has_published = false;
        loop {
            let period = driver.period();
            if self.output.len() >= MAX_OUTPUT {
                // The output is overdue already; a further delay is better than an unbounded
                // buffer.
                self.exchange().await?;
                continue;
            }
            if batch == MAX_BATCH {
                batch = 0;
                self.exchange_now().await?;
                // Let other tasks of the driver run.
                tokio::task::yield_now().await;
            }
            batch += 1;
            // A driver that publishes continuously must still handle requests and end.
            let may_publish = self.ended.is_some() && !(has_published && self.session.has_work());
            let period = period.filter(|_| may_publish);
            if self.is_overdue() {
                self.read_all().await?;
            }
            let now = Instant::now().into_std();
            self.session.handle_timeout(now);
            self.tell_holder();
            has_published = false;
            if let Some(device) = period.and_then(|period| self.session.take_due(now, period)) {
                has_published = true;
                self.publish(driver, device).await?;
            } else if may_publish && driver.wake_at().is_some_and(|due| due <= now) {
                has_published = true;
                self.during(driver.wake()).await?;
            } else if let Some(work) = self.take_work(now) {
                self.work(driver, work).await?;
            } else if self.ended.is_none() {
                return Ok(());
            } else {
                batch = 0;
                let publishes_at = period.and_then(|_| self.session.next_due());
                let due = [publishes_at, driver.wake_at(), self.session.next_timeout()];
                let due = due.into_iter().flatten().min();
                tokio::select! {
                    exchanged = self.exchange() => exchanged?,
                    () = until(due) => {}
                }
            }
        }
    }

    /// Shuts the driver down, after any failure.
    async fn shut_down(&mut self, driver: &mut D) -> Result<(), ServeError> {
        let mut shutdown = pin!(driver.shutdown());
        let broken = tokio::select! {
            biased;
            () = &mut shutdown => None,
            broken = async {
                loop {
                    if let Err(error) = self.exchange().await {
                        break error;
                    }
                }
            } => Some(broken),
        };
        if let Some(error) = broken {
            shutdown.await;
            return Err(error);
        }
        timeout(LAST_WORDS, self.flush()).await.unwrap_or(Ok(()))
    }

    async fn publish(&mut self, driver: &mut D, device: Option<Device>) -> Result<(), ServeError> {
        let message = match device {
            Some(device) => self.during(driver.publish_for(device)).await?,
            None => self.during(driver.publish()).await?,
        };
        if let Some(message) = message {
            complain(self.session.publish(device, message));
        }
        self.encode_outputs();
        Ok(())
    }

    /// Tells the link who holds the lease.
    fn tell_holder(&self) {
        let holder = self.session.holder(self.device);
        self.holder.send_if_modified(|before| {
            let is_new = *before != holder;
            *before = holder;
            is_new
        });
    }

    fn take_work(&mut self, now: std::time::Instant) -> Option<Work<D::Message>> {
        let work = self.session.poll_work(now);
        // Some requests are answered without the driver.
        self.encode_outputs();
        work
    }

    async fn work(&mut self, driver: &mut D, work: Work<D::Message>) -> Result<(), ServeError> {
        match work {
            Work::Subscribed(client) => self.during(driver.subscribed(client)).await?,
            Work::ClientDied(client) => self.during(driver.client_died(client)).await?,
            Work::Request(request) => {
                let origin = request.origin.clone();
                if let Some(answer) = self.during(driver.request(request)).await? {
                    complain(self.session.answer(&origin, answer));
                }
            }
        }
        self.encode_outputs();
        Ok(())
    }

    /// Reads and writes while a handler runs.
    async fn during<T>(&mut self, handler: impl Future<Output = T>) -> Result<T, ServeError> {
        let mut handler = pin!(handler);
        loop {
            tokio::select! {
                biased;
                done = &mut handler => return Ok(done),
                exchanged = self.exchange() => exchanged?,
            }
        }
    }

    async fn flush(&mut self) -> Result<(), ServeError> {
        // Messages sent just before the end are still in the channels.
        self.exchange_now().await?;
        while !self.output.is_empty() || !self.flushed {
            self.exchange().await?;
        }
        Ok(())
    }

    /// Whether a lease or a command ends now, unless the pipe holds a request that keeps it.
    fn is_overdue(&self) -> bool {
        let due = self.session.next_timeout();
        due.is_some_and(|due| due <= Instant::now().into_std())
    }

    /// Reads all that has come by now, while the queue has room.
    async fn read_all(&mut self) -> Result<(), ServeError> {
        poll_fn(|cx| {
            while let Poll::Ready(read) = self.poll_read(cx) {
                read.map_err(ServeError::Read)?;
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Reads and writes whatever is possible, at least one of the two.
    async fn exchange(&mut self) -> Result<(), ServeError> {
        poll_fn(|cx| self.poll_exchange(cx)).await
    }

    /// Writes whatever is possible now. Reads only when there is no work or when the last read was
    /// too long ago, because the pipe limits waiting requests better than the queue.
    async fn exchange_now(&mut self) -> Result<(), ServeError> {
        let reads = !self.session.has_work() || self.last_read.elapsed() > MAX_READ_PAUSE;
        poll_fn(|cx| {
            let _ = self.poll_commands(cx);
            let _ = self.poll_pieces(cx);
            if let Poll::Ready(Err(error)) = self.poll_write(cx) {
                return Poll::Ready(Err(ServeError::Write(error)));
            }
            match reads.then(|| self.poll_read(cx)) {
                Some(Poll::Ready(Err(error))) => Poll::Ready(Err(ServeError::Read(error))),
                _ => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    fn poll_exchange(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ServeError>> {
        let commanded = self.poll_commands(cx);
        let paced = self.poll_pieces(cx);
        let written = self.poll_write(cx).map_err(ServeError::Write)?;
        let read = self.poll_read(cx).map_err(ServeError::Read)?;
        let is_progress = commanded.is_ready() || paced.is_ready();
        if is_progress || written.is_ready() || read.is_ready() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Takes the messages of links and the calls to other devices.
    fn poll_commands(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut progress = Poll::Pending;
        while self.output.len() < MAX_OUTPUT {
            if let Poll::Ready(Some((command, _room))) = self.linked.commands.poll_recv(cx) {
                complain(match command {
                    Command::Answer(origin, message) => self.session.answer(&origin, message),
                    Command::Publish(message) => self.session.publish_everywhere(message),
                    Command::PublishFor(device, message) => {
                        self.session.publish(Some(device), message)
                    }
                    Command::PublishTo(origin, message) => {
                        self.session.publish_to(&origin, message)
                    }
                    Command::Outcome(origin, outcome) => {
                        self.session.outcome(&origin, outcome);
                        Ok(())
                    }
                    Command::Block(device, why) => {
                        let now = Instant::now().into_std();
                        self.session.block(now, device, why);
                        Ok(())
                    }
                });
                self.encode_outputs();
            } else if let Poll::Ready(Some(packet)) = self.to_devices.poll_recv(cx) {
                self.encode(packet);
            } else if let Poll::Ready(Some(())) = self.linked.health_changed.poll_recv(cx) {
                self.encode_health();
            } else {
                break;
            }
            progress = Poll::Ready(());
        }
        progress
    }

    /// Sends the pieces that are due, unless the mediator does not read.
    fn poll_pieces(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.session.next_piece_timeout() else {
            return Poll::Pending;
        };
        if self.output.len() >= MAX_OUTPUT {
            return Poll::Pending;
        }
        let due = Instant::from_std(due);
        if self.pieces.deadline() != due {
            self.pieces.as_mut().reset(due);
        }
        ready!(self.pieces.as_mut().poll(cx));
        self.session.send_pieces(Instant::now().into_std());
        self.encode_outputs();
        Poll::Ready(())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut progress = Poll::Pending;
        while !self.output.is_empty() {
            match poll_write_buf(Pin::new(&mut self.writer), cx, &mut self.output)? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(_) => self.flushed = false,
                Poll::Pending => return progress,
            }
            progress = Poll::Ready(Ok(()));
        }
        if !self.flushed && Pin::new(&mut self.writer).poll_flush(cx)?.is_ready() {
            self.flushed = true;
            progress = Poll::Ready(Ok(()));
        }
        progress
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let read = self.poll_frames(cx);
        if let Poll::Ready(Err(_)) = read {
            // The stream cannot be resynchronized after an invalid frame.
            self.ended = None;
        }
        read
    }

    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let has_room = self.output.len() < MAX_OUTPUT && !self.session.is_full();
        if self.ended.is_none() || !has_room {
            return Poll::Pending;
        }
        self.last_read = Instant::now();
        self.input.reserve(READ);
        let read = poll_read_buf(
            Pin::new(&mut self.reader),
            cx,
            &mut (&mut self.input).limit(READ),
        )?;
        if read.is_pending() {
            return Poll::Pending;
        }
        if read == Poll::Ready(0) {
            if !self.input.is_empty() {
                tracing::warn!(
                    bytes = self.input.len(),
                    "the mediator's last frame is incomplete"
                );
            }
            self.ended.take().map(|ended| ended.send(()));
        }
        let now = self.last_read.into_std();
        while let Some(packet) = FrameCodec.decode(&mut self.input)? {
            self.session.handle_packet(now, packet);
            while let Some(packet) = self.session.poll_from_device() {
                if self.from_devices.try_send(packet).is_err() {
                    tracing::debug!("dropped a message from another device: the queue is full");
                }
            }
        }
        self.encode_outputs();
        self.tell_holder();
        self.subscriptions.send_if_modified(|count| {
            let before = std::mem::replace(count, self.session.subscriptions());
            *count != before
        });
        Poll::Ready(Ok(()))
    }

    fn encode_health(&mut self) {
        let unsent = lock(&self.linked.health).take_unsent();
        if self.peer == Peer::Amber {
            for packet in unsent {
                self.encode(packet);
            }
        }
    }

    fn encode_outputs(&mut self) {
        if self.session.has_new_long() {
            self.session.send_pieces(Instant::now().into_std());
        }
        while let Some(packet) = self.session.poll_output() {
            self.encode(packet);
        }
    }

    fn encode(&mut self, packet: Packet) {
        if let Err(error) = FrameCodec.encode(packet, &mut self.output) {
            tracing::error!("a message was not sent: {error}");
        }
    }
}

/// Sends the description of a device to the mediator.
fn description(device: Option<Device>, files: &'static [u8]) -> Packet {
    let message = mediator::DriverMsg {
        description: Some(mediator::Description {
            files: Bytes::from_static(files),
        }),
        ..mediator::DriverMsg::data()
    };
    Packet {
        header: DriverHdr {
            device_type: device.map(|device| device.device_type.0),
            device_id: device.map(|device| device.id.0),
            client_ids: Vec::new(),
        },
        message: message.encode_to_vec().into(),
    }
}

/// A first number of long messages that an earlier process of this driver has hardly used, small
/// enough for few bytes.
fn anything() -> u32 {
    // The keys of hash tables are the only random source of the standard library.
    RandomState::new().build_hasher().finish() as u32 & 0x000f_ffff
}

async fn until(due: Option<std::time::Instant>) {
    match due {
        Some(due) => sleep_until(due.into()).await,
        None => pending().await,
    }
}

fn complain(sent: Result<(), MessageTooLong>) {
    if let Err(error) = sent {
        tracing::error!("a message was not sent: {error}");
    }
}

#[cfg(test)]
mod tests;
