//! Recognizes a scanner by its answer to the question for its model. IO.

use std::time::Duration;

use super::product::Product;
use super::wire::{Question, STOP};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, exchange};

/// How long a scanner may take to say what it is. It is asked twice.
const PATIENCE: Duration = Duration::from_millis(300);

/// Stops a scan, and asks for model and firmware.
///
/// # Errors
/// No scanner answers.
pub(crate) async fn ask(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    info(&mut *port).await.map(|data| identity(&data))
}

/// The answer to the question for the model.
pub(super) async fn info(port: &mut dyn Connection) -> Result<Vec<u8>, NoAnswer> {
    let request = [&STOP[..], &Question::Info.request()].concat();
    let mut received = Vec::new();
    let read = |bytes: &[u8]| {
        received.extend_from_slice(bytes);
        Question::Info.answer(&received)
    };
    exchange(port, &request, PATIENCE, read).await
}

fn identity(data: &[u8]) -> Identity {
    let &[model, minor, major, ..] = data else {
        return Identity::usable("without a name");
    };
    match Product::of(model) {
        Some(product) => {
            let name = product.full_name(model);
            Identity::usable(format!("{name}, firmware {major}.{minor:02}"))
        }
        None => Identity {
            unusable: Some("it is no known model: configure it by hand, with --model".to_owned()),
            ..Identity::usable(format!("model {model:#04x}"))
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::device;

    #[tokio::test(start_paused = true)]
    async fn a_scanner_says_what_it_is_also_while_it_scans() {
        let (port, heard) = device(|_| {
            let points = [0x3E, 0x41, 0x2D, 0xA5, 0x5A].repeat(40);
            let info = [&[0xA5, 0x5A, 20, 0, 0, 0, 4, 0x18, 29, 1, 7][..], &[0; 16]].concat();
            [points, info].concat()
        });
        let found = ask(port).await.unwrap();
        assert_eq!(found, Identity::usable("A1M8, firmware 1.29"));
        assert_eq!(*heard.lock().unwrap(), [0xA5, 0x25, 0xA5, 0x50]);
    }

    #[tokio::test(start_paused = true)]
    async fn another_speed_or_another_device_does_not_answer() {
        let (port, _) = device(|_| vec![0x54, 0x2C, 0xA5, 0x5A, 1]);
        assert_eq!(ask(port).await, Err(NoAnswer::Silent));
    }

    #[test]
    fn an_unknown_model_is_not_configured() {
        let found = identity(&[0xF1, 0, 1, 0]);
        assert!(found.unusable.is_some(), "{found:?}");
    }
}
