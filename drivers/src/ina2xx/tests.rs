//! Tests of the driver without its process, with simulated sensors and a simulated time.

use std::io;
use std::time::Instant;

use amber_proto::battery_state::battery_state::Health;
use amber_sim::i2c::{Reply, Transfer};
use amber_sim::ina2xx::{Ina, Model};
use amber_sim::ninedof::Truth;

use super::*;
use crate::gauge::logic::BatteryLogic;
use crate::i2c::BusError;
use crate::i2c::fake::{Chips, Fake};
use crate::probe::NoAnswer;

const MS: Duration = Duration::from_millis(1);
const SETTINGS: Settings = Settings {
    address: None,
    part: None,
    shunt_mohm: 100.0,
    inverts_current: false,
};

/// With the shunt of the simulated sensor.
fn settings_of(model: Model) -> Settings {
    let shunt_mohm = if model == Model::Ina226 { 2.0 } else { 100.0 };
    Settings {
        shunt_mohm,
        ..SETTINGS
    }
}

impl Chips for Ina {
    fn transfer(&mut self, now: Duration, transfer: &Transfer, _: Truth) -> Reply {
        Ina::transfer(self, now, transfer)
    }
}

/// A sensor, and what the driver makes of it.
struct Bench {
    bus: Fake<Ina>,
    monitor: Monitor,
    logic: BatteryLogic,
    now: Instant,
}

impl Bench {
    fn of(model: Model, settings: Settings) -> Self {
        let now = Instant::now();
        let pack = Pack {
            low_mv: Some(10_500),
            ..Pack::default()
        };
        let bench = Self {
            bus: Fake::of(Ina::new(model)),
            monitor: Monitor::new(settings),
            logic: BatteryLogic::new(pack, PACE, now),
            now,
        };
        bench.set(12.0, 1.0);
        bench
    }

    /// Volts, and amperes from IN+ to IN-.
    fn set(&self, volts: f64, amperes: f64) {
        self.bus.state().chips.set_fixed(volts, amperes);
    }

    /// Waits a period, and measures.
    fn step(&mut self) -> Result<Measured, Problem> {
        self.now += PACE.period;
        self.bus.pass(PACE.period);
        let measured = self.monitor.measure(self.now, &mut self.bus);
        let state = measured.clone().map(Measured::state);
        let state = state.map_err(|(Problem::Chip(why) | Problem::Bus(why))| why);
        self.logic.handle(self.now, state);
        measured
    }

    /// Measures for a time; the last measurement.
    fn run(&mut self, time: Duration) -> Result<Measured, Problem> {
        let mut last = self.step();
        let end = self.now + time - PACE.period;
        while self.now < end {
            last = self.step();
        }
        last
    }

    fn notes(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.monitor.poll_note().map(|note| note.to_string())).collect()
    }

    fn trouble(&self) -> Option<String> {
        self.logic.trouble(self.now)
    }

    fn write(&mut self, register: u8, value: u16) {
        let [high, low] = value.to_be_bytes();
        let written = self.bus.transfer(0x40, &[register, high, low], &mut []);
        written.unwrap();
    }
}

fn measured(mv: u32, current_ma: i32) -> Measured {
    let current_ma = Some(current_ma);
    Measured { mv, current_ma }
}

#[test]
fn values_are_those_of_the_hardware_sheet() {
    for (model, volts, amperes, expected) in [
        // The current flows into the battery.
        (Model::Ina219, 12.104, -0.32, measured(12_104, 320)),
        (Model::Ina226, 14.8, -5.0, measured(14_800, 5_000)),
        (Model::Ina260, 10.0, 12.5, measured(10_000, -12_500)),
    ] {
        for inverts_current in [false, true] {
            let settings = Settings {
                inverts_current,
                ..settings_of(model)
            };
            let mut bench = Bench::of(model, settings);
            bench.set(volts, amperes);
            let found = bench.run(1_000 * MS).unwrap();
            let sign = if inverts_current { -1 } else { 1 };
            let current_ma = expected.current_ma.map(|ma| sign * ma);
            assert_eq!(found.mv, expected.mv, "{model:?}");
            assert_eq!(found.current_ma, current_ma, "{model:?}");
        }
    }
}

