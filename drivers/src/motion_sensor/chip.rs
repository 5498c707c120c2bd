//! A chip as the [`Board`](super::board) sees it, and transfers that fail. PURE, except for the
//! [`Bus`].

use std::fmt::Debug;
use std::time::Duration;

use super::bus::{Bus, BusError};
use super::sensors::Sensors;

/// How often a transfer is tried before a chip counts as missing. Noise on the wires is short.
const MAX_TRIES: usize = 2;

/// The problem of a chip that is not there.
pub(crate) const NO_ANSWER: &str = "no answer";

/// What the chips of a board have measured, as their model counts it.
pub trait Digits: Copy + Debug + Default + PartialEq + Send + 'static {
    /// Both together: each chip only has the digits of its own sensors.
    #[must_use]
    fn and(self, other: Self) -> Self;
}

/// A chip. The board calls [`Chip::set_up`] until it is done, then [`Chip::sample`] for each
/// reading, and starts again when the chip fails.
pub trait Chip<D>: Debug + Send {
    /// What it measures.
    fn sensors(&self) -> Sensors;

    /// Its name in messages.
    fn name(&self) -> &'static str;

    /// Whether only the first chip of the board makes it visible. Then it is set up after that one,
    /// and again whenever that one is.
    fn is_behind_first(&self) -> bool {
        false
    }

    /// Finds the chip and sets it up. `step` counts up from 0.
    ///
    /// # Errors
    /// It is not there, or does not keep its settings.
    fn set_up(&mut self, step: usize, bus: &mut dyn Bus) -> Result<SetUp, Problem>;

    /// Whether the first sample is ready. Needed for chips whose data registers do not report it.
    ///
    /// # Errors
    /// The chip does not answer.
    fn has_begun(&mut self, _bus: &mut dyn Bus) -> Result<bool, Problem> {
        Ok(true)
    }

    /// Reads the latest sample.
    ///
    /// # Errors
    /// The chip does not answer, or does not measure.
    fn sample(&mut self, bus: &mut dyn Bus) -> Result<Sample<D>, Problem>;

    /// It may be another one from now on.
    fn forget(&mut self) {}
}

/// How far the set-up of a chip is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetUp {
    /// The next step is due after this time.
    Continues(Duration),
    /// It measures.
    Done {
        /// What it is, and where.
        name: String,
        /// The time until its samples are right.
        settle: Duration,
    },
    /// This board does not have such a chip.
    Lacking,
}

/// A sample read from a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample<D> {
    /// New digits.
    Fresh(D),
    /// Digits that were read before.
    Old(D),
    /// The settings are gone: the chip lost power.
    Reset,
    /// The same, for chips whose loss of power is worth a message.
    Lost(&'static str),
    /// Another program has changed a setting, so the digits may have another meaning.
    Changed(Change),
    /// The field is beyond the range.
    Overflow,
}

/// A register with another value than the driver has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The register.
    pub register: u8,
    /// The value that the driver has set.
    pub set: u8,
    /// The value that it has now.
    pub found: u8,
}

/// The reason why a chip cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// This chip has a problem.
    Chip(String),
    /// The whole bus does not work.
    Bus(String),
}

impl<D> Sample<D> {
    /// The same sample with other digits.
    pub fn map<E>(self, with: impl FnOnce(D) -> E) -> Sample<E> {
        match self {
            Self::Fresh(digits) => Sample::Fresh(with(digits)),
            Self::Old(digits) => Sample::Old(with(digits)),
            Self::Reset => Sample::Reset,
            Self::Lost(why) => Sample::Lost(why),
            Self::Changed(change) => Sample::Changed(change),
            Self::Overflow => Sample::Overflow,
        }
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            register,
            set,
            found,
        } = self;
        write!(
            f,
            "another program has changed register {register:#04x} from {set:#04x} to {found:#04x}"
        )
    }
}

/// Reads a register and those behind it.
pub(crate) fn read<const N: usize>(
    bus: &mut dyn Bus,
    address: u8,
    register: u8,
) -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    transfer(bus, address, &[register], &mut bytes)?;
    Ok(bytes)
}

/// Writes bytes, then reads bytes.
pub(crate) fn transfer(
    bus: &mut dyn Bus,
    address: u8,
    written: &[u8],
    read: &mut [u8],
) -> Result<(), Problem> {
    let mut tries = 1;
    loop {
        match bus.transfer(address, written, read) {
            Ok(()) => return Ok(()),
            Err(BusError::Nak) if tries < MAX_TRIES => tries += 1,
            Err(BusError::Nak) => return Err(Problem::Chip(NO_ANSWER.into())),
            Err(BusError::Broken(text)) => return Err(Problem::Bus(text)),
        }
    }
}

/// Checks that a register has kept its value; `mask` has the bits that matter.
pub(crate) fn verify(
    bus: &mut dyn Bus,
    address: u8,
    register: u8,
    value: u8,
    mask: u8,
) -> Result<(), Problem> {
    let [kept] = read(bus, address, register)?;
    match (kept ^ value) & mask {
        0 => Ok(()),
        _ => Err(Problem::Chip(format!(
            "register {register:#04x} reads {kept:#04x}, not {value:#04x}"
        ))),
    }
}
