//! The camera and its subscribers: a process each. IO.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amber_client::Client;
use amber_client::transport::UdpTransport;
use amber_driver::{Driver, Request};
use amber_proto::{Device, DeviceMessage, DeviceType, DriverMsg, Frame, HeaderBytes, MsgType};
use anyhow::{Context, bail};
use prost::Message;

use crate::figures::Seen;
use crate::link::{Counts, Link, Rule};

/// A device of a user.
pub(crate) const CAMERA: Device = Device::new(DeviceType(110), 0);
/// A pause after which a subscriber was stopped.
const PAUSE: Duration = Duration::from_secs(1);
/// A subscriber without a picture for this time has failed. It is longer than one is stopped.
const SILENT: Duration = Duration::from_secs(15);
/// A picture of this age is a new one.
const FRESH: Duration = Duration::from_millis(100);

pub(crate) async fn subscribe(
    mediator: SocketAddr,
    seconds: f64,
    network: Option<Rule>,
    begins: impl FnOnce(),
) -> anyhow::Result<Seen> {
    let counts = Arc::new(Counts::default());
    let client = match network {
        Some(rule) => {
            let transport = UdpTransport::connect(mediator).await?;
            let client = Client::over(Link::new(transport, rule, counts.clone()));
            // Announces itself; the first ones may be lost.
            let mediator = client.device(Device::MEDIATOR);
            let mut tries = 0..9;
            while mediator.ping().await.is_err() {
                tries.next().context("the mediator does not answer")?;
            }
            client
        }
        None => Client::connect(mediator).await?,
    };
    let mut pictures = client.device(CAMERA).subscribe_raw().await?;
    // The first pictures are cut by the beginning, and the camera measures its period.
    for _ in 0..3 {
        pictures.next().await.context("the client has ended")?;
    }
    begins();
    let pieces_before = counts.pieces.load(Ordering::Relaxed);
    let mut seen = Seen {
        whole: 0,
        sent: 0,
        missed: 0,
        latencies_ns: Vec::new(),
        pieces: 0,
        longest: 0,
        resumed_ms: None,
        cpu_percent: None,
    };
    let (mut first, mut last) = (None, 0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut before, mut stopped) = (Instant::now(), None);
    while Instant::now() < end {
        let next = tokio::time::timeout(SILENT, pictures.next());
        let Ok(update) = next.await else {
            bail!("no picture for {SILENT:?}");
        };
        let update = update.context("the client has ended")?;
        let now = Instant::now();
        let picture = Picture::decode(&update.message[..])?;
        let (sequence, age) = read(picture.data.as_deref().unwrap_or_default())?;
        if now > before + PAUSE {
            stopped = Some(now);
        }
        before = now;
        if let Some(stop) = stopped
            && age < FRESH
        {
            seen.resumed_ms = Some((now - stop).as_secs_f64() * 1e3);
            stopped = None;
        }
        seen.whole += 1;
        // What was lost before the first picture is not among those that were sent.
        seen.missed += first.map_or(0, |_| update.missed);
        seen.latencies_ns.push(age.as_nanos() as u64);
        first.get_or_insert(sequence);
        last = sequence;
    }
    seen.sent = first.map_or(0, |first| last - first + 1);
    seen.pieces = counts.pieces.load(Ordering::Relaxed) - pieces_before;
    seen.longest = counts.longest.load(Ordering::Relaxed);
    client.close().await;
    Ok(seen)
}

/// The number and the age of a picture.
fn read(data: &[u8]) -> anyhow::Result<(u64, Duration)> {
    let (numbers, _) = data.as_chunks::<8>();
    let [sequence, sent_ns, ..] = numbers else {
        bail!("a picture of {} bytes", data.len());
    };
    let sent = Duration::from_nanos(u64::from_le_bytes(*sent_ns));
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok((u64::from_le_bytes(*sequence), now.saturating_sub(sent)))
}

/// Subscribes like a client that does not know pieces; returns how many it gets.
pub(crate) fn subscribe_like_an_old_client(
    mediator: SocketAddr,
    time: Duration,
) -> anyhow::Result<u64> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(mediator)?;
    let header = HeaderBytes::new(Some(CAMERA), None);
    let message = DriverMsg {
        r#type: MsgType::Subscribe.into(),
        syn_num: Some(1),
        ..DriverMsg::default()
    };
    let mut datagram = Vec::new();
    let message = message.encode_to_vec();
    let frame = Frame {
        header: header.as_slice(),
        message: &message,
    };
    frame.encode(&mut datagram)?;
    socket.send(&datagram)?;
    let (mut pieces, mut buffer) = (0, vec![0; 65_536]);
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(pieces);
        }
        socket.set_read_timeout(Some(left))?;
        let Ok(length) = socket.recv(&mut buffer) else {
            continue;
        };
        let frame = Frame::from_datagram(&buffer[..length])?;
        pieces += u64::from(DriverMsg::decode(frame.message)?.piece.is_some());
    }
}

/// The message of the device.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Picture {
    #[prost(int32, optional, tag = "2")]
    r#type: Option<i32>,
    #[prost(uint32, optional, tag = "3")]
    syn_num: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    ack_num: Option<u32>,
    /// Sequence and time, then anything.
    #[prost(bytes = "vec", optional, tag = "110")]
    data: Option<Vec<u8>>,
}
amber_proto::device_message!(Picture);

/// Publishes pictures of so many bytes.
pub(crate) struct Camera {
    pub(crate) period: Duration,
    pub(crate) bytes: usize,
    pub(crate) sequence: u64,
}

impl Driver for Camera {
    type Message = Picture;

    async fn request(&mut self, _: Request<Picture>) -> Option<Picture> {
        None
    }

    fn period(&self) -> Option<Duration> {
        Some(self.period)
    }

    async fn publish(&mut self) -> Option<Picture> {
        self.sequence += 1;
        let sent = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let mut data = vec![0x5a; self.bytes];
        let numbers = [self.sequence, u64::try_from(sent.as_nanos()).ok()?];
        for (place, number) in data.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        Some(Picture {
            data: Some(data),
            ..DeviceMessage::data()
        })
    }
}
