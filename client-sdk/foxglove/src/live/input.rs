//! The inputs of the hub from other tasks. IO.

use std::sync::Arc;

use amber_client::Client;
use amber_proto::Device;
use amber_proto::mediator::Event;
use amber_proto::robot::Shape;
use amber_web::backlog::Room;
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::oneshot;

use super::catalog::Described;
use super::hub::{CallId, ViewerId};
use super::limits::{MAX_LINE_BYTES, MAX_LINES};

/// The messages that wait for one viewer: of each subscription, the newest.
pub(super) type Mailbox = amber_web::mailbox::Mailbox<u32>;

/// How many texts and lines of a log may wait for one viewer.
pub(super) const ROOM: Room = Room {
    lines: MAX_LINES,
    line_bytes: MAX_LINE_BYTES,
};

pub(super) enum Input {
    /// A viewer has connected.
    Opened(oneshot::Sender<(ViewerId, Arc<Mailbox>)>),
    /// It has sent a text.
    Text(ViewerId, String),
    /// It has sent a binary message.
    Binary(ViewerId, Bytes),
    /// The answer to a call of a viewer.
    Answer(CallId, Result<Value, String>),
    /// It is gone.
    Closed(ViewerId),
    /// There is a connection to the mediator.
    Connected(Client),
    /// The devices of the mediator.
    Devices(Vec<Described>),
    /// The shape of the robot.
    Shape(Box<Shape>),
    Message(Device, Bytes),
    /// An event of the mediator.
    Event(Event),
}
