//! Tests of the robot through the bytes of its devices, with a simulated time.

use amber_map::{Map, Point};

use super::*;
use crate::hokuyo::{self, Hokuyo};
use crate::ninedof::{self, Motion, NineDof};
use crate::roboclaw;
use crate::wheels::Wheel;
use crate::world::find_start;
use crate::{create2, diffdrive, feetech};

const MS: Duration = Duration::from_millis(1);
const NOTHING: [u8; 0] = [];

fn robot() -> RobotTwin {
    robot_with(1)
}

fn robot_with(seed: u64) -> RobotTwin {
    let map = Map::flat();
    let start = find_start(&map.walls, &map.robots).unwrap();
    let ceiling = Ceiling::over(&map);
    RobotTwin::new(Config {
        walls: map.walls,
        start,
        seed,
        speed: 1.0,
        ceiling,
        devices: Devices::default(),
    })
    .unwrap()
}

/// A robot with only these devices.
fn robot_of(devices: &[Device]) -> RobotTwin {
    let mut robot = robot();
    robot.twins.retain(|(device, _)| devices.contains(device));
    robot
}

fn scans(robot: &RobotTwin) -> u64 {
    let mut state = SimulationState::default();
    robot.show(&mut state);
    state.scans
}

fn exchange(robot: &mut RobotTwin, now: Duration, device: Device, bytes: &[u8]) -> Vec<u8> {
    robot.advance(now);
    robot.handle_bytes(now, device, bytes);
    sent(robot, now, device)
}

fn sent(robot: &mut RobotTwin, now: Duration, device: Device) -> Vec<u8> {
    std::iter::from_fn(|| robot.poll_output(now, device))
        .flatten()
        .collect()
}

fn drive(robot: &mut RobotTwin, now: Duration, qpps: i32) {
    for address in [0x81, 0x80] {
        let speed = qpps.to_be_bytes();
        let mut packet = [&[address, 37], speed.as_slice(), &speed].concat();
        packet.extend(roboclaw::crc16(&packet).to_be_bytes());
        assert_eq!(exchange(robot, now, roboclaw::DEVICE, &packet), [0xFF]);
    }
}

#[test]
fn an_arduino_drives_the_wheels_instead_of_the_roboclaws() {
    let map = Map::flat();
    let mut robot = RobotTwin::new(Config {
        start: find_start(&map.walls, &map.robots).unwrap(),
        walls: map.walls,
        seed: 1,
        speed: 1.0,
        ceiling: Ceiling::default(),
        devices: Devices {
            diffdrive: diffdrive::Options {
                firmware: Some(diffdrive::Firmware::Bridge),
            },
            ..Devices::default()
        },
    })
    .unwrap();
    assert!(!robot.has_device(roboclaw::DEVICE));
    let before = robot.world().pose();
    // 33 counts in 1/30 s are 200 mm/s.
    let answer = exchange(&mut robot, MS * 2000, diffdrive::DEVICE, b"m 33 33\r");
    assert_eq!(answer, b"OK\r\n");
    robot.advance(MS * 3000);
    let answer = exchange(&mut robot, MS * 3900, diffdrive::DEVICE, b"e\r");
    let answer = String::from_utf8(answer).unwrap();
    let (left, _) = answer.split_once(' ').unwrap();
    let moved_m = robot.world().pose().at.minus(before.at).length();
    let counted_m = crate::wheels::metres_per_second(left.parse().unwrap());
    assert!((moved_m - counted_m).abs() < 0.003, "{moved_m} {counted_m}");
    assert!((0.3..0.4).contains(&moved_m), "{moved_m}");
    // The firmware stops the motors two seconds after the command.
    robot.advance(MS * 8000);
    assert_eq!(robot.world().wheel_speeds(), [0.0; 4]);
}

