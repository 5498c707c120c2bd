//! What the fuzz targets of the drivers of all servos on a bus share. IO: they read the clock once.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_proto::bus_servos::{MoveServos, ServoAngles, ServoSpeeds, ServoTorque};
use amber_sim::bus_servos::{Bus, Motor, Protocol, Servo};

use super::logic::{BusLogic, Output};
use super::wire::{Found, Line};
use super::{Claim, Options, Preset};
use crate::fuzz::Input;

/// What servos may have said.
pub(crate) fn packets(data: &[u8], find: fn(&[u8]) -> Found) {
    match find(data) {
        Found::Status(status, length) => {
            assert!(length <= data.len() && status.data.len() < length);
        }
        Found::Noise(length) | Found::Damaged(length) => {
            assert!((1..=data.len()).contains(&length));
        }
        Found::Incomplete => {}
    }
    let mut line = Line::default();
    for piece in data.chunks(7) {
        line.push(piece);
        while line.next(find).is_some() {}
    }
}

/// The logic for the joints 1 and 2 and the wheel 7, with clients and a bus that says anything at any
/// time. Returns the servos.
pub(crate) fn driver<P: Preset, S: Protocol>(data: &[u8], mut twin: Bus<S>) -> Bus<S> {
    let mut input = Input(data);
    let start = Instant::now();
    let mut now = start;
    let options = Options::<P> {
        ids: Some(vec![1, 2]),
        wheels: Some(vec![7]),
        baud: Some(1_000_000),
        ..Options::default()
    };
    let (rules, _) = options.settings().expect("they are good");
    let mut logic = BusLogic::<P::Maker>::new(rules, now);
    while !input.is_empty() {
        now += Duration::from_millis(input.byte().into());
        let claim = Claim {
            clients: vec![ClientId(input.byte().into())],
            until: input
                .flag()
                .then(|| now + Duration::from_millis(input.byte().into())),
        };
        let id = [1, 2, 7, 3][usize::from(input.byte() % 4)];
        let value = f64::from(input.number()) / 100.0 - 300.0;
        match input.byte() % 10 {
            0 => {
                let targets = ServoAngles {
                    ids: vec![id, 1],
                    angles: vec![value; 2],
                };
                let speed = input.flag().then_some(value);
                let _ = logic.move_to(&claim, &MoveServos { targets, speed });
            }
            1 => {
                let speeds = ServoSpeeds {
                    ids: vec![id],
                    speeds: vec![value],
                };
                let _ = logic.turn(now, &claim, &speeds);
            }
            2 => {
                let torque = ServoTorque {
                    on: input.flag(),
                    ids: vec![id],
                };
                let _ = logic.set_torque(now, &torque);
            }
            3 => drop(logic.stop(now)),
            4 => logic.client_gone(now, claim.clients[0]),
            5 if input.byte() == 0 => logic.failed(now, "unplugged"),
            6 if input.byte() == 0 => logic.shut_down(now),
            7 => logic.handle_bytes(now, input.piece()),
            8 => logic.guard_acted(now),
            _ => {}
        }
        while let Some(bytes) = twin.poll_output(now - start) {
            logic.handle_bytes(now, &bytes);
        }
        logic.handle_timeout(now);
        let mut actions = 0;
        while let Some(output) = logic.poll_output(now) {
            actions += 1;
            assert!(actions < 100, "it never comes to rest: {output:?}");
            match output {
                Output::Open => logic.opened(now),
                Output::Write(bytes) => twin.handle_bytes(now - start, &bytes),
                Output::Close => {}
                Output::End => return twin,
            }
        }
        if let Some(words) = logic.last_words() {
            assert!(words.starts_with(&[0xFF, 0xFF]));
        }
        let _ = (logic.wake_at(now), logic.states(), logic.take_fresh());
        while logic.poll_note().is_some() {}
    }
    twin
}

/// The simulated servos, which take whatever is said to them.
pub(crate) fn device<S: Protocol>(
    data: &[u8],
    mut twin: Bus<S>,
    packet: fn(u8, u8, &[u8]) -> Vec<u8>,
    motor: fn(&mut S::Servo) -> &mut Motor,
) {
    let mut input = Input(data);
    let mut now = Duration::ZERO;
    twin.echoes = input.flag();
    while !input.is_empty() {
        match input.byte() % 4 {
            0 => now += Duration::from_millis(u64::from(input.number()) % 1_000),
            1 => motor(twin.servo(0)).is_blocked = input.flag(),
            2 => {
                let parameters = input.piece();
                let parameters = &parameters[..parameters.len().min(200)];
                let (id, instruction) = (input.byte(), input.byte());
                twin.handle_bytes(now, &packet(id, instruction, parameters));
            }
            _ => twin.handle_bytes(now, input.piece()),
        }
        twin.advance(now);
        while twin.poll_output(now).is_some() {}
        assert!(
            twin.servos()
                .iter()
                .all(|servo| servo.show().steps.is_finite())
        );
        assert!(twin.next_timeout().is_none_or(|due| due > now));
    }
}
