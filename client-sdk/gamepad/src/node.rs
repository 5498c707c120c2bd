//! Finds a gamepad among the input devices of Linux, and reads its events. IO.

use std::fmt;
use std::io;
use std::path::Path;

use crate::event::{Description, Event};

/// Why a gamepad cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What is wrong.
    pub text: String,
    /// What to check.
    pub hint: String,
    /// Whether what was asked for is no gamepad.
    pub is_wrong: bool,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.text, self.hint)
    }
}

impl std::error::Error for Trouble {}

/// An open gamepad.
#[derive(Debug)]
pub struct Gamepad {
    description: Description,
    node: system::Node,
}

impl Gamepad {
    /// Opens the gamepad with this file, or the first one that is found. It may block for some
    /// milliseconds.
    ///
    /// # Errors
    /// There is none, or it may not be read.
    pub fn open(path: Option<&Path>) -> Result<Self, Trouble> {
        system::open(path)
    }

    /// What it is.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Waits for the events of one moment. If some were lost, they are those to the state now.
    ///
    /// # Errors
    /// The gamepad is gone.
    pub fn read(&mut self) -> io::Result<Vec<Event>> {
        self.node.read()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::io;
    use std::path::Path;

    use evdev::{AbsoluteAxisCode, Device, KeyCode, PropType};

    use super::{Gamepad, Trouble};
    use crate::event::{Description, Event, Range};

    const FOLDER: &str = "/dev/input";
    const GROUP: &str = "usually `sudo usermod -aG input $USER` and a new login, or a udev rule";
    const PLUG: &str = "plug it in, and press a button";
    const MODE: &str = "a gamepad of Logitech needs its switch at X";
    /// Every gamepad has this button, and a stick with these axes.
    const SOUTH: KeyCode = KeyCode::BTN_SOUTH;
    const STICK: [AbsoluteAxisCode; 2] = [AbsoluteAxisCode::ABS_X, AbsoluteAxisCode::ABS_Y];

    #[derive(Debug)]
    pub(super) struct Node(Device);

    impl Node {
        pub(super) fn read(&mut self) -> io::Result<Vec<Event>> {
            let events = self.0.fetch_events()?.map(|event| Event {
                kind: event.event_type().0,
                code: event.code(),
                value: event.value(),
            });
            Ok(events.collect())
        }
    }

    pub(super) fn open(path: Option<&Path>) -> Result<Gamepad, Trouble> {
        let Some(path) = path else {
            let mut found: Vec<_> = evdev::enumerate().collect();
            found.sort_by(|(a, _), (b, _)| a.cmp(b));
            let gamepad = found.into_iter().find(|(_, device)| is_gamepad(device));
            let (path, device) = gamepad.ok_or_else(none)?;
            return describe(device).map_err(|error| Trouble {
                text: format!("{}: {error}", path.display()),
                ..failed(&error)
            });
        };
        let device = Device::open(path).map_err(|error| failed(&error))?;
        if !is_gamepad(&device) {
            let name = device.name().unwrap_or("something else");
            return Err(Trouble {
                text: format!("it is {name:?}, and no gamepad"),
                hint: format!("{MODE}; without its file, the first gamepad is found"),
                is_wrong: true,
            });
        }
        describe(device).map_err(|error| failed(&error))
    }

    /// Some gamepads have further files: one for their motion sensor, and one for their touchpad.
    fn is_gamepad(device: &Device) -> bool {
        let keys = device.supported_keys();
        let axes = device.supported_absolute_axes();
        keys.is_some_and(|keys| keys.contains(SOUTH))
            && axes.is_some_and(|axes| STICK.iter().all(|axis| axes.contains(*axis)))
            && !device.properties().contains(PropType::ACCELEROMETER)
    }

    fn describe(device: Device) -> io::Result<Gamepad> {
        let axes = device.get_absinfo()?.map(|(code, info)| {
            let range = Range {
                min: info.minimum(),
                max: info.maximum(),
                flat: info.flat(),
            };
            (code.0, range)
        });
        let description = Description {
            name: device.name().unwrap_or("a gamepad").to_owned(),
            vendor: device.input_id().vendor(),
            axes: axes.collect(),
            held: device.get_key_state()?.iter().map(|key| key.0).collect(),
        };
        Ok(Gamepad {
            description,
            node: Node(device),
        })
    }

    fn failed(error: &io::Error) -> Trouble {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => GROUP,
            _ => "is it plugged in? Without its file, the first gamepad is found",
        };
        Trouble {
            text: error.to_string(),
            hint: hint.to_owned(),
            is_wrong: false,
        }
    }

    /// There is no gamepad, or none that may be read.
    fn none() -> Trouble {
        let files = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let files = files.filter(|it| it.file_name().to_string_lossy().starts_with("event"));
        let forbidden = files.filter(|it| {
            fs::File::open(it.path())
                .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        });
        let (text, hint) = match forbidden.count() {
            0 => ("no gamepad was found".to_owned(), format!("{PLUG}; {MODE}")),
            count => {
                let devices = format!("{count} devices in {FOLDER} may not be read");
                let text = format!("no gamepad was found, but {devices}");
                (text, GROUP.to_owned())
            }
        };
        Trouble {
            text,
            hint,
            is_wrong: false,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_cannot_be_opened_says_what_to_check() {
            let nowhere = open(Some(Path::new("/nowhere/event5"))).unwrap_err();
            assert_eq!(
                nowhere.to_string(),
                "No such file or directory (os error 2): is it plugged in? Without its file, the first \
                 gamepad is found"
            );
            let forbidden = failed(&io::ErrorKind::PermissionDenied.into());
            assert_eq!(forbidden.hint, GROUP);
            assert!(none().text.starts_with("no gamepad was found"));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::path::Path;

    use super::{Gamepad, Trouble};
    use crate::event::Event;

    /// There is none.
    #[derive(Debug)]
    pub(super) enum Node {}

    impl Node {
        pub(super) fn read(&mut self) -> io::Result<Vec<Event>> {
            match *self {}
        }
    }

    pub(super) fn open(_path: Option<&Path>) -> Result<Gamepad, Trouble> {
        Err(Trouble {
            text: "gamepads need Linux".to_owned(),
            hint: "drive with the keyboard".to_owned(),
            is_wrong: true,
        })
    }
}
