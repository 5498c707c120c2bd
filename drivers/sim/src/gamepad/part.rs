//! The parts of a gamepad that a person moves, and their names. PURE.

use std::fmt;
use std::str::FromStr;

/// What a part is for Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Part {
    /// An axis that has its rest in the middle. To the right and down are positive there; here, up is.
    Stick { axis: u16, sign: f64 },
    /// An axis, a button or both.
    Trigger { axis: u16, button: u16 },
    /// A button: the code of its place.
    Button(u16),
    /// A direction of the direction pad.
    Direction { axis: u16, sign: f64 },
}

const PARTS: [(&str, Part); 21] = [
    ("left-x", Part::Stick { axis: 0, sign: 1.0 }),
    (
        "left-y",
        Part::Stick {
            axis: 1,
            sign: -1.0,
        },
    ),
    ("right-x", Part::Stick { axis: 3, sign: 1.0 }),
    (
        "right-y",
        Part::Stick {
            axis: 4,
            sign: -1.0,
        },
    ),
    (
        "left-trigger",
        Part::Trigger {
            axis: 2,
            button: 0x138,
        },
    ),
    (
        "right-trigger",
        Part::Trigger {
            axis: 5,
            button: 0x139,
        },
    ),
    ("south", Part::Button(0x130)),
    ("east", Part::Button(0x131)),
    ("west", Part::Button(0x134)),
    ("north", Part::Button(0x133)),
    ("select", Part::Button(0x13A)),
    ("mode", Part::Button(0x13C)),
    ("start", Part::Button(0x13B)),
    ("left-stick", Part::Button(0x13D)),
    ("right-stick", Part::Button(0x13E)),
    ("left-shoulder", Part::Button(0x136)),
    ("right-shoulder", Part::Button(0x137)),
    (
        "up",
        Part::Direction {
            axis: 0x11,
            sign: -1.0,
        },
    ),
    (
        "down",
        Part::Direction {
            axis: 0x11,
            sign: 1.0,
        },
    ),
    (
        "left",
        Part::Direction {
            axis: 0x10,
            sign: -1.0,
        },
    ),
    (
        "right",
        Part::Direction {
            axis: 0x10,
            sign: 1.0,
        },
    ),
];

/// A part, and how far it is held: `left-y=0.5`, or only `south`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hold {
    name: &'static str,
    pub(super) part: Part,
    /// To the right, up or pressed: 1. Buttons are always pressed.
    pub(super) value: f64,
}

impl Hold {
    /// The names of all parts.
    pub fn names() -> String {
        PARTS.map(|(name, _)| name).join(", ")
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::Stick { .. } | Part::Trigger { .. } => write!(f, "{}={}", self.name, self.value),
            Part::Button(_) | Part::Direction { .. } => f.write_str(self.name),
        }
    }
}

impl FromStr for Hold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let found = PARTS.into_iter().find(|(known, _)| *known == name);
        let Some((name, part)) = found else {
            return Err(format!("no such part ({}): {name:?}", Self::names()));
        };
        let range = match part {
            Part::Stick { .. } => -1.0..=1.0,
            Part::Trigger { .. } => 0.0..=1.0,
            Part::Button(_) | Part::Direction { .. } => match value {
                None => {
                    return Ok(Self {
                        name,
                        part,
                        value: 1.0,
                    });
                }
                Some(_) => return Err(format!("{name} takes no value")),
            },
        };
        let value = value.and_then(|value| value.parse().ok());
        let value = value.filter(|value| range.contains(value));
        let value = value.ok_or_else(|| {
            format!(
                "{name} needs a value from {} to 1, as in {name}=0.5",
                range.start()
            )
        })?;
        Ok(Self { name, part, value })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn parts_have_names() {
        let names: BTreeSet<_> = PARTS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), PARTS.len());
        for text in ["left-y=-0.5", "right-trigger=1", "south", "up"] {
            let hold: Hold = text.parse().unwrap();
            assert_eq!(hold.to_string(), text);
        }
        for (text, error) in [
            ("fire", "no such part (left-x, "),
            (
                "left-y",
                "left-y needs a value from -1 to 1, as in left-y=0.5",
            ),
            ("left-y=up", "left-y needs a value"),
            ("left-y=nan", "left-y needs a value"),
            ("left-trigger=-1", "left-trigger needs a value from 0 to 1"),
            ("south=1", "south takes no value"),
        ] {
            let found = text.parse::<Hold>().unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
    }
}
