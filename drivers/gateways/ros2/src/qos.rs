//! The quality of service as tokens show it. PURE.
//!
//! It is only shown: any publisher reaches any subscription of the same name and type.

use std::fmt;

/// The quality of service of a publisher or subscription, as far as Amber uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qos {
    /// Messages may be lost.
    pub is_best_effort: bool,
    /// Late subscribers get the last messages.
    pub is_transient_local: bool,
    /// How many messages are kept; `None` keeps all.
    pub depth: Option<u32>,
    /// After this many seconds a message is outdated.
    pub lifespan_s: Option<u32>,
}

impl Qos {
    /// Reliable, with the last ten messages: what most tools use.
    pub const DEFAULT: Self = Self {
        is_best_effort: false,
        is_transient_local: false,
        depth: Some(10),
        lifespan_s: None,
    };
    /// Best effort: scans and other measurements.
    pub const SENSOR_DATA: Self = Self {
        is_best_effort: true,
        depth: Some(5),
        ..Self::DEFAULT
    };
    /// Late subscribers get the last message: maps, fixed frames, the robot's description.
    pub const LATCHED: Self = Self {
        is_transient_local: true,
        depth: Some(1),
        ..Self::DEFAULT
    };

    /// The same with another depth.
    #[must_use]
    pub const fn with_depth(self, depth: u32) -> Self {
        Self {
            depth: Some(depth),
            ..self
        }
    }
}

/// As in tokens: what is usual is left out, but for the depth, for which programs assume different
/// values.
impl fmt::Display for Qos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reliability = if self.is_best_effort { "2" } else { "" };
        let durability = if self.is_transient_local { "1" } else { "" };
        write!(f, "{reliability}:{durability}:")?;
        match self.depth {
            Some(depth) => write!(f, ",{depth}")?,
            None => f.write_str("2,")?,
        }
        f.write_str(":,:")?;
        match self.lifespan_s {
            Some(seconds) => write!(f, "{seconds},0")?,
            None => f.write_str(",")?,
        }
        f.write_str(":,,")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_of_real_nodes() {
        let rosout = Qos {
            lifespan_s: Some(10),
            ..Qos::LATCHED.with_depth(1000)
        };
        let all = Qos {
            depth: None,
            ..Qos::DEFAULT
        };
        for (qos, text) in [
            (Qos::DEFAULT, "::,10:,:,:,,"),
            (Qos::SENSOR_DATA, "2::,5:,:,:,,"),
            (Qos::LATCHED, ":1:,1:,:,:,,"),
            (rosout, ":1:,1000:,:10,0:,,"),
            (all, "::2,:,:,:,,"),
        ] {
            assert_eq!(qos.to_string(), text);
        }
    }
}
