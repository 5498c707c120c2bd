//! Both directions on a virtual clock: telemetry, commands, the lock, and how motion ends.

use std::f32::consts::FRAC_PI_2;

use amber_proto::{ClientId, DeviceType};
use amber_values::{ImuReading, MapPose, Target, Vector, WheelSpeeds};

use super::*;
use crate::rflysim::codec::{
    FRAME_LOCAL_NED, FullCommand, NO_COLLISION, Packet, Restart, ShortCommand, SimpleKind, ignored,
};
use crate::rflysim::mapping::{GpsOrigin, MapFrame};
use crate::rflysim::shown::{Mode, TruthForm};
use crate::shared::robot::{Asked, Measurement, tests::robot};
use crate::testing::Bench;

const PEER: &str = "127.0.0.1:5000";
const CONTROL: u32 = 0;

fn shown_with(change: impl FnOnce(&mut ShownSettings)) -> Bench<RflySim> {
    let mut shown = ShownSettings {
        vehicle: Vehicle::new(1).unwrap(),
        peer: "127.0.0.1".parse().unwrap(),
        period: Duration::from_millis(100),
        mode: Mode::Full,
        truth: TruthForm::Old,
        origin: GpsOrigin {
            latitude_deg: 50.0,
            longitude_deg: 20.0,
            altitude_m: 200.0,
        },
        allow_arm: true,
        messages: false,
    };
    change(&mut shown);
    let settings = Settings {
        bind: "127.0.0.1".parse().unwrap(),
        robot: robot(),
        shown: Some(shown),
        foreign: Vec::new(),
    };
    Bench::new(RflySim::new(settings))
}

fn shown() -> Bench<RflySim> {
    shown_with(|_| {})
}

/// Unlocked, at the origin with the heading east.
fn armed() -> Bench<RflySim> {
    let mut bench = shown();
    bench.event(measured(Measurement::Pose(MapPose::new(0.0, 0.0, 0.0))));
    bench.short(9, [1.0, 0.0, 0.0, 0.0]);
    bench.take();
    bench
}

fn measured(measurement: Measurement) -> Event {
    Event::Measured(robot().location, measurement)
}

trait Pilot {
    fn packet(&mut self, packet: &Packet);
    fn short(&mut self, mode: i32, controls: [f32; 4]);
    fn packets(&mut self) -> Vec<(u16, Packet)>;
}

impl Pilot for Bench<RflySim> {
    fn packet(&mut self, packet: &Packet) {
        let port = Port::ALL
            .iter()
            .position(|port| *port == packet.port())
            .unwrap() as u32;
        let socket = if port == 0 { CONTROL } else { 5 + port };
        self.datagram(socket, PEER, &packet.encode());
    }

    fn short(&mut self, mode: i32, controls: [f32; 4]) {
        self.packet(&Packet::ShortCommand(ShortCommand { mode, controls }));
    }

    /// Port and content of all datagrams.
    fn packets(&mut self) -> Vec<(u16, Packet)> {
        let sent = self.take_sent().into_iter();
        sent.map(|(to, bytes)| {
            let (port, _) = Port::from_number(to.port()).unwrap();
            (to.port(), codec::decode(port, &bytes).unwrap())
        })
        .collect()
    }
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
        shown.truth = TruthForm::Present;
        shown.vehicle = Vehicle::new(3).unwrap();
    });
    bench.event(measured(Measurement::Pose(MapPose::new(2.0, -3.0, 0.0))));
    bench.take();
    bench.advance_ms(100);
    let packets = bench.packets();
    let [
        (20_105, Packet::SimpleEstimate(SimpleKind::State, estimate)),
        (30_105, Packet::Truth168(truth)),
    ] = packets[..]
    else {
        panic!("{packets:?}");
    };
    assert_eq!(estimate.position_m, [3.0, 2.0, 0.0]);
    assert_eq!(truth.position_m, [3.0, 2.0, 0.0]);
    assert_eq!(truth.copter_id, 3);
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
    assert_eq!(bench.count("the vehicle is locked"), 2);
    bench.short(9, [1.0, 0.0, 0.0, 0.0]);
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::all(200))]);
    bench.short(9, [0.0; 4]);
    assert_eq!(bench.take_drives(), [(0, WheelSpeeds::STOP)]);
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    assert_eq!(bench.count("the vehicle is locked"), 3);
}

