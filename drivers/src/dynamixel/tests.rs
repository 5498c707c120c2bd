use std::time::Duration;

use amber_sim::bus_servos::Servo as _;
use amber_sim::dynamixel as sim;
use amber_sim::dynamixel::Type;

use super::*;
use crate::bus_servos::bench::{self, DEG, ME, MS, OTHER};
use crate::bus_servos::{Kind, Rules};
use crate::connection::Endpoint;
use crate::options::OptionsError;
use crate::servos::Note;

type Bench = bench::Bench<Robot, sim::Protocol>;

fn of(text: &str) -> Result<(Rules, Endpoint), OptionsError> {
    toml::from_str::<Options>(text).unwrap().settings()
}

fn twin() -> sim::Dynamixel {
    let servos = [(1, Type::Xl430), (2, Type::Xl330), (7, Type::Xl330)];
    sim::Dynamixel::new(servos)
}

/// Two joints and a wheel: the ids 1, 2 and 7.
fn bench() -> Bench {
    Bench::with(twin(), &[1, 2], &[7])
}

/// A register of a servo, as another program reads it.
fn register(bench: &mut Bench, id: u8, at: u8) -> u8 {
    let time = bench.now - bench.start;
    let request = sim::packet(id, protocol::instruction::READ, &[at, 0, 1, 0]);
    bench.twin.handle_bytes(time, &request);
    let answer = bench.twin.poll_output(time + 10 * MS).unwrap();
    answer[9]
}

/// Writes a register of a servo, as another program did it before.
fn write(twin: &mut sim::Dynamixel, id: u8, at: u8, value: u8) {
    let request = sim::packet(id, protocol::instruction::WRITE, &[at, 0, value]);
    twin.handle_bytes(Duration::ZERO, &request);
    assert!(twin.poll_output(10 * MS).is_some());
}

#[test]
fn options_have_defaults_and_limits() {
    let (rules, endpoint) = of("ids = [1, 2]\nwheels = [7]").unwrap();
    let servos = [(1, Kind::Joint), (2, Kind::Joint), (7, Kind::Wheel)];
    assert_eq!(rules.servos, servos);
    assert_eq!(endpoint.to_string(), "/dev/ttyUSB0 at 57600 baud");
    let (rules, endpoint) = of("preset = 'koch'\nport = '/dev/x'").unwrap();
    assert_eq!((rules.servos.len(), rules.baud), (6, 1_000_000));
    assert_eq!(endpoint.to_string(), "/dev/x at 1000000 baud");
    let (rules, _) = of("preset = 'koch'\nids = [3]\nbaud = 2000000").unwrap();
    assert_eq!((rules.servos.len(), rules.baud), (1, 2_000_000));
    assert!(of("").unwrap_err().to_string().contains("ids"));
    let error = of("ids = [1]\nbaud = 5000000").unwrap_err().to_string();
    assert!(error.contains("baud"), "{error}");
    assert!(toml::from_str::<Options>("id = [1]").is_err());
}

#[test]
fn nothing_moves_at_the_start_and_a_second_start_writes_no_memory() {
    let mut bench = bench();
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(bench.notes(), [Note::Ready("3 servos".into())]);
    for (index, (id, model)) in [(1, "XL430-W250"), (2, "XL330-M288"), (7, "XL330-M288")]
        .into_iter()
        .enumerate()
    {
        let state = bench.state(index);
        assert_eq!((state.id, state.model()), (Some(id), model));
        assert_eq!((state.torque, state.angle), (Some(false), Some(180.0)));
        assert_eq!(state.temperature, Some(31));
        assert_eq!((state.target, &state.problem), (None, &None));
        assert_eq!(state.current.is_some(), model.contains("330"));
    }
    assert_eq!(
        (bench.state(0).voltage(), bench.state(1).voltage()),
        (12.0, 5.0)
    );
    // The mode of the wheel.
    assert_eq!(bench.memory_writes(), 1);
    bench.move_to(ME, &[(1, 200.0)]).unwrap();
    bench.run(1_000 * MS);
    for pause in [0, 1_000] {
        // The watchdogs stop the servos in the long pause.
        bench.is_cut = true;
        bench.run(pause * MS);
        bench.is_cut = false;
        bench.logic = bench::logic::<Robot>(&[1, 2], &[7], bench.now);
        bench.expect_rest(1_000 * MS);
        assert_eq!(bench.logic.trouble(), None);
        assert_eq!(bench.state(0).torque, Some(true));
    }
    assert_eq!(bench.memory_writes(), 1);
}

#[test]
fn a_joint_turns_at_its_speed_and_holds() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 270.0), (2, 90.0)]).unwrap();
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
    let error = bench.move_to(ME, &[(1, 400.0)]).unwrap_err();
    assert_eq!(error, "servo 1 turns from 0.0 to 359.9 degrees, not to 400");
}

