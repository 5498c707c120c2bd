//! The inputs of the hub from other tasks. IO.

use std::sync::Arc;

use amber_client::{MapPose, Scan};
use amber_proto::location::Particle;
use amber_proto::mapping::Progress;
use amber_proto::mediator::Driver;
use amber_proto::robot::Shape;
use amber_scene::trip::TripEnd;
use amber_scene::{Drive, Ground, Located, Part};
use serde_json::Value;

use crate::backlog::{Frame, Mailbox};
use crate::hub::{Message, Ticket, ViewerId};
use amber_web::Role;

/// An input of the hub.
pub(crate) enum Input {
    /// A page has connected. Its number goes back, with the place for its frames.
    /// Without one, all places are taken.
    Opened(
        Role,
        String,
        tokio::sync::oneshot::Sender<(ViewerId, Arc<Mailbox>)>,
    ),
    /// A page has sent a message.
    Said(ViewerId, Message),
    /// A page answers no pings.
    Silent(ViewerId),
    /// A page is gone.
    Closed(ViewerId),
    /// The drivers of the mediator.
    Drivers(Result<Vec<Driver>, String>),
    /// An event of the mediator.
    Event(Frame),
    /// A measurement.
    Measured(Measured),
    /// The answer to a request of a page.
    Answer(Ticket, Result<Value, String>),
    /// The order of a page for a driver with targets has ended.
    TripEnded(ViewerId, u64, TripEnd),
    /// A notice for a page.
    Notice(ViewerId, String),
    /// The robot does not follow the stick of a page, or does not obey it, with the reason.
    Refused(ViewerId, String),
}

/// A measurement of the robot, or the reason why it is missing.
pub(crate) enum Measured {
    Map(Part<Arc<Ground>>),
    Pose(Part<MapPose>),
    Located(Part<Located>),
    Scan(Part<Scan>),
    Particles(Part<Vec<Particle>>),
    Drive(Part<Drive>),
    /// The shape of the robot; `None` if no robot device says it.
    Shape(Option<Box<Shape>>),
    /// The state of the map that is being made, and the map for pages if it has changed.
    Mapping(Box<Progress>, Option<Frame>),
}
