//! The robot as a vehicle: telemetry, commands, the lock, and how motion ends.

use super::*;
use crate::rflysim::shown::{DISARMED, LOCKED, NO_ARMING};

fn shown_with(change: impl FnOnce(&mut ShownSettings)) -> Bench<RflySim> {
    let mut shown = ShownSettings {
        vehicle: Vehicle::new(1).unwrap(),
        peer: "127.0.0.1".parse().unwrap(),
        period: Duration::from_millis(100),
        mode: Mode::Full,
        truth: TruthPorts {
            of_200_bytes: Some(30_101),
            of_168_bytes: None,
        },
        origin: GpsOrigin {
            latitude_deg: 50.0,
            longitude_deg: 20.0,
            altitude_m: 200.0,
        },
        unlock: Unlock::Arm,
        messages: false,
    };
    change(&mut shown);
    let settings = Settings {
        bind: "127.0.0.1".parse().unwrap(),
        robot: robot(),
        seat: Seat::Exclusive,
        shown: Some(shown),
        foreign: Vec::new(),
    };
    Bench::new(RflySim::new(settings))
}

fn shown() -> Bench<RflySim> {
    shown_with(|_| {})
}

/// Unlocked, at the origin with the heading east.
pub(super) fn armed() -> Bench<RflySim> {
    let mut bench = shown();
    bench.event(measured(Measurement::Pose(MapPose::new(0.0, 0.0, 0.0))));
    bench.short(9, [1.0, 0.0, 0.0, 0.0]);
    bench.take();
    bench
}

fn measured(measurement: Measurement) -> Event {
    Event::Measured(robot().location, measurement)
}

#[test]
fn it_listens_on_the_control_port_and_watches_the_robot() {
    let mut bench = shown();
    let outputs: Vec<_> = bench.take().into_iter().map(|(_, output)| output).collect();
    let address = "127.0.0.1:20100".parse().unwrap();
    assert_eq!(outputs[0], Output::Bind(Socket(0), address, Cast::Unicast));
    assert_eq!(
        outputs
            .iter()
            .filter(|it| matches!(it, Output::Watch(_)))
            .count(),
        3
    );
}

#[test]
fn the_state_of_the_robot_is_sent_while_its_pose_is_known() {
    let mut bench = shown();
    bench.take();
    bench.advance_ms(500);
    assert!(bench.packets().is_empty());
    // At x 2, 3 m up; heading east.
    bench.event(measured(Measurement::Pose(MapPose::new(2.0, -3.0, 0.0))));
    bench.event(measured(Measurement::Wheels(WheelSpeeds::all(200))));
    let reading = ImuReading {
        acceleration_mg: Some(Vector {
            x: 0.0,
            y: 100.0,
            z: 1000.0,
        }),
        rate_deg_s: Some(Vector {
            x: 0.0,
            y: 0.0,
            z: 0.0,
        }),
        ..ImuReading::default()
    };
    bench.event(measured(Measurement::Imu(reading)));
    bench.advance_ms(100);
    let packets = bench.packets();
    let [
        (20_101, Packet::FullEstimate(NO_COLLISION, estimate)),
        (30_101, Packet::Truth200(NO_COLLISION, truth)),
    ] = packets[..]
    else {
        panic!("{packets:?}");
    };
    assert_eq!((estimate.copter_id, truth.copter_id), (1, 1));
    assert_eq!(truth.position_m, [3.0, 2.0, 0.0]);
    assert!((truth.angles_rad[2] - FRAC_PI_2).abs() < 1e-6);
    assert!(truth.velocity_m_s[0].abs() < 1e-6 && (truth.velocity_m_s[1] - 0.2).abs() < 1e-6);
    assert!((truth.acceleration_m_s2[0] - 0.980_665).abs() < 1e-6);
    assert!((truth.acceleration_m_s2[2] + 9.806_65).abs() < 1e-5);
    assert!((truth.motors_rpm[0] - 31.83).abs() < 0.01);
    assert!((truth.gps_position[0] - 50.000_027).abs() < 1e-6);
    assert_eq!(estimate.position_m, truth.position_m);
    assert_eq!(estimate.heading_mdeg, 90_000);
    assert_eq!(estimate.gps_velocity_cm_s, [0, 20, 0]);
    bench.advance_ms(900);
    assert_eq!(bench.packets().len(), 18);
    // A pose that is older than a second is not sent.
    bench.advance_ms(1000);
    assert!(bench.packets().is_empty());
}

