//! Where the states of a gamepad come from: this computer, or a device of the mediator. IO.
//!
//! `sim:PATH` is a gamepad of a test: a Unix socket that sends what [`amber_gamepad::Reader`] reads. Its
//! end is the end of the gamepad.

use std::io;
use std::path::Path;
use std::thread;

use amber_client::Client;
use amber_gamepad::{DEAD_ZONE, Gamepad, Pad};
use amber_proto::gamepad::GamepadState;
use amber_proto::{Device, DeviceType};
use amber_terminal::Failure;
use tokio::sync::mpsc;

/// States that wait. Only the newest counts, but all are read: a press may be short.
const WAITING: usize = 64;

/// Which gamepad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::drive) enum Which {
    /// A device of the mediator.
    Device(Device),
    /// The file of an input device, or of a simulated one.
    File(String),
    /// The first input device that is one.
    First,
}

impl Which {
    /// Reads `auto`, the address of a device, or a file.
    pub(in crate::drive) fn of(text: &str) -> Self {
        match text.parse::<Device>() {
            _ if text == "auto" => Self::First,
            Ok(device) if device.device_type == DeviceType::GAMEPAD => Self::Device(device),
            _ => Self::File(text.to_owned()),
        }
    }
}

/// Opens a gamepad. Returns its name, and its states; they end with it.
///
/// # Errors
/// There is none, or it may not be read.
pub(in crate::drive) async fn open(
    client: &Client,
    which: &Which,
) -> Result<(String, mpsc::Receiver<GamepadState>), Failure> {
    let path = match which {
        Which::Device(device) => return follow(client, *device).await,
        Which::File(path) => Some(path.as_str()),
        Which::First => None,
    };
    #[cfg(unix)]
    if let Some(path) = path.and_then(|path| path.strip_prefix("sim:")) {
        return simulated::open(path)
            .map_err(|error| Failure::new(cannot_read(path, &error.to_string())));
    }
    let mut gamepad = Gamepad::open(path.map(Path::new)).map_err(|trouble| {
        let text = match path {
            Some(path) => cannot_read(path, &trouble.text),
            None => trouble.text,
        };
        let failure = match trouble.is_wrong {
            true => Failure::wrong(text),
            false => Failure::new(text),
        };
        failure.hint(trouble.hint)
    })?;
    let name = gamepad.description().name.clone();
    let mut pad = Pad::new(gamepad.description().clone(), DEAD_ZONE);
    let states = states(pad.state(), move || {
        for event in gamepad.read()? {
            pad.handle(event);
        }
        Ok(pad.state())
    });
    let states = states.map_err(|error| Failure::new(cannot_read(&name, &error.to_string())))?;
    Ok((name, states))
}

fn cannot_read(which: &str, why: &str) -> String {
    format!("cannot read the gamepad {which}: {why}")
}

/// The states that a device publishes, from the present one on.
async fn follow(
    client: &Client,
    device: Device,
) -> Result<(String, mpsc::Receiver<GamepadState>), Failure> {
    let gamepad = client.gamepad(device.id.0);
    let now = gamepad.state().await?;
    if !now.connected() {
        let why = match now.trouble() {
            "" => "it is not connected",
            trouble => trouble,
        };
        return Err(
            Failure::new(format!("{device} has no gamepad: {why}")).hint(format!(
                "`amber status {device}` says what its driver has found"
            )),
        );
    }
    let mut updates = gamepad.state_updates().await?;
    let (states, received) = mpsc::channel(WAITING);
    let name = format!("{} at {device}", now.name());
    // It ends with its reader, at the next state.
    tokio::spawn(async move {
        let mut state = now;
        while states.send(state).await.is_ok() {
            match updates.next().await {
                Some(update) => state = update.message,
                None => return,
            }
        }
    });
    Ok((name, received))
}

/// Reads states in a thread of its own: `next` blocks. They end when it fails.
fn states(
    first: GamepadState,
    mut next: impl FnMut() -> io::Result<GamepadState> + Send + 'static,
) -> io::Result<mpsc::Receiver<GamepadState>> {
    let (states, received) = mpsc::channel(WAITING);
    // The thread stays in its read, so it is not joined.
    thread::Builder::new()
        .name("gamepad".into())
        .spawn(move || {
            let mut state = Ok(first);
            while let Ok(found) = state {
                if states.blocking_send(found).is_err() {
                    return;
                }
                state = next();
            }
        })?;
    Ok(received)
}

#[cfg(unix)]
mod simulated {
    use std::io::{self, Read};
    use std::os::unix::net::UnixStream;

    use amber_gamepad::{DEAD_ZONE, Event, Pad, REPORT, Reader, SYN, Said};
    use amber_proto::gamepad::GamepadState;
    use tokio::sync::mpsc;

    use super::states;

    pub(super) fn open(path: &str) -> io::Result<(String, mpsc::Receiver<GamepadState>)> {
        let mut socket = UnixStream::connect(path)?;
        let mut reader = Reader::default();
        let description = loop {
            if let Said::Description(description) = next(&mut socket, &mut reader)? {
                break description;
            }
        };
        let name = description.name.clone();
        let mut pad = Pad::new(description, DEAD_ZONE);
        let states = states(pad.state(), move || {
            loop {
                let Said::Event(event) = next(&mut socket, &mut reader)? else {
                    continue;
                };
                pad.handle(event);
                let Event { kind, code, .. } = event;
                if (kind, code) == (SYN, REPORT) {
                    return Ok(pad.state());
                }
            }
        })?;
        Ok((name, states))
    }

    fn next(socket: &mut UnixStream, reader: &mut Reader) -> io::Result<Said> {
        let mut bytes = [0; 256];
        loop {
            if let Some(said) = reader.poll().map_err(io::Error::other)? {
                return Ok(said);
            }
            match socket.read(&mut bytes)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => reader.push(&bytes[..length]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gamepad_is_a_device_a_file_or_the_first_one() {
        let device = |id| Which::Device(Device::new(DeviceType::GAMEPAD, id));
        let file = |text: &str| Which::File(text.to_owned());
        for (text, expected) in [
            ("auto", Which::First),
            ("gamepad", device(0)),
            ("gamepad:1", device(1)),
            ("15:0", device(0)),
            ("/dev/input/event5", file("/dev/input/event5")),
            ("sim:/here", file("sim:/here")),
            ("dummy:0", file("dummy:0")),
        ] {
            assert_eq!(Which::of(text), expected, "{text}");
        }
    }
}
