//! The packets of RflySim: C structs in little-endian byte order, without compression or
//! checksum. PURE.
//!
//! A packet does not name its kind. [`decode`] tells it from the port, the length, and either a
//! magic number at the start or a length that is written behind a tag. Bytes that only align or
//! fill a packet may have any value.

mod control;
mod layout;
mod model;
mod telemetry;
#[cfg(test)]
mod tests;

pub use self::control::{
    ControlMode, FRAME_BODY, FRAME_LOCAL_NED, FullCommand, Restart, ShortCommand, ignored,
};
use self::layout::Layout;
pub use self::layout::Padding;
pub use self::model::{
    CollisionRays, DisplayInputs, DoubleInputs, DynamicParameters, IntFloatInputs, Parameters,
    RflyControl, TwentyFloats,
};
pub use self::telemetry::{
    CollisionTarget, ExternalMessage, FullEstimate, MapOrigin, ModelOutputs, SimpleEstimate,
    Truth112, Truth168, Truth200,
};
use super::ports::Port;

/// The tag of a telemetry packet of a vehicle that has not collided.
pub const NO_COLLISION: i32 = -1;
/// The tag of a full command.
pub const COMMAND_TAG: i32 = 3;

/// The content of a UDP datagram of RflySim.
#[derive(Clone, Debug, PartialEq)]
pub enum Packet {
    /// Port 20101: the estimated state, and the id of the vehicle that it hit or
    /// [`NO_COLLISION`].
    FullEstimate(i32, FullEstimate),
    /// Port 20101: the estimated state in the simple mode, or an event with it.
    SimpleEstimate(SimpleKind, SimpleEstimate),
    /// Port 30101: the true state, and the id of the vehicle that it hit or [`NO_COLLISION`].
    Truth200(i32, Truth200),
    /// Port 30101: the true state in newer versions.
    Truth168(Truth168),
    /// Port 30101: the true state in its short form.
    Truth112(Truth112),
    /// Port 30101: outputs of the model.
    ModelOutputs(ModelOutputs),
    /// Port 30101: the origin of the map.
    MapOrigin(MapOrigin),
    /// Port 30101: a collision.
    CollisionTarget(CollisionTarget),
    /// Port 40101: a message of the autopilot.
    External(ExternalMessage),
    /// Port 20100: a short command.
    ShortCommand(ShortCommand),
    /// Port 20100: a full command.
    FullCommand(FullCommand),
    /// Port 20100: start the simulation again.
    Restart(Restart),
    /// Port 30100: integers and floats for the model.
    IntFloatInputs(InputSet, IntFloatInputs),
    /// Port 30100: numbers for the model.
    DoubleInputs(InputSet, DoubleInputs),
    /// Port 30100: numbers for the model, not to be applied yet.
    HeldInputs(ExternalInput, DoubleInputs),
    /// Port 30100: parameters of the model.
    Parameters(Parameters),
    /// Port 30100: parameters of the model for its next start.
    StartParameters(Parameters),
    /// Port 30100: numbers from the 3D display.
    DisplayInputs(DisplayInputs),
    /// Port 30100: parameters that change while the model runs.
    DynamicParameters(Box<DynamicParameters>),
    /// Port 30100: a message for the autopilot.
    RflyControl(RflyControl),
    /// Port 30100: distances to obstacles.
    CollisionRays(CollisionRays),
    /// Port 30100: numbers about collisions.
    Collision(TwentyFloats),
    /// Port 30100: numbers about the terrain.
    Terrain(TwentyFloats),
}

/// The reason for a packet of the simple mode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SimpleKind {
    /// The regular state.
    State,
    /// The autopilot has a position fix.
    EstimatorFixed,
    /// The vehicle has collided.
    Collision,
}

/// The inputs of the model that a packet sets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InputSet {
    /// Those of the software-in-the-loop interface.
    Sil,
    /// One of the external inputs.
    External(ExternalInput),
}

/// The number of an external input of the model, 1 to 5.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExternalInput(u8);

impl ExternalInput {
    /// The external input with this number, if it is within 1 to 5.
    pub fn new(number: u8) -> Option<Self> {
        (1..=5).contains(&number).then_some(Self(number))
    }
}

