//! What a device publishes, published in the fleet: only while somebody listens. IO.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_client::proxy::Proxy;
use amber_client::subscription::Subscription;
use amber_client::{Client, Error};
use amber_proto::ninedof::SubscribeAction as NineDofAction;
use amber_proto::stargazer::SubscribeAction as StargazerAction;
use amber_proto::stargazer::subscribe_action::Action;
use amber_proto::{Device, DeviceMessage, DeviceType, ninedof, stargazer};
use bytes::Bytes;
use prost::Message;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use zenoh::Session;
use zenoh::bytes::Encoding;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};

use crate::counters::Counters;
use crate::limits::{RETRY, SENSOR_PERIOD};
use crate::pacing::Pacing;
use crate::stamp::DataStamp;

/// Publishes the data of one device.
pub(super) struct Feed {
    pub(super) session: Session,
    pub(super) client: Client,
    pub(super) device: Device,
    pub(super) key: String,
    /// The shortest time between two messages.
    pub(super) period: Duration,
    pub(super) names: &'static Names,
    pub(super) counters: Counters,
}

/// The counters of a kind of feeds.
pub(super) struct Names {
    sent: &'static str,
    not_sent: &'static str,
    missed: &'static str,
    replaced: &'static str,
}

/// Those of feeds for all.
pub(super) const FOR_ALL: Names = Names {
    sent: "data_sent",
    not_sent: "data_not_sent",
    missed: "data_missed",
    replaced: "data_replaced",
};

/// Those of feeds for one operator.
pub(super) const FOR_ONE: Names = Names {
    sent: "own_data_sent",
    not_sent: "own_data_not_sent",
    missed: "own_data_missed",
    replaced: "own_data_replaced",
};

impl Feed {
    /// Runs until it is aborted, or the session is closed.
    pub(super) async fn run(self) {
        if let Err(error) = self.try_run().await {
            tracing::warn!(device = %self.device, "its data is not published: {error}");
        }
    }

    async fn try_run(&self) -> Result<(), zenoh::Error> {
        let publisher = (self.session.declare_publisher(self.key.clone()))
            .encoding(Encoding::APPLICATION_PROTOBUF)
            // Old data is useless, and nothing may wait for a slow link.
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::Data)
            .await?;
        let (sender, mut listened) = watch::channel(false);
        let callback = sender.clone();
        let _listener = (publisher.matching_listener())
            .callback(move |status| {
                callback.send_replace(status.matching());
            })
            .await?;
        if publisher.matching_status().await?.matching() {
            sender.send_replace(true);
        }
        let mut sequence = 0;
        loop {
            if listened.wait_for(|listened| *listened).await.is_err() {
                return Ok(());
            }
            match self.subscribed().await {
                Ok(published) => {
                    self.pass_on(&publisher, published, &mut listened, &mut sequence)
                        .await;
                }
                Err(error) => {
                    tracing::debug!(device = %self.device, "cannot subscribe: {error}");
                    sleep(RETRY).await;
                }
            }
        }
    }

    /// Passes messages on while somebody listens.
    async fn pass_on(
        &self,
        publisher: &Publisher<'_>,
        mut published: Subscription<Bytes>,
        listened: &mut watch::Receiver<bool>,
        sequence: &mut u64,
    ) {
        let start = Instant::now();
        let mut pacing = Pacing::new(self.period);
        loop {
            let due = pacing.next_due().map(|due| start + due);
            tokio::select! {
                no_more = listened.wait_for(|listened| !listened) => {
                    let _ = no_more;
                    return;
                }
                update = published.next() => {
                    let Some(update) = update else {
                        return;
                    };
                    self.counters.add(self.names.missed, update.missed);
                    pacing.offer(update.message);
                }
                () = wait_until(due) => {}
            }
            if let Some(message) = pacing.poll(start.elapsed()) {
                *sequence += 1;
                let stamp = DataStamp {
                    sequence: *sequence,
                    time_ns: unix_ns(),
                };
                let sent = (publisher.put(message.to_vec()))
                    .attachment(stamp.encode().to_vec())
                    .await;
                self.counters.count(match sent {
                    Ok(()) => self.names.sent,
                    Err(_) => self.names.not_sent,
                });
            }
            self.counters
                .add(self.names.replaced, pacing.take_replaced());
        }
    }

    async fn subscribed(&self) -> Result<Subscription<Bytes>, Error> {
        let proxy = self.client.device(self.device);
        match self.device.device_type {
            DeviceType::NINEDOF => by_period(&proxy, ninedof_terms()).await,
            DeviceType::STARGAZER => by_period(&proxy, stargazer_terms()).await,
            _ => proxy.subscribe_raw().await,
        }
    }
}

/// Devices that publish after a request with a period: the messages that start and stop it.
async fn by_period(
    proxy: &Proxy,
    (start, stop): (Vec<u8>, Vec<u8>),
) -> Result<Subscription<Bytes>, Error> {
    proxy
        .subscribe_raw_by(start.into(), stop.into(), SENSOR_PERIOD)
        .await
}

fn ninedof_terms() -> (Vec<u8>, Vec<u8>) {
    let message = |period_ms| {
        let action = NineDofAction {
            freq: Some(period_ms),
            accel: Some(true),
            gyro: Some(true),
            magnet: Some(true),
            extended: Some(true),
        };
        let mut message = ninedof::DriverMsg::data();
        message.subscribe_action = Some(action);
        message.encode_to_vec()
    };
    (message(SENSOR_PERIOD.as_millis() as u32), message(0))
}

fn stargazer_terms() -> (Vec<u8>, Vec<u8>) {
    let message = |action: Action| {
        let mut message = stargazer::DriverMsg::data();
        message.subscribe_action = Some(StargazerAction {
            action: action.into(),
            // Every pose.
            freq: None,
        });
        message.encode_to_vec()
    };
    (message(Action::Subscribe), message(Action::Unsubscribe))
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// The clock of the robot: nanoseconds since 1970.
pub(super) fn unix_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
