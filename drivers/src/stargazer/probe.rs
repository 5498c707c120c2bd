//! Recognizes the sensor by what it sends by itself. IO.

use std::time::Duration;

use super::protocol::{Message, Parser};
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, hear};

/// The device reports about ten times per second.
const PATIENCE: Duration = Duration::from_secs(2);

/// Listens; sends nothing.
///
/// # Errors
/// No sensor is heard.
pub(crate) async fn listen(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let mut parser = Parser::default();
    let read = |bytes: &[u8]| {
        parser.push(bytes);
        std::iter::from_fn(|| parser.poll()).find_map(|message| identity(&message))
    };
    let heard = hear(&mut *port, PATIENCE, read).await?;
    heard.ok_or(NoAnswer::Silent)
}

fn identity(message: &Message) -> Option<Identity> {
    match message {
        Message::Fix(sightings) => {
            let nearest = sightings.first()?;
            Some(Identity::usable(format!(
                "it sees marker {}",
                nearest.marker
            )))
        }
        Message::DeadZone => Some(Identity::usable("it sees no marker now")),
        Message::MapId(_) | Message::Done(_) | Message::Value { .. } => None,
    }
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
    async fn a_sensor_is_recognized_by_its_reports() {
        let fix = b"67|+3.4`\r\n~^124706|-96.61|-48.13|-21.35|221.64`\r\n";
        assert_eq!(hears(fix).await.unwrap().text, "it sees marker 24706");
        let dead_zone = hears(b"~*DeadZone`").await.unwrap();
        assert_eq!(dead_zone.text, "it sees no marker now");
        assert_eq!(hears(b"$GPGGA,1,2\r\n").await, Err(NoAnswer::Silent));
    }
}