#[test]
fn what_a_client_moves_stops_with_it() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.turn(OTHER, &[(7, -90.0)]).unwrap();
    bench.run(500 * MS);
    let before = bench.steps(0);
    bench.logic.client_gone(bench.now, ME);
    bench.run(300 * MS);
    let way_deg = (bench.steps(0) - before) / DEG;
    assert!((-1.0..4.0).contains(&way_deg), "{way_deg}");
    assert!(bench.twin.servos()[2].speed() < 0.0);
    assert_eq!(bench.logic.stop(bench.now), None);
    bench.run(200 * MS);
    bench.expect_rest(300 * MS);
    assert!(bench.twin.servos()[0].has_torque());
}

#[test]
fn torque_is_switched_on_without_a_jump() {
    // In one of these modes, a goal switches the motor on.
    for drive_mode in [0, 8] {
        let mut twin = twin();
        write(&mut twin, 1, 10, drive_mode);
        let mut bench = Bench::with(twin, &[1, 2], &[7]);
        bench.move_to(ME, &[(1, 200.0)]).unwrap();
        bench.run(1_000 * MS);
        bench.torque(false, &[1]).unwrap();
        bench.run(200 * MS);
        assert_eq!(bench.state(0).torque, Some(false));
        // Beyond the turn, where it would count from 0 again.
        bench.twin.servo(0).push_to(4200.0);
        bench.run(200 * MS);
        let error = bench.torque(true, &[]).unwrap_err();
        let expected = "servo 1 is at 369.1 degrees, beyond its limits: turn it back by hand";
        assert_eq!(error, expected);
        bench.twin.servo(0).push_to(1000.0);
        bench.run(200 * MS);
        bench.torque(true, &[]).unwrap();
        bench.expect_rest(1_000 * MS);
        assert!(bench.twin.servos().iter().all(sim::Servo::has_torque));
        assert_eq!(bench.logic.trouble(), None);
    }
}

#[test]
fn the_watchdogs_stop_what_moves_when_the_cable_is_out() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.turn(ME, &[(7, 90.0)]).unwrap();
    bench.run(300 * MS);
    bench.is_cut = true;
    bench.run(400 * MS);
    bench.expect_rest(1_000 * MS);
    let angle_deg = bench.steps(0) / DEG;
    assert!((210.0..270.0).contains(&angle_deg), "{angle_deg}");
    bench.expect_trouble("no servo answers at 1000000 baud");
    bench.is_cut = false;
    bench.expect_rest(1_500 * MS);
    assert_eq!(bench.logic.trouble(), None);
    let state = bench.state(0);
    assert_eq!((state.torque, state.target), (Some(true), None));
    bench.move_to(ME, &[(1, 190.0)]).unwrap();
    bench.turn(ME, &[(7, 90.0)]).unwrap();
    bench.run(2_000 * MS);
    assert!((bench.steps(0) / DEG - 190.0).abs() < 0.2);
    assert!(bench.twin.servos()[2].speed() > 0.0);
}

#[test]
fn a_driver_that_was_frozen_moves_nothing_afterwards() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.run(100 * MS);
    for _ in 0..100 {
        bench.now += 5 * MS;
        bench.twin.advance(bench.now - bench.start);
    }
    bench.expect_rest(1_000 * MS);
    let event = Note::Event("the watchdog of a servo has stopped it: the bus was silent");
    assert!(bench.notes().contains(&event));
    assert_eq!((bench.logic.trouble(), bench.state(0).target), (None, None));
}

#[test]
fn the_end_of_the_driver_stops_what_moves_and_the_watchdogs() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.run(300 * MS);
    assert_ne!(register(&mut bench, 1, 98), 0);
    let words = bench.logic.last_words().unwrap();
    assert!(words.starts_with(&[0xFF, 0xFF, 0xFD]));
    bench.logic.shut_down(bench.now);
    bench.act();
    bench.run(100 * MS);
    assert!(bench.has_ended);
    bench.expect_rest(1_000 * MS);
    for id in [1, 2, 7] {
        assert_eq!(register(&mut bench, id, 98), 0);
    }
}

#[test]
fn the_last_words_stop_what_moves() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.turn(ME, &[(7, 90.0)]).unwrap();
    bench.run(300 * MS);
    let words = bench.logic.last_words().unwrap();
    let before = bench.steps(0);
    // The driver is killed now.
    bench.is_cut = true;
    bench.twin.handle_bytes(bench.now - bench.start, &words);
    bench.run(100 * MS);
    let way_deg = (bench.steps(0) - before) / DEG;
    assert!((-7.0..1.0).contains(&way_deg), "{way_deg}");
    bench.expect_rest(500 * MS);
    assert!(bench.twin.servos()[0].has_torque());
}

