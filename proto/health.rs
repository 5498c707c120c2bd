//! Reports of a driver about the health of its devices and the outcome of commands.

use crate::limits::HEALTH_TEXT;
use crate::mediator::{Health, Outcome, health::State};

impl Health {
    /// The device works.
    pub fn ok() -> Self {
        Self {
            state: State::Ok.into(),
            text: None,
        }
    }

    /// The device does not work; the reason is one line for people.
    ///
    /// Control characters become spaces, and more than 200 bytes are cut off.
    pub fn in_trouble(text: &str) -> Self {
        Self {
            state: State::Trouble.into(),
            text: Some(sentence(text)),
        }
    }

    /// The trouble as one line that is safe for a terminal; `Ok(None)` if there
    /// is none.
    ///
    /// # Errors
    /// The state is missing or unknown.
    pub fn trouble(&self) -> Result<Option<String>, UnknownState> {
        match State::try_from(self.state) {
            Ok(State::Ok) => Ok(None),
            Ok(State::Trouble) => Ok(Some(sentence(self.text()))),
            Err(_) => Err(UnknownState),
        }
    }
}

impl Outcome {
    /// The driver carries out the command.
    pub fn accepted() -> Self {
        Self { refused: None }
    }

    /// The driver does not carry out the command; the reason is one line for people.
    ///
    /// Control characters become spaces, and more than 200 bytes are cut off.
    pub fn refusal(why: &str) -> Self {
        Self {
            refused: Some(sentence(why)),
        }
    }

    /// The reason of a refusal as one line that is safe for a terminal; `None` if the
    /// command was accepted.
    pub fn why_refused(&self) -> Option<String> {
        self.refused.as_deref().map(sentence)
    }
}

/// A [`Health`] of a later version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownState;

fn sentence(text: &str) -> String {
    let visible = text.split(|c: char| c.is_control() || c.is_whitespace());
    let words: Vec<&str> = visible.filter(|word| !word.is_empty()).collect();
    let mut line = words.join(" ");
    if line.is_empty() {
        line.push_str("it does not work");
    }
    // Rust 1.91 has `floor_char_boundary`.
    let mut end = line.len().min(HEALTH_TEXT);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.truncate(end);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_one_line_without_control_characters() {
        for (text, line) in [
            ("/dev/ttyACM0 does not exist", "/dev/ttyACM0 does not exist"),
            (" two\r\nlines\t", "two lines"),
            ("\u{1b}[31mred\u{7}\u{9b}", "[31mred"),
            ("", "it does not work"),
            ("\0", "it does not work"),
        ] {
            let trouble = Health::in_trouble(text);
            assert_eq!(trouble.trouble(), Ok(Some(line.to_owned())), "{text:?}");
            // The receiver does the same for reports of other senders.
            let foreign = Health {
                text: Some(text.to_owned()),
                ..trouble
            };
            assert_eq!(foreign.trouble(), Ok(Some(line.to_owned())), "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let trouble = Health::in_trouble(&"\u{17c}".repeat(150));
        assert_eq!(trouble.text().len(), HEALTH_TEXT);
        let trouble = Health::in_trouble(&format!("x{}", "\u{17c}".repeat(150)));
        assert_eq!(trouble.text().len(), HEALTH_TEXT - 1);
    }

    #[test]
    fn a_refusal_is_one_line_without_control_characters() {
        assert_eq!(Outcome::accepted().why_refused(), None);
        let foreign = Outcome {
            refused: Some("too\r\nfast\u{1b}".into()),
        };
        assert_eq!(foreign.why_refused().as_deref(), Some("too fast"));
        assert_eq!(Outcome::refusal("too\nfast"), Outcome::refusal("too fast"));
    }

    #[test]
    fn an_unknown_state_does_not_count_as_working() {
        assert_eq!(Health::ok().trouble(), Ok(None));
        let later = Health {
            state: 3,
            text: None,
        };
        assert_eq!(later.trouble(), Err(UnknownState));
    }
}
