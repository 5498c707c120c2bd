//! Registers of the PCA9685, its clock, and its pulses. PURE.

/// The number of channels.
pub(super) const CHANNELS: u8 = 16;

/// The addresses that the pins of a board can give it.
pub(super) const ADDRESSES: std::ops::RangeInclusive<u8> = 0x40..=0x7F;

/// All boards of a bus answer here until they are set up, so it is not the address of one.
pub(super) const ALL_CALL_ADDRESS: u8 = 0x70;

pub(super) const MODE1: u8 = 0x00;
pub(super) const PRE_SCALE: u8 = 0xFE;
const MODE2: u8 = 0x01;
const CHANNEL_0: u8 = 0x06;
const ALL_CHANNELS: u8 = 0xFA;

/// The first of the registers with further addresses of the chip. Nothing else has these values there,
/// and programs leave them alone.
pub(super) const SUB_ADDRESSES: u8 = 0x02;
pub(super) const USUAL_SUB_ADDRESSES: [u8; 4] = [0xE2, 0xE4, 0xE8, 0xE0];

/// MODE1: the oscillator is off, as after a reset.
pub(super) const SLEEP: u8 = 0x10;
/// MODE1: works, registers are counted on in a transfer, and the chip has one address only.
pub(super) const AWAKE: u8 = 0x20;
/// MODE1: reads as 1 if channels had pulses before the chip was put to sleep.
pub(super) const RESTART: u8 = 0x80;
/// MODE2: outputs drive both levels.
const TOTEM_POLE: u8 = 0x04;

/// In the last byte of a channel: no pulses.
const FULL_OFF: u8 = 0x10;

/// The steps of a period.
const STEPS: f64 = 4096.0;

/// The clock of the pulses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    oscillator_hz: f64,
    prescale: u8,
}

impl Timing {
    /// The nearest to this frequency.
    #[must_use]
    pub fn new(oscillator_hz: f64, frequency_hz: f64) -> Self {
        let divider = (oscillator_hz / STEPS / frequency_hz).round();
        // Within the limits of the register.
        let prescale = (divider - 1.0).clamp(3.0, 255.0) as u8;
        Self {
            oscillator_hz,
            prescale,
        }
    }

    /// The value of its register.
    pub(super) fn prescale(self) -> u8 {
        self.prescale
    }

    /// The true length of a period, in microseconds.
    #[must_use]
    pub fn period_us(self) -> f64 {
        STEPS * self.step_us()
    }

    /// The length of a step, in microseconds.
    fn step_us(self) -> f64 {
        (f64::from(self.prescale) + 1.0) / self.oscillator_hz * 1e6
    }

    /// The number of steps of a pulse, in microseconds.
    pub(super) fn steps(self, us: f64) -> u16 {
        // The conversion limits.
        ((us / self.step_us()).round() as u16).min(0x0FFF)
    }

    /// The length of a pulse with so many steps, in microseconds.
    pub(super) fn us(self, steps: u16) -> f64 {
        f64::from(steps) * self.step_us()
    }
}

/// The writes that make the chip ready, without pulses. Its clock then needs 500 us, about as long as it
/// takes to read the settings.
pub(super) fn set_up(timing: Timing) -> [Vec<u8>; 5] {
    [
        vec![MODE1, SLEEP],
        vec![PRE_SCALE, timing.prescale],
        vec![MODE2, TOTEM_POLE],
        vec![ALL_CHANNELS, 0, 0, 0, FULL_OFF],
        vec![MODE1, AWAKE],
    ]
}

/// The write that gives channels these pulses, the first one and those behind it; 0 for none.
pub(super) fn pulses(first: u8, steps: &[u16]) -> Vec<u8> {
    let channel = |steps: &u16| match steps.to_le_bytes() {
        [0, 0] => [0, 0, 0, FULL_OFF],
        [low, high] => [0, 0, low, high],
    };
    let channels = steps.iter().flat_map(channel);
    [CHANNEL_0 + 4 * first]
        .into_iter()
        .chain(channels)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(frequency_hz: f64) -> Timing {
        Timing::new(25e6, frequency_hz)
    }

    #[test]
    fn frequencies_give_the_values_of_the_data_sheet() {
        for (hz, prescale, true_hz) in [
            (24.0, 0xFD, 24.03),
            (50.0, 0x79, 50.03),
            (60.0, 0x65, 59.84),
            (100.0, 0x3C, 100.06),
            (333.0, 0x11, 339.08),
            (1000.0, 0x05, 1017.25),
            (1600.0, 0x03, 1525.88),
        ] {
            let timing = timing(hz);
            assert_eq!(timing.prescale(), prescale, "{hz} Hz");
            let found = 1e6 / timing.period_us();
            assert!((found - true_hz).abs() < 0.01, "{hz} Hz: {found}");
        }
    }

    #[test]
    fn pulses_have_the_bytes_of_the_data_sheet() {
        let timing = timing(50.0);
        for (us, bytes) in [
            (500.0, [0x06, 0, 0, 0x66, 0x00]),
            (600.0, [0x06, 0, 0, 0x7B, 0x00]),
            (1000.0, [0x06, 0, 0, 0xCD, 0x00]),
            (1500.0, [0x06, 0, 0, 0x33, 0x01]),
            (2000.0, [0x06, 0, 0, 0x9A, 0x01]),
            (2400.0, [0x06, 0, 0, 0xEC, 0x01]),
            (2500.0, [0x06, 0, 0, 0x00, 0x02]),
        ] {
            assert_eq!(pulses(0, &[timing.steps(us)]), bytes, "{us} us");
        }
        assert!((timing.us(timing.steps(1500.0)) - 1498.2).abs() < 0.1);
        assert_eq!(pulses(7, &[0x133]), [0x22, 0, 0, 0x33, 0x01]);
        assert_eq!(pulses(7, &[0]), [0x22, 0, 0, 0, 0x10]);
        let several = [0x1A, 0, 0, 0x33, 0x01, 0, 0, 0, 0x10];
        assert_eq!(pulses(5, &[0x133, 0]), several);
    }

    #[test]
    fn a_slow_oscillator_is_compensated() {
        let timing = Timing::new(23.5e6, 50.0);
        assert_eq!(timing.prescale(), 114);
        assert!((timing.us(timing.steps(1500.0)) - 1500.0).abs() < 2.5);
    }

    #[test]
    fn the_chip_is_set_up_as_the_data_sheet_says() {
        let writes = set_up(timing(50.0));
        assert_eq!(
            writes.concat(),
            [
                0x00, 0x10, 0xFE, 0x79, 0x01, 0x04, 0xFA, 0, 0, 0, 0x10, 0x00, 0x20
            ]
        );
    }
}