#[test]
fn a_create_2_drives_into_a_wall_and_feels_it() {
    let map = Map::flat();
    let mut robot = RobotTwin::new(Config {
        start: find_start(&map.walls, &map.robots).unwrap(),
        walls: map.walls,
        seed: 1,
        speed: 1.0,
        ceiling: Ceiling::default(),
        devices: Devices {
            create2: create2::Options { is_fitted: true },
            ..Devices::default()
        },
    })
    .unwrap();
    assert!(!robot.has_device(roboclaw::DEVICE));
    let mut ask = |now, bytes: &[u8]| exchange(&mut robot, now, create2::DEVICE, bytes);
    assert_eq!(ask(MS * 1_000, &[128, 142, 7]), [0]);
    // Safe mode, and 300 mm/s ahead.
    assert_eq!(ask(MS * 1_000, &[131, 145, 1, 44, 1, 44]), NOTHING);
    let counts = ask(MS * 3_000, &[142, 43]);
    let counted_mm = f64::from(u16::from_be_bytes([counts[0], counts[1]])) * 0.444_565;
    assert!((540.0..600.0).contains(&counted_mm), "{counted_mm}");
    assert_eq!(ask(MS * 30_000, &[142, 7]), [3], "the bumper on both sides");
    assert_eq!(ask(MS * 30_000, &[145, 255, 156, 255, 156]), NOTHING);
    assert_eq!(ask(MS * 32_000, &[142, 7]), [0]);
    let now = MS * 32_000;
    robot.begin(now, Fault::Lift, None);
    robot.advance(now);
    assert_eq!(
        exchange(&mut robot, now, create2::DEVICE, &[149, 2, 7, 35]),
        [12, 1]
    );
    robot.advance(MS * 34_000);
    assert_eq!(robot.world().wheel_speeds(), [0.0; 4]);
    robot.clear();
    let answer = exchange(&mut robot, MS * 34_000, create2::DEVICE, &[142, 7]);
    assert_eq!(answer, [0]);
}

#[test]
fn three_seconds_at_300_mm_per_second_by_serial_bytes() {
    let mut robot = robot_of(&[roboclaw::DEVICE]);
    let before = robot.world().pose();
    drive(&mut robot, MS * 1000, 1484);
    robot.advance(MS * 3000);
    let reply = exchange(&mut robot, MS * 3000, roboclaw::DEVICE, &[0x81, 18]);
    let qpps = i32::from_be_bytes(reply[..4].try_into().unwrap());
    assert!((f64::from(qpps) / 1484.0 - 1.0).abs() < 0.03, "{qpps}");
    drive(&mut robot, MS * 4000, 0);
    robot.advance(MS * 6000);
    let way = robot.world().pose().at.minus(before.at);
    assert!((way.length() - 0.9).abs() < 0.027, "{way:?}");
    assert_eq!(robot.world().contacts(), 0);
    assert_eq!(robot.next_timeout(MS * 6000), None, "everything is at rest");
}

#[test]
fn a_scan_shows_the_walls() {
    let mut robot = robot();
    exchange(&mut robot, MS * 1500, hokuyo::DEVICE, b"BM\n");
    let before = scans(&robot);
    robot.advance(MS * 2000);
    assert_eq!(scans(&robot), before, "no scan was requested");
    // From the middle of the hall to its end; through the door of the bath on the left; to the wall
    // on the right.
    let wanted = [(384, 3_500), (640, 2_600), (128, 600)];
    for ((step, expected_mm), now_ms) in wanted.into_iter().zip([2000, 2100, 2200]) {
        let request = format!("GD{step:04}{step:04}01\n");
        let now = MS * now_ms;
        let reply = exchange(&mut robot, now, hokuyo::DEVICE, request.as_bytes());
        let lines: Vec<_> = reply.split(|byte| *byte == b'\n').collect();
        let value = lines[3][..3]
            .iter()
            .fold(0, |value, byte| value * 64 + u32::from(byte - 0x30));
        assert!(value.abs_diff(expected_mm) < 70, "step {step}: {value}");
    }
    assert_eq!(scans(&robot), before + 3, "each request gets its own turn");
}

#[test]
fn scans_have_gaps_and_codes_like_captures_of_a_real_scanner() {
    let mut robot = robot();
    exchange(&mut robot, MS * 1500, hokuyo::DEVICE, b"MD0044072501000\n");
    let mut scans = Vec::new();
    for turn in 16..116 {
        robot.advance(MS * 100 * turn);
        if let Some(scan) = robot.twin::<Hokuyo>().unwrap().latest() {
            scans.push(scan.clone());
        }
        sent(&mut robot, MS * 100 * turn, hokuyo::DEVICE);
    }
    let mean = |code: u32| {
        let measured = scans.iter().flat_map(|scan| &scan.distances[44..=725]);
        measured.filter(|value| **value == code).count() as f64 / scans.len() as f64
    };
    // 82, 2.1 and 1.7 in the captures.
    let (zeros, sevens, nines) = (mean(0), mean(7), mean(9));
    assert!((40.0..120.0).contains(&zeros), "{zeros}");
    assert!((1.0..4.0).contains(&sevens), "{sevens}");
    assert!((0.8..3.5).contains(&nines), "{nines}");
    // While the robot rests, the gaps stay in place: they are dark walls.
    let gaps = |scan: &hokuyo::Scan| -> Vec<bool> {
        let near = scan.distances[44..300].iter();
        near.map(|value| *value == 0).collect()
    };
    assert_eq!(gaps(&scans[0]), gaps(&scans[50]));
}