#[test]
fn registers_are_converted_up_to_the_ends_of_their_ranges() {
    use Part::{Ina219, Ina226, Ina260};
    for (part, shunt, mohm, expected) in [
        (Ina219, -3_200, 100.0, Some(-320.0)),
        (Ina219, 31_999, 100.0, Some(3_199.9)),
        (Ina219, 32_000, 100.0, None),
        (Ina219, -32_000, 100.0, None),
        (Ina219, i16::MIN, 100.0, None),
        (Ina219, 1, 10.0, Some(1.0)),
        (Ina226, -4_000, 2.0, Some(-5_000.0)),
        (Ina226, 32_766, 0.01, Some(8_191_500.0)),
        (Ina226, i16::MAX, 2.0, None),
        (Ina226, i16::MIN, 2.0, None),
        (Ina260, -8_000, 55.0, Some(-10_000.0)),
        (Ina260, i16::MIN, 2.0, None),
    ] {
        let found = part.current_ma(shunt, mohm);
        let is_right = match (found, expected) {
            (Some(found), Some(expected)) => {
                (found - expected).abs() < 1e-6_f64.max(expected.abs() * 1e-12)
            }
            (found, expected) => found == expected,
        };
        assert!(is_right, "{part} {shunt}: {found:?}, not {expected:?}");
    }
    for (part, bus, expected) in [
        (Ina219, 0x5E92, Some(12_104)),
        (Ina219, 0x0000, Some(0)),
        // Ready and overflow.
        (Ina219, 0x0003, Some(0)),
        (Ina219, 8_000 << 3, Some(32_000)),
        (Ina219, 8_001 << 3, None),
        (Ina219, 0x5E96, None),
        (Ina219, 0xFFFF, None),
        (Ina226, 0x2E40, Some(14_800)),
        (Ina226, 0x7FFF, Some(40_959)),
        (Ina226, 0x8000, None),
        (Ina260, 0x2E40, Some(14_800)),
    ] {
        assert_eq!(part.battery_mv(bus), expected, "{part} {bus:#x}");
    }
}

#[test]
fn the_settings_are_written_once() {
    for (model, config) in [
        (Model::Ina219, 0x3FFF_u16),
        (Model::Ina226, 0x4727),
        (Model::Ina260, 0x6727),
    ] {
        let mut bench = Bench::of(model, SETTINGS);
        let written = |bench: &Bench| -> Vec<Vec<u8>> {
            let written = bench.bus.state().written.clone().into_iter();
            let long = written.filter(|(_, bytes)| bytes.len() > 1);
            long.map(|(_, bytes)| bytes).collect()
        };
        bench.run(5_000 * MS).unwrap();
        let [high, low] = config.to_be_bytes();
        assert_eq!(written(&bench), [vec![0x00, high, low]]);
        // A driver that starts again changes nothing.
        bench.monitor = Monitor::new(SETTINGS);
        bench.run(5_000 * MS).unwrap();
        assert_eq!(written(&bench).len(), 1);
    }
    let mut bench = Bench::of(Model::Ina219, SETTINGS);
    bench.run(1_000 * MS).unwrap();
    let ready = "ready: INA219 at 0x40, up to 3.2 A with a shunt of 100 mohm";
    assert_eq!(bench.notes(), [ready]);
}

#[test]
fn lost_settings_are_restored_and_no_value_is_wrong() {
    type Fault<'a> = &'a dyn Fn(&mut Bench);
    let restart = |bench: &mut Bench| {
        let mut state = bench.bus.state();
        let now = state.now;
        state.chips.restart(now);
    };
    let write = |value| move |bench: &mut Bench| bench.write(0x00, value);
    // A power cycle, a reset, sleep, one conversion only, a small range.
    let faults: [Fault<'_>; 5] = [
        &restart,
        &write(0x8000),
        &write(0x3FF8),
        &write(0x3FFB),
        &write(0x019F),
    ];
    for model in [Model::Ina219, Model::Ina226] {
        for fault in faults {
            let mut bench = Bench::of(model, settings_of(model));
            bench.set(20.0, 0.7);
            bench.run(2_000 * MS).unwrap();
            bench.notes();
            fault(&mut bench);
            let mut last = None;
            for _ in 0..8 {
                last = bench.step().ok();
                assert!(
                    last.is_none_or(|it| it == measured(20_000, -700)),
                    "{last:?}"
                );
            }
            assert!(last.is_some());
            let notes = bench.notes();
            assert_eq!(notes.len(), 1, "{notes:?}");
            assert!(notes[0].starts_with("the settings of the sensor were 0x"));
            assert_eq!(bench.trouble(), None);
        }
    }
}

