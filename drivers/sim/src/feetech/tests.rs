use super::*;
use crate::bus_servos::bench::{self, MS, hex};

type Bench = bench::Bench<Protocol>;

fn bench(servos: &[(u8, Family)]) -> Bench {
    Bench::new(Feetech::new(servos.iter().copied()))
}

/// The packets of the maker's documents, and of other libraries.
#[test]
fn it_answers_as_servos_do() {
    let mut bench = bench(&[(1, Family::Sts), (2, Family::Sts), (6, Family::Scs)]);
    bench.check("FF FF 01 02 01 FB", "FF FF 01 02 00 FC");
    bench.check("FF FF FE 02 01 FE", "FF FF 01 02 00 FC FF FF 02 02 00 FB");
    bench.check("FF FF 01 04 02 03 02 F3", "FF FF 01 04 00 09 03 EE");
    bench.check("FF FF 06 04 02 03 02 EE", "FF FF 06 04 00 05 04 EC");
    bench.check("FF FF 01 04 02 38 02 BE", "FF FF 01 04 00 00 08 F2");
    bench.check(
        "FF FF FE 07 82 38 02 01 02 06 35",
        "FF FF 01 04 00 00 08 F2 FF FF 02 04 00 00 08 F1",
    );
    // A wrong sum, another id, an unknown instruction.
    for silent in [
        "FF FF 01 02 01 FC",
        "FF FF 03 02 01 F9",
        "FF FF 01 02 06 F6",
    ] {
        bench.check(silent, "");
    }
    bench.bus.servo(0).volts = 9.0;
    bench.check("FF FF 01 02 01 FB", "FF FF 01 02 01 FB");
}

#[test]
fn it_turns_to_its_goal_at_its_speed() {
    let mut bench = bench(&[(1, Family::Sts), (2, Family::Sts)]);
    // Without torque, nothing moves.
    bench.ask(&packet(1, 3, &[42, 0xB8, 0x0B, 0, 0, 0xE8, 0x03]));
    assert_eq!(bench.steps(0), 2048.0);
    bench.ask(&packet(1, 3, &[40, 1]));
    bench.pass(500 * MS);
    let begun = bench.steps(0) - 2048.0;
    assert!((500.0..600.0).contains(&begun), "{begun}");
    bench.pass(1_000 * MS);
    assert_eq!(bench.steps(0), 3000.0);
    assert_eq!(bench.bus.next_timeout(), None);
    // Beyond its limit.
    bench.ask(&packet(1, 3, &[42, 0xFF, 0x7F, 0, 0, 0, 0]));
    bench.pass(2_000 * MS);
    assert_eq!(bench.steps(0), 4095.0);
    bench.ask(&packet(EVERYBODY, 0x83, &[40, 1, 1, 0, 2, 0]));
    bench.bus.servo(0).push_to(1000.0);
    bench.pass(1_000 * MS);
    assert_eq!((bench.steps(0), bench.steps(1)), (1000.0, 2048.0));
}

#[test]
fn a_wheel_turns_until_it_is_told_otherwise() {
    let mut bench = bench(&[(7, Family::Sts)]);
    bench.ask(&packet(7, 3, &[33, 1]));
    bench.ask(&packet(7, 3, &[40, 1]));
    bench.ask(&packet(7, 3, &[46, 0x69, 0x84]));
    let before = bench.steps(0);
    bench.pass(10_000 * MS);
    let way = bench.steps(0) - before;
    assert!((way + 11_290.0).abs() < 20.0, "{way}");
    bench.ask(&packet(7, 3, &[46, 0, 0]));
    let before = bench.steps(0);
    bench.pass(1_000 * MS);
    assert_eq!(bench.steps(0), before);
}

#[test]
fn only_an_open_memory_keeps_what_is_written() {
    let mut bench = bench(&[(1, Family::Sts)]);
    bench.ask(&packet(1, 3, &[33, 1]));
    assert!(bench.bus.servos()[0].is_wheel());
    bench.bus.power_cycle();
    assert!(!bench.bus.servos()[0].is_wheel());
    assert_eq!(bench.bus.servos()[0].memory_writes, 0);
    bench.ask(&packet(1, 3, &[55, 0]));
    bench.ask(&packet(1, 3, &[5, 6]));
    bench.bus.power_cycle();
    assert_eq!(bench.bus.servos()[0].id(), 6);
    assert_eq!(bench.bus.servos()[0].memory_writes, 1);
    // The present position becomes the middle.
    bench.bus.servo(0).push_to(1000.0);
    bench.ask(&packet(6, 3, &[40, 128]));
    assert_eq!(bench.steps(0), 2048.0);
}

#[test]
fn what_is_registered_waits_for_its_action() {
    let mut bench = bench(&[(1, Family::Sts)]);
    bench.ask(&packet(1, 3, &[42, 0, 8]));
    bench.ask(&packet(1, 3, &[40, 1]));
    bench.check("FF FF 01 05 04 2A B8 0B 08", "FF FF 01 02 00 FC");
    bench.pass(500 * MS);
    assert_eq!(bench.steps(0), 2048.0);
    bench.check("FF FF FE 02 05 FA", "");
    bench.pass(500 * MS);
    assert_eq!(bench.steps(0), 3000.0);
}

#[test]
fn a_blocked_servo_is_overloaded_until_it_is_switched_off() {
    let mut bench = bench(&[(1, Family::Sts)]);
    bench.bus.servo(0).motor.is_blocked = true;
    bench.ask(&packet(1, 3, &[42, 0xB8, 0x0B]));
    bench.ask(&packet(1, 3, &[40, 1]));
    bench.pass(2_500 * MS);
    bench.check("FF FF 01 02 01 FB", "FF FF 01 02 20 DC");
    bench.ask(&packet(1, 3, &[40, 0]));
    bench.check("FF FF 01 02 01 FB", "FF FF 01 02 00 FC");
}

#[test]
fn two_servos_with_one_id_destroy_their_answers() {
    let mut bench = bench(&[(1, Family::Sts), (1, Family::Sts)]);
    bench.bus.servo(1).push_to(1717.0);
    let answer = bench.ask(&hex("FF FF 01 04 02 38 02 BE"));
    let (sum, inside) = answer[2..].split_last().unwrap();
    assert_ne!(*sum, super::sum(inside), "{answer:02x?}");
    bench.bus.echoes = true;
    let answer = bench.ask(&hex("FF FF 03 02 01 F9"));
    assert_eq!(answer, hex("FF FF 03 02 01 F9"));
}
