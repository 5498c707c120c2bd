//! Recognizes the robot by its mode. IO.

use std::time::Duration;

use super::protocol::Command;
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, exchange};

/// The question for a packet, and the packet with the mode.
const QUERY: u8 = 142;
const MODE: u8 = 35;
/// What may have been a stream ends in this time, and a robot is ready for the question.
const SETTLES: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_millis(300);

/// Starts the interface, which ends what the robot does, and asks for its mode.
///
/// # Errors
/// No robot answers.
pub(crate) async fn ask(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let start = [Command::Start, Command::Quiet]
        .map(Command::encode)
        .concat();
    // It does not answer this, twice.
    let told = exchange(&mut *port, &start, SETTLES, |_| None::<()>).await;
    if let Err(error @ NoAnswer::Failed(_)) = told {
        return Err(error);
    }
    // Passive mode, and nothing else.
    let is_passive = |bytes: &[u8]| (bytes == [1]).then_some(());
    exchange(&mut *port, &[QUERY, MODE], PATIENCE, is_passive).await?;
    Ok(Identity::usable("it answers like a Create 2 or a Roomba"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::device;

    #[tokio::test(start_paused = true)]
    async fn only_one_byte_of_passive_mode_is_a_robot() {
        for (answer, is_robot) in [
            (&[1][..], true),
            (&[][..], false),
            (&[0][..], false),
            (&[1, 1][..], false),
            (&b"Invalid Command\r\n"[..], false),
        ] {
            let answer = answer.to_vec();
            let (port, heard) = device(move |request| match request {
                [142, 35] => answer.clone(),
                _ => Vec::new(),
            });
            assert_eq!(ask(port).await.is_ok(), is_robot);
            // Nothing that could move it.
            let heard = heard.lock().unwrap();
            assert!(
                heard
                    .iter()
                    .all(|byte| [128, 150, 0, 142, 35].contains(byte))
            );
        }
    }
}