#[test]
fn arming_must_be_allowed() {
    let mut bench = shown_with(|shown| shown.allow_arm = false);
    bench.short(9, [1.0, 0.0, 0.0, 0.0]);
    bench.short(1, [0.2, 0.0, 0.0, 0.0]);
    assert_eq!(bench.count("arming is not allowed"), 1);
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

const LOCATION: Device = Device::new(DeviceType::LOCATION, 1);
const IMU: Device = Device::new(DeviceType::NINEDOF, 1);
const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 1);
const TARGETS: Device = Device::new(DeviceType::DRIVE_TO_POINT, 1);

fn foreign_with(change: impl FnOnce(&mut ForeignSettings)) -> Bench<RflySim> {
    let mut foreign = ForeignSettings {
        vehicle: Vehicle::new(2).unwrap(),
        host: "127.0.0.1".parse().unwrap(),
        mode: Mode::Simple,
        frame: MapFrame::Enu,
        location: Some(LOCATION),
        imu: Some(IMU),
        wheels: Some(WHEELS),
        targets: Some(TARGETS),
        height_m: 2.5,
        drive: robot().drive,
        arm: false,
    };
    change(&mut foreign);
    let settings = Settings {
        bind: "127.0.0.1".parse().unwrap(),
        robot: robot(),
        shown: None,
        foreign: vec![foreign],
    };
    Bench::new(RflySim::new(settings))
}

fn truth(copter_id: i32) -> codec::Truth200 {
    codec::Truth200 {
        copter_id,
        vehicle_type: 3,
        time_s: 12.5,
        velocity_m_s: [0.0, 0.3, 0.0],
        position_m: [1.0, 2.0, -10.0],
        angles_rad: [0.0, 0.0, FRAC_PI_2],
        quaternion: [1.0, 0.0, 0.0, 0.0],
        motors_rpm: [0.0; 8],
        acceleration_m_s2: [0.0, 0.0, -9.806_65],
        rates_rad_s: [0.0, 0.0, -0.5],
        padding: codec::Padding,
        gps_position: [0.0; 3],
    }
}

/// What is shown, but for the progress.
fn shows(bench: &mut Bench<RflySim>) -> Vec<(Device, Measurement)> {
    let outputs = bench.take().into_iter();
    let shows = outputs.filter_map(|(_, output)| match output {
        Output::Show(device, measurement) if device != TARGETS => Some((device, measurement)),
        _ => None,
    });
    shows.collect()
}

#[test]
fn it_listens_on_the_ports_of_the_simulator() {
    let mut bench = foreign_with(|_| {});
    let outputs = bench.take().into_iter();
    let ports = outputs.filter_map(|(_, output)| match output {
        Output::Bind(_, address, _) => Some(address.port()),
        _ => None,
    });
    assert_eq!(ports.collect::<Vec<_>>(), [20_103, 30_103, 40_103]);
    let devices = [
        (LOCATION, Emulated::Location),
        (IMU, Emulated::Imu),
        (WHEELS, Emulated::Wheels),
        (TARGETS, Emulated::Targets),
    ];
    assert_eq!(bench.machine.emulated(), devices);
}

