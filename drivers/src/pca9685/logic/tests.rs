//! Tests of the rules with a simulated clock and chip.

use amber_driver::ClientId;
use amber_proto::maestro::{DriverMsg, SetAngleCommand, SetSpeedCommand};
use amber_sim::pca9685::Pca9685;

use super::super::chip;
use super::*;
use crate::i2c::Bus;
use crate::i2c::fake::Fake;
use crate::pca9685::Options;
use crate::servos::Servos;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const CLIENT: ClientId = ClientId(7);
const ADDRESS: u8 = 0x40;

/// The logic, a chip and a clock.
struct Bench {
    logic: ServoLogic,
    servos: Servos,
    bus: Fake<Pca9685>,
    begin: Instant,
    now: Duration,
    notes: Vec<Note>,
    is_at_end: bool,
}

impl Bench {
    fn new(options: &str) -> Self {
        let options: Options = toml::from_str(options).unwrap();
        let (settings, servos, _) = options.settings().unwrap();
        let begin = Instant::now();
        let mut bench = Self {
            logic: ServoLogic::new(settings.timing, servos.continuous().clone(), begin),
            servos,
            bus: Fake::of(Pca9685::new(ADDRESS, Duration::ZERO)),
            begin,
            now: Duration::ZERO,
            notes: Vec::new(),
            is_at_end: false,
        };
        bench.settle();
        bench
    }

    fn settle(&mut self) {
        let now = self.begin + self.now;
        while let Some(action) = self.logic.poll_action(now).filter(|_| !self.is_at_end) {
            let timing = self.logic.timing;
            let bus: &mut dyn Bus = &mut self.bus;
            match action {
                Action::Open => {
                    let broken = self.bus.state().broken.clone();
                    self.logic.opened(now, broken.map_or(Ok(()), Err));
                }
                Action::SetUp => {
                    let done = chip::make_ready(bus, ADDRESS, timing);
                    self.logic.handle_set_up(now, done);
                }
                Action::Check => {
                    let kept = chip::has_kept(bus, ADDRESS, timing);
                    self.logic.handle_check(now, kept);
                }
                Action::Write(writes) => {
                    let written = chip::write(bus, ADDRESS, &writes);
                    self.logic.handle_written(now, written);
                }
                Action::End => self.is_at_end = true,
            }
        }
        while let Some(note) = self.logic.service.poll_note() {
            self.notes.push(note);
        }
    }

    fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            let due = self.logic.wake_at().saturating_duration_since(self.begin);
            if due > end || self.is_at_end {
                break;
            }
            self.pass(due.max(self.now));
            self.settle();
        }
        self.pass(end);
    }

    fn pass(&mut self, to: Duration) {
        self.now = to;
        self.bus.state().now = to;
    }

    fn tell(&mut self, message: &DriverMsg) {
        let orders = self.servos.read(message).unwrap();
        let is_connected = self.logic.is_connected();
        self.logic.service.take(&[CLIENT], &orders, is_connected);
        if is_connected {
            self.logic.carry_out(self.begin + self.now, &orders);
        }
        self.settle();
    }

    fn turn(&mut self, servo: u32, angle: i32) {
        self.tell(&DriverMsg {
            set_angle_command: Some(SetAngleCommand {
                servo_address: servo,
                angle,
            }),
            ..DriverMsg::default()
        });
    }

    fn set_speed(&mut self, servo: u32, speed: i32) {
        self.tell(&DriverMsg {
            set_speed_command: Some(SetSpeedCommand {
                servo_address: servo,
                speed,
            }),
            ..DriverMsg::default()
        });
    }

    fn pulse_us(&self, channel: usize) -> f64 {
        self.bus.state().chips.pulse_us(channel)
    }

    #[track_caller]
    fn check_pulse(&self, channel: usize, us: f64) {
        let found = self.pulse_us(channel);
        // Half a step.
        assert!((found - us).abs() <= 2.5, "{channel}: {found} us, not {us}");
    }
}

