//! Services of the node. IO.
//!
//! Zenoh calls the functions here in its own threads, so they never wait.

use std::sync::Arc;

use amber_ros2::attachment::{Gid, LENGTH};
use amber_ros2::{Attachment, EntityKind, RosMessage, encode};
use tokio::sync::Semaphore;
use zenoh::Session;
use zenoh::liveliness::LivelinessToken;
use zenoh::query::{Query, Queryable};

use super::super::publisher::unix_ns;
use super::super::send_thread::{Asker, Out, Permit, SendThread};
use super::Shared;
use crate::counters::Counters;
use crate::limits::MAX_QUESTIONS;
use crate::ros::layout::Layout;
use crate::ros::topics::Topic;

/// Declares services.
pub(super) struct Services {
    pub(super) shared: Arc<Shared>,
    pub(super) session: Session,
    pub(super) out: SendThread,
    pub(super) counters: Counters,
}

/// A service. It ends when it is dropped.
pub(super) struct Service {
    _queryable: Queryable<()>,
    _token: LivelinessToken,
}

/// A call of a service.
pub(super) struct Call {
    /// The request.
    pub(super) payload: Vec<u8>,
    /// The client, if it names itself.
    pub(super) author: Option<Gid>,
    /// `None` if too many calls wait for their replies.
    reply: Option<Reply>,
}

/// The reply to a call, which is still to be sent. Without it, the client hears that there is none.
pub(super) struct Reply {
    asker: Asker,
    /// That of the request, if the client expects one.
    attachment: Option<Attachment>,
    out: SendThread,
}

impl Services {
    /// Serves a service in a layout, with the type of its requests.
    pub(super) async fn serve<M: RosMessage>(
        &self,
        layout: Layout,
        topic: Topic,
        take: impl Fn(Call) + Send + Sync + 'static,
    ) -> Result<Service, zenoh::Error> {
        let key = layout.key(&self.shared.config, topic, &M::TYPE);
        let waiting = Arc::new(Semaphore::new(MAX_QUESTIONS));
        let (out, counters, reply_key) = (self.out.clone(), self.counters.clone(), key.clone());
        let callback = move |query: Query| {
            let attachment = match layout {
                Layout::RmwZenoh => {
                    let bytes = query.attachment().map(|bytes| bytes.to_bytes());
                    let request = bytes.and_then(|bytes| Attachment::decode(&bytes).ok());
                    let Some(request) = request else {
                        return counters.count("ros_dropped_attachment");
                    };
                    Some(request)
                }
                // A bridge knows by the query to which request the reply belongs.
                Layout::Ros2dds => None,
            };
            let payload = query
                .payload()
                .map(|payload| payload.to_bytes().into_owned());
            let permit = waiting.clone().try_acquire_owned();
            if permit.is_err() {
                counters.count("queries_dropped_busy");
            }
            let asker = permit.ok().map(|permit| Asker {
                query,
                key: reply_key.clone(),
                _permit: Permit::Other(permit),
            });
            take(Call {
                payload: payload.unwrap_or_default(),
                author: attachment.map(|it| it.gid),
                reply: asker.map(|asker| Reply {
                    asker,
                    attachment,
                    out: out.clone(),
                }),
            });
        };
        let queryable = (self.session.declare_queryable(key))
            // Clients of ROS ask only services that say so.
            .complete(true)
            .callback(callback);
        let queryable = queryable.await?;
        let kind = EntityKind::Service;
        let token = self.shared.node.announce(layout, kind, topic, &M::TYPE);
        Ok(Service {
            _queryable: queryable,
            _token: token.await?,
        })
    }
}

impl Call {
    /// The reply; `None` if there is no room for one.
    pub(super) fn reply(self) -> Option<Reply> {
        self.reply
    }
}

impl Reply {
    pub(super) fn send<M: RosMessage>(self, response: &M) {
        let attachment: Option<[u8; LENGTH]> = self.attachment.map(|request| {
            // The number and the identity of a reply are those of the request.
            let source_ns = i64::try_from(unix_ns()).unwrap_or(i64::MAX);
            let reply = Attachment {
                source_ns,
                ..request
            };
            reply.encode()
        });
        let reply = Out::RosReply(self.asker, encode(response), attachment);
        self.out.send(reply);
    }
}