#[test]
fn a_servo_that_was_away_does_not_move_when_it_is_back() {
    let mut bench = bench();
    bench.move_to(ME, &[(1, 200.0), (2, 300.0)]).unwrap();
    bench.run(300 * MS);
    // It is the second of three, so the third one waits for it.
    bench.twin.servo(1).is_mute = true;
    bench.run(500 * MS);
    bench.expect_trouble("servo 2 does not answer");
    // Then it is asked last, and after three rounds once more alone.
    assert_eq!(bench.logic.counters.missed, 2 + 1 + 1 + 1);
    assert_eq!(bench.state(2).problem, None);
    assert!(bench.move_to(ME, &[(2, 210.0)]).is_err());
    bench.move_to(ME, &[(1, 210.0)]).unwrap();
    bench.run(500 * MS);
    assert!((bench.steps(0) / DEG - 210.0).abs() < 0.2, "it works");
    bench.twin.servo(1).is_mute = false;
    bench.expect_rest(1_000 * MS);
    assert_eq!((bench.logic.trouble(), bench.state(1).target), (None, None));
    // Its supply fails for a moment.
    bench.move_to(ME, &[(2, 200.0)]).unwrap();
    bench.run(100 * MS);
    bench.twin.servo(1).power_cycle();
    bench.expect_rest(1_000 * MS);
    assert_eq!(
        (bench.logic.trouble(), bench.state(1).torque),
        (None, Some(false))
    );
    let event = Note::Event("a servo has restarted: check its supply");
    assert!(bench.notes().contains(&event));
}

#[test]
fn errors_are_troubles_until_a_servo_restarts() {
    let mut bench = bench();
    bench.twin.servo(1).temperature_c = 66;
    bench.run(100 * MS);
    bench.expect_trouble("servo 2 is hot: 66 degrees of at most 70");
    bench.twin.servo(1).temperature_c = 40;
    bench.twin.servo(0).volts = 14.5;
    bench.run(100 * MS);
    bench.expect_trouble("servo 1 has had a wrong voltage");
    assert_eq!(bench.state(0).voltage, Some(14.5));
    bench.twin.servo(0).volts = 12.0;
    bench.run(100 * MS);
    bench.expect_trouble("servo 1 has had a wrong voltage");
    bench.twin.power_cycle();
    bench.run(500 * MS);
    assert_eq!(bench.logic.trouble(), None);
    bench.twin.servo(0).motor.is_blocked = true;
    bench.move_to(ME, &[(1, 300.0)]).unwrap();
    bench.run(2_500 * MS);
    bench.expect_trouble("servo 1 is overloaded");
    assert_eq!(bench.state(0).torque, Some(false));
    bench.twin.servo(0).motor.is_blocked = false;
    bench.twin.power_cycle();
    bench.expect_rest(500 * MS);
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(bench.memory_writes(), 1);
}

#[test]
fn two_servos_with_one_id_are_recognized() {
    let mut twin = sim::Dynamixel::new([1, 1, 2].map(|id| (id, Type::Xl330)));
    twin.servo(1).temperature_c = 52;
    twin.servo(1).push_to(1717.0);
    let mut bench = Bench::with(twin, &[1, 2], &[]);
    bench.run(3_000 * MS);
    bench.expect_trouble("servo 1 gives damaged answers: have two servos this id?");
    assert_eq!(bench.state(1).problem, None);
}

#[test]
fn neither_an_echo_nor_damage_matters() {
    let mut twin = twin();
    twin.echoes = true;
    twin.servo(2).is_mute = true;
    let mut bench = Bench::with(twin, &[1, 2], &[7]);
    bench.run(1_000 * MS);
    bench.expect_trouble("servo 7 does not answer");
    assert_eq!(bench.logic.counters.damaged, 0);
    bench.move_to(ME, &[(1, 200.0)]).unwrap();
    bench.run(500 * MS);
    assert!((bench.steps(0) / DEG - 200.0).abs() < 0.1);
    bench.twin.echoes = false;
    bench.run(100 * MS);
    bench.spoils = 2;
    bench.expect_rest(300 * MS);
    assert_eq!(bench.state(0).problem, None);
    assert!(bench.logic.counters.damaged > 0);
}

#[test]
fn a_delay_of_answers_is_said_once() {
    let mut twin = twin();
    write(&mut twin, 1, 9, 250);
    write(&mut twin, 2, 9, 250);
    let mut bench = Bench::with(twin, &[1, 2], &[]);
    let notes = bench.notes();
    let is_advice = |note: &&Note| matches!(note, Note::Event(text) if text.contains("register 9"));
    assert_eq!(notes.iter().filter(is_advice).count(), 1, "{notes:?}");
}