#[test]
fn every_angle_is_reached_within_a_quarter_of_a_degree() {
    let mut bench = Bench::new("");
    assert!((0..16).all(|channel| bench.pulse_us(channel) == 0.0));
    for angle in 0..=180 {
        bench.turn(3, angle);
        bench.advance(SECOND);
        let servo = bench.bus.state().chips.servos().nth(3).unwrap();
        let error = (servo.angle_deg - f64::from(angle)).abs();
        assert!(error <= 0.25, "{angle}: {servo:?}");
    }
    assert_eq!(bench.notes, [Note::Ready("PCA9685, 50.0 Hz".into())]);
    assert_eq!(bench.logic.service.trouble(), None);
}

#[test]
fn servos_turn_with_their_speed_in_steps_of_20_ms() {
    let mut bench = Bench::new("");
    bench.set_speed(2, 20);
    // The position is unknown at first.
    bench.turn(2, 0);
    bench.check_pulse(2, 2400.0);
    bench.turn(2, 90);
    bench.advance(20 * MS);
    bench.check_pulse(2, 2390.0);
    bench.advance(980 * MS);
    // 50 degrees per second, as on a Maestro.
    bench.check_pulse(2, 1900.0);
    bench.advance(SECOND);
    bench.check_pulse(2, 1500.0);
    // The way back, and a new target on the way.
    bench.turn(2, 0);
    bench.advance(100 * MS);
    bench.check_pulse(2, 1550.0);
    bench.turn(2, 180);
    bench.advance(100 * MS);
    bench.check_pulse(2, 1500.0);
    bench.set_speed(2, 0);
    bench.advance(20 * MS);
    bench.check_pulse(2, 600.0);
}

#[test]
fn a_command_for_several_servos_is_one_write_for_neighbours() {
    let mut bench = Bench::new("");
    bench.bus.state().written.clear();
    let orders: Vec<_> = [4, 5, 9]
        .map(|servo| Order::Turn {
            servo,
            angle: 90,
            us: 1500.0,
        })
        .into();
    bench.logic.carry_out(bench.begin, &orders);
    bench.settle();
    let written: Vec<_> = bench.bus.state().written.drain(..).collect();
    let expected = [
        (ADDRESS, vec![0x16, 0, 0, 0x33, 1, 0, 0, 0x33, 1]),
        (ADDRESS, vec![0x2A, 0, 0, 0x33, 1]),
    ];
    assert_eq!(written, expected);
}

#[test]
fn after_a_reset_of_the_chip_pulses_are_restored() {
    let mut bench = Bench::new("");
    bench.turn(2, 90);
    bench.turn(7, 45);
    let now = bench.now;
    bench.bus.state().chips.restart(now);
    assert_eq!(bench.pulse_us(2), 0.0);
    bench.advance(1_100 * MS);
    bench.check_pulse(2, 1500.0);
    bench.check_pulse(7, 1950.0);
    assert!(matches!(bench.notes[..], [Note::Ready(_), Note::Event(_)]));
    assert_eq!(bench.logic.service.counters.errors, 1);
}

#[test]
fn after_an_outage_without_power_servos_wait_for_a_command() {
    for is_broken in [false, true] {
        let mut bench = Bench::new("");
        bench.turn(2, 90);
        match is_broken {
            true => bench.bus.state().broken = Some("the bus is gone".into()),
            false => bench.bus.state().missing = vec![ADDRESS],
        }
        bench.advance(2 * SECOND);
        let trouble = bench.logic.service.trouble().unwrap();
        assert_eq!(
            trouble,
            if is_broken {
                "the bus is gone"
            } else {
                "no chip answers at address 0x40"
            }
        );
        // The command is dropped, the speed is kept.
        bench.turn(2, 0);
        bench.set_speed(2, 20);
        let now = bench.now;
        bench.bus.state().chips.restart(now);
        bench.bus.state().missing.clear();
        bench.bus.state().broken = None;
        bench.advance(10 * SECOND);
        assert_eq!(bench.logic.service.trouble(), None);
        assert_eq!(bench.pulse_us(2), 0.0);
        bench.turn(2, 0);
        bench.check_pulse(2, 2400.0);
        bench.turn(2, 90);
        bench.advance(100 * MS);
        bench.check_pulse(2, 2350.0);
        let notes = &bench.notes[..];
        assert!(
            matches!(notes, [Note::Ready(_), Note::Trouble(_), Note::Back(_)]),
            "{notes:?}"
        );
    }
}

