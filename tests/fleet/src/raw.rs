//! A raw peer: it sends the same bytes as a robot, at the same rate and with the same settings of
//! Zenoh, and has nothing of Amber. IO.

use std::time::Duration;

use amber_proto::hokuyo::DriverMsg;
use amber_proto::{DeviceMessage, roboclaw};
use amber_zenoh::config::{FleetLink, ZenohTable};
use amber_zenoh::session;
use amber_zenoh::stamp::DataStamp;
use anyhow::{anyhow, bail};
use prost::Message;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};
use zenoh::bytes::Encoding;
use zenoh::matching::MatchingListener;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Session, Wait};

use crate::clock::{monotonic_ns, unix_ns};
use crate::driver::{SCAN_PERIOD, phase, scan};

/// A second stream of each peer is so many times as fast, to load the router.
const FAST: u32 = 10;

/// Runs until stdin ends.
pub(crate) fn run(words: &[String]) -> anyhow::Result<()> {
    let [name, endpoint] = words else {
        bail!("usage: fleet raw NAME ENDPOINT");
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(name, endpoint));
    // A thread may still wait for stdin.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served.map_err(|error| anyhow!("{error}"))
}

/// The link of all participants, with the defaults of `amber-zenoh`.
pub(crate) fn link(endpoint: &str) -> anyhow::Result<FleetLink> {
    Ok(ZenohTable::default().checked(vec![endpoint.to_owned()])?)
}

/// The answer of a raw peer to a call, like that of the wheels of a robot.
fn answer() -> Vec<u8> {
    let mut message = roboclaw::DriverMsg::data();
    message.ack_num = Some(1);
    message.current_speed = Some(roboclaw::MotorsSpeed::default());
    message.encode_to_vec()
}

/// A stream of scans that flows while there are subscribers.
struct Stream<'a> {
    publisher: Publisher<'a>,
    listened: watch::Receiver<bool>,
    number: u64,
    _listener: MatchingListener<()>,
}

impl Stream<'_> {
    async fn declare(session: &Session, key: String) -> Result<Self, zenoh::Error> {
        let publisher = (session.declare_publisher(key))
            .encoding(Encoding::APPLICATION_PROTOBUF)
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::Data)
            .await?;
        let (matching, listened) = watch::channel(false);
        let listener = (publisher.matching_listener()).callback(move |status| {
            matching.send_replace(status.matching());
        });
        Ok(Self {
            _listener: listener.await?,
            publisher,
            listened,
            number: 0,
        })
    }

    fn is_heard(&self) -> bool {
        *self.listened.borrow()
    }

    async fn publish(&mut self) -> Result<(), zenoh::Error> {
        self.number += 1;
        if !self.is_heard() {
            return Ok(());
        }
        let mut message = DriverMsg::data();
        message.timestamp = Some(monotonic_ns() as i64);
        message.scan = Some(scan(self.number));
        let stamp = DataStamp {
            sequence: self.number,
            time_ns: unix_ns(),
        };
        let put = self.publisher.put(message.encode_to_vec());
        put.attachment(stamp.encode().to_vec()).await
    }
}

async fn serve(name: &str, endpoint: &str) -> Result<(), zenoh::Error> {
    let session = session::open(&link(endpoint)?).await?;
    let mut scans = Stream::declare(&session, format!("raw/{name}/data")).await?;
    let mut fast_scans = Stream::declare(&session, format!("raw/{name}/fast")).await?;
    let key = format!("raw/{name}/call");
    let queryable = session.declare_queryable(key.clone());
    let _queryable = queryable
        .callback(move |query| {
            let reply = query.reply(&key, answer());
            // The one that asks counts what is missing.
            let _ = reply.encoding(Encoding::APPLICATION_PROTOBUF).wait();
        })
        .await?;
    let mut ticks = interval_at(Instant::now() + phase(), SCAN_PERIOD);
    let mut fast_ticks = interval(SCAN_PERIOD / FAST);
    fast_ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut stdin, mut byte) = (tokio::io::stdin(), [0; 1]);
    loop {
        tokio::select! {
            _ = stdin.read(&mut byte) => break,
            _ = ticks.tick() => scans.publish().await?,
            // Whether it is heard is looked at with each tick of the others.
            _ = fast_ticks.tick(), if fast_scans.is_heard() => fast_scans.publish().await?,
        }
    }
    session.close().await
}
