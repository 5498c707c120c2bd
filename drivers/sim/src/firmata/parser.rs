//! How the program reads what arrives. PURE.

/// The most bytes of a sysex; the others are lost.
const MAX_SYSEX: usize = 64;

/// A command of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The question for the version.
    Version,
    /// Everything as at the start.
    Reset,
    /// The mode of a pin.
    Mode(u8, u8),
    /// The level of a pin.
    Level(u8, bool),
    /// The levels of eight pins.
    Port(u8, u8),
    /// The value of one of the first sixteen pins.
    Value(u8, u16),
    /// Whether a port is sent.
    ReportPort(u8, bool),
    /// Whether an analog input is sent.
    ReportChannel(u8, bool),
    /// What stands between F0 and F7.
    Sysex(Vec<u8>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Parser {
    sysex: Option<Vec<u8>>,
    /// A command that waits for data, and how many bytes it needs.
    begun: Option<(u8, usize)>,
    data: Vec<u8>,
}

impl Parser {
    /// Takes the next byte. Returns the command that it ends, if it does.
    pub(super) fn push(&mut self, byte: u8) -> Option<Command> {
        if let Some(sysex) = &mut self.sysex {
            // Only this byte ends it: a command in it is lost.
            if byte == 0xF7 {
                return self.sysex.take().map(Command::Sysex);
            }
            if sysex.len() < MAX_SYSEX {
                sysex.push(byte);
            }
            return None;
        }
        if let Some((command, needed)) = self.begun.filter(|_| byte < 0x80) {
            self.data.push(byte);
            if self.data.len() < needed {
                return None;
            }
            self.begun = None;
            return complete(command, &self.data);
        }
        let kind = if byte < 0xF0 { byte & 0xF0 } else { byte };
        let needed = match kind {
            0xE0 | 0x90 | 0xF4 | 0xF5 => 2,
            0xC0 | 0xD0 => 1,
            0xF0 => {
                self.sysex = Some(Vec::new());
                return None;
            }
            0xF9 => return Some(Command::Version),
            0xFF => {
                *self = Self::default();
                return Some(Command::Reset);
            }
            // A command that has begun goes on behind it.
            _ => return None,
        };
        self.begun = Some((byte, needed));
        self.data.clear();
        None
    }
}

fn complete(command: u8, data: &[u8]) -> Option<Command> {
    let low = command & 0x0F;
    match (command, command & 0xF0, data) {
        (0xF4, _, [pin, mode]) => Some(Command::Mode(*pin, *mode)),
        (0xF5, _, [pin, level]) => Some(Command::Level(*pin, *level != 0)),
        (_, 0xE0, [first, second]) => Some(Command::Value(low, super::join(*first, *second))),
        // The port has eight bits.
        (_, 0x90, [first, second]) => Some(Command::Port(low, super::join(*first, *second) as u8)),
        (_, 0xC0, [is_on]) => Some(Command::ReportChannel(low, *is_on != 0)),
        (_, 0xD0, [is_on]) => Some(Command::ReportPort(low, *is_on != 0)),
        _ => None,
    }
}