/// The reason why a datagram is not a packet of its port.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadPacket {
    /// No packet of this port has this length.
    #[error("no packet of this port has {0} bytes")]
    Length(usize),
    /// The length is right, the magic number is not.
    #[error("a packet of {length} bytes has the wrong magic number {magic}")]
    Magic {
        /// The length of the datagram, in bytes.
        length: usize,
        /// Its first four bytes as a number.
        magic: i32,
    },
    /// The length of the datagram is right, the length written in it is not.
    #[error("a packet of {length} bytes has the wrong body length {written}")]
    BodyLength {
        /// The length of the datagram, in bytes.
        length: usize,
        /// The length of the body as written.
        written: i32,
    },
    /// A MAVLink message, which other modes of the simulator use.
    #[error("a MAVLink message; use the mode UDP_Full or UDP_Simple of the simulator")]
    Mavlink,
}

/// Reads a datagram that arrived on a port.
///
/// # Errors
/// It is not a packet of this port.
pub fn decode(port: Port, bytes: &[u8]) -> Result<Packet, BadPacket> {
    decode_exact(port, bytes).map_err(|error| match (port, bytes.first()) {
        (Port::Control | Port::Estimate, Some(0xfd | 0xfe)) => BadPacket::Mavlink,
        _ => error,
    })
}

fn decode_exact(port: Port, bytes: &[u8]) -> Result<Packet, BadPacket> {
    let length = bytes.len();
    if length < 4 {
        return Err(BadPacket::Length(length));
    }
    let magic = i32::read(&bytes[..4]);
    let wrong_magic = Err(BadPacket::Magic { length, magic });
    Ok(match (port, length, magic) {
        (Port::Estimate, 120, tag) => Packet::FullEstimate(tag, tagged(bytes)?),
        (Port::Estimate, 52, _) => match SimpleKind::from_magic(magic) {
            Some(kind) => Packet::SimpleEstimate(kind, marked(bytes)),
            None => return wrong_magic,
        },

        (Port::Truth, 200, tag) => Packet::Truth200(tag, tagged(bytes)?),
        (Port::Truth, 168, magic::TRUTH_168) => Packet::Truth168(marked(bytes)),
        (Port::Truth, 112, magic::TRUTH_112) => Packet::Truth112(marked(bytes)),
        (Port::Truth, 264, magic::COMMON) => Packet::ModelOutputs(marked(bytes)),
        (Port::Truth, 32, magic::COMMON) => Packet::MapOrigin(marked(bytes)),
        (Port::Truth, 12, magic::COMMON) => Packet::CollisionTarget(marked(bytes)),
        (Port::Truth, 168 | 112 | 264 | 32 | 12, _) => return wrong_magic,

        (Port::External, 48, magic::EXTERNAL) => Packet::External(marked(bytes)),
        (Port::External, 48, _) => return wrong_magic,

        (Port::Control, 24, magic::COMMON) => Packet::ShortCommand(marked(bytes)),
        (Port::Control, 120, COMMAND_TAG) => Packet::FullCommand(tagged(bytes)?),
        (Port::Control, 8, magic::RESTART) => Packet::Restart(marked(bytes)),
        (Port::Control, 24 | 120 | 8, _) => return wrong_magic,

        (Port::Model, 120, _) => match InputSet::from_magic(magic) {
            Some(set) => Packet::IntFloatInputs(set, marked(bytes)),
            None => return wrong_magic,
        },
        (Port::Model, 232, _) => {
            let held = magic.checked_sub(magic::HELD);
            let held = held.and_then(ExternalInput::from_magic);
            match (InputSet::from_magic(magic), held) {
                (Some(set), _) => Packet::DoubleInputs(set, marked(bytes)),
                (None, Some(input)) => Packet::HeldInputs(input, marked(bytes)),
                (None, None) => return wrong_magic,
            }
        }
        (Port::Model, 264, magic::PARAMETERS) => Packet::Parameters(marked(bytes)),
        (Port::Model, 264, magic::START_PARAMETERS) => Packet::StartParameters(marked(bytes)),
        (Port::Model, 264, magic::DISPLAY) => Packet::DisplayInputs(marked(bytes)),
        (Port::Model, 528, magic::DYNAMIC) => Packet::DynamicParameters(Box::new(marked(bytes))),
        (Port::Model, 80, magic::RFLY_CONTROL) => Packet::RflyControl(marked(bytes)),
        (Port::Model, 60, magic::COMMON) => Packet::CollisionRays(marked(bytes)),
        (Port::Model, 88, magic::COLLISION) => Packet::Collision(marked(bytes)),
        (Port::Model, 88, magic::TERRAIN) => Packet::Terrain(marked(bytes)),
        (Port::Model, 264 | 528 | 80 | 60 | 88, _) => return wrong_magic,

        _ => return Err(BadPacket::Length(length)),
    })
}