#[test]
fn the_true_state_is_shown() {
    let mut bench = foreign_with(|_| {});
    bench.take();
    bench.packet(&Packet::Truth200(NO_COLLISION, truth(2)));
    let shown = shows(&mut bench);
    let [
        (IMU, Measurement::Imu(imu)),
        (LOCATION, Measurement::Pose(pose)),
        (WHEELS, Measurement::Wheels(wheels)),
    ] = &shown[..]
    else {
        panic!("{shown:?}");
    };
    assert!((pose.x_m - 2.0).abs() < 1e-6 && (pose.y_m + 1.0).abs() < 1e-6);
    assert!(pose.heading_rad.abs() < 1e-6 && (pose.quality - 1.0).abs() < 1e-9);
    assert_eq!(pose.timestamp_ms, Some(1_700_000_000_000));
    assert!((imu.acceleration_mg.unwrap().z - 1000.0).abs() < 1e-3);
    assert!((imu.rate_deg_s.unwrap().z - 28.648).abs() < 1e-3);
    assert_eq!(imu.timestamp_ms, Some(12_500));
    // 0.3 m/s forward; 0.5 rad/s to the left with a track of 0.4 m.
    assert_eq!(*wheels, WheelSpeeds::sides(200, 400));
    bench.packet(&Packet::Truth200(NO_COLLISION, truth(1)));
    assert_eq!(bench.count("packet of another vehicle"), 1);
    let mut nan = truth(2);
    nan.position_m[0] = f32::NAN;
    bench.packet(&Packet::Truth200(NO_COLLISION, nan));
    assert_eq!(bench.count("number is not finite"), 1);
    assert!(shows(&mut bench).is_empty());
}

#[test]
fn the_estimate_is_shown_without_the_true_state_and_lost_after_a_second() {
    let mut bench = foreign_with(|_| {});
    bench.take();
    let estimate = |accuracy, yaw| {
        let position = [1.0, 2.0, -10.0];
        Packet::FullEstimate(
            NO_COLLISION,
            codec::FullEstimate {
                time_boot_ms: 0,
                copter_id: 2,
                gps_position: [0; 3],
                gps_velocity_cm_s: [0; 3],
                gps_home: [0; 3],
                relative_altitude_mm: 0,
                heading_mdeg: 0,
                satellites_visible: 0,
                fix_type: 3,
                reserved_int: 0,
                angles_rad: [0.0, 0.0, yaw],
                position_m: position,
                velocity_m_s: [0.0; 3],
                horizontal_accuracy_m: accuracy,
                vertical_accuracy_m: 0.0,
                reserved_float: 1.0,
            },
        )
    };
    bench.packet(&estimate(1.0, 0.0));
    bench.advance_ms(100);
    bench.packet(&estimate(1.0, 0.1));
    let shown = shows(&mut bench);
    let Measurement::Pose(pose) = shown[0].1 else {
        panic!("{shown:?}");
    };
    assert!((pose.quality - 0.5).abs() < 1e-9);
    // 0.1 rad clockwise in 0.1 s.
    assert_eq!(
        shown[3],
        (WHEELS, Measurement::Wheels(WheelSpeeds::sides(200, -200)))
    );
    bench.packet(&Packet::Truth200(NO_COLLISION, truth(2)));
    bench.take();
    bench.packet(&estimate(1.0, 0.2));
    assert!(shows(&mut bench).is_empty(), "the true state is better");
    bench.advance_ms(2000);
    let shown = shows(&mut bench);
    let [(LOCATION, Measurement::Pose(pose))] = shown[..] else {
        panic!("{shown:?}");
    };
    assert_eq!(pose.quality, 0.0);
}

fn drive(speeds: WheelSpeeds) -> Event {
    Event::Asked(WHEELS, Asked::Drive(ClientId(7), speeds))
}

#[test]
fn wheel_speeds_become_commands_until_half_a_second_after_the_last() {
    let mut bench = foreign_with(|_| {});
    bench.take();
    bench.event(drive(WheelSpeeds::sides(300, 100)));
    bench.advance_ms(3000);
    let packets = bench.packets();
    assert!((15..=18).contains(&packets.len()), "{}", packets.len());
    let commands: Vec<_> = packets
        .into_iter()
        .map(|packet| match packet {
            (20_102, Packet::ShortCommand(command)) => command,
            other => panic!("{other:?}"),
        })
        .collect();
    let (stop, moving) = commands.split_last().unwrap();
    assert_eq!(stop.controls.map(|number| number + 0.0), [0.0; 4]);
    for command in moving {
        assert_eq!(command.mode, 1);
        assert!((command.controls[0] - 0.2).abs() < 1e-6);
        assert!((command.controls[3] - 0.5).abs() < 1e-6);
    }
}

