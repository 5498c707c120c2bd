//! The firmware's reader of lines, with its peculiarities. PURE.

/// The room for an argument. The firmware writes beyond it; this one leaves the rest out.
const ROOM: usize = 15;
/// Andino's gains have the most arguments.
const ARGUMENTS: usize = 4;

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The last character before the first blank, or 0.
    pub(super) letter: u8,
    arguments: Vec<Vec<u8>>,
}

impl Line {
    /// An argument as C's `atoi` reads it into 16 bits: its beginning, or 0.
    pub(super) fn number(&self, argument: usize) -> i16 {
        let text = self.arguments.get(argument).map_or(&[][..], Vec::as_slice);
        let (digits, sign) = match text {
            [b'-', digits @ ..] => (digits, -1),
            [b'+', digits @ ..] => (digits, 1),
            digits => (digits, 1),
        };
        let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0'));
        // Of 15 characters; it wraps as on an AVR.
        (sign * number) as i16
    }
}

/// The line that has begun.
#[derive(Clone, Debug, Default)]
pub(super) struct Input(Line);

impl Input {
    /// Adds a byte. Returns the line that it ends, if it does.
    pub(super) fn push(&mut self, byte: u8) -> Option<Line> {
        let line = &mut self.0;
        match byte {
            b'\r' => return Some(std::mem::take(line)),
            b' ' if line.arguments.len() < ARGUMENTS => line.arguments.push(Vec::new()),
            b' ' => {}
            _ => match line.arguments.last_mut() {
                // The letter is that of the next character, so a line may also end with CR LF.
                None => line.letter = byte,
                Some(argument) if argument.len() < ROOM => argument.push(byte),
                Some(_) => {}
            },
        }
        None
    }
}
