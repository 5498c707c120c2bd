//! A laser scanner. IO.

use std::time::Duration;

use amber_proto::hokuyo::DriverMsg;
use amber_proto::{Device, DeviceMessage};
use prost::Message;

use super::Proxy;
use crate::error::Result;
use crate::scan::{Scan, ScanError};
use crate::subscription::Subscription;

/// A laser scanner.
///
/// You may drop the future of any method: an unsent request is cancelled, and a
/// late answer is ignored.
#[derive(Clone, Debug)]
pub struct Hokuyo {
    proxy: Proxy,
}

impl Hokuyo {
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self { proxy }
    }

    /// The address of this device.
    pub fn address(&self) -> Device {
        self.proxy.address()
    }

    /// The same device with another deadline. A scan takes 25 to 100 ms, and
    /// over a slow serial line more than a second.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            proxy: self.proxy.with_deadline(deadline),
        }
    }

    /// Measures the round-trip time of a PING to the driver.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn ping(&self) -> Result<Duration> {
        self.proxy.ping().await
    }

    /// One scan.
    ///
    /// A driver of the original system may answer with an old scan; see
    /// [`Scan::taken_at`].
    ///
    /// # Errors
    /// There is no answer within the deadline, the mediator reports that none
    /// will come, or the scan is invalid (see [`ScanError`]).
    pub async fn scan(&self) -> Result<Scan> {
        let answer = self.proxy.request(question()).await?;
        Scan::try_from(&answer).map_err(|error| self.proxy.bad_answer(error.to_string()))
    }

    /// Subscribes to the scans that the device publishes, about ten per second.
    ///
    /// Resolves when SUBSCRIBE has been sent; dropping the future cancels it.
    /// Invalid scans (see [`ScanError`]) are skipped and counted in
    /// [`Update::undecodable`](crate::Update::undecodable).
    ///
    /// # Errors
    /// The client is closed. A missing device is not an error: the subscription
    /// starts when the device appears.
    pub async fn subscribe(&self) -> Result<Subscription<Scan>> {
        self.proxy
            .subscribe_as(|bytes| match Scan::try_from(&DriverMsg::decode(bytes)?) {
                Err(ScanError::Missing) => Ok(None),
                scan => Ok(Some(scan?)),
            })
            .await
    }
}

/// The message that asks for one scan.
pub(crate) fn question() -> DriverMsg {
    DriverMsg {
        get_single_scan: Some(true),
        ..DriverMsg::data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::fake::Fake;
    use crate::scan::Point;

    /// Message bytes that the hardware sheet gives.
    const ASK_100: &[u8] = b"\x10\x01\x18\x64\xc0\x02\x01";
    const ANSWER_100: &[u8] = b"\x10\x01\x20\x64\xca\x02\x18\x0a\x10\
        \x71\x3d\x0a\xd7\xa3\xf8\x5d\xc0\x00\xd2\x6c\x3b\x90\x88\xc6\x3f\
        \x12\x04\x88\x03\xe8\x07\x88\x03\xfb\xa0\x9a\x9c\x92\x2a";
    /// One angle and no distance.
    const UNEQUAL: &[u8] = b"\x10\x01\xca\x02\x0a\x0a\x08\0\0\0\0\0\0\0\0";
    /// NaN and 1000 mm.
    const NAN: &[u8] = b"\x10\x01\xca\x02\x0e\x0a\x08\0\0\0\0\0\0\xf8\x7f\x12\x02\xe8\x07";

    fn check_sheet_scan(scan: &Scan) {
        let [left, ahead] = scan.points() else {
            panic!("{scan:?}");
        };
        assert_eq!((left.angle_deg, left.distance_mm), (-119.885, 392));
        assert!((ahead.angle_deg - 0.176_042_584_347_38).abs() < 1e-9);
        assert_eq!(ahead.distance_mm, 1000);
        assert_eq!(scan.timestamp_ms(), Some(1_448_000_000_123));
    }

    #[tokio::test]
    async fn a_scan_is_asked_for_and_read() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            fake.answer(&asked, ANSWER_100).await;
            (asked, fake)
        });
        check_sheet_scan(&client.hokuyo(0).scan().await.unwrap());
        let (asked, _fake) = device.await.unwrap();
        assert_eq!(asked.device.to_string(), "hokuyo:0");
        let mut expected = DriverMsg::decode(ASK_100).unwrap();
        expected.syn_num = Some(asked.syn());
        assert_eq!(DriverMsg::decode(asked.bytes).unwrap(), expected);
    }

    #[tokio::test]
    async fn an_invalid_scan_is_an_error_with_the_reason() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            for answer in [UNEQUAL, NAN, b"\x10\x01"] {
                let asked = fake.receive().await.unwrap();
                fake.answer(&asked, answer).await;
            }
            fake
        });
        for why in [
            "1 angles but 0 distances",
            "angle 0 is NaN",
            "there is no scan in it",
        ] {
            match client.hokuyo(0).scan().await {
                Err(Error::BadAnswer { message, .. }) => assert_eq!(message, why),
                other => panic!("{other:?}"),
            }
        }
        device.await.unwrap();
    }

    #[tokio::test]
    async fn published_scans_come_and_broken_ones_are_counted() {
        let (client, mut fake) = Fake::new();
        let hokuyo = client.hokuyo(0);
        let mut scans = hokuyo.subscribe().await.unwrap();
        let asked = fake.receive().await.unwrap();
        assert_eq!(asked.without_syn(), b"\x10\x06", "SUBSCRIBE");
        let mut published = ANSWER_100.to_vec();
        // ackNum 0: published data.
        published.extend(b"\x20\0");
        for bytes in [UNEQUAL, NAN, &published] {
            fake.say(hokuyo.address(), bytes).await;
        }
        let update = scans.next().await.unwrap();
        check_sheet_scan(&update.message);
        assert_eq!((update.undecodable, update.missed), (2, 0));
        let first: Point = update.message.points()[0];
        assert!(first.is_valid());
    }
}