#[test]
fn full_mode_sends_at_100_hz_and_arms_if_configured() {
    let mut bench = foreign_with(|foreign| {
        foreign.mode = Mode::Full;
        foreign.arm = true;
    });
    bench.take();
    bench.event(drive(WheelSpeeds::all(200)));
    bench.advance_ms(200);
    bench.event(Event::Asked(WHEELS, Asked::ClientGone(ClientId(7))));
    bench.advance_ms(1000);
    let packets = bench.packets();
    let Packet::ShortCommand(arm) = packets[0].1 else {
        panic!("{:?}", packets[0]);
    };
    assert_eq!((arm.mode, arm.controls[0]), (9, 1.0));
    assert!((20..=23).contains(&packets.len()), "{}", packets.len());
    let Packet::FullCommand(last) = packets.last().unwrap().1 else {
        panic!("no full command");
    };
    assert_eq!(
        (last.velocity_m_s, last.copter_id, last.modes),
        ([0.0; 3], 2, 0x7c7)
    );
}

#[test]
fn the_vehicle_stops_when_the_gateway_stops() {
    let mut bench = foreign_with(|_| {});
    bench.event(drive(WheelSpeeds::all(200)));
    bench.take();
    bench.stop();
    let packets = bench.packets();
    let [(20_102, Packet::ShortCommand(stop))] = packets[..] else {
        panic!("{packets:?}");
    };
    assert_eq!(stop.controls[0], 0.0);
}

fn go(client: i32, targets: &[Target]) -> Event {
    Event::Asked(TARGETS, Asked::Targets(ClientId(client), targets.to_vec()))
}

/// The vehicle reports that it is here, with the yaw 0.
fn at(bench: &mut Bench<RflySim>, north_m: f32, east_m: f32) {
    let mut state = truth(2);
    state.position_m = [north_m, east_m, 0.0];
    state.angles_rad = [0.0; 3];
    bench.packet(&Packet::Truth200(NO_COLLISION, state));
}

/// The modes and numbers of short commands since the last call.
fn short_commands(bench: &mut Bench<RflySim>) -> Vec<(i32, [f32; 4])> {
    let packets = bench.packets().into_iter();
    let commands = packets.map(|packet| match packet {
        (20_102, Packet::ShortCommand(command)) => (command.mode, command.controls),
        other => panic!("{other:?}"),
    });
    commands.collect()
}

/// The last progress that is shown: targets that are left, visited, and whether the pose is known.
fn progress(bench: &mut Bench<RflySim>) -> Option<(usize, usize, bool)> {
    let outputs = bench.take().into_iter().rev();
    let mut shown = outputs.filter_map(|(_, output)| match output {
        Output::Show(TARGETS, Measurement::Progress(it)) => {
            Some((it.next.len(), it.visited.len(), it.pose.is_some()))
        }
        _ => None,
    });
    shown.next()
}