#[test]
fn other_forms_of_the_state() {
    let mut bench = shown_with(|shown| {
        shown.mode = Mode::Simple;
        shown.vehicle = Vehicle::new(3).unwrap();
        shown.truth = TruthPorts {
            of_200_bytes: Some(30_107),
            of_168_bytes: Some(30_105),
        };
    });
    bench.event(measured(Measurement::Pose(MapPose::new(2.0, -3.0, 0.0))));
    bench.take();
    bench.advance_ms(100);
    let packets = bench.packets();
    let [
        (20_105, Packet::SimpleEstimate(SimpleKind::State, estimate)),
        (30_107, Packet::Truth200(NO_COLLISION, long)),
        (30_105, Packet::Truth168(truth)),
    ] = packets[..]
    else {
        panic!("{packets:?}");
    };
    assert_eq!(estimate.position_m, [3.0, 2.0, 0.0]);
    assert_eq!(truth.position_m, [3.0, 2.0, 0.0]);
    assert_eq!((truth.copter_id, long.copter_id), (3, 3));
    assert_eq!(long.gps_position, truth.gps_position);
}

#[test]
fn velocity_commands_hold_for_half_a_second() {
    let mut bench = armed();
    // Forward, and a clockwise turn.
    bench.short(1, [0.2, 1.0, 5.0, 0.5]);
    bench.advance_ms(300);
    bench.short(1, [0.2, 0.0, 0.0, 0.5]);
    bench.advance_ms(1000);
    let (curve, stop) = (WheelSpeeds::sides(300, 100), WheelSpeeds::STOP);
    assert_eq!(bench.take_drives(), [(0, curve), (300, curve), (800, stop)]);
}

#[test]
fn velocity_to_the_north_depends_on_the_pose() {
    let mut bench = armed();
    // The robot looks to the east.
    bench.short(0, [0.0, 0.3, 0.0, 0.0]);
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::all(300))]);
    bench.advance_ms(100);
    bench.short(0, [0.3, 0.0, 0.0, 0.0]);
    assert_eq!(bench.take_drives(), [(100, WheelSpeeds::STOP)]);
    bench.advance_ms(2000);
    bench.short(0, [0.0, 0.3, 0.0, 0.0]);
    assert_eq!(bench.count("velocity to the north without a pose"), 1);
}

#[test]
fn positions_become_targets_that_end_with_the_commands() {
    let mut bench = armed();
    // N 1, E 2: x 2, y up 1.
    let target = |x_m, y_m| Target {
        x_m,
        y_m,
        radius_m: 0.3,
    };
    for _ in 0..50 {
        bench.event(measured(Measurement::Pose(MapPose::new(0.0, 0.0, 0.0))));
        bench.short(2, [1.0, 2.0, -10.0, 0.0]);
        bench.advance_ms(20);
    }
    let targets = bench.take_targets();
    assert_eq!(targets.len(), 1, "repeated positions are the same target");
    assert!((targets[0].1[0].x_m - 2.0).abs() < 1e-9 && (targets[0].1[0].y_m + 1.0).abs() < 1e-9);
    assert!((targets[0].1[0].radius_m - target(0.0, 0.0).radius_m).abs() < 1e-9);
    bench.advance_ms(1000);
    assert_eq!(bench.take_targets(), [(1480, vec![])]);
    bench.short(2, [f32::from(u16::MAX), 0.0, 0.0, 0.0]);
    assert_eq!(bench.count("target too far away"), 1);
}

#[test]
fn targets_are_limited_to_fifty_per_second() {
    let mut bench = armed();
    for number in 0..60_u8 {
        bench.short(2, [f32::from(number), 0.0, -10.0, 0.0]);
    }
    let targets = bench.take_targets();
    assert_eq!(targets.iter().filter(|(_, it)| !it.is_empty()).count(), 50);
    assert_eq!(bench.count("too many targets"), 10);
}

#[test]
fn a_velocity_ends_a_target_and_the_reverse() {
    let mut bench = armed();
    bench.short(2, [1.0, 2.0, 0.0, 0.0]);
    bench.take();
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    let outputs = bench.take();
    let texts: Vec<_> = outputs
        .iter()
        .map(|(_, output)| format!("{output:?}"))
        .collect();
    assert!(
        texts[0].contains("Targets") && texts[1].contains("Drive"),
        "{texts:?}"
    );
    bench.short(2, [1.0, 2.0, 0.0, 0.0]);
    let outputs = bench.take();
    let texts: Vec<_> = outputs
        .iter()
        .map(|(_, output)| format!("{output:?}"))
        .collect();
    assert!(
        texts[0].contains("Drive") && texts[1].contains("Targets"),
        "{texts:?}"
    );
}

#[test]
fn full_commands_of_the_python_program() {
    let mut bench = armed();
    let mut command = FullCommand {
        time_boot_ms: 0,
        copter_id: 1,
        modes: 0x7c7,
        flags: codec::FRAME_BODY,
        position_m: [0.0; 3],
        velocity_m_s: [0.2, 0.0, 0.0],
        acceleration_m_s2: [0.0; 3],
        yaw_rad: 0.0,
        yaw_rate_rad_s: 0.5,
        unused: [0.0; 5],
    };
    bench.packet(&Packet::FullCommand(command));
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::sides(300, 100))]);
    command.modes = !ignored::POSITION;
    command.flags = FRAME_LOCAL_NED;
    command.position_m = [1.0, 2.0, 0.0];
    bench.packet(&Packet::FullCommand(command));
    assert_eq!(bench.take_targets().len(), 1);
    command.modes = u32::MAX;
    bench.packet(&Packet::FullCommand(command));
    assert_eq!(bench.count("unsupported control mode"), 1);
    command.copter_id = 2;
    bench.packet(&Packet::FullCommand(command));
    assert_eq!(bench.count("command for another vehicle"), 1);
}

