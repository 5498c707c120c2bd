//! Sends all messages that may have to wait for a slow link, from one thread. IO.
//!
//! Zenoh sends answers, tokens and reliable messages in the thread that asks for it, and waits while
//! the link is full. So nothing that controls motion calls Zenoh itself.

use std::collections::HashMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use amber_ros2::attachment::LENGTH;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use zenoh::bytes::Encoding;
use zenoh::liveliness::LivelinessToken;
use zenoh::qos::CongestionControl;
use zenoh::query::Query;
use zenoh::{Session, Wait};

use crate::counters::Counters;
use crate::problem::Problem;
use crate::quota::Place;

/// A message to send. The channel is bounded by the senders: queries need a permit, and the rest
/// changes when drivers do.
pub(super) enum Out {
    /// The answer of a device.
    Answer(Caller, Bytes),
    /// The reason why there is no answer.
    Refuse(Caller, Problem),
    /// The reply of a service of ROS 2, with its attachment if the client expects one.
    RosReply(Asker, Vec<u8>, Option<[u8; LENGTH]>),
    /// Facts about the robot, with their keys.
    Facts(Asker, Vec<(String, Fact)>),
    /// A fact that has changed.
    Put(String, Fact),
    /// The same for facts that change often: with a permit, so that few of them wait.
    PutNewest(String, Vec<Fact>, OwnedSemaphorePermit),
    /// Declare a token.
    Token(String),
    /// Withdraw a token.
    NoToken(String),
    /// The end of the thread, and of all tokens.
    End,
}

/// A fact about the robot.
pub(super) enum Fact {
    Json(String),
    Protobuf(Vec<u8>),
}

/// The receiver of the answer of a device.
pub(super) enum Caller {
    /// A program in the fleet.
    Query(Asker),
    /// A task of the robot.
    Task(oneshot::Sender<Result<Bytes, Problem>>),
}

impl From<Asker> for Caller {
    fn from(asker: Asker) -> Self {
        Self::Query(asker)
    }
}

/// A query that waits for its answer.
pub(super) struct Asker {
    pub(super) query: Query,
    /// The key of the answer.
    pub(super) key: String,
    /// Bounds the queries that wait.
    pub(super) _permit: Permit,
}

/// The place of something that waits.
pub(super) enum Permit {
    /// One of those of an operator.
    Operator(#[expect(dead_code, reason = "it is kept until it is dropped")] Place),
    /// Any other.
    Other(#[expect(dead_code, reason = "it is kept until it is dropped")] OwnedSemaphorePermit),
}

/// The channel to the thread.
#[derive(Clone)]
pub(super) struct SendThread(Sender<Out>);

impl SendThread {
    /// Starts the thread. It ends with [`Out::End`].
    pub(super) fn start(session: Session, counters: Counters) -> (Self, JoinHandle<()>) {
        let (sender, outs) = mpsc::channel();
        let thread = thread::spawn(move || run(&session, &counters, &outs));
        (Self(sender), thread)
    }

    pub(super) fn send(&self, out: Out) {
        // No link is in the way to a task, which may be gone.
        match out {
            Out::Answer(Caller::Task(task), answer) => drop(task.send(Ok(answer))),
            Out::Refuse(Caller::Task(task), problem) => drop(task.send(Err(problem))),
            // The thread ends last.
            out => drop(self.0.send(out)),
        }
    }
}

fn run(session: &Session, counters: &Counters, outs: &Receiver<Out>) {
    let mut tokens: HashMap<String, LivelinessToken> = HashMap::new();
    while let Ok(out) = outs.recv() {
        let (name, sent) = match out {
            Out::Answer(Caller::Query(asker), answer) => {
                let reply = asker.query.reply(&asker.key, answer.to_vec());
                let reply = reply.encoding(Encoding::APPLICATION_PROTOBUF);
                ("answers", reply.wait())
            }
            Out::Refuse(Caller::Query(asker), problem) => {
                let text = serde_json::to_string(&problem).unwrap_or_default();
                let reply = asker.query.reply_err(text);
                let reply = reply.encoding(Encoding::APPLICATION_JSON);
                ("refusals", reply.wait())
            }
            Out::Answer(Caller::Task(_), _) | Out::Refuse(Caller::Task(_), _) => continue,
            Out::RosReply(asker, payload, attachment) => {
                let reply = asker.query.reply(&asker.key, payload);
                let reply = reply.encoding(Encoding::APPLICATION_CDR);
                let attachment = attachment.map(|bytes| bytes.to_vec());
                ("answers", reply.attachment(attachment).wait())
            }
            Out::Facts(asker, facts) => {
                let mut sent = Ok(());
                for (key, fact) in facts {
                    let (encoding, bytes) = fact.encoded();
                    let reply = asker.query.reply(&key, bytes).encoding(encoding);
                    sent = sent.and(reply.wait());
                }
                ("answers", sent)
            }
            Out::Put(key, fact) => ("facts_sent", put(session, &key, fact)),
            Out::PutNewest(key, facts, _permit) => {
                let all = facts.into_iter().map(|fact| put(session, &key, fact));
                ("facts_sent", all.fold(Ok(()), Result::and))
            }
            Out::Token(key) => {
                let declared = session.liveliness().declare_token(&key).wait();
                let declared = declared.map(|token| {
                    tokens.insert(key, token);
                });
                ("tokens", declared)
            }
            Out::NoToken(key) => {
                tokens.remove(&key);
                continue;
            }
            Out::End => return,
        };
        match sent {
            Ok(()) => counters.count(name),
            Err(error) => {
                counters.count("not_sent");
                tracing::debug!("not sent: {error}");
            }
        }
    }
}

fn put(session: &Session, key: &str, fact: Fact) -> zenoh::Result<()> {
    let (encoding, bytes) = fact.encoded();
    let put = session.put(key, bytes).encoding(encoding);
    put.congestion_control(CongestionControl::Block).wait()
}

impl Fact {
    pub(super) fn json(value: &impl serde::Serialize) -> Self {
        Self::Json(serde_json::to_string(value).unwrap_or_default())
    }

    fn encoded(self) -> (Encoding, Vec<u8>) {
        match self {
            Self::Json(text) => (Encoding::APPLICATION_JSON, text.into_bytes()),
            Self::Protobuf(bytes) => (Encoding::APPLICATION_PROTOBUF, bytes),
        }
    }
}
