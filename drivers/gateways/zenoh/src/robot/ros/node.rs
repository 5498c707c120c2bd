//! The node of ROS 2: its tokens and its publishers, in each layout. IO.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use amber_ros2::attachment::Gid;
use amber_ros2::{Attachment, EntityKind, RosMessage, RosType, encode};
use tokio::sync::watch;
use zenoh::bytes::{Encoding, ZBytes};
use zenoh::liveliness::LivelinessToken;
use zenoh::matching::MatchingListener;
use zenoh::pubsub::Publisher as ZenohPublisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::{Session, Wait};
use zenoh_ext::{AdvancedPublisher, AdvancedPublisherBuilderExt, CacheConfig, MissDetectionConfig};

use super::super::publisher::unix_ns;
use crate::counters::Counters;
use crate::limits::HEARTBEAT;
use crate::ros::config::RosConfig;
use crate::ros::layout::{Interest, Layout, bridge_token, node_token};
use crate::ros::topics::Topic;

/// The only node of a session.
pub(super) struct Node {
    session: Session,
    config: RosConfig,
    /// The next entity of the session. The node itself is 0.
    entities: AtomicU32,
    interest: watch::Sender<Interest>,
    counters: Counters,
    _tokens: Vec<LivelinessToken>,
}

/// Publishes one topic in all layouts. It leaves the graph of ROS when it is dropped.
pub(super) struct Publisher<M> {
    /// One for each layout.
    routes: Vec<Route>,
    counters: Counters,
    _message: PhantomData<fn(&M)>,
}

/// The publisher in one layout.
struct Route {
    way: Way,
    /// The identity in attachments, and how many there were. Nodes behind a bridge get none.
    attached: Option<(Gid, AtomicI64)>,
    _token: LivelinessToken,
}

enum Way {
    Plain {
        /// It ends first: a publisher takes it along, and Zenoh then reports an error.
        _listener: MatchingListener<()>,
        publisher: ZenohPublisher<'static>,
        is_listened: Arc<AtomicBool>,
    },
    /// Late subscribers get the last message.
    Latched(AdvancedPublisher<'static>),
}

/// The text of a token, and the identity of its endpoint if messages tell it.
struct NewToken {
    text: String,
    gid: Option<Gid>,
}

impl Node {
    pub(super) async fn declare(
        session: &Session,
        config: &RosConfig,
        interest: watch::Sender<Interest>,
        counters: Counters,
    ) -> Result<Self, zenoh::Error> {
        let id = session.zid().to_string();
        let mut tokens = Vec::new();
        for layout in &config.layouts {
            let text = match layout {
                Layout::RmwZenoh => node_token(config, &id, 0, None).to_string(),
                Layout::Ros2dds => bridge_token(config, &id, None).to_string(),
            };
            tokens.push(session.liveliness().declare_token(text).await?);
        }
        Ok(Self {
            session: session.clone(),
            config: config.clone(),
            entities: AtomicU32::new(1),
            interest,
            counters,
            _tokens: tokens,
        })
    }

    /// Announces a subscription or a service in a layout.
    pub(super) async fn announce(
        &self,
        layout: Layout,
        kind: EntityKind,
        topic: Topic,
        ros_type: &RosType,
    ) -> Result<LivelinessToken, zenoh::Error> {
        let token = self.token(layout, kind, topic, ros_type);
        self.session.liveliness().declare_token(token.text).await
    }

    /// A publisher. Its topic counts as having subscribers while it has some.
    pub(super) async fn publisher<M: RosMessage>(
        &self,
        topic: Topic,
    ) -> Result<Publisher<M>, zenoh::Error> {
        let mut routes = Vec::new();
        for layout in &self.config.layouts {
            if topic.is_in(*layout) {
                routes.push(self.route::<M>(*layout, topic).await?);
            }
        }
        Ok(Publisher {
            routes,
            counters: self.counters.clone(),
            _message: PhantomData,
        })
    }