#[test]
fn two_programs_can_use_the_sensor() {
    let mut bench = Bench::of(Model::Ina219, SETTINGS);
    bench.run(1_000 * MS).unwrap();
    bench.notes();
    for _ in 0..60 {
        // The other one wants 12 bits and a calibration, each second.
        bench.write(0x00, 0x399F);
        bench.write(0x05, 0x1000);
        bench.run(1_000 * MS).unwrap();
        assert_eq!(bench.trouble(), None);
    }
    assert_eq!(bench.notes().len(), 1, "it is logged once a minute");
}

#[test]
fn a_missing_sensor_is_one_problem_that_says_what_to_check() {
    let mut bench = Bench::of(Model::Ina226, SETTINGS);
    bench.run(1_000 * MS).unwrap();
    bench.bus.state().missing = vec![0x40];
    assert!(bench.run(2_000 * MS).is_err());
    assert_eq!(bench.trouble(), None, "one lost answer is no trouble");
    bench.run(1_000 * MS).unwrap_err();
    let trouble = "no answer at 0x40 to 0x4f: check its power, the wires SDA and SCL, and --bus";
    assert_eq!(bench.trouble().as_deref(), Some(trouble));
    assert_eq!(
        bench.logic.state(bench.now),
        Err(trouble),
        "never old values"
    );
    let now = bench.bus.state().now;
    bench.bus.state().chips.restart(now);
    bench.bus.state().missing.clear();
    bench.run(1_000 * MS).unwrap();
    assert_eq!(bench.trouble(), None);
    // Single transfers that fail are repeated.
    bench.bus.state().naks = 1;
    bench.step().unwrap();
    bench.bus.state().broken = Some("the bus is stuck".into());
    let stuck = Err(Problem::Bus("the bus is stuck".into()));
    assert_eq!(bench.run(3_000 * MS), stuck);
    assert_eq!(bench.trouble().as_deref(), Some("the bus is stuck"));
}

#[test]
fn a_dip_is_not_a_low_battery_and_a_low_one_is_told_once_and_soon() {
    for model in [Model::Ina219, Model::Ina226] {
        let mut bench = Bench::of(model, settings_of(model));
        bench.set(11.0, 0.5);
        bench.run(2_000 * MS).unwrap();
        for _ in 0..5 {
            // 0.8 V and 10 A for a second.
            bench.set(10.2, 10.0);
            bench.run(1_000 * MS).unwrap();
            assert_eq!(bench.logic.state(bench.now).unwrap().health(), Health::Good);
            bench.set(11.0, 0.5);
            bench.run(1_000 * MS).unwrap();
            assert_eq!(bench.trouble(), None);
        }
        bench.set(10.2, 0.5);
        let (begin, mut told) = (bench.now, Vec::new());
        while bench.now < begin + Duration::from_secs(60) {
            bench.step().unwrap();
            if told.last().map(|(_, trouble)| trouble) != Some(&bench.trouble()) {
                told.push((bench.now - begin, bench.trouble()));
            }
        }
        let low = "the battery is low (below 10.5 V): charge it".to_owned();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!((&told[0].1, &told[1].1), (&None, &Some(low)));
        assert!(told[1].0 <= Duration::from_secs(6), "{told:?}");
    }
}

#[test]
fn a_current_beyond_the_range_is_unknown_and_the_voltage_is_not() {
    let mut bench = Bench::of(Model::Ina219, SETTINGS);
    bench.set(12.0, 4.0);
    let found = bench.run(3_000 * MS).unwrap();
    assert_eq!((found.mv, found.current_ma), (12_000, None));
    assert_eq!(bench.trouble(), None);
    let beyond = "the current is beyond the range of the sensor, so it is not reported: up to 3.2 A \
                  with a shunt of 100 mohm";
    assert_eq!(bench.notes()[1..], [beyond]);
    bench.set(12.0, 3.0);
    assert_eq!(bench.run(1_000 * MS).unwrap(), measured(12_000, -3_000));
}

