//! Recognizes an ODrive by its firmware. IO.

use std::time::Duration;

use super::protocol::{Command, Lines, firmware};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, exchange};

const PATIENCE: Duration = Duration::from_millis(500);

/// Asks for the firmware.
///
/// # Errors
/// No ODrive answers.
pub(crate) async fn ask(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let mut lines = Lines::default();
    let read = |bytes: &[u8]| {
        let lines = bytes.iter().filter_map(|byte| lines.push(*byte));
        lines.flatten().find_map(|line| firmware(&line))
    };
    let request = [Command::Empty, Command::Information].map(Command::encode);
    let found = exchange(&mut *port, &request.concat(), PATIENCE, read).await?;
    let [major, minor, revision] = found;
    Ok(Identity::usable(format!(
        "ODrive with firmware {major}.{minor}.{revision}"
    )))
}

#[cfg(test)]
mod tests {
    use amber_sim::odrive::{Odrive, Variant};

    use super::*;
    use crate::probe::tests::device;

    #[tokio::test(start_paused = true)]
    async fn it_is_recognized_by_its_firmware() {
        let (port, heard) = device(|request| {
            let mut odrive = Odrive::new(Variant::Calibrated);
            odrive.handle_bytes(Duration::ZERO, request);
            std::iter::from_fn(|| odrive.poll_output())
                .flatten()
                .collect()
        });
        let found = ask(port).await.unwrap();
        assert_eq!(found, Identity::usable("ODrive with firmware 0.5.6"));
        assert_eq!(*heard.lock().unwrap(), b"\ni*105\n");
        let (port, _) = device(|_| b"Invalid Command\r\n".to_vec());
        assert_eq!(ask(port).await, Err(NoAnswer::Silent));
    }
}
