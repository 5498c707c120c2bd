//! The node of ROS 2: its tokens and its publishers. IO.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use amber_ros2::attachment::Gid;
use amber_ros2::{Attachment, DataKey, Endpoint, EntityKind, RosMessage, RosType, Token, encode};
use tokio::sync::watch;
use zenoh::bytes::Encoding;
use zenoh::liveliness::LivelinessToken;
use zenoh::matching::MatchingListener;
use zenoh::pubsub::Publisher as ZenohPublisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Session, Wait};
use zenoh_ext::{AdvancedPublisher, AdvancedPublisherBuilderExt, CacheConfig, MissDetectionConfig};

use super::super::feed::unix_ns;
use crate::counters::Counters;
use crate::limits::HEARTBEAT;
use crate::ros::config::{NODE, RosConfig};
use crate::ros::topics::{Topic, TopicSet};

/// The only node of a session.
pub(super) struct Node {
    session: Session,
    config: RosConfig,
    /// The next entity of the session. The node itself is 0.
    entities: AtomicU32,
    interest: watch::Sender<TopicSet>,
    counters: Counters,
    _token: LivelinessToken,
}

/// Publishes one topic. It leaves the graph of ROS when it is dropped.
pub(super) struct Publisher<M> {
    way: Way,
    _listener: Option<MatchingListener<()>>,
    gid: Gid,
    published: AtomicI64,
    counters: Counters,
    _token: LivelinessToken,
    _message: PhantomData<fn(&M)>,
}

enum Way {
    Plain(ZenohPublisher<'static>),
    /// Who comes late gets the last message.
    Latched(AdvancedPublisher<'static>),
}

impl Node {
    pub(super) async fn declare(
        session: &Session,
        config: &RosConfig,
        interest: watch::Sender<TopicSet>,
        counters: Counters,
    ) -> Result<Self, zenoh::Error> {
        let token = token(session, config, 0, None).to_string();
        Ok(Self {
            _token: session.liveliness().declare_token(token).await?,
            session: session.clone(),
            config: config.clone(),
            entities: AtomicU32::new(1),
            interest,
            counters,
        })
    }

    /// The key of a topic or service.
    pub(super) fn key(&self, topic: Topic, ros_type: &RosType) -> String {
        DataKey::new(self.config.domain, &self.config.name(topic), ros_type).to_string()
    }

    /// The token of a new endpoint.
    pub(super) fn endpoint(&self, kind: EntityKind, topic: Topic, ros_type: &RosType) -> Token {
        let endpoint = Endpoint {
            kind,
            name: self.config.name(topic),
            dds_type: ros_type.dds_name(),
            hash: ros_type.hash_text(),
            qos: topic.qos().to_string(),
        };
        let entity = self.entities.fetch_add(1, Ordering::Relaxed);
        token(&self.session, &self.config, entity, Some(endpoint))
    }

    /// A publisher. The topics with interest have this one while somebody listens to it.
    pub(super) async fn publisher<M: RosMessage>(
        &self,
        topic: Topic,
    ) -> Result<Publisher<M>, zenoh::Error> {
        let token = self.endpoint(EntityKind::Publisher, topic, &M::TYPE);
        let builder = (self.session.declare_publisher(self.key(topic, &M::TYPE)))
            .encoding(Encoding::APPLICATION_CDR)
            // Old data is useless, and nothing may wait for a slow link.
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::Data);
        let qos = topic.qos();
        let (way, listener) = match qos.is_transient_local {
            true => {
                let depth = qos.depth.map_or(1, |depth| depth as usize);
                let detection = MissDetectionConfig::default().sporadic_heartbeat(HEARTBEAT);
                let publisher = builder
                    .cache(CacheConfig::default().max_samples(depth))
                    .sample_miss_detection(detection)
                    .publisher_detection();
                (Way::Latched(publisher.await?), None)
            }
            false => {
                let publisher = builder.await?;
                let interest = self.interest.clone();
                let listener = publisher.matching_listener().callback(move |status| {
                    interest.send_modify(|topics| topics.set(topic, status.matching()));
                });
                let listener = listener.await?;
                let is_listened = publisher.matching_status().await?.matching();
                if is_listened {
                    self.interest.send_modify(|topics| topics.set(topic, true));
                }
                (Way::Plain(publisher), Some(listener))
            }
        };
        Ok(Publisher {
            way,
            _listener: listener,
            gid: token.gid(),
            published: AtomicI64::new(0),
            counters: self.counters.clone(),
            _token: self.announce(&token).await?,
            _message: PhantomData,
        })
    }

    pub(super) async fn announce(&self, token: &Token) -> Result<LivelinessToken, zenoh::Error> {
        let liveliness = self.session.liveliness();
        liveliness.declare_token(token.to_string()).await
    }
}

impl<M: RosMessage> Publisher<M> {
    /// Publishes a message. It does not wait for a slow link: then the message is dropped.
    pub(super) fn publish(&self, message: &M) {
        let attachment = Attachment {
            sequence: self.published.fetch_add(1, Ordering::Relaxed) + 1,
            source_ns: i64::try_from(unix_ns()).unwrap_or(i64::MAX),
            gid: self.gid,
        };
        let (payload, attachment) = (encode(message), attachment.encode().to_vec());
        let sent = match &self.way {
            Way::Plain(publisher) => publisher.put(payload).attachment(attachment).wait(),
            Way::Latched(publisher) => publisher.put(payload).attachment(attachment).wait(),
        };
        self.counters.count(match sent {
            Ok(()) => "ros_sent",
            Err(_) => "ros_not_sent",
        });
    }
}

fn token(session: &Session, config: &RosConfig, entity: u32, endpoint: Option<Endpoint>) -> Token {
    Token {
        domain: config.domain,
        session: session.zid().to_string(),
        node: 0,
        entity,
        namespace: config.namespace.clone(),
        node_name: NODE.to_owned(),
        endpoint,
    }
}