#[test]
fn a_battery_that_is_switched_off_is_not_low() {
    let mut bench = Bench::of(Model::Ina219, SETTINGS);
    bench.set(0.02, 0.0);
    bench.run(20_000 * MS).unwrap();
    let state = bench.logic.state(bench.now).unwrap();
    assert_eq!((state.present, state.health), (Some(false), None));
    let trouble = bench.trouble();
    assert_eq!(
        trouble.as_deref(),
        Some("there is no battery, or it is switched off")
    );
}

#[test]
fn another_sensor_at_the_same_address_is_set_up_as_what_it_is() {
    use Model::{Ina219, Ina226, Ina260};
    let mut bench = Bench::of(Ina219, SETTINGS);
    for model in [Ina226, Ina219, Ina260, Ina226, Ina260, Ina219] {
        bench.bus.state().chips = Ina::new(model);
        bench.set(11.7, 0.1);
        for _ in 0..8 {
            // At no time is there another value.
            let mv = bench.step().map(|it| it.mv);
            assert!(
                mv.as_ref().is_err() || mv == Ok(11_700),
                "{model:?}: {mv:?}"
            );
        }
        assert!(
            bench.step().is_ok() && bench.trouble().is_none(),
            "{model:?}"
        );
    }
}

/// Wires that change a bit in some replies, or nothing answers.
struct Noisy<'a> {
    bus: &'a mut Fake<Ina>,
    random: &'a mut fastrand::Rng,
    one_in: usize,
}

impl Bus for Noisy<'_> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        if self.random.usize(..self.one_in) == 0 {
            return Err(BusError::Nak);
        }
        self.bus.transfer(address, written, read)?;
        if !read.is_empty() && self.random.usize(..self.one_in) == 0 {
            let place = self.random.usize(..read.len());
            read[place] ^= 1 << self.random.u32(..8);
        }
        Ok(())
    }
}

#[test]
fn noise_on_the_wires_changes_hardly_a_value_and_makes_no_battery_low() {
    for model in [Model::Ina219, Model::Ina226, Model::Ina260] {
        let mut bench = Bench::of(model, SETTINGS);
        bench.run(1_000 * MS).unwrap();
        let mut random = fastrand::Rng::with_seed(7);
        let (mut right, mut wrong) = (0, 0);
        for _ in 0..4_000 {
            bench.now += PACE.period;
            bench.bus.pass(PACE.period);
            let mut bus = Noisy {
                bus: &mut bench.bus,
                random: &mut random,
                one_in: 20,
            };
            let measured = bench.monitor.measure(bench.now, &mut bus);
            match measured.as_ref().map(|it| it.mv.abs_diff(12_000) < 50) {
                Ok(true) => right += 1,
                Ok(false) => wrong += 1,
                Err(_) => {}
            }
            let state = measured.map(Measured::state);
            (bench.logic).handle(bench.now, state.map_err(|_| "noise".to_owned()));
            assert_eq!(bench.trouble(), None, "{model:?}");
        }
        assert!(right > 3_000 && wrong < 40, "{right} and {wrong}");
    }
}

/// A chip whose registers are these words, at one address.
struct Stranger {
    at: u8,
    word: fn(u8) -> u16,
    writes: usize,
}

impl Bus for Stranger {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        if address != self.at {
            return Err(BusError::Nak);
        }
        self.writes += usize::from(written.len() > 1);
        let word = (self.word)(written[0]).to_be_bytes();
        read.iter_mut().zip(word).for_each(|(to, byte)| *to = byte);
        Ok(())
    }
}

/// What a chip answers when a register is read.
type Registers = fn(u8) -> u16;

