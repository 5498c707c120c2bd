use amber_proto::bus_servos::ServoAngles;
use amber_sim::feetech as sim;
use amber_sim::feetech::Family;

use super::*;
use crate::bus_servos::bench::{self, DEG, ME, MS, OTHER, of};
use crate::feetech::{Feetech, Robot};

type Bench = bench::Bench<Robot, sim::Protocol>;

/// Two joints and a wheel: the ids 1, 2 and 7.
fn bench() -> Bench {
    let servos = [1, 2, 7].map(|id| (id, Family::Sts));
    Bench::with(sim::Feetech::new(servos), &[1, 2], &[7])
}

fn logic(ids: &[u8], wheels: &[u8], now: Instant) -> BusLogic<Feetech> {
    bench::logic::<Robot>(ids, wheels, now)
}

#[test]
fn nothing_moves_at_the_start_and_no_memory_is_written() {
    let mut bench = bench();
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(bench.notes(), [Note::Ready("3 servos".into())]);
    let (states, measured) = bench.logic.states();
    assert!(measured.is_some());
    for (state, id) in states.iter().zip([1, 2, 7]) {
        assert_eq!((state.id, state.model()), (Some(id), "STS3215"));
        assert_eq!((state.torque, state.angle), (Some(false), Some(180.0)));
        assert_eq!((state.temperature, state.voltage), (Some(31), Some(7.4)));
        assert_eq!((state.target, &state.problem), (None, &None));
    }
    bench.move_to(ME, &[(1, 200.0)]).unwrap();
    bench.run(2_000 * MS);
    // Again, with the same servos.
    bench.logic = logic(&[1, 2], &[7], bench.now);
    bench.expect_rest(1_000 * MS);
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(bench.state(0).torque, Some(true));
    assert_eq!(bench.memory_writes(), 0);
}

#[test]
fn a_joint_turns_at_its_speed_and_holds() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 270.0), (2, 90.0)]).unwrap();
    assert_eq!(bench.state(0).target, Some(270.0));
    let mut last = bench.steps(0);
    for _ in 0..100 {
        bench.run(10 * MS);
        let deg_s = (bench.steps(0) - last) / DEG / 0.01;
        assert!((-0.1..=121.0).contains(&deg_s), "{deg_s}");
        last = bench.steps(0);
    }
    bench.run(100 * MS);
    assert!((bench.steps(0) / DEG - 270.0).abs() < 0.1);
    assert!((bench.steps(1) / DEG - 90.0).abs() < 0.1);
    let state = bench.state(0);
    assert_eq!((state.moving, state.torque), (Some(false), Some(true)));
    assert!(bench.logic.last_words().is_none(), "nothing moves");
}

#[test]
fn what_a_client_moves_stops_with_it() {
    for wakes_by_goal in [false, true] {
        let mut bench = bench();
        bench.twin.servo(0).wakes_by_goal = wakes_by_goal;
        bench.move_to(ME, &[(1, 300.0)]).unwrap();
        bench.move_to(OTHER, &[(2, 300.0)]).unwrap();
        bench.turn(OTHER, &[(7, 100.0)]).unwrap();
        bench.run(500 * MS);
        let before = bench.steps(0);
        bench.logic.client_gone(bench.now, ME);
        bench.run(300 * MS);
        // What it has turned until it knows, and no way back that counts.
        let way_deg = (bench.steps(0) - before) / DEG;
        assert!((-1.0..4.0).contains(&way_deg), "{way_deg}");
        bench.logic.client_gone(bench.now, ME);
        bench.run(500 * MS);
        assert!(bench.twin.servos()[2].speed() > 0.0 || bench.steps(1) / DEG > 290.0);
        assert!(bench.twin.servos()[2].speed() > 0.0);
        assert_eq!(bench.logic.stop(bench.now), None);
        bench.run(200 * MS);
        bench.expect_rest(300 * MS);
        assert!(bench.twin.servos().iter().all(sim::Servo::has_torque));
        assert!(bench.notes().contains(&Note::Stopped(ME)));
    }
}

#[test]
fn torque_is_switched_on_without_a_jump() {
    for wakes_by_goal in [false, true] {
        let mut bench = bench();
        bench.twin.servo(0).wakes_by_goal = wakes_by_goal;
        bench.move_to(ME, &[(1, 200.0)]).unwrap();
        bench.run(1_000 * MS);
        bench.torque(false, &[1]).unwrap();
        bench.run(200 * MS);
        assert_eq!(bench.state(0).torque, Some(false));
        assert_eq!(bench.logic.trouble(), None, "it was told so");
        bench.twin.servo(0).push_to(1000.0);
        bench.run(200 * MS);
        bench.torque(true, &[]).unwrap();
        bench.expect_rest(1_000 * MS);
        assert!(bench.twin.servos().iter().all(sim::Servo::has_torque));
    }
}

