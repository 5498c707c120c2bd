//! A foreign vehicle that goes to targets.

use super::shown::armed;
use super::*;

fn go(client: i32, targets: &[Target]) -> Event {
    numbered(client, 1, targets)
}

fn numbered(client: i32, order: u64, targets: &[Target]) -> Event {
    let asked = Asked::Targets(ClientId(client), OrderNumber(order), targets.to_vec());
    Event::Asked(TARGETS, asked)
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
fn the_progress_says_of_which_order_it_is_and_which_one_was_not_accepted() {
    let mut bench = foreign_with(|_| {});
    at(&mut bench, 0.0, 0.0);
    let mut orders = |event| {
        bench.event(event);
        let mut shown = bench.take().into_iter().rev();
        let found = shown.find_map(|(_, output)| match output {
            Output::Show(TARGETS, Measurement::Progress(it)) => Some((it.order, it.refused)),
            _ => None,
        });
        let (order, refused) = found.unwrap();
        (order.map(|it| it.0), refused.map(|(it, why)| (it.0, why)))
    };
    let (near, far) = (Target::new(0.0, -3.0), Target::new(5_000.0, 0.0));
    assert_eq!(orders(numbered(7, 1, &[near])), (Some(1), None));
    let occupied = Some((2, "another client drives"));
    assert_eq!(orders(numbered(8, 2, &[near])), (Some(1), occupied));
    let too_far = Some((3, "target too far away"));
    assert_eq!(orders(numbered(7, 3, &[near, far])), (Some(1), too_far));
    assert_eq!(orders(numbered(7, 4, &[near])), (Some(4), too_far));
}