/// Chips that have the same addresses.
const STRANGERS: [(&str, u8, Registers); 8] = [
    ("PCA9685", 0x40, |register| {
        let bytes = |register: u8| match register {
            0x00 => 0x11,
            0x01 => 0x04,
            0x02 => 0xE2,
            0x03 => 0xE4,
            0x04 => 0xE8,
            0x05 => 0xE0,
            _ => 0x00,
        };
        // It reads the same register again.
        u16::from_be_bytes([bytes(register), bytes(register)])
    }),
    ("PCA9685 with auto-increment", 0x40, |register| {
        let bytes = [0xA1_u8, 0x04, 0xE2, 0xE4, 0xE8, 0xE0, 0x00];
        let byte = |at: u8| bytes.get(usize::from(at)).copied().unwrap_or_default();
        u16::from_be_bytes([byte(register), byte(register.saturating_add(1))])
    }),
    ("TMP102", 0x48, |register| {
        [0x1900, 0x60A0, 0x4B00, 0x5000][usize::from(register & 3)]
    }),
    ("LM75", 0x48, |register| {
        [0x1900, 0x0000, 0x4B00, 0x5000][usize::from(register & 3)]
    }),
    ("ADS1115", 0x48, |register| {
        [0x0000, 0x8583, 0x8000, 0x7FFF][usize::from(register & 3)]
    }),
    ("TMP117", 0x48, |register| match register {
        0x00 => 0x0C80,
        0x01 => 0x0220,
        0x02 => 0x6000,
        0x03 => 0x8000,
        0x0F => 0x0117,
        _ => 0x0000,
    }),
    ("INA3221", 0x40, |register| match register {
        0x00 => 0x7127,
        0xFE => 0x5449,
        0xFF => 0x3220,
        _ => 0x0000,
    }),
    ("HDC1080", 0x40, |register| match register {
        0x00 => 0x6400,
        0x01 => 0x8000,
        0x02 => 0x1000,
        0xFE => 0x5449,
        0xFF => 0x1050,
        _ => 0x0000,
    }),
];

