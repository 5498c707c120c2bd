//! Publishes the data of a device in the fleet, only while there are subscribers. IO.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_client::subscription::Subscription;
use amber_client::{Client, Error};
use amber_proto::Device;
use amber_reflect::Schemas;
use amber_reflect::arguments::StartStop;
use amber_schema::Kind;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use zenoh::Session;
use zenoh::bytes::Encoding;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};

use crate::counters::Counters;
use crate::limits::{RETRY, SENSOR_PERIOD};
use crate::pacing::Pacing;
use crate::robot::description;
use crate::stamp::DataStamp;

/// Publishes the data of one device.
pub(super) struct DataPublisher {
    pub(super) session: Session,
    pub(super) client: Client,
    pub(super) device: Device,
    pub(super) key: String,
    /// The shortest time between two messages.
    pub(super) period: Duration,
    pub(super) names: &'static Names,
    pub(super) counters: Counters,
}

/// The counters of a kind of publishers.
pub(super) struct Names {
    sent: &'static str,
    not_sent: &'static str,
    missed: &'static str,
    replaced: &'static str,
}

/// Those of publishers for all.
pub(super) const FOR_ALL: Names = Names {
    sent: "data_sent",
    not_sent: "data_not_sent",
    missed: "data_missed",
    replaced: "data_replaced",
};

/// Those of publishers for one operator.
pub(super) const FOR_ONE: Names = Names {
    sent: "own_data_sent",
    not_sent: "own_data_not_sent",
    missed: "own_data_missed",
    replaced: "own_data_replaced",
};

impl DataPublisher {
    /// Runs until it is aborted, or the session is closed.
    pub(super) async fn run(self) {
        if let Err(error) = self.try_run().await {
            tracing::warn!(device = %self.device, "its data is not published: {error}");
        }
    }

    async fn try_run(&self) -> Result<(), zenoh::Error> {
        let publisher = (self.session.declare_publisher(self.key.clone()))
            .encoding(Encoding::APPLICATION_PROTOBUF)
            // Old data is dropped, and nothing may wait for a slow link.
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

    /// Forwards messages while there are subscribers.
    async fn pass_on(
        &self,
        publisher: &Publisher<'_>,
        mut published: Published,
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
                update = published.messages.next() => {
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

    /// Subscribes to all that the device has.
    async fn subscribed(&self) -> Result<Published, Error> {
        let proxy = self.client.device(self.device);
        let mut subscriptions = Vec::new();
        for requests in self.streams().await {
            subscriptions.push(match requests {
                Some(StartStop { start, stop }) => {
                    proxy
                        .subscribe_raw_by(start.into(), stop.into(), SENSOR_PERIOD)
                        .await?
                }
                None => proxy.subscribe_raw().await?,
            });
        }
        let messages = match subscriptions.pop() {
            Some(last) => last,
            None => proxy.subscribe_raw().await?,
        };
        Ok(Published {
            messages,
            _others: subscriptions,
        })
    }

    fn read(&self, description: &[u8]) -> Option<Schemas> {
        match Schemas::from_descriptors(description) {
            Ok(schemas) => Some(schemas),
            Err(error) => {
                let device = self.device;
                tracing::warn!(%device, "only what SUBSCRIBE starts is published: {error}");
                None
            }
        }
    }

    /// The requests that start and stop each stream, `None` for SUBSCRIBE, as the description of the
    /// device says.
    async fn streams(&self) -> Vec<Option<StartStop>> {
        let device_type = self.device.device_type;
        let schemas = match device_type.name() {
            Some(_) => Some(Schemas::built_in()),
            None => {
                let files = description(&self.client, self.device).await;
                files.and_then(|files| self.read(&files))
            }
        };
        let Some(schemas) = schemas else {
            return Vec::new();
        };
        let methods = schemas.interface(device_type).map(|it| &it.methods[..]);
        let methods = methods.unwrap_or_default().iter();
        let own = schemas.for_device(Some(device_type));
        let mut streams = Vec::new();
        for method in methods.filter(|it| it.is_stream()) {
            let requests = match method.kind {
                Kind::Subscribe => None,
                _ => Some(own.whole_stream(method, SENSOR_PERIOD)),
            };
            match requests {
                None if streams.contains(&None) => {}
                None => streams.push(None),
                Some(Some(requests)) => streams.push(Some(requests)),
                Some(None) => tracing::warn!(
                    device = %self.device,
                    "the stream {} needs arguments: it is not published", method.name
                ),
            }
        }
        streams
    }
}

/// The subscriptions to one device. Each of them hears all messages of the device, so one is read,
/// and the others only keep their streams running.
struct Published {
    messages: Subscription<Bytes>,
    _others: Vec<Subscription<Bytes>>,
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
