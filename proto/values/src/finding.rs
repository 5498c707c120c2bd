//! A result of a test or a calibration. PURE.

use amber_proto::ninedof;

/// One result of a test or a calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject: `accel`, `gyro`, `magnet` or `file`.
    pub about: String,
    /// Whether the result is good.
    pub good: bool,
    /// Details for people.
    pub text: String,
}

impl From<ninedof::Finding> for Finding {
    fn from(finding: ninedof::Finding) -> Self {
        Self {
            good: finding.good(),
            about: finding.about.unwrap_or_default(),
            text: finding.text.unwrap_or_default(),
        }
    }
}

impl From<Finding> for ninedof::Finding {
    fn from(finding: Finding) -> Self {
        Self {
            about: Some(finding.about),
            good: Some(finding.good),
            text: Some(finding.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_keeps_each_field() {
        let finding = Finding {
            about: "gyro".into(),
            good: true,
            text: "fine".into(),
        };
        let message = ninedof::Finding::from(finding.clone());
        assert_eq!(Finding::from(message), finding);
    }
}