impl Packet {
    /// The datagram for the port [`Self::port`].
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::FullEstimate(tag, body) => with_tag(*tag, body),
            Self::SimpleEstimate(kind, body) => with_magic(kind.magic(), body),
            Self::Truth200(tag, body) => with_tag(*tag, body),
            Self::Truth168(body) => with_magic(magic::TRUTH_168, body),
            Self::Truth112(body) => with_magic(magic::TRUTH_112, body),
            Self::ModelOutputs(body) => with_magic(magic::COMMON, body),
            Self::MapOrigin(body) => with_magic(magic::COMMON, body),
            Self::CollisionTarget(body) => with_magic(magic::COMMON, body),
            Self::External(body) => with_magic(magic::EXTERNAL, body),
            Self::ShortCommand(body) => with_magic(magic::COMMON, body),
            Self::FullCommand(body) => with_tag(COMMAND_TAG, body),
            Self::Restart(body) => with_magic(magic::RESTART, body),
            Self::IntFloatInputs(set, body) => with_magic(set.magic(), body),
            Self::DoubleInputs(set, body) => with_magic(set.magic(), body),
            Self::HeldInputs(input, body) => with_magic(input.magic() + magic::HELD, body),
            Self::Parameters(body) => with_magic(magic::PARAMETERS, body),
            Self::StartParameters(body) => with_magic(magic::START_PARAMETERS, body),
            Self::DisplayInputs(body) => with_magic(magic::DISPLAY, body),
            Self::DynamicParameters(body) => with_magic(magic::DYNAMIC, body.as_ref()),
            Self::RflyControl(body) => with_magic(magic::RFLY_CONTROL, body),
            Self::CollisionRays(body) => with_magic(magic::COMMON, body),
            Self::Collision(body) => with_magic(magic::COLLISION, body),
            Self::Terrain(body) => with_magic(magic::TERRAIN, body),
        }
    }

    /// The port to which such a packet is sent.
    pub fn port(&self) -> Port {
        match self {
            Self::FullEstimate(..) | Self::SimpleEstimate(..) => Port::Estimate,
            Self::Truth200(..)
            | Self::Truth168(_)
            | Self::Truth112(_)
            | Self::ModelOutputs(_)
            | Self::MapOrigin(_)
            | Self::CollisionTarget(_) => Port::Truth,
            Self::External(_) => Port::External,
            Self::ShortCommand(_) | Self::FullCommand(_) | Self::Restart(_) => Port::Control,
            Self::IntFloatInputs(..)
            | Self::DoubleInputs(..)
            | Self::HeldInputs(..)
            | Self::Parameters(_)
            | Self::StartParameters(_)
            | Self::DisplayInputs(_)
            | Self::DynamicParameters(_)
            | Self::RflyControl(_)
            | Self::CollisionRays(_)
            | Self::Collision(_)
            | Self::Terrain(_) => Port::Model,
        }
    }

    /// Whether it has no infinite number and no NaN.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::FullEstimate(_, body) => body.is_finite(),
            Self::SimpleEstimate(_, body) => body.is_finite(),
            Self::Truth200(_, body) => body.is_finite(),
            Self::Truth168(body) => body.is_finite(),
            Self::Truth112(body) => body.is_finite(),
            Self::ModelOutputs(body) => body.is_finite(),
            Self::MapOrigin(body) => body.is_finite(),
            Self::External(body) => body.is_finite(),
            Self::ShortCommand(body) => body.is_finite(),
            Self::FullCommand(body) => body.is_finite(),
            Self::CollisionTarget(_) | Self::Restart(_) => true,
            Self::IntFloatInputs(_, body) => body.is_finite(),
            Self::DoubleInputs(_, body) | Self::HeldInputs(_, body) => body.is_finite(),
            Self::Parameters(body) | Self::StartParameters(body) => body.is_finite(),
            Self::DisplayInputs(body) => body.is_finite(),
            Self::DynamicParameters(body) => body.as_ref().is_finite(),
            Self::RflyControl(body) => body.is_finite(),
            Self::CollisionRays(body) => body.is_finite(),
            Self::Collision(body) | Self::Terrain(body) => body.is_finite(),
        }
    }
}

