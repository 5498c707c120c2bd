//! A foreign vehicle as devices: its reports, and the commands of its wheels.

use super::*;

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
