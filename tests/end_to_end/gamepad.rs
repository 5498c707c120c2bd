//! `amber drive --gamepad`: a socket is the gamepad, and the simulated robot shows what it does.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};

use crate::robot::{Robot, drives, stands};

const KEY: u16 = 1;
const STICK: u16 = 3;
const HOLD: u16 = 0x136;
const AHEAD: u16 = 1;

/// A gamepad that `amber drive` has opened.
struct Gamepad {
    socket: UnixStream,
    drive: Child,
}

impl Gamepad {
    fn of(robot: &Robot) -> Self {
        let path = robot.folder().join("gamepad");
        let listener = UnixListener::bind(&path).unwrap();
        let which = format!("--gamepad=sim:{}", path.display());
        let mut drive = robot.demo.amber(&["drive", &which]);
        drive.stdout(Stdio::piped()).stderr(Stdio::piped());
        let drive = drive.spawn().unwrap();
        let (mut socket, _) = listener.accept().unwrap();
        // The axes of a PlayStation pad, whose rest is 128.
        socket
            .write_all(
                b"{\"name\": \"a pad\", \"x\": {\"min\": 0, \"max\": 255}, \
                  \"y\": {\"min\": 0, \"max\": 255}}\n",
            )
            .unwrap();
        Self { socket, drive }
    }

    /// One report.
    fn says(&mut self, kind: u16, code: u16, value: i32) {
        for (kind, code, value) in [(kind, code, value), (0, 0, 0)] {
            let mut event = vec![0; 16];
            event.extend(kind.to_ne_bytes());
            event.extend(code.to_ne_bytes());
            event.extend(value.to_ne_bytes());
            self.socket.write_all(&event).unwrap();
        }
    }
}

#[test]
fn the_stick_drives_while_the_button_is_held_and_the_gamepad_is_there() {
    let robot = Robot::start();
    let mut gamepad = Gamepad::of(&robot);
    gamepad.says(STICK, AHEAD, 128);
    gamepad.says(STICK, AHEAD, 60);
    gamepad.says(KEY, HOLD, 1);
    robot.until("it drives", drives);
    let (x_m, y_m) = (robot.state().x_m, robot.state().y_m);
    gamepad.says(KEY, HOLD, 0);
    robot.until("it stands", stands);
    gamepad.says(KEY, HOLD, 1);
    robot.until("it drives again", drives);
    assert_ne!((robot.state().x_m, robot.state().y_m), (x_m, y_m));

    // Unplugged.
    let Gamepad { socket, mut drive } = gamepad;
    drop(socket);
    robot.until("it stands again", stands);
    assert_eq!(drive.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    drive.stderr.unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("the gamepad is gone"), "{said}");
    let mut shown = String::new();
    drive.stdout.unwrap().read_to_string(&mut shown).unwrap();
    assert!(
        shown.starts_with("a pad: hold the left shoulder"),
        "{shown}"
    );
}