#[test]
fn wheels_turn_until_no_command_comes() {
    let mut bench = bench();
    assert!(bench.twin.servos()[2].is_wheel());
    bench.turn(ME, &[(7, -90.0)]).unwrap();
    bench.run(1_000 * MS);
    let turned_deg = (bench.steps(2) - 2048.0) / DEG;
    assert!((-91.0..-80.0).contains(&turned_deg), "{turned_deg}");
    bench.run(2_900 * MS);
    assert!(bench.twin.servos()[2].speed() < 0.0);
    bench.run(250 * MS);
    assert_eq!(bench.twin.servos()[2].speed(), 0.0);
    bench.turn(ME, &[(7, 0.0)]).unwrap();
    bench.run(200 * MS);
    // One that turns from before the start is stopped.
    bench.turn(ME, &[(7, 90.0)]).unwrap();
    bench.run(200 * MS);
    bench.logic = logic(&[1, 2], &[7], bench.now);
    bench.run(300 * MS);
    bench.expect_rest(300 * MS);
    assert_eq!(bench.memory_writes(), 0);
}

#[test]
fn the_last_words_stop_what_moves() {
    let mut bench = bench();
    assert_eq!(bench.logic.last_words(), None);
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.turn(ME, &[(7, 90.0)]).unwrap();
    bench.run(300 * MS);
    let words = bench.logic.last_words().unwrap();
    let before = bench.steps(0);
    // The driver is killed now.
    bench.is_cut = true;
    bench.twin.handle_bytes(bench.now - bench.start, &words);
    bench.run(500 * MS);
    let way_deg = (bench.steps(0) - before) / DEG;
    assert!((-7.0..1.0).contains(&way_deg), "{way_deg}");
    bench.expect_rest(500 * MS);
    assert!(bench.twin.servos()[0].has_torque());
    // It was only frozen.
    bench.is_cut = false;
    bench.logic.guard_acted(bench.now);
    bench.expect_rest(500 * MS);
    assert_eq!(bench.logic.last_words(), None);
}

/// A driver may be killed between its decision to stop and the write that does it.
#[test]
fn there_are_last_words_until_the_servos_have_confirmed_their_stop() {
    let stops: [fn(&mut Bench); 3] = [
        |bench| bench.logic.client_gone(bench.now, ME),
        |bench| drop(bench.logic.stop(bench.now)),
        |bench| bench.logic.shut_down(bench.now),
    ];
    for stop in stops {
        let mut bench = bench();
        bench.turn(ME, &[(7, 90.0)]).unwrap();
        bench.run(300 * MS);
        stop(&mut bench);
        let words = bench.logic.last_words().unwrap();
        bench.is_cut = true;
        bench.twin.handle_bytes(bench.now - bench.start, &words);
        bench.run(500 * MS);
        bench.expect_rest(500 * MS);
    }
}

#[test]
fn the_end_of_the_driver_stops_what_moves() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.turn(ME, &[(7, 90.0)]).unwrap();
    bench.run(300 * MS);
    bench.logic.shut_down(bench.now);
    bench.act();
    bench.run(100 * MS);
    assert!(bench.has_ended);
    bench.expect_rest(500 * MS);
    // Before it was opened, there is nothing to do.
    let mut logic = logic(&[1], &[], bench.now);
    logic.shut_down(bench.now);
    assert_eq!(logic.poll_output(bench.now), Some(Output::End));
}

#[test]
fn a_missing_servo_is_named_and_the_others_work() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 200.0), (2, 200.0)]).unwrap();
    bench.run(1_000 * MS);
    bench.twin.servo(1).is_mute = true;
    bench.run(500 * MS);
    bench.expect_trouble("servo 2 does not answer");
    assert_eq!(
        bench.state(1).problem(),
        "does not answer: check its id, its cable and its supply"
    );
    assert_eq!(bench.state(1).angle, None);
    let error = bench.move_to(ME, &[(1, 210.0), (2, 210.0)]).unwrap_err();
    assert!(error.starts_with("servo 2 does not answer"), "{error}");
    let rounds = bench.logic.counters.rounds;
    bench.run(1_000 * MS);
    let rounds = bench.logic.counters.rounds - rounds;
    assert!(rounds >= 19, "{rounds}");
    // It was without power.
    bench.twin.servo(1).is_mute = false;
    bench.expect_rest(1_000 * MS);
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(bench.state(1).target, None);
    bench.twin.servo(0).is_mute = true;
    bench.twin.servo(1).is_mute = true;
    bench.twin.servo(2).is_mute = true;
    bench.run(1_000 * MS);
    bench.expect_trouble("no servo answers at 1000000 baud");
    assert!(bench.logic.absence().is_some());
}

