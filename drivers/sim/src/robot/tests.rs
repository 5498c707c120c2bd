//! The robot by the bytes of its devices, without a clock.

use super::*;
use crate::map::Map;
use crate::world::find_start;

const MS: Duration = Duration::from_millis(1);
const NOTHING: [u8; 0] = [];

fn robot() -> Robot {
    robot_with(1)
}

fn robot_with(seed: u64) -> Robot {
    let map = Map::flat();
    let start = find_start(&map.walls, &map.robots).unwrap();
    Robot::new(Config {
        walls: map.walls,
        start,
        seed,
        roboclaw: roboclaw::Config::default(),
        model: Model::Urg04Lx,
    })
    .unwrap()
}

fn exchange(robot: &mut Robot, now: Duration, device: Device, bytes: &[u8]) -> Vec<u8> {
    robot.advance(now);
    robot.handle_bytes(now, device, bytes);
    sent(robot, now, device)
}

fn sent(robot: &mut Robot, now: Duration, device: Device) -> Vec<u8> {
    std::iter::from_fn(|| robot.poll_output(now, device))
        .flatten()
        .collect()
}

fn drive(robot: &mut Robot, now: Duration, qpps: i32) {
    for address in [0x81, 0x80] {
        let speed = qpps.to_be_bytes();
        let mut packet = [&[address, 37], speed.as_slice(), &speed].concat();
        packet.extend(roboclaw::crc16(&packet).to_be_bytes());
        assert_eq!(exchange(robot, now, Device::Roboclaw, &packet), [0xFF]);
    }
}

#[test]
fn three_seconds_at_300_mm_per_second_by_serial_bytes() {
    let mut robot = robot();
    let before = robot.world().pose();
    drive(&mut robot, MS * 1000, 1484);
    robot.advance(MS * 3000);
    let reply = exchange(&mut robot, MS * 3000, Device::Roboclaw, &[0x81, 18]);
    let qpps = i32::from_be_bytes(reply[..4].try_into().unwrap());
    assert!((f64::from(qpps) / 1484.0 - 1.0).abs() < 0.03, "{qpps}");
    drive(&mut robot, MS * 4000, 0);
    robot.advance(MS * 6000);
    let way = robot.world().pose().at.minus(before.at);
    assert!((way.length() - 0.9).abs() < 0.027, "{way:?}");
    assert_eq!(robot.world().contacts(), 0);
    assert_eq!(robot.next_timeout(MS * 6000), None, "all is at rest");
}

#[test]
fn a_scan_shows_the_walls() {
    let mut robot = robot();
    exchange(&mut robot, MS * 1500, Device::Hokuyo, b"BM\n");
    let before = robot.scans();
    robot.advance(MS * 2000);
    assert_eq!(robot.scans(), before, "nobody asked");
    // From the middle of the hall to its end; through the door of the bath
    // on the left; to the wall on the right.
    for (step, expected_mm) in [(384, 3_500), (640, 2_600), (128, 600)] {
        let request = format!("GD{step:04}{step:04}01\n");
        let reply = exchange(&mut robot, MS * 2000, Device::Hokuyo, request.as_bytes());
        let lines: Vec<_> = reply.split(|byte| *byte == b'\n').collect();
        let value = lines[3][..3]
            .iter()
            .fold(0, |value, byte| value * 64 + u32::from(byte - 0x30));
        assert!(value.abs_diff(expected_mm) < 70, "step {step}: {value}");
    }
    assert_eq!(robot.scans(), before + 1, "one turn is measured once");
}