#[test]
fn the_same_seed_gives_the_same_robot() {
    let run = |seed| {
        let mut robot = robot_with(seed);
        drive(&mut robot, MS * 1000, 700);
        let scans = b"MD0044072501000\n";
        let mut all = exchange(&mut robot, MS * 1000, hokuyo::DEVICE, scans);
        for time in 10..40 {
            robot.advance(MS * 100 * time);
            all.extend(sent(&mut robot, MS * 100 * time, hokuyo::DEVICE));
            let speed = [0x80, 18];
            all.extend(exchange(
                &mut robot,
                MS * 100 * time,
                roboclaw::DEVICE,
                &speed,
            ));
        }
        all
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn an_unplugged_device_is_silent_and_a_scanner_loses_its_settings() {
    let mut robot = robot_of(&[roboclaw::DEVICE, hokuyo::DEVICE]);
    let bm = |robot: &mut RobotTwin, ms| exchange(robot, MS * ms, hokuyo::DEVICE, b"BM\n");
    assert_eq!(bm(&mut robot, 100), b"BM\n00P\n\n");
    assert_eq!(bm(&mut robot, 200), b"BM\n02R\n\n");
    let unplug = Fault::Unplug(hokuyo::DEVICE);
    robot.begin(MS * 300, unplug, Some(MS * 1000));
    assert!(!robot.is_plugged(hokuyo::DEVICE));
    assert_eq!(bm(&mut robot, 400), b"");
    assert_eq!(robot.next_timeout(MS * 400), Some(MS * 1300));
    assert_eq!(bm(&mut robot, 1300), b"BM\n00P\n\n");
    assert!(robot.is_plugged(hokuyo::DEVICE));

    robot.begin(MS * 1400, Fault::Unplug(roboclaw::DEVICE), None);
    assert_eq!(
        exchange(&mut robot, MS * 1500, roboclaw::DEVICE, &[0x80, 90]),
        NOTHING
    );
    robot.replug(roboclaw::DEVICE);
    assert!(!exchange(&mut robot, MS * 1600, roboclaw::DEVICE, &[0x80, 90]).is_empty());
}

#[test]
fn motors_keep_turning_when_unplugged() {
    let mut robot = robot();
    drive(&mut robot, MS * 1000, 500);
    robot.begin(MS * 1000, Fault::Unplug(roboclaw::DEVICE), None);
    robot.advance(MS * 3000);
    assert!(robot.world().travelled_m() > 0.15);
}

#[test]
fn faults_change_the_replies() {
    let mut robot = robot();
    let status =
        |robot: &mut RobotTwin, ms| exchange(robot, MS * ms, roboclaw::DEVICE, &[0x80, 90]);
    let fine = status(&mut robot, 100);
    robot.begin(MS * 200, Fault::LowBattery, None);
    assert_eq!(status(&mut robot, 200)[..4], [0, 8, 0, 0]);
    robot.clear();
    assert_eq!(status(&mut robot, 300), fine);
    robot.begin(MS * 400, Fault::Stall(roboclaw::DEVICE), None);
    assert_eq!(status(&mut robot, 400), NOTHING);
    robot.clear();
    robot.begin(MS * 500, Fault::Corrupt(roboclaw::DEVICE), None);
    let wrong = (0..100).any(|time| status(&mut robot, 500 + 20 * time) != fine);
    assert!(wrong);
    assert_eq!(robot.faults().count(), 1);
}

#[test]
fn a_stuck_wheel_draws_current() {
    let mut robot = robot();
    robot.begin(MS, Fault::StuckWheel(Wheel::RearLeft), None);
    drive(&mut robot, MS * 100, 500);
    let reply = exchange(&mut robot, MS * 1000, roboclaw::DEVICE, &[0x80, 90]);
    assert_eq!(reply[..4], [0x00, 0x02, 0x20, 0x00]);
    let reply = exchange(&mut robot, MS * 1100, roboclaw::DEVICE, &[0x80, 19]);
    assert_eq!(reply[..4], [0; 4]);
}

#[test]
fn faults_have_names() {
    for (name, about, fault) in [
        ("unplug", Some("hokuyo"), Fault::Unplug(hokuyo::DEVICE)),
        ("low-battery", None, Fault::LowBattery),
        ("sagging-battery", None, Fault::SaggingBattery),
        ("tunnel", None, Fault::Tunnel),
        ("lift", None, Fault::Lift),
        ("half-picture", None, Fault::Picture(PictureFault::Half)),
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
            "no such fault (unplug, stall, corrupt, low-battery, sagging-battery, stuck-wheel, \
             tunnel, lift, frozen-picture, dark-picture, half-picture, no-tables, slow-pictures): \
             \"melt\"",
        ),
        ("stall", None, "stall needs the name of a device"),
    ] {
        assert_eq!(Fault::parse(name, about).unwrap_err().to_string(), error);
    }
    let unknown = Fault::parse("stall", Some("sonar")).unwrap_err();
    assert!(matches!(unknown, UnknownFault::Device(_)), "{unknown}");
    for device in Device::all() {
        let name = device.name();
        assert_eq!(Fault::parse("stall", Some(name)), Ok(Fault::Stall(device)));
    }
}

/// Reads the three raw values of a chip on the board, from its first data register.
fn sensed(robot: &mut RobotTwin, now: Duration, address: u8, register: u8) -> Option<[f64; 3]> {
    robot.advance(now);
    let transfer = Transfer {
        address,
        written: vec![register],
        read: 6,
    };
    match robot.handle_transfer(now, ninedof::DEVICE, &transfer)? {
        Reply::Ack(bytes) => {
            let raw = |k: usize| f64::from(i16::from_le_bytes([bytes[k], bytes[k + 1]]));
            Some([raw(0), raw(2), raw(4)])
        }
        Reply::Nak => None,
    }
}

fn set_up_ninedof(robot: &mut RobotTwin, now: Duration) {
    robot.advance(now);
    for (address, written) in [
        (0x19, [0x20, 0x77]),
        (0x19, [0x23, 0x98]),
        (0x6B, [0x20, 0xEF]),
    ] {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: 0,
        };
        assert_eq!(
            robot.handle_transfer(now, ninedof::DEVICE, &transfer),
            Some(Reply::Ack(vec![]))
        );
    }
}

