//! Drives of the simulated robot with VESCs.

use std::time::{Duration, Instant};

use amber_drivers::vesc::Options;
use amber_drivers::vesc::logic::{VescAction, VescLogic};
use amber_drivers::vesc::units::Unit;
use amber_drivers::wheels::{Model, StreamAction};
use amber_sim::Devices;
use amber_sim::robot::Fault;
use amber_sim::vesc::{CAN_ID, DEVICE, Firmware};

use crate::wheels::{AtPort, Drive, ME, MS, check_damage, check_fault, check_way};

/// The second one is on the CAN bus of the first one.
impl AtPort for VescLogic {
    fn opened(&mut self, now: Instant) {
        self.opened(now);
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        self.failed(now, reason);
    }

    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.handle_bytes(now, Unit::First, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_action(&mut self, now: Instant) -> Option<StreamAction> {
        Some(match self.poll_action(now)? {
            VescAction::Open => StreamAction::Open,
            VescAction::Close => StreamAction::Close,
            VescAction::Write(_, bytes) => StreamAction::Write(bytes),
            VescAction::End => StreamAction::End,
        })
    }
}

fn drive(firmware: Firmware, seed: u64) -> Drive<VescLogic> {
    let options = Options {
        can_id: Some(CAN_ID),
        pole_pairs: Some(7),
        gear_ratio: Some(10.0),
        wheel_diameter_mm: Some(120.0),
        min_erpm: Some(100),
        ..Options::default()
    };
    let (settings, ..) = options.settings().unwrap();
    let devices = Devices {
        vesc: amber_sim::vesc::Options {
            firmware: Some(firmware),
        },
        ..Devices::default()
    };
    Drive::new(DEVICE, devices, seed, |now| VescLogic::new(settings, now))
}

#[test]
fn the_way_and_the_speeds_are_those_of_the_world() {
    check_way(drive(Firmware::V6_02, 1));
    check_way(drive(Firmware::V5_02, 2));
    check_way(drive(Firmware::V3_40, 3));
}

#[test]
fn a_stop_brakes_and_a_driver_that_is_gone_lets_the_wheels_roll_out() {
    let mut robot = drive(Firmware::V6_02, 1);
    robot.drive(300, 300, 2_000 * MS);
    robot.logic.client_died(ME);
    let braked = robot.until_it_stands();
    assert!((100..400).contains(&braked.as_millis()), "{braked:?}");

    robot.drive(300, 300, 2_000 * MS);
    robot.runs = false;
    let rolled = robot.until_it_stands();
    // The VESCs wait for a second, and then release the motors.
    assert!((1_200..4_000).contains(&rolled.as_millis()), "{rolled:?}");
    robot.runs = true;
    robot.run(2_000 * MS);
    assert!(robot.stands() && robot.logic.is_ready());

    let mut robot = drive(Firmware::WithoutTimeout, 1);
    robot.drive(100, 100, 1_000 * MS);
    robot.runs = false;
    robot.run(Duration::from_secs(5));
    assert!(!robot.stands());
}

#[test]
fn faults_of_the_simulation_stop_the_wheels_until_there_is_a_new_command() {
    for (fault, trouble) in [
        (Fault::Unplug(DEVICE), "unplugged"),
        (Fault::Stall(DEVICE), "the first VESC does not answer"),
        (
            Fault::LowBattery,
            "driving disabled: the first VESC reports UNDER_VOLTAGE",
        ),
    ] {
        check_fault(drive(Firmware::V6_02, 1), fault, trouble);
    }
}

#[test]
fn damaged_answers_do_no_harm() {
    for seed in 1..=5 {
        check_damage(drive(Firmware::V6_02, seed));
    }
}