/// The magic numbers. They are constants, although the manual calls some of them checksums.
mod magic {
    pub(super) const TRUTH_168: i32 = 123_456_789;
    /// Used with several lengths.
    pub(super) const COMMON: i32 = 1_234_567_890;
    pub(super) const ESTIMATOR_FIXED: i32 = 1_234_567_891;
    pub(super) const COLLIDED: i32 = 1_234_567_892;
    pub(super) const TRUTH_112: i32 = 1_234_567_891;
    pub(super) const EXTERNAL: i32 = 1_234_567_898;
    pub(super) const RESTART: i32 = 987_654_321;
    pub(super) const SIL: i32 = 1_234_567_897;
    /// Plus the number of the external input.
    pub(super) const EXTERNAL_INPUT: i32 = 1_234_567_800;
    /// Added if the model must not apply the inputs yet.
    pub(super) const HELD: i32 = 100;
    pub(super) const PARAMETERS: i32 = 1_234_567_891;
    pub(super) const START_PARAMETERS: i32 = 1_234_567_892;
    pub(super) const DISPLAY: i32 = 1_234_567_899;
    pub(super) const DYNAMIC: i32 = 1_234_567_893;
    pub(super) const RFLY_CONTROL: i32 = 1_234_567_896;
    pub(super) const COLLISION: i32 = 1_234_567_880;
    pub(super) const TERRAIN: i32 = 1_234_567_881;
}

impl SimpleKind {
    fn magic(self) -> i32 {
        match self {
            Self::State => magic::COMMON,
            Self::EstimatorFixed => magic::ESTIMATOR_FIXED,
            Self::Collision => magic::COLLIDED,
        }
    }

    fn from_magic(number: i32) -> Option<Self> {
        let all = [Self::State, Self::EstimatorFixed, Self::Collision];
        all.into_iter().find(|kind| kind.magic() == number)
    }
}

impl InputSet {
    fn magic(self) -> i32 {
        match self {
            Self::Sil => magic::SIL,
            Self::External(input) => input.magic(),
        }
    }

    fn from_magic(number: i32) -> Option<Self> {
        match number {
            magic::SIL => Some(Self::Sil),
            other => ExternalInput::from_magic(other).map(Self::External),
        }
    }
}

impl ExternalInput {
    fn magic(self) -> i32 {
        magic::EXTERNAL_INPUT + i32::from(self.0)
    }

    fn from_magic(number: i32) -> Option<Self> {
        let input = number.checked_sub(magic::EXTERNAL_INPUT)?;
        Self::new(u8::try_from(input).ok()?)
    }
}

/// A body that has a length on the wire, behind a tag.
trait Tagged: Layout {
    /// The length of the whole datagram, in bytes.
    const DATAGRAM: usize;
    /// The length as written. That of some structs in C is longer than their fields.
    const WRITTEN: i32;
}

impl Tagged for FullEstimate {
    const DATAGRAM: usize = 120;
    const WRITTEN: i32 = 112;
}

impl Tagged for Truth200 {
    const DATAGRAM: usize = 200;
    const WRITTEN: i32 = 152;
}

impl Tagged for FullCommand {
    const DATAGRAM: usize = 120;
    const WRITTEN: i32 = 80;
}

/// The body behind tag and length. The datagram must have the length of this kind.
fn tagged<T: Tagged>(bytes: &[u8]) -> Result<T, BadPacket> {
    let (length, written) = (bytes.len(), i32::read(&bytes[4..8]));
    if written == T::WRITTEN {
        Ok(T::read(&bytes[8..][..T::SIZE]))
    } else {
        Err(BadPacket::BodyLength { length, written })
    }
}

fn with_tag<T: Tagged>(tag: i32, body: &T) -> Vec<u8> {
    let mut bytes = vec![0; T::DATAGRAM];
    tag.write(&mut bytes[..4]);
    T::WRITTEN.write(&mut bytes[4..8]);
    body.write(&mut bytes[8..][..T::SIZE]);
    bytes
}

/// The body behind the magic number. The datagram must have the length of this kind.
fn marked<T: Layout>(bytes: &[u8]) -> T {
    T::read(&bytes[4..])
}

fn with_magic<T: Layout>(magic: i32, body: &T) -> Vec<u8> {
    let mut bytes = vec![0; 4 + T::SIZE];
    magic.write(&mut bytes[..4]);
    body.write(&mut bytes[4..]);
    bytes
}
