//! Recognizes a board by its version of Firmata. IO.

use std::time::Duration;

use super::protocol::{Command, Message, Parser};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, exchange, hear};

/// An Arduino restarts when its port is opened, and then shows its version with its light. Many say it
/// afterwards by themselves.
const STARTS: Duration = Duration::from_millis(2_500);
const PATIENCE: Duration = Duration::from_millis(750);
const NAME: Duration = Duration::from_millis(300);

/// Listens, and asks for the version and for the program.
///
/// # Errors
/// No board with Firmata answers.
pub(crate) async fn ask(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let mut parser = Parser::default();
    let (mut version, mut firmware) = (None, None);
    let mut read = |bytes: &[u8]| {
        for byte in bytes {
            match parser.push(*byte) {
                Some(Message::Version(2, minor)) => version = Some(minor),
                Some(Message::Firmware(name)) => firmware = Some(name),
                _ => {}
            }
        }
        version
    };
    let heard = hear(&mut *port, STARTS, &mut read).await?;
    let minor = match heard {
        Some(minor) => minor,
        None => {
            exchange(
                &mut *port,
                &Command::AskVersion.encode(),
                PATIENCE,
                &mut read,
            )
            .await?
        }
    };
    if firmware.is_none() {
        let read = |bytes: &[u8]| {
            bytes.iter().find_map(|byte| match parser.push(*byte) {
                Some(Message::Firmware(name)) => Some(name),
                _ => None,
            })
        };
        // Some programs have no name.
        firmware = match exchange(&mut *port, &Command::AskFirmware.encode(), NAME, read).await {
            Ok(name) => Some(name),
            Err(NoAnswer::Silent) => None,
            Err(error) => return Err(error),
        };
    }
    let firmware = firmware.unwrap_or_else(|| "a program without a name".to_owned());
    let text = format!("Firmata 2.{minor}, {firmware}");
    let unusable = (minor < 5).then(|| {
        "the driver needs Firmata 2.5 or a later 2: put a current StandardFirmata on the board"
            .to_owned()
    });
    Ok(Identity {
        unusable,
        ..Identity::usable(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::device;

    const FIRMWARE: &[u8] = b"\xF0\x79\x02\x05\x41\x00\xF7";

    /// Answers each question, all of which arrive one by one.
    fn answer(request: &[u8], minor: u8) -> Vec<u8> {
        match request {
            [0xF9] => vec![0xF9, 0x02, minor],
            [0xF0, 0x79, 0xF7] => FIRMWARE.to_vec(),
            _ => Vec::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_board_says_its_version_and_its_program() {
        let (port, heard) = device(|request| answer(request, 5));
        let found = ask(port).await.unwrap();
        assert_eq!(
            (found.text.as_str(), found.unusable),
            ("Firmata 2.5, A 2.5", None)
        );
        assert_eq!(*heard.lock().unwrap(), [0xF9, 0xF0, 0x79, 0xF7]);
        let (port, _) = device(|request| answer(request, 3));
        assert!(ask(port).await.unwrap().unusable.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_board_without_a_name_is_recognized_and_others_are_not() {
        let (port, _) = device(|request| match request {
            [0xF9] => vec![0xF9, 0x02, 0x06],
            _ => Vec::new(),
        });
        let found = ask(port).await.unwrap();
        assert_eq!(found.text, "Firmata 2.6, a program without a name");
        for other in [&b""[..], b"Invalid Command\r\n", b"\xF9\x01\x05", b"\xF9"] {
            let (port, heard) = device(move |_| other.to_vec());
            assert_eq!(ask(port).await, Err(NoAnswer::Silent), "{other:02x?}");
            assert!(heard.lock().unwrap().iter().all(|byte| *byte == 0xF9));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_board_that_starts_needs_no_question() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
        let (ours, mut theirs) = duplex(1024);
        let banner = [&b"\xF9\x02\x05"[..], FIRMWARE].concat();
        theirs.write_all(&banner).await.unwrap();
        let found = ask(Box::new(ours)).await.unwrap();
        assert_eq!(found.text, "Firmata 2.5, A 2.5");
        let mut asked = Vec::new();
        theirs.read_to_end(&mut asked).await.unwrap();
        assert_eq!(asked, [0_u8; 0]);
    }
}
