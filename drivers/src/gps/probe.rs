//! Recognizes a receiver by the sentences that it sends. IO.

use super::nmea::{Parser, Quality, Sentence};
use super::port::PATIENCE;
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, hear};

/// Listens; sends nothing.
///
/// # Errors
/// No receiver is heard.
pub(crate) async fn listen(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let mut parser = Parser::default();
    let read = |bytes: &[u8]| {
        parser.push(bytes);
        std::iter::from_fn(|| parser.poll()).find_map(|sentence| identity(&sentence))
    };
    let heard = hear(&mut *port, PATIENCE, read).await?;
    heard.ok_or(NoAnswer::Silent)
}

fn identity(sentence: &Sentence) -> Option<Identity> {
    let quality = match sentence {
        Sentence::Gga(gga) => gga.quality,
        Sentence::Rmc(rmc) => rmc.quality,
        _ => return None,
    };
    Some(Identity::usable(match quality {
        Quality::None => "it has no position yet",
        Quality::Satellites(_) | Quality::DeadReckoning => "it has a position",
    }))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    async fn hears(sent: &[u8]) -> Result<Identity, NoAnswer> {
        let (ours, mut theirs) = duplex(1024);
        theirs.write_all(sent).await.unwrap();
        let found = listen(Box::new(ours)).await;
        drop(theirs);
        found
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_is_recognized_by_its_sentences() {
        let none = b"99,,,,,,*7F\r\n$GNRMC,101531.00,V,,,,,,,251126,,,N,V*1D\r\n";
        assert_eq!(hears(none).await.unwrap().text, "it has no position yet");
        let some =
            b"$GPGGA,101530.00,3351.36500,S,15112.91100,W,4,17,0.61,12.0,M,-21.3,M,1.0,0120*68\r\n";
        assert_eq!(hears(some).await.unwrap().text, "it has a position");
        // A StarGazer, and a broken sentence.
        let marker = hears(b"~^I534|+175.16|-3.66|-33.58|200.33`\r\n").await;
        assert_eq!(marker, Err(NoAnswer::Silent));
        assert_eq!(hears(&none[1..40]).await, Err(NoAnswer::Silent));
    }
}
