//! Recognizes the controllers on a line by their firmware. IO.

use std::time::Duration;

use super::bus::Bus;
use super::logic::ExchangeError;
use super::protocol::{Check, Command, Reply};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer};

/// All addresses that a controller may have.
const ADDRESSES: std::ops::RangeInclusive<u8> = 0x80..=0x87;
/// The addresses that the driver uses unless it is configured otherwise.
const USUAL: [u8; 2] = [0x80, 0x81];
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// A disturbed answer is asked for again.
pub(super) const TRIES: usize = 2;

/// Asks all addresses for their firmware.
///
/// # Errors
/// No controller answers.
pub(crate) async fn ask(port: Box<dyn Connection>, place: String) -> Result<Identity, NoAnswer> {
    let mut bus = Bus::new(port, place, PATIENCE);
    // The controllers forget what they have received before, such as bytes of ModemManager.
    bus.settle().await.map_err(failed)?;
    let mut found = Vec::new();
    for address in ADDRESSES {
        if let Some((firmware, _)) = firmware(&mut bus, address).await? {
            found.push((address, firmware));
        }
    }
    identity(&found).ok_or(NoAnswer::Silent)
}

/// The firmware of the controller at an address and the checksum that it uses, if there is one.
pub(super) async fn firmware(
    bus: &mut Bus,
    address: u8,
) -> Result<Option<(String, Check)>, NoAnswer> {
    // The question has no checksum.
    let (command, check) = (Command::Version, Check::Crc16);
    let packet = command.encode(address, check);
    for _ in 0..TRIES {
        match bus.exchange(&packet, command.shape(None)).await {
            Ok(reply) => {
                if let Ok(Reply::Version(text, check)) = command.decode(address, check, &reply) {
                    return Ok(Some((text, check)));
                }
            }
            Err(ExchangeError::Silent | ExchangeError::Half) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(None)
}

pub(super) fn failed(error: ExchangeError) -> NoAnswer {
    NoAnswer::Failed(error.to_string())
}

/// What these controllers are; `None` without any.
fn identity(found: &[(u8, String)]) -> Option<Identity> {
    let firmware = &found.first()?.1;
    let listed = |addresses: &[(u8, String)]| {
        let all: Vec<_> = addresses.iter().map(|(at, _)| at.to_string()).collect();
        all.join(", ")
    };
    let (text, options, unusable) = match found {
        [(rear, _), (front, _)] => {
            let text = format!("two controllers, {firmware}, at the addresses {rear} and {front}");
            let options = match [*rear, *front] == USUAL {
                true => Vec::new(),
                false => vec![format!("--front={front}"), format!("--rear={rear}")],
            };
            (text, options, None)
        }
        // A controller on USB answers whatever address it is asked by.
        [(address, _)] | [(address, _), _, _, _, _, _, _, _] => {
            let text = format!("one controller, {firmware}");
            (text, vec![format!("--address={address}")], None)
        }
        many => {
            let text = format!("controllers, {firmware}, at the addresses {}", listed(many));
            let why = "the driver uses two of them: add it by hand with --front and --rear";
            (text, Vec::new(), Some(why))
        }
    };
    Some(Identity {
        text,
        options,
        unusable: unusable.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::probe::tests::device;
    use crate::roboclaw::fake::{FakePair, Mood};

    /// What a probe finds of these controllers, and the bytes that it has sent.
    async fn probe(pair: FakePair) -> (Result<Identity, NoAnswer>, Vec<u8>) {
        let pair = Mutex::new(pair);
        let (port, heard) = device(move |packet| pair.lock().unwrap().reply(packet));
        let found = ask(port, "the port".into()).await;
        let heard = heard.lock().unwrap().clone();
        (found, heard)
    }

    #[tokio::test(start_paused = true)]
    async fn two_controllers_of_each_generation_are_recognized_by_one_question_each() {
        for check in [Check::Crc16, Check::Legacy] {
            let (found, heard) = probe(FakePair::new(check)).await;
            let found = found.unwrap();
            let expected =
                "two controllers, USB Roboclaw 2x30a v4.2.8, at the addresses 128 and 129";
            assert_eq!((found.text.as_str(), found.unusable), (expected, None));
            assert!(found.options.is_empty());
            let questions = ADDRESSES.flat_map(|address| [address, 21]);
            assert_eq!(heard, questions.collect::<Vec<_>>());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_controller_drives_two_wheels() {
        let mut pair = FakePair::new(Check::Crc16);
        pair.mood[0] = Mood::Silent;
        let (found, _) = probe(pair.clone()).await;
        let found = found.unwrap();
        assert_eq!(
            (&*found.options, found.unusable),
            (&["--address=128".to_owned()][..], None)
        );
        pair.mood[1] = Mood::Silent;
        assert_eq!(probe(pair).await.0, Err(NoAnswer::Silent));
    }

    #[test]
    fn addresses_decide_about_the_options() {
        let found = |addresses: &[u8]| {
            let all: Vec<_> = addresses.iter().map(|at| (*at, "v4".to_owned())).collect();
            identity(&all).unwrap()
        };
        assert_eq!(found(&[0x82, 0x85]).options, ["--front=133", "--rear=130"]);
        // One controller on USB.
        let all: Vec<_> = ADDRESSES.collect();
        assert_eq!(found(&all).text, "one controller, v4");
        assert_eq!(found(&all).options, ["--address=128"]);
        assert!(
            found(&[0x80, 0x81, 0x82])
                .unusable
                .unwrap()
                .contains("--front")
        );
    }
}
