//! A chip as the [`Board`](super::board) sees it. PURE, except for the [`Bus`].

use std::fmt::Debug;
use std::time::Duration;

use super::sensors::Sensors;
use crate::i2c::Bus;
use crate::i2c::registers::Problem;

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

/// The last digits of a chip with a bit for new samples, which another program that reads the chip
/// clears.
#[derive(Debug, Default)]
pub(crate) struct Latest<D>(D);

impl<D: Copy + Default + PartialEq> Latest<D> {
    /// Other digits are new ones, whatever the bit says. Zeros on all axes are none: some copies
    /// answer, but measure nothing, and all others feel gravity or the field of the Earth.
    pub(crate) fn judge(&mut self, sample: Sample<D>) -> Sample<D> {
        match sample {
            Sample::Fresh(digits) | Sample::Old(digits) if digits == D::default() => {
                Sample::Old(self.0)
            }
            Sample::Fresh(digits) => self.renew(digits),
            Sample::Old(digits) if digits != self.0 => self.renew(digits),
            sample => sample,
        }
    }

    fn renew(&mut self, digits: D) -> Sample<D> {
        self.0 = digits;
        Sample::Fresh(digits)
    }
}
