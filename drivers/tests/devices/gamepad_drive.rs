//! Compares what the driver of a gamepad tells with what a simulated person does.

use std::time::{Duration, Instant};

use amber_drivers::gamepad::Options;
use amber_drivers::gamepad::logic::{GamepadLogic, Output};
use amber_map::Map;
use amber_proto::gamepad::GamepadState;
use amber_proto::gamepad::gamepad_state::Button;
use amber_sim::Devices;
use amber_sim::ceiling::Ceiling;
use amber_sim::gamepad::{self, DEVICE, Gamepad, Hold, Model};
use amber_sim::robot::{Config, Fault, RobotTwin};
use amber_sim::world::find_start;

const STEP: Duration = Duration::from_millis(2);

/// A robot with a gamepad, and its driver.
struct Drive {
    robot: RobotTwin,
    logic: GamepadLogic,
    start: Instant,
    now: Duration,
    published: Vec<GamepadState>,
}

impl Drive {
    fn with(model: Model) -> Self {
        let map = Map::flat();
        let robot = RobotTwin::new(Config {
            start: find_start(&map.walls, &map.robots).unwrap(),
            walls: map.walls,
            seed: 1,
            speed: 1.0,
            ceiling: Ceiling::default(),
            devices: Devices {
                gamepad: gamepad::Options { model: Some(model) },
                ..Devices::default()
            },
        });
        let (settings, _) = Options::default().settings().unwrap();
        let start = Instant::now();
        Self {
            robot: robot.unwrap(),
            logic: GamepadLogic::new(settings, start),
            start,
            now: Duration::ZERO,
            published: Vec::new(),
        }
    }

    fn run(&mut self, milliseconds: u64) {
        let end = self.now + Duration::from_millis(milliseconds);
        while self.now < end {
            self.now += STEP;
            self.robot.advance(self.now);
            let now = self.start + self.now;
            while let Some(bytes) = self.robot.poll_output(self.now, DEVICE) {
                self.logic.handle_bytes(now, &bytes);
            }
            if self.logic.wake_at().is_some_and(|due| now >= due) {
                self.logic.handle_timeout(now);
            }
            while let Some(output) = self.logic.poll_output() {
                match output {
                    Output::Open if self.robot.is_plugged(DEVICE) => {
                        self.logic.opened(now);
                        self.robot.handle_bytes(self.now, DEVICE, b"\n");
                    }
                    Output::Open => self.logic.failed(now, "unplugged"),
                    Output::Publish(state) => self.published.push(state),
                    Output::Close | Output::Say(_) | Output::End => {}
                }
            }
        }
    }

    fn hold(&mut self, parts: &[&str]) {
        let held: Vec<Hold> = parts.iter().map(|part| part.parse().unwrap()).collect();
        let pad = self.robot.twin_mut::<Gamepad>().unwrap();
        pad.hold(self.now, &held);
    }

    fn state(&self) -> GamepadState {
        self.logic.state(self.start + self.now)
    }
}

fn is_near(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 0.02)
}

#[test]
fn clients_are_told_what_the_person_does_with_each_model() {
    for (model, half_trigger) in [
        (Model::Xbox, 0.432),
        (Model::Playstation, 0.432),
        // A button.
        (Model::Switch, 1.0),
    ] {
        let mut drive = Drive::with(model);
        drive.run(100);
        let rest = drive.state();
        assert!(rest.connected() && rest.buttons.is_empty(), "{rest:?}");
        assert_eq!((rest.left_y, rest.right_x), (Some(0.0), Some(0.0)));
        drive.hold(&["left-y=0.5", "right-x=-1", "left-trigger=0.5", "west", "up"]);
        drive.run(200);
        let state = drive.state();
        // Half of the way, less the rest of the stick.
        assert!(is_near(state.left_y, 0.432), "{model:?} {state:?}");
        assert!(is_near(state.right_x, -1.0), "{model:?} {state:?}");
        assert!(
            is_near(state.left_trigger, half_trigger),
            "{model:?} {state:?}"
        );
        assert_eq!((state.left_x, state.right_y), (Some(0.0), Some(0.0)));
        assert_eq!(
            state.buttons().collect::<Vec<_>>(),
            [Button::West, Button::Up]
        );
        drive.hold(&[]);
        drive.run(200);
        let state = GamepadState {
            age: None,
            ..drive.state()
        };
        assert_eq!((state.left_y, state.right_x), (Some(0.0), Some(0.0)));
        assert!(
            is_near(state.left_trigger, 0.0) && state.buttons.is_empty(),
            "{state:?}"
        );
        // Subscribers were told the same.
        let last = drive.published.last().cloned().unwrap();
        assert_eq!(GamepadState { age: None, ..last }, state);
    }
}

#[test]
fn an_unplugged_gamepad_holds_nothing_and_is_found_again() {
    let mut drive = Drive::with(Model::Playstation);
    drive.run(100);
    drive.hold(&["left-y=1", "left-shoulder"]);
    drive.run(200);
    assert!(is_near(drive.state().left_y, 1.0));
    let now = drive.now;
    drive.robot.begin(now, Fault::Unplug(DEVICE), None);
    let told = drive.start + drive.now;
    drive.logic.failed(told, "unplugged");
    drive.run(30);
    let last = drive.published.last().unwrap();
    assert!(!last.connected() && last.buttons.is_empty(), "{last:?}");
    assert_eq!(last.left_y, None);
    drive.run(3_000);
    drive.robot.clear();
    drive.run(3_000);
    // Still held, but not by a press after it was opened.
    let state = drive.state();
    assert!(state.connected() && state.buttons.is_empty(), "{state:?}");
    assert_eq!(state.left_y, Some(0.0));
    drive.hold(&[]);
    drive.run(200);
    drive.hold(&["left-y=1", "left-shoulder"]);
    drive.run(200);
    let state = drive.state();
    assert!(is_near(state.left_y, 1.0), "{state:?}");
    assert_eq!(state.buttons().collect::<Vec<_>>(), [Button::LeftShoulder]);
}
