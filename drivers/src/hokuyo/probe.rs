//! Recognizes a scanner by its reply to `VV`. IO.

use std::time::Duration;

use super::description::Description;
use super::scip::{Parser, REFUSED_BY_SCIP_1, Reply};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, exchange};

const REQUEST: &[u8] = b"VV\n";
/// At 19200 baud, the reply takes 0.1 s.
const PATIENCE: Duration = Duration::from_millis(800);

/// Asks for the version.
///
/// # Errors
/// No scanner answers.
pub(crate) async fn ask(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let mut parser = Parser::default();
    let read = |bytes: &[u8]| {
        parser.push(bytes);
        std::iter::from_fn(|| parser.poll()).find_map(|reply| identity(&reply))
    };
    exchange(&mut *port, REQUEST, PATIENCE, read).await
}

fn identity(reply: &Reply) -> Option<Identity> {
    if reply.status == REFUSED_BY_SCIP_1 {
        // The driver makes it speak SCIP 2.
        return Some(Identity::usable("a scanner that speaks SCIP 1 now"));
    }
    reply.echo.starts_with("VV").then(|| {
        let mut description = Description::default();
        description.read_version(reply);
        Identity::usable(description.name())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::device;

    #[tokio::test(start_paused = true)]
    async fn a_scanner_is_recognized_also_while_it_sends_scans() {
        let (port, heard) = device(|_| {
            let scan = &b"MD0044072501000\n99b\n0abc\n\n"[..];
            let version = b"VV\n00P\nPROD:URG-04LX;B\nFIRM:3.3.00;:\n\n";
            [scan, version].concat()
        });
        let found = ask(port).await.unwrap();
        assert_eq!(found, Identity::usable("URG-04LX, firmware 3.3.00"));
        assert_eq!(*heard.lock().unwrap(), REQUEST);
    }

    #[tokio::test(start_paused = true)]
    async fn another_device_is_not_a_scanner() {
        let (port, _) = device(|_| b"ERROR\r\n\r\n".to_vec());
        assert_eq!(ask(port).await, Err(NoAnswer::Silent));
    }
}
