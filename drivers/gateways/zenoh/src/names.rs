//! Names of robots and operators. PURE.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::MAX_NAME;

/// The operator name of all nodes of ROS 2 together.
pub const ROS_OPERATOR: &str = "ros";

/// The name of a robot or operator: one part of a Zenoh key, and the name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// The reason why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid name '{0}': use up to {MAX_NAME} letters, digits, '-' and '_'")]
pub struct InvalidName(String);

impl Name {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_valid = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(allowed);
        match is_valid {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidName(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Name {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_part_of_a_key() {
        for valid in ["r1", "robot-7", "Alice_2", "7"] {
            assert_eq!(valid.parse::<Name>().unwrap().as_str(), valid);
        }
        let long = "a".repeat(MAX_NAME + 1);
        for invalid in ["", "a/b", "*", "$*", "@x", "a b", "ä", "a#", &long] {
            assert!(invalid.parse::<Name>().is_err(), "{invalid}");
        }
    }
}