#[test]
fn the_vehicle_is_locked_until_it_is_armed() {
    let mut bench = shown();
    bench.take();
    // The program of RflySim disarms at its start.
    bench.short(9, [0.0; 4]);
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    bench.short(2, [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(bench.count(LOCKED), 2);
    bench.short(9, [1.0, 0.0, 0.0, 0.0]);
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::all(200))]);
    bench.short(9, [0.0; 4]);
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::STOP)]);
    bench.advance_ms(2000);
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    assert_eq!(bench.count(LOCKED), 3);
    // The refusal names the option.
    assert!(LOCKED.contains("unlock_by_command"));
}

#[test]
fn the_first_command_may_unlock_it() {
    let mut bench = shown_with(|shown| shown.unlock = Unlock::FirstCommand);
    // Programs disarm at their start, and arm over MAVLink.
    bench.short(9, [0.0; 4]);
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::all(200))]);
    // A person disarms while the program goes on.
    bench.short(9, [0.0; 4]);
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::STOP)]);
    for _ in 0..100 {
        bench.advance_ms(33);
        bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    }
    assert!(bench.take_drives().is_empty());
    assert_eq!(bench.count(DISARMED), 100);
    // The next run of the program begins after a pause.
    bench.advance_ms(1000);
    bench.short(9, [0.0; 4]);
    bench.short(2, [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(bench.take_targets().len(), 1);
}

#[test]
fn arming_must_be_allowed() {
    let mut bench = shown_with(|shown| shown.unlock = Unlock::Never);
    bench.short(9, [1.0, 0.0, 0.0, 0.0]);
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    assert_eq!(bench.count(NO_ARMING), 2);
    assert!(bench.take_drives().is_empty());
}

#[test]
fn bad_commands_do_not_move_the_robot() {
    let mut bench = armed();
    bench.short(1, [f32::NAN, 0.0, 0.0, 0.0]);
    bench.short(1, [0.0, 0.0, 0.0, f32::INFINITY]);
    assert_eq!(bench.count("number is not finite"), 2);
    bench.short(1, [5.1, 0.0, 0.0, 0.0]);
    bench.short(1, [4.0, 4.0, 0.0, 0.0]);
    bench.short(1, [0.1, 0.0, 0.0, -10.1]);
    assert_eq!(bench.count("speed above the limit"), 3);
    for mode in [4, 5, 6, 7, 8, 10, 11, 12, 13, 14] {
        bench.short(mode, [0.1; 4]);
    }
    assert_eq!(bench.count("unsupported control mode"), 10);
    bench.short(-1, [0.1; 4]);
    bench.packet(&Packet::Restart(Restart { delay: 0 }));
    assert_eq!(bench.count("restart command"), 1);
    bench.datagram(CONTROL, PEER, &[0xfd, 9, 0, 0, 0]);
    bench.datagram(CONTROL, PEER, &[0; 24]);
    bench.datagram(CONTROL, PEER, &[0; 25]);
    for reason in ["wrong magic number", "unknown packet length"] {
        assert_eq!(bench.count(reason), 1, "{reason}");
    }
    let packet = Packet::ShortCommand(ShortCommand {
        mode: 1,
        controls: [0.2; 4],
    })
    .encode();
    bench.datagram(CONTROL, "10.0.0.5:5000", &packet);
    assert_eq!(bench.count("not from the configured host"), 1);
    assert!(bench.take_drives().is_empty());
}

#[test]
fn the_robot_stops_when_the_gateway_stops() {
    let mut bench = armed();
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    bench.take();
    bench.stop();
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::STOP)]);
    let mut bench = armed();
    bench.short(2, [1.0, 0.0, 0.0, 0.0]);
    bench.take();
    bench.stop();
    assert_eq!(bench.take_targets(), [(0, vec![])]);
}

#[test]
fn the_robot_sends_messages_of_an_autopilot_if_that_is_wanted() {
    let mut bench = shown_with(|shown| shown.messages = true);
    bench.event(measured(Measurement::Pose(MapPose::new(0.0, 0.0, 0.0))));
    bench.event(measured(Measurement::Wheels(WheelSpeeds::sides(100, 300))));
    bench.take();
    bench.advance_ms(100);
    let packets = bench.packets();
    let Some((40_101, Packet::External(message))) = packets.last() else {
        panic!("{packets:?}");
    };
    let expected = [0.1, 0.3, 0.1, 0.3, 0.2, -0.5, 0.0, 0.0];
    let near = (message.controls.iter().zip(expected)).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near, "{message:?}");
    assert_eq!((packets.len(), message.copter_id), (3, 1));
}