#[test]
fn a_servo_that_lost_its_power_does_not_move_when_it_is_back() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.run(300 * MS);
    bench.twin.power_cycle();
    bench.expect_rest(500 * MS);
    bench.expect_trouble("servo 1 has switched its motor off");
    assert_eq!(bench.state(0).torque, Some(false));
    // The wheel is a joint again, of which it was not told.
    assert_eq!(bench.memory_writes(), 0);
    bench.move_to(ME, &[(1, 190.0)]).unwrap();
    bench.run(2_000 * MS);
    assert!((bench.steps(0) / DEG - 190.0).abs() < 0.2);
    assert_eq!(bench.state(0).problem, None);
}

#[test]
fn alarms_are_troubles_and_end() {
    let mut bench = bench();
    bench.twin.servo(0).volts = 9.1;
    bench.run(100 * MS);
    bench.expect_trouble("servo 1 has a wrong voltage");
    assert_eq!(bench.state(0).voltage, Some(9.1));
    bench.twin.servo(0).volts = 7.4;
    bench.twin.servo(1).temperature_c = 66;
    bench.run(100 * MS);
    bench.expect_trouble("servo 2 is hot: 66 degrees of at most 70");
    bench.twin.servo(1).temperature_c = 71;
    bench.run(100 * MS);
    bench.expect_trouble("servo 2 is too hot");
    bench.twin.servo(1).temperature_c = 40;
    bench.twin.servo(0).motor.is_blocked = true;
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.run(2_500 * MS);
    bench.expect_trouble("servo 1 is overloaded");
    bench.twin.servo(0).motor.is_blocked = false;
    bench.torque(false, &[1]).unwrap();
    bench.run(100 * MS);
    assert_eq!(bench.logic.trouble(), None);
    bench.torque(true, &[1]).unwrap();
    bench.expect_rest(500 * MS);
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn two_servos_with_one_id_are_recognized() {
    let mut twin = sim::Feetech::new([1, 1, 2].map(|id| (id, Family::Sts)));
    // Their memories differ, too.
    twin.handle_bytes(Duration::ZERO, &sim::packet(1, 3, &[21, 16]));
    twin.servo(1).temperature_c = 52;
    twin.servo(1).push_to(1717.0);
    let mut bench = Bench::with(twin, &[1, 2], &[]);
    bench.run(3_000 * MS);
    bench.expect_trouble("servo 1 gives damaged answers: have two servos this id?");
    assert_eq!(bench.state(1).problem, None);
}

#[test]
fn an_adapter_that_echoes_does_not_matter() {
    let mut twin = sim::Feetech::new([1, 2, 3].map(|id| (id, Family::Sts)));
    twin.echoes = true;
    twin.servo(2).is_mute = true;
    let mut bench = Bench::with(twin, &[1, 2, 3], &[]);
    bench.run(1_000 * MS);
    bench.expect_trouble("servo 3 does not answer");
    bench.move_to(ME, &[(1, 200.0)]).unwrap();
    bench.run(500 * MS);
    assert!((bench.steps(0) / DEG - 200.0).abs() < 0.1);
    assert_eq!(bench.logic.counters.damaged, 0);
}

#[test]
fn damage_costs_a_measurement_and_no_more() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 200.0)]).unwrap();
    bench.run(500 * MS);
    bench.spoils = 2;
    bench.expect_rest(300 * MS);
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(bench.logic.counters.damaged, 2);
    // What it was told is lost on the way.
    bench.is_cut = true;
    bench.move_to(ME, &[(1, 220.0)]).unwrap();
    bench.act();
    bench.is_cut = false;
    bench.run(1_000 * MS);
    assert!((bench.steps(0) / DEG - 220.0).abs() < 0.1);
}

#[test]
fn an_adapter_that_was_away_moves_nothing_when_it_is_back() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 230.0)]).unwrap();
    bench.run(100 * MS);
    bench.logic.failed(bench.now, "/dev/ttyACM0 does not exist");
    assert_eq!(
        bench.logic.absence().as_deref(),
        Some("/dev/ttyACM0 does not exist")
    );
    assert_eq!(bench.logic.last_words(), None);
    // Nobody can stop it meanwhile.
    bench.is_cut = true;
    bench.run(1_000 * MS);
    bench.is_cut = false;
    bench.expect_rest(1_500 * MS);
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(
        (bench.state(0).torque, bench.state(0).target),
        (Some(true), None)
    );
    let notes = bench.notes();
    assert!(
        notes.iter().any(|note| matches!(note, Note::Back(_))),
        "{notes:?}"
    );
}

