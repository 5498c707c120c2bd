//! Cuts what arrives into commands. PURE.

/// The command that has begun.
#[derive(Clone, Debug, Default)]
pub(super) struct Input(Vec<u8>);

impl Input {
    /// Adds a byte. Returns the command that it completes: its opcode with its data.
    pub(super) fn push(&mut self, byte: u8) -> Option<Vec<u8>> {
        self.0.push(byte);
        let is_whole = self.0.len() > data_length(&self.0);
        is_whole.then(|| std::mem::take(&mut self.0))
    }
}

/// The length of the data behind an opcode. Unknown opcodes have none.
fn data_length(command: &[u8]) -> usize {
    let number = |index: usize| command.get(index).map(|byte| usize::from(*byte));
    match command[0] {
        129 | 138 | 142 | 141 | 147 | 150 | 165 => 1,
        162 => 2,
        139 | 144 | 168 => 3,
        137 | 145 | 146 | 163 | 164 => 4,
        167 => 15,
        // How many packets.
        148 | 149 => 1 + number(1).unwrap_or(0),
        // How many notes, of two bytes each.
        140 => 2 + number(2).map_or(0, |notes| 2 * notes),
        _ => 0,
    }
}