#[test]
fn the_board_measures_the_motion_of_the_robot() {
    let mut robot = robot();
    set_up_ninedof(&mut robot, MS * 500);
    let errors = robot.twin::<NineDof>().unwrap().errors().clone();
    // Turning on the spot to the left: the left wheels go backwards.
    for address in [0x81, 0x80] {
        let speeds = [1484_i32, -1484].map(i32::to_be_bytes).concat();
        let mut packet = [&[address, 37], speeds.as_slice()].concat();
        packet.extend(roboclaw::crc16(&packet).to_be_bytes());
        exchange(&mut robot, MS * 1000, roboclaw::DEVICE, &packet);
    }
    let mut turned = 0.0;
    let mut before = None;
    for time in 2000..3000 {
        let Some([_, _, rate]) = sensed(&mut robot, MS * time, 0x6B, 0xA8) else {
            panic!("no answer")
        };
        before.get_or_insert(robot.world().pose().heading);
        turned += (rate * 0.008_75 - errors.gyro_bias_deg_s[2]) * 0.001;
    }
    let truly = (robot.world().pose().heading - before.unwrap()).to_degrees();
    assert!(truly > 60.0, "{truly}");
    assert!((turned / truly - 1.0).abs() < 0.01, "{turned} of {truly}");
}

#[test]
fn an_unplugged_board_does_not_answer_and_loses_its_settings() {
    let mut robot = robot();
    set_up_ninedof(&mut robot, MS * 100);
    assert!(sensed(&mut robot, MS * 400, 0x19, 0xA8).unwrap()[2] > 7_000.0);
    robot.begin(MS * 500, Fault::Unplug(ninedof::DEVICE), Some(MS * 1000));
    assert_eq!(sensed(&mut robot, MS * 600, 0x19, 0xA8), None);
    assert_eq!(
        sensed(&mut robot, MS * 1600, 0x19, 0xA8),
        Some([0.0; 3]),
        "it does not measure before it is set up"
    );
    set_up_ninedof(&mut robot, MS * 1700);
    robot.begin(MS * 1800, Fault::Stall(ninedof::DEVICE), None);
    assert_eq!(sensed(&mut robot, MS * 1900, 0x19, 0xA8), None);
    robot.clear();
    assert!(sensed(&mut robot, MS * 2000, 0x19, 0xA8).unwrap()[2] > 7_000.0);
    robot.begin(MS * 2100, Fault::Corrupt(ninedof::DEVICE), None);
    let is_wild = |reading: [f64; 3]| !(7_000.0..9_000.0).contains(&reading[2]);
    assert!((2100..2300).any(|time| is_wild(sensed(&mut robot, MS * time, 0x19, 0xA8).unwrap())));
}

