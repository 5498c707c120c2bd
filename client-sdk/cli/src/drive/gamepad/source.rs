//! Finds a gamepad and reads its events. IO.
//!
//! `sim:PATH` is a gamepad of a test: a Unix socket that sends a line of JSON with its name and the
//! axes of its left stick, and then events as the system writes them. Its end is the end of the gamepad.

use amber_terminal::Failure;
use tokio::sync::mpsc;

use super::pad::{Event, Pad};

/// A gamepad, and what comes from it: the events of one moment at a time. They end with it.
pub(in crate::drive) struct Gamepad {
    pub(in crate::drive) name: String,
    pub(in crate::drive) pad: Pad,
    pub(in crate::drive) events: mpsc::Receiver<Vec<Event>>,
}

/// Opens a gamepad: its file, `sim:PATH`, or `auto` for the first one.
///
/// # Errors
/// There is none, or it may not be read.
pub(in crate::drive) fn open(which: &str) -> Result<Gamepad, Failure> {
    #[cfg(unix)]
    if let Some(path) = which.strip_prefix("sim:") {
        return simulated::open(path)
            .map_err(|error| Failure::new(format!("cannot open the gamepad {which}: {error}")));
    }
    #[cfg(target_os = "linux")]
    return linux::open(which);
    #[cfg(not(target_os = "linux"))]
    Err(Failure::wrong(format!(
        "cannot read the gamepad {which}: gamepads need Linux"
    ))
    .hint("drive with the keyboard"))
}

/// Reads events in a thread of its own: `next` blocks. They end when it fails.
#[cfg(unix)]
fn events(
    mut next: impl FnMut() -> std::io::Result<Vec<Event>> + Send + 'static,
) -> std::io::Result<mpsc::Receiver<Vec<Event>>> {
    let (events, received) = mpsc::channel(64);
    // The thread stays in its read, so it is not joined.
    std::thread::Builder::new()
        .name("gamepad".into())
        .spawn(move || {
            while let Ok(batch) = next() {
                if events.blocking_send(batch).is_err() {
                    return;
                }
            }
        })?;
    Ok(received)
}

#[cfg(unix)]
mod simulated {
    use std::io::{self, BufRead, BufReader, Read};
    use std::os::unix::net::UnixStream;

    use serde::Deserialize;

    use super::{Gamepad, events};
    use crate::drive::gamepad::pad::{Axis, Event, Pad, REPORT, SYN};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Description {
        name: String,
        x: Axis,
        y: Axis,
    }

    pub(super) fn open(path: &str) -> io::Result<Gamepad> {
        let mut socket = BufReader::new(UnixStream::connect(path)?);
        let mut line = String::new();
        socket.read_line(&mut line)?;
        let Description { name, x, y } = serde_json::from_str(&line)?;
        let next = move || {
            let mut batch = Vec::new();
            loop {
                let mut bytes = [0; Event::LENGTH];
                socket.read_exact(&mut bytes)?;
                let event = Event::read(&bytes);
                batch.push(event);
                if (event.kind, event.code) == (SYN, REPORT) {
                    return Ok(batch);
                }
            }
        };
        Ok(Gamepad {
            name,
            pad: Pad::new([x, y], false),
            events: events(next)?,
        })
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::io;

    use amber_terminal::Failure;
    use evdev::{AbsoluteAxisCode, Device, KeyCode, PropType};

    use super::{Gamepad, events};
    use crate::drive::gamepad::pad::{Axis, Event, LEFT_SHOULDER, Pad, SOUTH, X, Y};

    const FOLDER: &str = "/dev/input";

    pub(super) fn open(which: &str) -> Result<Gamepad, Failure> {
        if which == "auto" {
            let mut found: Vec<_> = evdev::enumerate().collect();
            found.sort_by(|(a, _), (b, _)| a.cmp(b));
            let gamepad = found.into_iter().find(|(_, device)| is_gamepad(device));
            let (path, device) = gamepad.ok_or_else(none)?;
            return read(device).map_err(|error| failed(&path.to_string_lossy(), &error));
        }
        let device = Device::open(which).map_err(|error| failed(which, &error))?;
        if !is_gamepad(&device) {
            let name = device.name().unwrap_or("it");
            return Err(Failure::wrong(format!("{which} is no gamepad, but {name:?}")).hint(MODE));
        }
        read(device).map_err(|error| failed(which, &error))
    }

    const MODE: &str = "a gamepad of Logitech needs its switch at X; `--gamepad` alone finds it";

    /// Some gamepads have further files: one for their motion sensor, and one for their touchpad.
    fn is_gamepad(device: &Device) -> bool {
        let keys = device.supported_keys();
        let axes = device.supported_absolute_axes();
        keys.is_some_and(|keys| keys.contains(KeyCode(SOUTH)))
            && axes.is_some_and(|axes| [X, Y].iter().all(|it| axes.contains(AbsoluteAxisCode(*it))))
            && !device.properties().contains(PropType::ACCELEROMETER)
    }

    fn read(mut device: Device) -> io::Result<Gamepad> {
        let mut axes = [Axis {
            min: -1,
            max: 1,
            flat: 0,
        }; 2];
        for (code, info) in device.get_absinfo()? {
            if let Some(axis) = axes.get_mut(usize::from(code.0)) {
                *axis = Axis {
                    min: info.minimum(),
                    max: info.maximum(),
                    flat: info.flat(),
                };
            }
        }
        let is_pressed = device.get_key_state()?.contains(KeyCode(LEFT_SHOULDER));
        Ok(Gamepad {
            name: device.name().unwrap_or("a gamepad").to_owned(),
            pad: Pad::new(axes, is_pressed),
            // If events were lost, it asks for the state, and reports what has changed.
            events: events(move || {
                let batch = device.fetch_events()?.map(|event| Event {
                    kind: event.event_type().0,
                    code: event.code(),
                    value: event.value(),
                });
                Ok(batch.collect())
            })?,
        })
    }

    fn failed(which: &str, error: &io::Error) -> Failure {
        let failure = Failure::new(format!("cannot read the gamepad {which}: {error}"));
        match error.kind() {
            io::ErrorKind::PermissionDenied => failure.hint(GROUP),
            _ => failure.hint("is it plugged in? `--gamepad` alone finds it"),
        }
    }

    const GROUP: &str = "usually `sudo usermod -aG input $USER`, and a new login";

    /// There is no gamepad, or none that may be read.
    fn none() -> Failure {
        let files = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let files = files.filter(|it| it.file_name().to_string_lossy().starts_with("event"));
        let forbidden = files.filter(|it| {
            fs::File::open(it.path())
                .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        });
        match forbidden.count() {
            0 => Failure::new("no gamepad was found")
                .hint(format!("plug it in, and press a button; {MODE}")),
            count => Failure::new(format!(
                "no gamepad was found, but {count} devices in {FOLDER} may not be read"
            ))
            .hint(GROUP),
        }
    }
}
