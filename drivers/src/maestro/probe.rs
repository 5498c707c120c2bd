//! Recognizes a servo controller by its answer about a servo. IO.

use std::time::Duration;

use super::protocol::{Command, Framing};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, exchange};

const PATIENCE: Duration = Duration::from_millis(300);
/// The longest pulse that a servo gets, in quarters of a microsecond.
const MAX_QUARTERS_US: u16 = 4 * 4000;

/// Asks for the position of servo 0.
///
/// # Errors
/// No controller answers.
pub(crate) async fn ask(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let request = Command::GetPosition { servo: 0 }.bytes(Framing::default());
    let mut answer = Vec::new();
    let read = |bytes: &[u8]| {
        answer.extend(bytes);
        identity(&answer)
    };
    exchange(&mut *port, &request, PATIENCE, read).await
}

/// Reads the answer: two bytes, the low one first.
fn identity(answer: &[u8]) -> Option<Identity> {
    let [low, high] = *answer else {
        return None;
    };
    let quarters_us = u16::from_le_bytes([low, high]);
    let state = match quarters_us {
        0 => "servo 0 gets no pulses".to_owned(),
        1..=MAX_QUARTERS_US => format!("servo 0 gets pulses of {} us", quarters_us / 4),
        _ => return None,
    };
    Some(Identity::usable(state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::device;

    #[tokio::test(start_paused = true)]
    async fn a_controller_answers_with_the_pulse_of_a_servo() {
        let (port, heard) = device(|_| vec![0x70, 0x17]);
        let found = ask(port).await.unwrap();
        assert_eq!(found.text, "servo 0 gets pulses of 1500 us");
        assert_eq!(*heard.lock().unwrap(), [0x90, 0x00]);
    }

    #[tokio::test(start_paused = true)]
    async fn text_is_not_an_answer() {
        let (port, _) = device(|_| b"hello".to_vec());
        assert_eq!(ask(port).await, Err(NoAnswer::Silent));
        let (port, _) = device(|_| vec![0xFF, 0xFF]);
        assert_eq!(ask(port).await, Err(NoAnswer::Silent));
    }
}