#[test]
fn acceleration_and_turns_are_measured_as_on_a_real_robot() {
    let mut robot = robot();
    let motion = |robot: &RobotTwin| Motion::of(robot.world(), robot.world().now());
    drive(&mut robot, MS * 1000, 1484);
    robot.advance(MS * 1080);
    let [right, ahead, up] = motion(&robot).specific_force_g;
    assert!((0.05..0.25).contains(&ahead), "{ahead} g");
    assert!(right.abs() < 1e-6 && up == 1.0);
    // At constant speed in a left curve: the acceleration points to its centre.
    for address in [0x81, 0x80] {
        let speeds = [1484_i32, 742].map(i32::to_be_bytes).concat();
        let mut packet = [&[address, 37], speeds.as_slice()].concat();
        packet.extend(roboclaw::crc16(&packet).to_be_bytes());
        exchange(&mut robot, MS * 1100, roboclaw::DEVICE, &packet);
    }
    robot.advance(MS * 2500);
    let felt = motion(&robot);
    let rate = 0.15 / 0.42;
    assert!((felt.turn_deg_s[2].to_radians() / rate - 1.0).abs() < 0.02);
    let expected = -0.225 * rate / 9.806_65;
    assert!((felt.specific_force_g[0] / expected - 1.0).abs() < 0.05);
    let heading = robot.world().pose().heading;
    let [x, y, _] = felt.field_gauss;
    let north = Point::new(y, -x).turned(heading);
    assert!(
        north.x.abs() < 1e-9 && (north.y - 0.2).abs() < 1e-9,
        "{north:?}"
    );
}

#[test]
fn servos_of_lekiwi_drive_the_robot_sideways() {
    let map = Map::flat();
    let mut robot = RobotTwin::new(Config {
        start: find_start(&map.walls, &map.robots).unwrap(),
        walls: map.walls,
        seed: 1,
        speed: 1.0,
        ceiling: Ceiling::default(),
        devices: Devices {
            feetech: feetech::Options {
                model: Some(feetech::Model::Lekiwi),
            },
            ..Devices::default()
        },
    })
    .unwrap();
    assert!(!robot.has_device(roboclaw::DEVICE));
    let before = robot.world().pose();
    let tell = |robot: &mut RobotTwin, now, at: u8, values: &[[u8; 2]; 3]| {
        let ids = [7, 8, 9].into_iter();
        let each = ids
            .zip(values)
            .flat_map(|(id, [low, high])| [id, *low, *high]);
        let parameters: Vec<_> = [at, 2].into_iter().chain(each).collect();
        let packet = feetech::packet(0xFE, 0x83, &parameters);
        assert_eq!(exchange(robot, now, feetech::DEVICE, &packet), NOTHING);
    };
    // Mode 1, which turns on and on: registers 33 and 34. Then torque and acceleration: 40 and 41.
    tell(&mut robot, MS * 1_000, 33, &[[1, 20]; 3]);
    tell(&mut robot, MS * 1_000, 40, &[[1, 0]; 3]);
    // 100 mm/s to the left: 652, -1304 and 652 steps per second.
    let left = [[0x8C, 0x02], [0x18, 0x85], [0x8C, 0x02]];
    tell(&mut robot, MS * 1_000, 46, &left);
    robot.advance(MS * 3_000);
    tell(&mut robot, MS * 3_000, 46, &[[0, 0]; 3]);
    robot.advance(MS * 4_000);
    let moved = before.local_pose(robot.world().pose());
    assert!((moved.at.y - 0.2).abs() < 0.002, "{moved:?}");
    assert!(
        moved.at.x.abs() < 0.001 && moved.heading.abs() < 0.001,
        "{moved:?}"
    );
    let pose = robot.world().pose();
    robot.advance(MS * 6_000);
    assert_eq!(robot.world().pose(), pose, "it stands");
}
