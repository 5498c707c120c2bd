//! Tests of the rules with a simulated clock and device.

use amber_driver::ClientId;
use amber_proto::maestro::DriverMsg;
use amber_sim::maestro as sim;
use prost::Message;

use super::*;
use crate::maestro::Options;
use crate::servos::{Note, Servos};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

const CLIENT: ClientId = ClientId(7);

/// The logic, a device and a clock.
struct Bench {
    logic: ServoLogic,
    servos: Servos,
    device: sim::Maestro,
    begin: Instant,
    now: Duration,
    is_plugged: bool,
    is_open: bool,
    is_silent: bool,
    garbles: bool,
    notes: Vec<Note>,
    ended: bool,
}

impl Bench {
    fn new(options: &str, config: sim::Config) -> Self {
        let options: Options = toml::from_str(options).unwrap();
        let (settings, servos, _) = options.settings().unwrap();
        let mut bench = Self {
            logic: ServoLogic::new(settings, servos.continuous().clone()),
            servos,
            device: sim::Maestro::new(config, Duration::ZERO),
            begin: Instant::now(),
            now: Duration::ZERO,
            is_plugged: true,
            is_open: false,
            is_silent: false,
            garbles: false,
            notes: Vec::new(),
            ended: false,
        };
        bench.advance(MS);
        bench
    }

    fn settle(&mut self) {
        let now = self.begin + self.now;
        loop {
            while let Some(mut bytes) = self.device.poll_output() {
                if self.garbles {
                    bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
                }
                if self.is_open && !self.is_silent {
                    self.logic.handle_bytes(now, &bytes);
                }
            }
            if self.is_open && !self.is_plugged {
                self.is_open = false;
                self.logic.failed(now, "unplugged");
            }
            let Some(output) = self.logic.poll_output() else {
                break;
            };
            match output {
                Output::Open if self.is_plugged => {
                    self.is_open = true;
                    self.logic.opened(now);
                }
                Output::Open => self.logic.failed(now, "unplugged"),
                Output::Close => self.is_open = false,
                Output::Write(bytes) => self.device.handle_bytes(&bytes),
                Output::End => self.ended = true,
            }
        }
        while let Some(note) = self.logic.service.poll_note() {
            self.notes.push(note);
        }
    }

    fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        while let Some(due) = self.logic.wake_at().filter(|due| *due <= self.begin + end) {
            self.now = self.now.max(due - self.begin);
            self.device.advance(self.now);
            self.logic.handle_timeout(self.begin + self.now);
            self.settle();
        }
        self.now = end;
        self.device.advance(end);
    }

    /// A message from a client.
    fn tell(&mut self, message: &[u8]) {
        match self.servos.read(&DriverMsg::decode(message).unwrap()) {
            Ok(orders) => {
                let is_connected = self.logic.is_connected();
                self.logic.service.take(&[CLIENT], &orders, is_connected);
                if is_connected {
                    self.logic.carry_out(self.begin + self.now, &orders);
                }
            }
            Err(refusal) => self.logic.service.refuse(refusal.to_string()),
        }
        self.settle();
    }

    #[track_caller]
    fn check_angles(&self, angles: &[(usize, f64)]) {
        for (servo, angle) in angles {
            let found = self.device.servos()[*servo].angle_deg();
            assert!((found - angle).abs() < 1.0, "servo {servo}: {found}");
        }
    }
}

/// Client messages, as in the hardware sheet.
const TWO_TO_90: &[u8] = b"\x10\x01\xb2\x04\x04\x08\x02\x10\x5a";
const BOTH_TO_45: &[u8] = b"\x10\x01\xba\x04\x06\x0a\x02\x00\x01\x10\x2d";
const TO_45_AND_135: &[u8] = b"\x10\x01\xc2\x04\x09\x0a\x02\x00\x01\x12\x03\x2d\x87\x01";
const TWO_AT_SPEED_20: &[u8] = b"\x10\x01\xca\x04\x04\x08\x02\x10\x14";
const TWO_TO_0: &[u8] = b"\x10\x01\xb2\x04\x04\x08\x02\x10\x00";

#[test]
fn all_four_requests_turn_servos_in_all_protocols() {
    for (options, crc) in [
        ("", false),
        ("device = 12", false),
        ("crc = true", true),
        ("device = 12\ncrc = true\ndetect_baud = false", true),
    ] {
        let config = sim::Config {
            crc,
            ..sim::Config::default()
        };
        let mut bench = Bench::new(options, config);
        assert_eq!(bench.notes, [Note::Ready("Maestro".into())], "{options}");
        bench.tell(TWO_TO_0);
        bench.tell(BOTH_TO_45);
        bench.advance(SECOND);
        bench.check_angles(&[(0, 45.0), (1, 45.0), (2, 0.0)]);
        bench.tell(TO_45_AND_135);
        bench.tell(TWO_AT_SPEED_20);
        bench.tell(TWO_TO_90);
        bench.advance(SECOND);
        // 50 degrees per second.
        bench.check_angles(&[(0, 45.0), (1, 135.0), (2, 50.0)]);
        bench.advance(SECOND);
        bench.check_angles(&[(2, 90.0)]);
        assert_eq!(bench.logic.service.trouble(), None);
        assert_eq!(bench.logic.service.counters.sent, 7);
    }
}

#[test]
fn every_angle_is_reached() {
    let mut bench = Bench::new("", sim::Config::default());
    for angle in 0..=180u8 {
        let mut message = b"\x10\x01\xb2\x04\x05\x08\x03\x10".to_vec();
        prost::encoding::encode_varint(angle.into(), &mut message);
        message[4] = message.len() as u8 - 5;
        bench.tell(&message);
        bench.advance(SECOND);
        bench.check_angles(&[(3, angle.into())]);
    }
}