#[test]
fn servos_of_both_families_are_on_one_bus() {
    let twin = sim::Feetech::new([(1, Family::Sts), (2, Family::Scs), (3, Family::Scs)]);
    let mut bench = Bench::with(twin, &[1, 2], &[3]);
    bench.run(500 * MS);
    assert_eq!(bench.state(1).model(), "SCS0009");
    bench.move_to(ME, &[(1, 200.0), (2, 240.0)]).unwrap();
    bench.run(1_500 * MS);
    let expected = 512.0 + 60.0 * 1024.0 / 300.0;
    assert!(
        (bench.steps(1) - expected).abs() < 1.0,
        "{}",
        bench.steps(1)
    );
    bench.expect_trouble("servo 3 is an SCS0009, which this driver cannot use as a wheel");
    assert!(bench.turn(ME, &[(3, 10.0)]).is_err());
}

#[test]
fn what_cannot_be_done_is_refused_as_a_whole() {
    let mut bench = bench();
    for (targets, why) in [
        (
            &[(1, 200.0), (2, 400.0)][..],
            "servo 2 turns from 0.0 to 359.9 degrees, not to 400",
        ),
        (
            &[(1, f64::NAN)],
            "servo 1 turns from 0.0 to 359.9 degrees, not to NaN",
        ),
        (&[(1, 200.0), (1, 210.0)], "servo 1 is named twice"),
        (&[(1, 200.0), (9, 210.0)], "servo 9 is not configured"),
        (&[(7, 200.0)], "servo 7 is a wheel, and turns to no angle"),
    ] {
        assert_eq!(bench.move_to(ME, targets), Err(why.to_owned()));
    }
    for (speeds, why) in [
        (
            &[(7, 271.0)][..],
            "servo 7 turns with at most 270 deg/s, not 271",
        ),
        (
            &[(7, f64::INFINITY)],
            "servo 7 turns with at most 270 deg/s, not inf",
        ),
        (
            &[(7, 10.0), (1, 10.0)],
            "servo 1 is a joint: --wheels makes it a wheel",
        ),
    ] {
        assert_eq!(bench.turn(ME, speeds), Err(why.to_owned()));
    }
    let targets = ServoAngles {
        ids: vec![1, 2],
        angles: vec![1.0],
    };
    let command = MoveServos {
        targets,
        speed: None,
    };
    let error = bench.logic.move_to(&of(ME, None), &command).unwrap_err();
    assert_eq!(error, "2 ids have 1 values");
    let targets = ServoAngles {
        ids: vec![1],
        angles: vec![190.0],
    };
    let command = MoveServos {
        targets,
        speed: Some(200.0),
    };
    let error = bench.logic.move_to(&of(ME, None), &command).unwrap_err();
    assert_eq!(error, "joints turn with 1 to 120 deg/s, not 200");
    assert_eq!(
        bench.torque(true, &[3]),
        Err("servo 3 is not configured".to_owned())
    );
    bench.expect_rest(500 * MS);
    bench.logic.refuse("no".to_owned());
    bench.logic.refuse("no".to_owned());
    assert_eq!(bench.logic.counters.refused, 2);
}

#[test]
fn each_servo_has_its_own_validity() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.turn_for(OTHER, Some(200 * MS), &[(7, 90.0)]).unwrap();
    bench.run(150 * MS);
    // The wheel is told again; the joint goes on by itself.
    bench.turn_for(OTHER, Some(200 * MS), &[(7, 90.0)]).unwrap();
    bench.run(190 * MS);
    assert!(bench.twin.servos()[2].speed() != 0.0);
    let due = bench.logic.wake_at(bench.now).unwrap();
    assert!(
        due <= bench.now + 10 * MS,
        "it does not wait for another reason"
    );
    bench.run(60 * MS);
    let before = bench.steps(0);
    assert_eq!(bench.twin.servos()[2].speed(), 0.0);
    bench.run(100 * MS);
    assert!(bench.steps(0) > before + 50.0, "the joint goes on");
    // What the harness reports of one command stops no other one.
    bench.logic.expire(bench.now);
    bench.run(100 * MS);
    let before = bench.steps(0);
    bench.run(100 * MS);
    assert!(bench.steps(0) > before + 50.0);
}
