//! The clients, which send and receive datagrams. PURE.

mod raw;
mod sdk;

use std::time::Instant;

use amber_proto::{Device, DeviceType};

pub use self::raw::{Raw, RawClientKind, made_up, nonsense};
pub use self::sdk::{PATIENCE, Sdk};
use crate::invariant::Check;
use crate::messages::Tokens;
use crate::random::Random;

/// A client: datagrams in, datagrams out.
pub enum Client {
    /// One with our SDK.
    Sdk(Box<Sdk>),
    /// One that builds its frames itself, valid or not.
    Raw(Raw),
}

/// The result of a client's turn.
#[derive(Debug, Default)]
pub struct Turn {
    /// The datagrams that it sends.
    pub sent: Vec<Vec<u8>>,
    /// The client ends.
    pub leaves: bool,
}

impl Client {
    /// Performs an action.
    pub fn act(&mut self, now: Instant, rng: &mut Random, tokens: &mut Tokens) -> Turn {
        match self {
            Self::Sdk(sdk) => sdk.act(now, rng, tokens),
            Self::Raw(raw) => raw.act(rng, tokens),
        }
    }

    /// Handles a datagram.
    ///
    /// # Errors
    /// The client must not get this datagram.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<Turn, crate::Broken> {
        match self {
            Self::Sdk(sdk) => sdk.receive(now, bytes),
            Self::Raw(raw) => Ok(raw.receive(bytes)),
        }
    }

    /// The network reports that no mediator is at the address.
    ///
    /// # Errors
    /// As [`Client::receive`].
    pub fn refused(&mut self, now: Instant) -> Result<Turn, crate::Broken> {
        match self {
            Self::Sdk(sdk) => sdk.refused(now),
            Self::Raw(_) => Ok(Turn::default()),
        }
    }

    /// When it next acts without input.
    pub fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Sdk(sdk) => sdk.next_timeout(),
            Self::Raw(_) => None,
        }
    }

    /// That time has come.
    ///
    /// # Errors
    /// As [`Client::receive`].
    pub fn timeout(&mut self, now: Instant) -> Result<Turn, crate::Broken> {
        match self {
            Self::Sdk(sdk) => sdk.timeout(now),
            Self::Raw(_) => Ok(Turn::default()),
        }
    }

    /// Checks the permanent invariants.
    ///
    /// # Errors
    /// One of them is violated.
    pub fn check(&self, now: Instant) -> Check {
        match self {
            Self::Sdk(sdk) => sdk.check(now),
            Self::Raw(_) => Ok(()),
        }
    }
}

/// The devices for requests: most of them usually exist.
pub fn device(rng: &mut Random) -> Device {
    let number = |kind, id| Device::new(DeviceType(kind), id);
    let all = [
        number(5, 0),
        number(5, 0),
        number(77, 3),
        number(77, 4),
        number(4, 0),
        number(4, 1),
        number(78, 0),
        number(123, 4),
    ];
    all[rng.usize(0..all.len())]
}