#[test]
fn the_vehicle_flies_from_target_to_target_and_stops_at_the_last() {
    let mut bench = foreign_with(|_| {});
    at(&mut bench, 0.0, 0.0);
    bench.take();
    // On maps of Amber y points down: 3 m to the north, then 4 m to the east of that.
    let (first, second) = (Target::new(0.0, -3.0), Target::new(4.0, -3.0));
    bench.event(go(7, &[first, second]));
    let commands = short_commands(&mut bench);
    assert_eq!(commands, [(2, [3.0, 0.0, -2.5, 0.0])]);
    // Again and again, with the yaw to the target.
    for step in 1..=10 {
        bench.advance_ms(33);
        at(&mut bench, 0.1 * step as f32, 0.0);
    }
    let commands = short_commands(&mut bench);
    assert_eq!(commands.len(), 10);
    assert!(commands.iter().all(|it| *it == (2, [3.0, 0.0, -2.5, 0.0])));
    at(&mut bench, 2.85, 0.0);
    assert_eq!(progress(&mut bench), Some((1, 1, true)));
    bench.advance_ms(33);
    let (mode, controls) = short_commands(&mut bench)[0];
    assert_eq!((mode, controls[..3].to_vec()), (2, vec![3.0, 4.0, -2.5]));
    assert!(
        (controls[3] - 4.0_f32.atan2(0.15)).abs() < 1e-3,
        "{controls:?}"
    );
    at(&mut bench, 3.0, 3.9);
    bench.advance_ms(100);
    let commands = short_commands(&mut bench);
    assert_eq!(commands.len(), 1);
    assert_eq!(
        (commands[0].0, commands[0].1.map(|it| it + 0.0)),
        (1, [0.0; 4])
    );
    at(&mut bench, 3.0, 3.9);
    bench.advance_ms(200);
    at(&mut bench, 3.0, 3.9);
    assert_eq!(progress(&mut bench), Some((0, 2, true)));
}

#[test]
fn in_full_mode_targets_are_positions_in_the_local_frame() {
    let mut bench = foreign_with(|foreign| {
        foreign.mode = Mode::Full;
        foreign.frame = MapFrame::Ned;
        foreign.arm = true;
    });
    at(&mut bench, 0.0, 0.0);
    bench.take();
    bench.event(go(7, &[Target::new(3.0, 4.0)]));
    let packets = bench.packets();
    let [
        (_, Packet::ShortCommand(arm)),
        (20_102, Packet::FullCommand(command)),
    ] = packets[..]
    else {
        panic!("{packets:?}");
    };
    assert_eq!(arm.mode, 9);
    assert_eq!(command.position_m, [3.0, 4.0, -2.5]);
    assert!((command.yaw_rad - 4.0_f32.atan2(3.0)).abs() < 1e-6);
    assert_eq!((command.modes, command.flags), (0xbf8, FRAME_LOCAL_NED));
    // Amber's robot as a vehicle takes it for a position, too.
    let mut shown = armed();
    let mut same = command;
    same.copter_id = 1;
    shown.packet(&Packet::FullCommand(same));
    assert_eq!(shown.take_targets().len(), 1);
}

#[test]
fn the_vehicle_stops_on_its_way_when_its_pose_or_its_client_is_lost() {
    for (lose, event) in [
        (2_000, None),
        (
            10,
            Some(Event::Asked(TARGETS, Asked::ClientGone(ClientId(7)))),
        ),
        (10, Some(go(7, &[]))),
    ] {
        let is_pose = event.is_none();
        let mut bench = foreign_with(|_| {});
        at(&mut bench, 0.0, 0.0);
        bench.event(go(7, &[Target::new(0.0, -3.0)]));
        // Of another client, and of another device of the same client.
        for (device, client) in [(TARGETS, 8), (WHEELS, 7)] {
            bench.event(Event::Asked(device, Asked::ClientGone(ClientId(client))));
        }
        bench.advance_ms(40);
        assert_eq!(short_commands(&mut bench).last().unwrap().0, 2);
        if let Some(event) = event {
            bench.event(event);
        }
        bench.advance_ms(lose);
        let commands = short_commands(&mut bench);
        let (mode, controls) = *commands.last().unwrap();
        assert_eq!((mode, controls.map(|it| it + 0.0)), (1, [0.0; 4]));
        bench.advance_ms(1_000);
        assert_eq!(short_commands(&mut bench), []);
        // It goes on when the pose comes back.
        at(&mut bench, 0.0, 0.0);
        let goes_on = short_commands(&mut bench).len();
        assert_eq!(goes_on, usize::from(is_pose));
    }
    let mut bench = foreign_with(|_| {});
    at(&mut bench, 0.0, 0.0);
    bench.event(go(7, &[Target::new(0.0, -3.0)]));
    bench.take();
    bench.stop();
    assert_eq!(short_commands(&mut bench)[0].0, 1);
}

