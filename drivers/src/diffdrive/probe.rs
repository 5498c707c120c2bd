//! Recognizes the firmware by its answer to an empty line. IO.

use std::time::Duration;

use super::protocol::{Command, Family, Line, Lines};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, exchange, hear};

/// An Arduino restarts when its port is opened, and does not listen meanwhile.
const STARTS: Duration = Duration::from_millis(2_500);
const PATIENCE: Duration = Duration::from_millis(500);

/// Sends an empty line.
///
/// # Errors
/// No such firmware answers.
pub(crate) async fn ask(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    hear(&mut *port, STARTS, |_| None::<()>).await?;
    let mut lines = Lines::default();
    let read = |bytes: &[u8]| {
        let mut lines = bytes.iter().filter_map(|byte| lines.push(*byte));
        lines.find_map(|line| match line {
            Line::Invalid(Family::Bridge) => Some("firmware of ros_arduino_bridge"),
            Line::Invalid(Family::Andino) => Some("firmware of Andino"),
            _ => None,
        })
    };
    let request = Command::Empty.encode(Family::Bridge);
    let firmware = exchange(&mut *port, &request, PATIENCE, read).await?;
    Ok(Identity::usable(firmware))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::device;

    #[tokio::test(start_paused = true)]
    async fn both_families_are_recognized_by_their_words() {
        for (answer, expected) in [
            ("Invalid Command\r\n", Ok("firmware of ros_arduino_bridge")),
            ("Unknown command.\r\n", Ok("firmware of Andino")),
            ("Hello\r\n", Err(NoAnswer::Silent)),
            ("", Err(NoAnswer::Silent)),
        ] {
            let (port, heard) = device(move |_| answer.into());
            let found = ask(port).await.map(|it| it.text);
            assert_eq!(found, expected.map(str::to_owned), "{answer:?}");
            assert!(heard.lock().unwrap().iter().all(|byte| *byte == b'\r'));
        }
    }
}