#[test]
fn an_outage_of_the_wires_holds_positions_and_stops_what_turns() {
    let mut bench = Bench::new("[[servo]]\nid = 5\ncontinuous = true");
    bench.set_speed(2, 20);
    bench.turn(2, 0);
    bench.turn(2, 180);
    bench.turn(5, 45);
    bench.advance(500 * MS);
    let held = bench.pulse_us(2);
    bench.bus.state().missing = vec![ADDRESS];
    bench.advance(2 * SECOND);
    assert_eq!((bench.pulse_us(2), bench.pulse_us(5) > 0.0), (held, true));
    bench.bus.state().missing.clear();
    bench.advance(10 * SECOND);
    assert_eq!((bench.pulse_us(2), bench.pulse_us(5)), (held, 0.0));
}

#[test]
fn another_chip_is_left_alone() {
    let mut bench = Bench::new("");
    bench.bus.state().missing = vec![ADDRESS];
    bench.advance(2 * SECOND);
    let now = bench.now;
    bench.bus.state().chips.restart(now);
    bench.bus.state().missing.clear();
    let change = amber_sim::i2c::Transfer {
        address: ADDRESS,
        written: vec![0x03, 0x00],
        read: 0,
    };
    bench.bus.state().chips.transfer(now, &change);
    bench.bus.state().written.clear();
    bench.advance(10 * SECOND);
    let trouble = bench.logic.service.trouble();
    assert_eq!(
        trouble,
        Some("another chip than a PCA9685 is at address 0x40")
    );
    let written = bench.bus.state().written.clone();
    assert!(written.iter().all(|(_, bytes)| bytes.len() == 1));
}

#[test]
fn positions_are_held_at_the_end_and_what_turns_stops() {
    let mut bench = Bench::new("[[servo]]\nid = 5\ncontinuous = true");
    bench.turn(2, 90);
    bench.turn(5, 45);
    bench.logic.shut_down(bench.begin + bench.now);
    bench.settle();
    assert!(bench.is_at_end);
    bench.check_pulse(2, 1500.0);
    assert_eq!(bench.pulse_us(5), 0.0);
    // Without the chip there is nothing to wait for.
    let mut bench = Bench::new("");
    bench.bus.state().missing = vec![ADDRESS];
    bench.advance(2 * SECOND);
    bench.logic.shut_down(bench.begin + bench.now);
    bench.settle();
    assert!(bench.is_at_end);
}

#[test]
fn a_servo_on_its_way_is_held_where_it_is() {
    let mut bench = Bench::new("");
    bench.turn(2, 90);
    bench.set_speed(2, 20);
    bench.turn(2, 0);
    bench.advance(100 * MS);
    bench.check_pulse(2, 1550.0);
    bench.logic.hold();
    bench.advance(SECOND);
    bench.check_pulse(2, 1550.0);
    bench.turn(2, 0);
    bench.advance(100 * MS);
    bench.check_pulse(2, 1600.0);
}

#[test]
fn what_the_guard_has_stopped_stays_so() {
    let mut bench = Bench::new("[[servo]]\nid = 5\ncontinuous = true");
    bench.turn(2, 90);
    bench.turn(5, 45);
    let now = bench.now;
    let stop = amber_sim::i2c::Transfer {
        address: ADDRESS,
        written: pulses(5, &[0]),
        read: 0,
    };
    bench.bus.state().chips.transfer(now, &stop);
    bench.logic.handle_guard_acted(bench.begin + now);
    bench.advance(3 * SECOND);
    bench.check_pulse(2, 1500.0);
    assert_eq!(bench.pulse_us(5), 0.0);
    bench.turn(5, 45);
    bench.check_pulse(5, 1950.0);
}
