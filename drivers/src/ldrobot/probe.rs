//! Recognizes a scanner by the packets that it sends. IO.

use std::time::Duration;

use super::packet::Parser;
use crate::connection::Connection;
use crate::probe::{Identity, NoAnswer, hear};

/// A scanner that turns sends hundreds of packets in this time.
const PATIENCE: Duration = Duration::from_millis(1_200);
/// Random bytes may look like a packet, but not as often.
const ENOUGH: u32 = 3;

/// Listens; sends nothing.
///
/// # Errors
/// No scanner is heard.
pub(crate) async fn listen(mut port: Box<dyn Connection>) -> Result<Identity, NoAnswer> {
    let mut parser = Parser::default();
    let mut packets = 0;
    let read = |bytes: &[u8]| {
        parser.push(bytes);
        std::iter::from_fn(|| parser.poll()).find_map(|packet| {
            packets += 1;
            (packets == ENOUGH).then(|| {
                let turns_per_s = f64::from(packet.speed_deg_s) / 360.0;
                Identity::usable(format!("it turns {turns_per_s:.1} times a second"))
            })
        })
    };
    let heard = hear(&mut *port, PATIENCE, read).await?;
    heard.ok_or(NoAnswer::Silent)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::super::packet::LENGTH;
    use super::*;

    /// 3600 degrees per second.
    const PACKET: [u8; LENGTH] = [
        0x54, 0x2C, 0x10, 0x0E, 0xB8, 0x88, 0xE8, 0x03, 0xC8, 0xF2, 0x03, 0xC9, 0xFC, 0x03, 0xCA,
        0x06, 0x04, 0xCB, 0x10, 0x04, 0xCC, 0x1A, 0x04, 0xCD, 0x24, 0x04, 0xCE, 0x2E, 0x04, 0xCF,
        0x38, 0x04, 0xD0, 0x42, 0x04, 0xD1, 0x4C, 0x04, 0xD2, 0x56, 0x04, 0xD3, 0x28, 0x8C, 0x39,
        0x30, 0xD1,
    ];

    async fn hears(sent: &[u8]) -> Result<Identity, NoAnswer> {
        let (ours, mut theirs) = duplex(1024);
        theirs.write_all(sent).await.unwrap();
        listen(Box::new(ours)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_scanner_is_recognized_by_three_packets() {
        let found = hears(&PACKET.repeat(3)).await.unwrap();
        assert_eq!(found.text, "it turns 10.0 times a second");
        assert_eq!(hears(&PACKET.repeat(2)).await, Err(NoAnswer::Silent));
        assert_eq!(hears(&PACKET[1..].repeat(3)).await, Err(NoAnswer::Silent));
    }
}
