//! What is wrong with a file. PURE.

/// A damaged part of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// What is damaged.
    pub what: String,
    /// Its place in the file, in bytes from the start.
    pub at: u64,
    /// Its length in the file.
    pub bytes: u64,
    /// The effect.
    pub effect: Effect,
    /// The messages in it, if they can be counted, or else 0.
    pub messages: u64,
    /// The first message in it, or the last one before it, in nanoseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ns: Option<u64>,
    /// The last message in it, or the first one behind it, in nanoseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_ns: Option<u64>,
}

/// The effect of a damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// All messages are there: the damaged part only helps to find them.
    Harmless,
    /// At least one of these messages is not what was recorded, and the others may be.
    Doubtful,
    /// The content of this part is lost.
    #[default]
    Lost,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (at byte {}", self.what, self.at)?;
        match self.bytes {
            0 => f.write_str(")"),
            bytes => write!(f, ", {bytes} bytes)"),
        }
    }
}
