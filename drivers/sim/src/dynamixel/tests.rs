use super::*;
use crate::bus_servos::bench::{self, MS, hex};

type Bench = bench::Bench<Protocol>;

const DONE: &str = "FF FF FD 00 01 04 00 55 00 A1 0C";
const LIMIT: &str = "FF FF FD 00 01 04 00 55 06 B5 0C";
const ACCESS: &str = "FF FF FD 00 01 04 00 55 07 B0 8C";
const ALERT: &str = "FF FF FD 00 01 04 00 55 80 A2 8F";
const TORQUE_ON: &str = "FF FF FD 00 01 06 00 03 40 00 01 DB 66";
const GOAL_512: &str = "FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89";

fn bench(servos: &[(u8, Type)]) -> Bench {
    Bench::new(Dynamixel::new(servos.iter().copied()))
}

fn one() -> Bench {
    bench(&[(1, Type::Xl330)])
}

/// The answer of a servo with values.
fn answer(id: u8, values: &[u8]) -> Vec<u8> {
    packet(id, STATUS, &[&[0], values].concat())
}

/// The packets of the maker's documents.
#[test]
fn it_answers_as_servos_do() {
    let mut bench = bench(&[(1, Type::Xl330), (2, Type::Xl430)]);
    let is_1 = "FF FF FD 00 01 07 00 55 00 B0 04 34 B2 D4";
    bench.check("FF FF FD 00 01 03 00 01 19 4E", is_1);
    let all = bench.ask(&hex("FF FF FD 00 FE 03 00 01 31 42"));
    assert_eq!(all, [hex(is_1), answer(2, &[0x24, 0x04, 52])].concat());
    let middle = [0, 8, 0, 0];
    let found = bench.ask(&hex("FF FF FD 00 01 07 00 02 84 00 04 00 1D 15"));
    assert_eq!(found, answer(1, &middle));
    let found = bench.ask(&hex("FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA"));
    assert_eq!(found, [answer(1, &middle), answer(2, &middle)].concat());
    // 2 waits for 3, which is not there.
    let found = bench.ask(&packet(EVERYBODY, 0x82, &[132, 0, 4, 0, 1, 3, 2]));
    assert_eq!(found, answer(1, &middle));
    let both = "FF FF FD 00 FE 0D 00 92 01 90 00 02 00 02 92 00 01 00 1A 05";
    let found = bench.ask(&hex(both));
    assert_eq!(found, [answer(1, &[50, 0]), answer(2, &[31])].concat());
    let both = "FF FF FD 00 FE 10 00 93 01 20 00 02 00 A0 00 02 1F 00 01 00 50 B7 68";
    bench.check(both, "");
    assert_eq!(
        bench.ask(&packet(1, 2, &[32, 0, 2, 0])),
        answer(1, &[160, 0])
    );
    assert_eq!(bench.ask(&packet(2, 2, &[31, 0, 1, 0])), answer(2, &[80]));
    // A wrong sum, another id, and an instruction for all that it does not know.
    for silent in [
        "FF FF FD 00 01 03 00 01 19 4F",
        "FF FF FD 00 03 03 00 01 1A E6",
        "FF FF FD 00 FE 03 00 77 06 C3",
    ] {
        bench.check(silent, "");
    }
    let unknown = bench.ask(&packet(1, 0x77, &[]));
    assert_eq!(unknown, packet(1, STATUS, &[2]));
    let beyond = bench.ask(&packet(1, 2, &[140, 0, 8, 0]));
    assert_eq!(beyond, packet(1, STATUS, &[4]));
}

#[test]
fn it_refuses_what_real_ones_refuse() {
    let mut bench = one();
    bench.check(GOAL_512, DONE);
    for (at, values, said) in [
        (116, &[0, 0x10, 0, 0][..], LIMIT),
        (104, &[0xBE, 1, 0, 0], LIMIT),
        (11, &[2], LIMIT),
        (98, &[200], LIMIT),
        (132, &[0, 0, 0, 0], ACCESS),
        (11, &[1], DONE),
        (11, &[3], DONE),
    ] {
        let found = bench.ask(&packet(1, 3, &[&[at, 0], values].concat()));
        assert_eq!(found, hex(said), "{at} {values:?}");
    }
    bench.check(TORQUE_ON, DONE);
    assert_eq!(bench.ask(&packet(1, 3, &[11, 0, 1])), hex(ACCESS));
    assert_eq!(bench.bus.servos()[0].memory_writes, 2);
}