    async fn route<M: RosMessage>(
        &self,
        layout: Layout,
        topic: Topic,
    ) -> Result<Route, zenoh::Error> {
        let token = self.token(layout, EntityKind::Publisher, topic, &M::TYPE);
        let key = layout.key(&self.config, topic, &M::TYPE);
        let builder = (self.session.declare_publisher(key))
            .encoding(Encoding::APPLICATION_CDR)
            // Old data is dropped, and nothing may wait for a slow link.
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::Data);
        let qos = topic.qos();
        let way = match qos.is_transient_local {
            true => {
                let depth = qos.depth.map_or(1, |depth| depth as usize);
                let detection = MissDetectionConfig::default().sporadic_heartbeat(HEARTBEAT);
                let publisher = builder
                    .cache(CacheConfig::default().max_samples(depth))
                    .sample_miss_detection(detection)
                    .publisher_detection();
                Way::Latched(publisher.await?)
            }
            false => {
                let publisher = builder.await?;
                let is_listened = Arc::new(AtomicBool::new(false));
                let interest = self.interest.clone();
                let matched = is_listened.clone();
                let set = move |is_matching| {
                    matched.store(is_matching, Ordering::Relaxed);
                    interest.send_modify(|all| all.set(layout, topic, is_matching));
                };
                let on_change = set.clone();
                let listener = publisher.matching_listener();
                let listener = listener.callback(move |status| on_change(status.matching()));
                let listener = listener.await?;
                if publisher.matching_status().await?.matching() {
                    set(true);
                }
                Way::Plain {
                    _listener: listener,
                    publisher,
                    is_listened,
                }
            }
        };
        Ok(Route {
            way,
            attached: token.gid.map(|gid| (gid, AtomicI64::new(0))),
            _token: self.session.liveliness().declare_token(token.text).await?,
        })
    }

    /// The token of a new endpoint.
    fn token(
        &self,
        layout: Layout,
        kind: EntityKind,
        topic: Topic,
        ros_type: &RosType,
    ) -> NewToken {
        let id = self.session.zid().to_string();
        let endpoint = Some((kind, topic, ros_type));
        match layout {
            Layout::RmwZenoh => {
                let entity = self.entities.fetch_add(1, Ordering::Relaxed);
                let token = node_token(&self.config, &id, entity, endpoint);
                NewToken {
                    text: token.to_string(),
                    gid: Some(token.gid()),
                }
            }
            Layout::Ros2dds => NewToken {
                text: bridge_token(&self.config, &id, endpoint).to_string(),
                gid: None,
            },
        }
    }
}

impl<M: RosMessage> Publisher<M> {
    /// Publishes a message in each layout with subscribers. It does not wait for a slow
    /// link: then the message is dropped.
    pub(super) fn publish(&self, message: &M) {
        let payload = ZBytes::from(encode(message));
        for route in &self.routes {
            let Some(sent) = route.put(&payload) else {
                continue;
            };
            self.counters.count(match sent {
                Ok(()) => "ros_sent",
                Err(_) => "ros_not_sent",
            });
        }
    }
}

impl Route {
    /// `None` if there are no subscribers.
    fn put(&self, payload: &ZBytes) -> Option<zenoh::Result<()>> {
        if let Way::Plain { is_listened, .. } = &self.way
            && !is_listened.load(Ordering::Relaxed)
        {
            return None;
        }
        let attachment = self.attached.as_ref().map(|(gid, published)| {
            let attachment = Attachment {
                sequence: published.fetch_add(1, Ordering::Relaxed) + 1,
                source_ns: i64::try_from(unix_ns()).unwrap_or(i64::MAX),
                gid: *gid,
            };
            attachment.encode().to_vec()
        });
        let payload = payload.clone();
        Some(match &self.way {
            Way::Plain { publisher, .. } => publisher.put(payload).attachment(attachment).wait(),
            Way::Latched(publisher) => publisher.put(payload).attachment(attachment).wait(),
        })
    }
}
