//! Drives of the simulated robot with an ODrive.

use std::time::Instant;

use amber_drivers::odrive::Options;
use amber_drivers::odrive::logic::OdriveLogic;
use amber_drivers::wheels::{Model, StreamAction, StreamModel};
use amber_sim::Devices;
use amber_sim::odrive::{DEVICE, Variant};
use amber_sim::robot::Fault;

use crate::wheels::{AtPort, Drive, ME, MS, check_damage, check_fault, check_way};

impl AtPort for OdriveLogic {
    fn opened(&mut self, now: Instant) {
        StreamModel::opened(self, now);
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        StreamModel::failed(self, now, reason);
    }

    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        StreamModel::handle_bytes(self, now, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        StreamModel::handle_timeout(self, now);
    }

    fn poll_action(&mut self, now: Instant) -> Option<StreamAction> {
        StreamModel::poll_action(self, now)
    }
}

fn drive(seed: u64) -> Drive<OdriveLogic> {
    let options = Options {
        wheel_diameter_mm: Some(120.0),
        ..Options::default()
    };
    let (settings, _) = options.settings().unwrap();
    let devices = Devices {
        odrive: amber_sim::odrive::Options {
            variant: Some(Variant::Calibrated),
        },
        ..Devices::default()
    };
    Drive::new(DEVICE, devices, seed, |now| OdriveLogic::new(settings, now))
}

#[test]
fn the_way_and_the_speeds_are_those_of_the_world() {
    for seed in 1..=3 {
        check_way(drive(seed));
    }
}

#[test]
fn a_stop_is_shorter_than_the_way_of_wheels_that_the_watchdog_releases() {
    let mut robot = drive(1);
    robot.drive(300, 300, 2_000 * MS);
    robot.logic.client_died(ME);
    let braked = robot.until_it_stands();
    assert!((200..1_000).contains(&braked.as_millis()), "{braked:?}");

    robot.drive(300, 300, 2_000 * MS);
    robot.runs = false;
    let rolled = robot.until_it_stands();
    assert!((1_500..4_000).contains(&rolled.as_millis()), "{rolled:?}");
    robot.runs = true;
    robot.run(2_000 * MS);
    assert!(robot.stands() && robot.logic.is_ready());
    // The error of the watchdog is forgiven.
    assert_eq!(robot.logic.trouble(), None);
    robot.drive(300, 300, 1_000 * MS);
    assert!(!robot.stands());
}

#[test]
fn faults_of_the_simulation_stop_the_wheels_until_there_is_a_new_command() {
    for (fault, trouble) in [
        (Fault::Unplug(DEVICE), "unplugged"),
        (Fault::Stall(DEVICE), "the ODrive does not answer"),
    ] {
        check_fault(drive(1), fault, trouble);
    }
}

#[test]
fn damaged_answers_do_no_harm() {
    for seed in 1..=5 {
        check_damage(drive(seed));
    }
}