#[test]
fn errors_of_the_device_are_reported_until_they_are_cleared() {
    let mut bench = Bench::new("", sim::Config::default());
    bench.device.handle_bytes(&[0x00]);
    bench.advance(1_100 * MS);
    let trouble = "the Maestro reports errors: serial protocol";
    assert_eq!(bench.logic.service.trouble(), Some(trouble));
    bench.advance(SECOND);
    assert_eq!(bench.logic.service.trouble(), None);
    assert!(matches!(
        &bench.notes[..],
        [Note::Ready(_), Note::Trouble(text), Note::Back(_)] if text == trouble
    ));
    assert_eq!(bench.logic.service.counters.errors, 1);
}

#[test]
fn the_device_reports_an_error_for_a_missing_servo() {
    let mut bench = Bench::new("", sim::Config::default());
    bench.tell(b"\x10\x01\xb2\x04\x04\x08\x17\x10\x5a");
    bench.advance(1_100 * MS);
    assert!(bench.logic.service.trouble().is_some());
}

#[test]
fn impossible_requests_are_logged_once_and_have_no_effect() {
    let mut bench = Bench::new("servos = 6", sim::Config::default());
    bench.tell(TWO_TO_90);
    for _ in 0..100 {
        bench.tell(b"\x10\x01");
        bench.tell(b"\x10\x01\xb2\x04\x04\x08\x06\x10\x5a");
    }
    bench.advance(SECOND);
    let refused: Vec<_> = bench.notes.iter().skip(1).map(Note::to_string).collect();
    assert_eq!(
        refused,
        [
            "rejected: not a request for servos (logged once)",
            "rejected: servo 6 does not exist, the last one is 5 (logged once)",
        ]
    );
    assert_eq!(bench.logic.service.counters.refused, 200);
    assert_eq!(bench.logic.service.trouble(), None);
    for angle in 0..100 {
        bench.logic.service.refuse(angle.to_string());
    }
    bench.settle();
    assert_eq!(bench.notes.len(), 1 + 32);
}

#[test]
fn an_outage_drops_commands_but_keeps_speeds() {
    let mut bench = Bench::new("", sim::Config::default());
    bench.tell(TWO_TO_0);
    bench.advance(SECOND);
    bench.is_plugged = false;
    bench.device.restart(bench.now);
    bench.advance(SECOND);
    assert_eq!(bench.logic.service.trouble(), Some("unplugged"));
    bench.tell(TWO_AT_SPEED_20);
    bench.tell(TWO_TO_90);
    bench.advance(10 * SECOND);
    bench.is_plugged = true;
    bench.advance(5 * SECOND);
    assert_eq!(bench.logic.service.trouble(), None);
    assert_eq!(bench.device.servos()[2].target_us(), 0.0);
    // It gets pulses again and turns slowly from there.
    bench.tell(TWO_TO_0);
    bench.tell(TWO_TO_90);
    bench.advance(SECOND);
    bench.check_angles(&[(2, 50.0)]);
    assert_eq!(bench.logic.service.counters.dropped, 2);
    let notes = &bench.notes[..];
    assert!(
        matches!(notes, [Note::Ready(_), Note::Trouble(_), Note::Back(_)]),
        "{notes:?}"
    );
}

#[test]
fn silence_and_invalid_replies_are_reported() {
    let mut bench = Bench::new("", sim::Config::default());
    bench.is_silent = true;
    bench.advance(3 * SECOND);
    assert_eq!(
        bench.logic.service.trouble(),
        Some("the Maestro does not answer")
    );
    bench.is_silent = false;
    bench.garbles = true;
    bench.advance(10 * SECOND);
    assert_eq!(
        bench.logic.service.trouble(),
        Some("the Maestro sends invalid replies")
    );
    bench.garbles = false;
    bench.advance(5 * SECOND);
    assert_eq!(bench.logic.service.trouble(), None);
    bench.tell(TWO_TO_0);
    bench.advance(SECOND);
    bench.check_angles(&[(2, 0.0)]);
}

#[test]
fn servos_hold_after_shutdown() {
    let mut bench = Bench::new("", sim::Config::default());
    bench.tell(TWO_TO_0);
    bench.logic.shut_down(bench.begin + bench.now);
    bench.advance(SECOND);
    bench.check_angles(&[(2, 0.0)]);
    assert!(bench.ended && bench.device.servos()[2].pulse_us() == 2400.0);
}

#[test]
fn what_turns_like_a_motor_stops_with_the_driver_and_after_an_outage() {
    let mut bench = Bench::new(
        "[[servo]]\nid = 2\ncontinuous = true",
        sim::Config::default(),
    );
    bench.tell(TWO_TO_0);
    bench.tell(BOTH_TO_45);
    bench.advance(SECOND);
    // The cable is unplugged, and the device keeps its power.
    bench.is_plugged = false;
    bench.advance(SECOND);
    assert_eq!(bench.device.servos()[2].pulse_us(), 2400.0);
    bench.is_plugged = true;
    bench.advance(5 * SECOND);
    assert_eq!(bench.device.servos()[2].pulse_us(), 0.0);
    bench.tell(TWO_TO_0);
    assert_eq!(bench.device.servos()[2].pulse_us(), 2400.0);
    bench.logic.shut_down(bench.begin + bench.now);
    bench.advance(SECOND);
    assert_eq!(bench.device.servos()[2].pulse_us(), 0.0);
    assert_eq!(bench.device.servos()[0].pulse_us(), 1950.0);
}