#[test]
fn it_turns_to_its_goal_at_its_speed() {
    let mut bench = one();
    bench.check(GOAL_512, DONE);
    // 32 units are 500 steps per second.
    bench.ask(&packet(1, 3, &[112, 0, 32, 0, 0, 0]));
    assert_eq!(bench.steps(0), 2048.0);
    bench.check(TORQUE_ON, DONE);
    bench.pass(950 * MS);
    let way = 2048.0 - bench.steps(0);
    assert!((490.0..510.0).contains(&way), "{way}");
    bench.pass(3_000 * MS);
    assert_eq!(bench.steps(0).round(), 512.0);
    assert_eq!(bench.bus.next_timeout(), None);
    // What is registered waits for its action.
    bench.ask(&packet(1, 4, &[116, 0, 0, 4, 0, 0]));
    bench.pass(500 * MS);
    assert_eq!(bench.steps(0).round(), 512.0);
    bench.check("FF FF FD 00 01 03 00 05 02 CE", DONE);
    bench.pass(3_000 * MS);
    assert_eq!(bench.steps(0).round(), 1024.0);
}

#[test]
fn its_watchdog_stops_it_when_nobody_speaks() {
    let mut bench = one();
    bench.ask(&packet(1, 3, &[112, 0, 32, 0, 0, 0]));
    bench.check(GOAL_512, DONE);
    bench.check(TORQUE_ON, DONE);
    // 200 ms.
    bench.ask(&packet(1, 3, &[98, 0, 10]));
    for _ in 0..10 {
        bench.ask(&packet(3, 1, &[]));
    }
    assert!(bench.bus.servos()[0].speed() < 0.0);
    bench.pass(200 * MS);
    let stopped = bench.steps(0);
    bench.pass(1_000 * MS);
    assert_eq!(bench.steps(0), stopped);
    assert!(bench.bus.servos()[0].has_torque());
    assert_eq!(bench.ask(&packet(1, 2, &[98, 0, 1, 0])), answer(1, &[0xFF]));
    assert_eq!(bench.ask(&hex(GOAL_512)), packet(1, STATUS, &[4]));
    // It goes on, unless it is told a new goal at once.
    bench.ask(&packet(1, 3, &[98, 0, 0]));
    bench.pass(200 * MS);
    assert!(bench.steps(0) < stopped);
}

#[test]
fn an_overload_switches_it_off_until_it_restarts() {
    let mut bench = one();
    bench.bus.servo(0).motor.is_blocked = true;
    bench.check(GOAL_512, DONE);
    bench.check(TORQUE_ON, DONE);
    bench.pass(2_500 * MS);
    assert!(!bench.bus.servos()[0].has_torque());
    assert_eq!(
        bench.ask(&packet(1, 2, &[70, 0, 1, 0])),
        packet(1, STATUS, &[0x80, 0x20])
    );
    assert_eq!(bench.ask(&packet(1, 3, &[65, 0, 1])), hex(ALERT));
    assert_eq!(bench.ask(&hex(TORQUE_ON)), packet(1, STATUS, &[0x87]));
    bench.bus.servo(0).motor.is_blocked = false;
    bench.check("FF FF FD 00 01 03 00 08 2F 4E", DONE);
    bench.check(TORQUE_ON, DONE);
    bench.pass(500 * MS);
    assert_eq!(bench.steps(0), 2048.0);
}

#[test]
fn a_header_inside_a_packet_is_stuffed() {
    let mut bench = one();
    // A current of -1, and a speed of -3 behind it.
    bench.ask(&packet(1, 3, &[102, 0, 0xFF, 0xFF]));
    bench.ask(&packet(1, 3, &[104, 0, 0xFD, 0xFF, 0xFF, 0xFF]));
    let found = bench.ask(&packet(1, 2, &[102, 0, 6, 0]));
    let inside = hex("55 00 FF FF FD FD FF FF FF");
    assert_eq!(found[BEFORE..found.len() - 2], inside);
    // It may be written so, too: 116 := FF FF FD 00 is beyond the limits.
    bench.check("FF FF FD 00 01 0A 00 03 74 00 FF FF FD FD 00 21 E7", LIMIT);
}

#[test]
fn a_person_turns_a_servo_whose_motor_is_off() {
    let mut bench = one();
    let turn = |bench: &mut Bench, id| bench.bus.turn_by_hand(bench.now(), id, 2_748.0);
    assert_eq!(turn(&mut bench, 9), Err("there is no servo 9".into()));
    let start = bench.steps(0);
    turn(&mut bench, 1).unwrap();
    bench.pass(500 * MS);
    let on_the_way = bench.steps(0);
    assert!(start < on_the_way && on_the_way < 2_748.0, "{on_the_way}");
    bench.pass(2_000 * MS);
    assert!((bench.steps(0) - 2_748.0).abs() < 1e-6);
    // One with power is too strong.
    bench.check(TORQUE_ON, DONE);
    bench.bus.turn_by_hand(bench.now(), 1, 3_900.0).unwrap();
    bench.pass(2_000 * MS);
    assert!(bench.steps(0) < 2_749.0);
}
