//! Devices of far robots as devices of a local mediator, which starts this process as their driver. IO.
//!
//! ```text
//!   clients -- local mediator --stdin--> FarDevices (PURE) --> sender: own thread --> Zenoh --> robots
//!                             <-stdout--             <-- inbox, events      <--
//! ```
//!
//! Every client of Amber can therefore use far robots like local devices.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use amber_proto::{Device, FrameCodec, Packet};
use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::codec::{Decoder, Encoder};
use zenoh::Session;
use zenoh::pubsub::Subscriber;
use zenoh::sample::SampleKind;

use self::far_devices::{FarDevices, Output};
use self::sender::{Event, Inbox, Sender};
use crate::config::RemoteConfig;
use crate::counters::Counters;
use crate::health::Health;
use crate::keys::{RobotKeys, parse_device_alive};
use crate::limits::{LINK_PERIOD, REPORT_PERIOD};
use crate::names::Name;
use crate::session;

pub mod far_devices;
mod sender;
pub mod streams;

/// The reason why far devices are not served.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The configuration of Zenoh.
    #[error(transparent)]
    Session(#[from] session::Refused),
    /// Zenoh.
    #[error("Zenoh: {0}")]
    Zenoh(zenoh::Error),
    /// No device is named.
    #[error("no devices: select some with --devices, or let a mediator start this process")]
    NoDevices,
    /// The rule for ids does not cover a device.
    #[error("{0} belongs to no robot: its id is below every `first_id`")]
    NoRobot(Device),
    /// stdin or stdout.
    #[error("cannot communicate with the mediator: {0}")]
    Mediator(#[from] io::Error),
}

impl From<zenoh::Error> for RemoteError {
    fn from(error: zenoh::Error) -> Self {
        Self::Zenoh(error)
    }
}

/// Reports of robots about themselves.
enum Fact {
    Token(Name, Device, String, bool),
    Health(Name, Health),
}

/// Serves the devices until the reader ends or `stop` resolves. A missing router is not an error.
///
/// # Errors
/// The configuration is invalid, or the mediator sends something that is not a frame.
pub async fn run(
    config: RemoteConfig,
    devices: &[Device],
    stop: impl Future<Output = ()>,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> Result<(), RemoteError> {
    if devices.is_empty() {
        return Err(RemoteError::NoDevices);
    }
    let RemoteConfig { link, who, robots } = config;
    let far = FarDevices::new(who, robots, devices, fastrand::u64(..));
    let mut far = far.map_err(RemoteError::NoRobot)?;
    far.link(false);
    let counters = Counters::default();
    let inbox = Arc::new(Inbox::new(counters.clone()));
    let (events, answers) = mpsc::unbounded_channel();
    let (facts_sender, facts) = mpsc::unbounded_channel();
    let server = Server {
        far,
        start: Instant::now(),
        reader,
        writer,
        input: BytesMut::new(),
        sender: None,
        unsent: Vec::new(),
        counters: counters.clone(),
        reported: 0,
    };
    let opening = async {
        let session = session::open(&link).await?;
        let sender = Sender::start(session.clone(), events, inbox.clone(), counters);
        Ok((session, sender))
    };
    server
        .run(stop, opening, facts_sender, facts, answers, &inbox)
        .await
}

struct Server<R, W> {
    far: FarDevices,
    start: Instant,
    reader: R,
    writer: W,
    input: BytesMut,
    /// `None` until there is a session.
    sender: Option<Sender>,
    unsent: Vec<Output>,
    counters: Counters,
    /// The sum of the counters of the last report.
    reported: u64,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Server<R, W> {
    async fn run(
        mut self,
        stop: impl Future<Output = ()>,
        opening: impl Future<Output = Result<(Session, Sender), RemoteError>>,
        facts_sender: mpsc::UnboundedSender<Fact>,
        mut facts: mpsc::UnboundedReceiver<Fact>,
        mut answers: mpsc::UnboundedReceiver<Event>,
        inbox: &Inbox,
    ) -> Result<(), RemoteError> {
        let (mut stop, mut opening) = (pin!(stop), pin!(opening));
        let mut opened: Option<(Session, Vec<Subscriber<()>>)> = None;
        let mut looks = interval(LINK_PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reports = interval(REPORT_PERIOD);
        loop {
            self.perform().await?;
            let due = self.far.next_due().map(|due| self.start + due);
            tokio::select! {
                biased;
                () = &mut stop => break,
                read = self.reader.read_buf(&mut self.input) => {
                    if read? == 0 {
                        break;
                    }
                    let now = self.start.elapsed();
                    while let Some(packet) = FrameCodec.decode(&mut self.input)? {
                        self.far.packet(now, packet);
                    }
                }
                result = &mut opening, if opened.is_none() => {
                    let (session, sender) = result?;
                    let subscribers = watch_facts(&session, &self.far, &facts_sender).await?;
                    opened = Some((session, subscribers));
                    self.unsent.drain(..).for_each(|output| sender.send(output));
                    self.sender = Some(sender);
                    looks.reset_immediately();
                }
                Some(event) = answers.recv() => match event {
                    Event::Answer(number, answer) => self.far.answer(number, answer),
                    Event::Description(device, files) => self.far.described(device, &files),
                },
                Some(fact) = facts.recv() => {
                    let now = self.start.elapsed();
                    match fact {
                        Fact::Token(robot, device, boot, is_there) => {
                            self.far.token(now, &robot, device, &boot, is_there);
                        }
                        Fact::Health(robot, health) => self.far.health(&robot, &health),
                    }
                }
                () = inbox.changed.notified() => {
                    let now = self.start.elapsed();
                    for (device, messages) in inbox.take() {
                        for message in messages {
                            self.far.data(now, device, &message);
                        }
                    }
                }
                _ = looks.tick() => {
                    if let Some((session, _)) = &opened {
                        self.far.link(session.info().routers_zid().await.next().is_some());
                    }
                }
                _ = reports.tick() => self.report(),
                () = wait_until(due) => self.far.handle_timeout(self.start.elapsed()),
            }
        }
        // Tokens end with the session, so the robots notice immediately that all clients are gone.
        drop(self.sender);
        if let Some((session, subscribers)) = opened {
            drop(subscribers);
            session.close().await?;
        }
        Ok(())
    }

    async fn perform(&mut self) -> io::Result<()> {
        let mut output = BytesMut::new();
        while let Some(next) = self.far.poll() {
            match next {
                Output::Frame(packet) => encode(packet, &mut output),
                Output::Data(packet) => {
                    self.counters.count("data_passed_on");
                    encode(packet, &mut output);
                }
                next => match &self.sender {
                    Some(sender) => sender.send(next),
                    None => self.unsent.push(next),
                },
            }
        }
        for name in self.far.take_counts() {
            self.counters.count(name);
        }
        if !output.is_empty() {
            self.writer.write_all(&output).await?;
            self.writer.flush().await?;
        }
        Ok(())
    }

    /// Logs the drops, if there are any.
    fn report(&mut self) {
        let is_loss = |name: &str| name.contains("dropped") || name.contains("replaced");
        let counters = self.counters.all();
        let lost: Vec<_> = (counters.iter().filter(|(name, _)| is_loss(name)))
            .map(|(name, number)| format!("{name} {number}"))
            .collect();
        let sum = (counters.iter().filter(|(name, _)| is_loss(name))).map(|(_, number)| number);
        let sum = sum.sum();
        if sum > self.reported {
            self.reported = sum;
            tracing::warn!("since the start: {}", lost.join(", "));
        }
    }
}

fn encode(packet: Packet, output: &mut BytesMut) {
    if let Err(error) = FrameCodec.encode(packet, output) {
        tracing::error!("a message was not forwarded: {error}");
    }
}

/// Listens to the reports of the robots of these devices.
async fn watch_facts(
    session: &Session,
    far: &FarDevices,
    facts: &mpsc::UnboundedSender<Fact>,
) -> Result<Vec<Subscriber<()>>, zenoh::Error> {
    let mut subscribers = Vec::new();
    let mut robots: Vec<Name> = far.far().map(|(robot, ..)| robot.clone()).collect();
    robots.sort();
    robots.dedup();
    for robot in robots {
        let keys = RobotKeys::new(&robot);
        let sender = facts.clone();
        let health = (session.declare_subscriber(keys.of_all("health")))
            .callback(move |sample| {
                if let Ok(health) = serde_json::from_slice(&sample.payload().to_bytes()) {
                    let _ = sender.send(Fact::Health(robot.clone(), health));
                }
            })
            .await?;
        let sender = facts.clone();
        let tokens = (session.liveliness())
            .declare_subscriber(keys.of_all("alive/*"))
            .history(true)
            .callback(move |sample| {
                let key = sample.key_expr().as_str();
                if let Some((robot, device, boot)) = parse_device_alive(key) {
                    let is_there = sample.kind() == SampleKind::Put;
                    let boot = boot.to_owned();
                    let _ = sender.send(Fact::Token(robot, device, boot, is_there));
                }
            })
            .await?;
        subscribers.extend([health, tokens]);
    }
    Ok(subscribers)
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
