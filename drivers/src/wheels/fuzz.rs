//! What the fuzz targets of wheels share. IO: it reads the clock once.

use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin};
use amber_values::WheelSpeeds;

use super::{Output, StreamAction, StreamModel};
use crate::fuzz::Input;

/// The logic of a model, with clients that do anything, and controllers that say anything, often what
/// `say` makes of the input. `check` sees what is sent to them.
pub(crate) fn run<M: StreamModel>(
    input: &mut Input<'_>,
    settings: M::Settings,
    say: impl Fn(&mut Input<'_>) -> Vec<u8>,
    check: impl Fn(&M, &[u8]),
) {
    let mut now = Instant::now();
    let mut logic = M::new(settings, now);
    while !input.is_empty() {
        match input.byte() % 10 {
            0 => now += Duration::from_millis(input.number().into()),
            1 => {
                let speeds = speeds(input);
                logic.drive(now, &[ClientId(1)], speeds);
            }
            2 => logic.ask(now, Origin::default()),
            3 => logic.client_died(ClientId(input.byte().into())),
            4 if input.byte() == 0 => logic.shut_down(),
            5 => logic.failed(now, "unplugged"),
            6 => logic.handle_bytes(now, input.piece()),
            7 => logic.set_listened(now, input.flag()),
            _ => logic.handle_bytes(now, &say(input)),
        }
        now += Duration::from_millis(1);
        logic.handle_timeout(now);
        let mut actions = 0;
        while let Some(action) = logic.poll_action(now) {
            actions += 1;
            assert!(actions < 100, "it never comes to rest: {action:?}");
            match action {
                StreamAction::Open => match input.flag() {
                    true => logic.opened(now),
                    false => logic.failed(now, "not there"),
                },
                StreamAction::Write(bytes) => check(&logic, &bytes),
                StreamAction::Close => {}
                StreamAction::End => return,
            }
        }
        let _ = (logic.trouble(), logic.battery(now));
        logic.battery_to_publish(now);
        while let Some(output) = logic.poll_output() {
            check_output(output);
        }
    }
}

/// Speeds of all wheels.
pub(crate) fn speeds(input: &mut Input<'_>) -> WheelSpeeds {
    let mut speed = || i32::from(input.number().cast_signed());
    WheelSpeeds {
        front_left_mm_s: speed(),
        front_right_mm_s: speed(),
        rear_left_mm_s: speed(),
        rear_right_mm_s: speed(),
    }
}

/// Both wheels of a side have one speed.
pub(crate) fn check_output<S>(output: Output<S>) {
    if let Output::Answer(_, speeds) | Output::Publish(speeds, _) = output {
        assert_eq!(speeds.front_left_mm_s, speeds.rear_left_mm_s);
        assert_eq!(speeds.front_right_mm_s, speeds.rear_right_mm_s);
    }
}
