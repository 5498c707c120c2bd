//! Recognizes a VESC by its firmware. IO.

use std::time::Duration;

use super::protocol::{Command, Frames, Version};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, exchange};

const PATIENCE: Duration = Duration::from_millis(500);

/// Asks for the firmware.
///
/// # Errors
/// No VESC answers.
pub(crate) async fn ask(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let mut frames = Frames::default();
    let read = |bytes: &[u8]| {
        frames.push(bytes);
        let mut payloads = std::iter::from_fn(|| frames.next_payload());
        payloads.find_map(|payload| Version::decode(&payload))
    };
    let request = Command::Version.encode(None);
    let version = exchange(&mut *port, &request, PATIENCE, read).await?;
    Ok(Identity {
        unusable: (!version.drives_motor).then(|| "it is not for motors".to_owned()),
        ..Identity::usable(format!("VESC with firmware {version}"))
    })
}

#[cfg(test)]
mod tests {
    use amber_sim::vesc::{Firmware, Vescs, framed};

    use super::*;
    use crate::probe::tests::device;

    #[tokio::test(start_paused = true)]
    async fn it_is_recognized_by_its_version() {
        let simulated = |request: &[u8]| {
            let mut vescs = Vescs::new(Firmware::V6_02);
            vescs.handle_bytes(Duration::ZERO, request);
            std::iter::from_fn(|| vescs.poll_output())
                .flatten()
                .collect()
        };
        let (port, heard) = device(simulated);
        let found = ask(port).await.unwrap();
        assert_eq!(found, Identity::usable("VESC with firmware 6.02 on 60_MK5"));
        assert_eq!(*heard.lock().unwrap(), [2, 1, 0, 0, 0, 3]);

        let other = [&[0, 6, 2, b'a', 0][..], &[0; 14], &[1]].concat();
        let (port, _) = device(move |_| framed(&other));
        let unusable = ask(port).await.unwrap().unusable;
        assert_eq!(unusable.as_deref(), Some("it is not for motors"));

        let (port, _) = device(|_| b"Invalid Command\r\n".to_vec());
        assert_eq!(ask(port).await, Err(NoAnswer::Silent));
    }
}