#[test]
fn the_same_seed_is_the_same_robot() {
    let run = |seed| {
        let mut robot = robot_with(seed);
        drive(&mut robot, MS * 1000, 700);
        let scans = b"MD0044072501000\n";
        let mut all = exchange(&mut robot, MS * 1000, Device::Hokuyo, scans);
        for time in 10..40 {
            robot.advance(MS * 100 * time);
            all.extend(sent(&mut robot, MS * 100 * time, Device::Hokuyo));
            let speed = [0x80, 18];
            all.extend(exchange(
                &mut robot,
                MS * 100 * time,
                Device::Roboclaw,
                &speed,
            ));
        }
        all
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn an_unplugged_device_is_silent_and_a_scanner_forgets() {
    let mut robot = robot();
    let bm = |robot: &mut Robot, ms| exchange(robot, MS * ms, Device::Hokuyo, b"BM\n");
    assert_eq!(bm(&mut robot, 100), b"BM\n00P\n\n");
    assert_eq!(bm(&mut robot, 200), b"BM\n02R\n\n");
    let unplug = Fault::Unplug(Device::Hokuyo);
    robot.begin(MS * 300, unplug, Some(MS * 1000));
    assert!(!robot.is_plugged(Device::Hokuyo));
    assert_eq!(bm(&mut robot, 400), b"");
    assert_eq!(robot.next_timeout(MS * 400), Some(MS * 1300));
    assert_eq!(bm(&mut robot, 1300), b"BM\n00P\n\n");
    assert!(robot.is_plugged(Device::Hokuyo));

    robot.begin(MS * 1400, Fault::Unplug(Device::Roboclaw), None);
    assert_eq!(
        exchange(&mut robot, MS * 1500, Device::Roboclaw, &[0x80, 90]),
        NOTHING
    );
    robot.replug(Device::Roboclaw);
    assert!(!exchange(&mut robot, MS * 1600, Device::Roboclaw, &[0x80, 90]).is_empty());
}

#[test]
fn motors_go_on_without_their_plug() {
    let mut robot = robot();
    drive(&mut robot, MS * 1000, 500);
    robot.begin(MS * 1000, Fault::Unplug(Device::Roboclaw), None);
    robot.advance(MS * 3000);
    assert!(robot.world().travelled_m() > 0.15);
}

#[test]
fn faults_change_what_is_said() {
    let mut robot = robot();
    let status = |robot: &mut Robot, ms| exchange(robot, MS * ms, Device::Roboclaw, &[0x80, 90]);
    let fine = status(&mut robot, 100);
    robot.begin(MS * 200, Fault::LowBattery, None);
    assert_eq!(status(&mut robot, 200)[..4], [0, 8, 0, 0]);
    robot.clear();
    assert_eq!(status(&mut robot, 300), fine);
    robot.begin(MS * 400, Fault::Stall(Device::Roboclaw), None);
    assert_eq!(status(&mut robot, 400), NOTHING);
    robot.clear();
    robot.begin(MS * 500, Fault::Corrupt(Device::Roboclaw), None);
    let wrong = (0..100).any(|time| status(&mut robot, 500 + 20 * time) != fine);
    assert!(wrong);
    assert_eq!(robot.faults().count(), 1);
}

#[test]
fn a_stuck_wheel_is_seen_by_its_current() {
    let mut robot = robot();
    robot.begin(MS, Fault::StuckWheel(Wheel::RearLeft), None);
    drive(&mut robot, MS * 100, 500);
    let reply = exchange(&mut robot, MS * 1000, Device::Roboclaw, &[0x80, 90]);
    assert_eq!(reply[..4], [0x00, 0x02, 0x20, 0x00]);
    let reply = exchange(&mut robot, MS * 1100, Device::Roboclaw, &[0x80, 19]);
    assert_eq!(reply[..4], [0; 4]);
}

#[test]
fn faults_have_names() {
    for (name, about, fault) in [
        ("unplug", Some("hokuyo"), Fault::Unplug(Device::Hokuyo)),
        ("low-battery", None, Fault::LowBattery),
        (
            "stuck-wheel",
            Some("front-left"),
            Fault::StuckWheel(Wheel::FrontLeft),
        ),
    ] {
        assert_eq!(Fault::parse(name, about), Ok(fault));
    }
    for (name, about, error) in [
        (
            "melt",
            None,
            "no such fault (unplug, stall, corrupt, low-battery, stuck-wheel): \"melt\"",
        ),
        ("stall", None, "stall needs to know what: name a device"),
        (
            "stall",
            Some("gps"),
            "no such device (roboclaw, hokuyo, hokuyo-tcp): \"gps\"",
        ),
    ] {
        assert_eq!(Fault::parse(name, about).unwrap_err().to_string(), error);
    }
}