#[test]
fn wheels_and_targets_of_a_vehicle_have_one_seat() {
    let near = Target::new(0.0, -3.0);
    let drive = |client| {
        Event::Asked(
            WHEELS,
            Asked::Drive(ClientId(client), WheelSpeeds::all(200)),
        )
    };
    let mut bench = foreign_with(|_| {});
    at(&mut bench, 0.0, 0.0);
    bench.event(drive(7));
    bench.event(go(8, &[near]));
    assert_eq!(bench.count("another client drives"), 1);
    bench.take();
    // The same client: the wheels stop, then the vehicle flies to the target.
    bench.event(go(7, &[near]));
    let modes: Vec<_> = short_commands(&mut bench).iter().map(|it| it.0).collect();
    assert_eq!(modes, [1, 2]);
    bench.event(drive(8));
    bench.event(go(8, &[near]));
    assert_eq!(bench.count("another client drives"), 3);
    // A stop of somebody else has no effect.
    let stop = Asked::Drive(ClientId(8), WheelSpeeds::STOP);
    bench.event(Event::Asked(WHEELS, stop));
    at(&mut bench, 0.0, 0.0);
    bench.advance_ms(100);
    assert!(short_commands(&mut bench).iter().all(|it| it.0 == 2));
    bench.advance_ms(900);
    at(&mut bench, 0.0, 0.0);
    bench.event(drive(8));
    bench.take();
    bench.advance_ms(2_000);
    // The targets are gone: velocities, one stop, nothing more.
    assert!(short_commands(&mut bench).iter().all(|it| it.0 == 1));
    assert!(!bench.machine.foreign[0].drives());
    bench.event(go(8, &[Target::new(5_000.0, 0.0)]));
    assert_eq!(bench.count("target too far away"), 1);
}

#[test]
fn the_status_has_messages_of_the_autopilot_and_collisions() {
    let mut bench = foreign_with(|_| {});
    let status = |bench: &Bench<RflySim>| {
        let now = Now::from_millis(bench.now.as_millis() as u64);
        bench.machine.vehicles(now).remove(0)
    };
    let before = status(&bench);
    assert_eq!(
        (before.number, before.controls.len(), before.hit),
        (Some(2), 0, None)
    );
    let controls = [0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 0.0, -1.0];
    bench.packet(&Packet::External(codec::ExternalMessage {
        copter_id: 2,
        time_s: 12.5,
        controls,
    }));
    bench.advance_ms(300);
    let after = status(&bench);
    assert_eq!(after.controls, controls);
    assert_eq!((after.controls_age_ms, after.hit), (Some(300), None));
    let simple = codec::SimpleEstimate {
        gps_home: [0, 6, 0],
        angles_rad: [0.0; 3],
        position_m: [0.0; 3],
        velocity_m_s: [0.0; 3],
    };
    for (packet, hit) in [
        (Packet::Truth200(NO_COLLISION, truth(2)), None),
        (Packet::Truth200(0, truth(2)), Some(0)),
        (Packet::Truth200(5, truth(2)), Some(5)),
        (Packet::SimpleEstimate(SimpleKind::State, simple), Some(5)),
        (
            Packet::SimpleEstimate(SimpleKind::Collision, simple),
            Some(6),
        ),
        (
            Packet::CollisionTarget(codec::CollisionTarget {
                copter_id: 2,
                target_id: 7,
            }),
            Some(7),
        ),
        (
            Packet::CollisionTarget(codec::CollisionTarget {
                copter_id: 3,
                target_id: 8,
            }),
            Some(7),
        ),
    ] {
        bench.packet(&packet);
        assert_eq!(status(&bench).hit, hit, "{packet:?}");
    }
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