#[test]
fn other_chips_are_no_sensors_and_nothing_is_written_to_them() {
    for (name, at, word) in STRANGERS {
        let mut bus = Stranger {
            at,
            word,
            writes: 0,
        };
        let mut monitor = Monitor::new(SETTINGS);
        for _ in 0..10 {
            match monitor.measure(Instant::now(), &mut bus) {
                Err(Problem::Chip(text)) => {
                    assert!(
                        text.starts_with(&format!("the chip at {at:#04x} is ")),
                        "{text}"
                    );
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(probe::ask(&mut bus), Err(NoAnswer::Silent), "{name}");
        assert_eq!(bus.writes, 0, "{name}");
    }
}

/// Answers everything with the same byte, at all addresses.
struct Constant(u8, usize);

impl Bus for Constant {
    fn transfer(&mut self, _: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        self.1 += usize::from(written.len() > 1);
        read.fill(self.0);
        Ok(())
    }
}

#[test]
fn a_bus_that_always_says_the_same_has_no_sensors() {
    for byte in 0..=255 {
        let mut bus = Constant(byte, 0);
        let mut monitor = Monitor::new(SETTINGS);
        for _ in 0..10 {
            monitor.measure(Instant::now(), &mut bus).unwrap_err();
        }
        assert_eq!(bus.1, 0, "{byte:#x}: nothing is written");
    }
}

#[test]
fn a_sensor_that_other_programs_have_calibrated_is_recognized() {
    for (config, calibration) in [(0x399F, 0x1000), (0x019F, 0x2000), (0x3998, 0)] {
        for amperes in [-0.3, 0.0, 0.05, 3.0] {
            let mut bench = Bench::of(Model::Ina219, SETTINGS);
            bench.set(12.0, amperes);
            bench.write(0x00, config);
            bench.write(0x05, calibration);
            bench.bus.pass(100 * MS);
            let found = probe::ask(&mut bench.bus).unwrap();
            assert_eq!(
                found.text, "probably INA219 at 0x40",
                "{config:#x} {amperes}"
            );
            assert_eq!(found.options, ["--address=0x40", "--chip=ina219"]);
        }
    }
    let mut bench = Bench::of(Model::Ina260, SETTINGS);
    let found = probe::ask(&mut bench.bus).unwrap();
    assert_eq!(
        (found.text.as_str(), found.unusable),
        ("INA260 at 0x40", None)
    );
    assert_eq!(found.options, ["--address=0x40"]);
    bench.bus.state().broken = Some("the bus is stuck".into());
    let error = NoAnswer::Failed("the bus is stuck".into());
    assert_eq!(probe::ask(&mut bench.bus), Err(error));
}

#[test]
fn what_the_user_says_need_not_be_recognized_but_must_not_be_wrong() {
    // A copy without an identity.
    let mut bus = Stranger {
        at: 0x41,
        word: |register| match register {
            0x00 => 0x4727,
            0x02 => 0x2E40,
            0x06 => 0x0008,
            _ => 0x0007,
        },
        writes: 0,
    };
    let said = Settings {
        address: Some(0x41),
        part: Some(Part::Ina226),
        ..SETTINGS
    };
    let mut monitor = Monitor::new(said);
    monitor.measure(Instant::now(), &mut bus).unwrap_err();
    let found = monitor.measure(Instant::now(), &mut bus).unwrap();
    assert_eq!(found.mv, 14_800);

    let mut bench = Bench::of(
        Model::Ina226,
        Settings {
            part: Some(Part::Ina219),
            ..SETTINGS
        },
    );
    let wrong = Problem::Chip("the sensor at 0x40 is an INA226: check --chip".into());
    assert_eq!(bench.step(), Err(wrong));
}

#[test]
fn the_defaults_are_those_of_common_boards() {
    let (settings, pack, location) = Options::default().settings().unwrap();
    assert_eq!(location.to_string(), "/dev/i2c-1");
    assert_eq!((settings, pack), (SETTINGS, Pack::default()));
}

#[test]
fn the_command_line_wins_over_the_file_and_wrong_values_are_refused() {
    let text = "bus = 'sim:/tmp/x'\naddress = '0x41'\nchip = 'ina226'\nshunt_mohm = 2\n\
                invert_current = true\ncells = 3\nchemistry = 'li-po'\nresistance_mohm = 80\n";
    let file: Options = toml::from_str(text).unwrap();
    let flags = Options {
        address: Some("45".into()),
        ..Options::default()
    };
    let (settings, pack, location) = flags.or(file).settings().unwrap();
    assert_eq!(location, BusLocation::Simulated("/tmp/x".into()));
    let expected = Settings {
        address: Some(0x45),
        part: Some(Part::Ina226),
        shunt_mohm: 2.0,
        inverts_current: true,
    };
    assert_eq!(settings, expected);
    assert_eq!((pack.low_mv, pack.resistance_mohm), (Some(10_500), 80));
    for (text, error) in [
        ("bus = ''", "bus: the path is missing"),
        (
            "address = '0x50'",
            "address: \"0x50\" is not from 0x40 to 0x4f",
        ),
        ("shunt_mohm = 0", "shunt_mohm: 0 is not from 0.01 to 10000"),
        ("shunt_mohm = nan", "shunt_mohm: NaN is not from 0.01"),
        (
            "chip = 'ina260'\nshunt_mohm = 2",
            "shunt_mohm: an INA260 has its own shunt",
        ),
        (
            "resistance_mohm = 9999",
            "resistance_mohm: 9999 is not from 0",
        ),
        ("cells = 3", "chemistry: must be given with cells"),
        ("low_mv = 1", "low_mv"),
    ] {
        let options: Options = toml::from_str(text).unwrap();
        let said = options.settings().unwrap_err().to_string();
        assert!(said.starts_with(error), "{said}");
    }
}

#[test]
fn a_bus_that_cannot_be_opened_is_opened_again() {
    let mut tries = 0;
    let sensor = Fake::of(Ina::new(Model::Ina226));
    let bus = sensor.clone();
    let place = move || -> Result<Box<dyn Bus>, String> {
        tries += 1;
        match tries {
            1 => Err(io::Error::from(io::ErrorKind::NotFound).to_string()),
            _ => Ok(Box::new(bus.clone())),
        }
    };
    let mut hardware = Hardware::new(SETTINGS, place);
    assert!(hardware.measure().is_err() && hardware.bus.is_none());
    assert!(hardware.measure().is_err() && hardware.bus.is_some());
    sensor.pass(PACE.period);
    assert_eq!(hardware.measure().unwrap().present, Some(true));
    sensor.state().broken = Some("the bus is stuck".into());
    assert_eq!(hardware.measure(), Err("the bus is stuck".to_owned()));
    assert!(hardware.bus.is_none());
    sensor.state().broken = None;
    hardware.measure().unwrap_err();
    sensor.pass(PACE.period);
    assert!(hardware.measure().unwrap().time.is_some());
}
