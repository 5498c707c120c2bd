//! Positioning by markers on the ceiling. IO.

use std::time::Duration;

use amber_proto::stargazer::subscribe_action::Action;
use amber_proto::stargazer::{DataRequest, DriverMsg, SubscribeAction};
use amber_proto::{Device, DeviceMessage};
use amber_values::MarkerPose as Pose;
use prost::Message;

use super::Proxy;
use crate::error::Result;
use crate::subscription::Subscription;
use crate::subscriptions::Terms;

/// A sensor that finds the robot's position from markers on the ceiling.
///
/// You may drop the future of any method: an unsent request is cancelled, and a
/// late answer is ignored.
#[derive(Clone, Debug)]
pub struct Stargazer {
    proxy: Proxy,
}

impl Stargazer {
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self { proxy }
    }

    /// The address of this device.
    pub fn address(&self) -> Device {
        self.proxy.address()
    }

    /// The same device with another deadline.
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

    /// The most recent pose, which may be old (see [`Pose::lost_ms`]); `None`
    /// if there has been none yet.
    ///
    /// # Errors
    /// There is no answer within the deadline (also if the device does not
    /// work), or the mediator reports that none will come.
    pub async fn pose(&self) -> Result<Option<Pose>> {
        let answer = self.proxy.request(question()).await?;
        Ok(answer.localization_data.map(Pose::from))
    }

    /// Subscribes to every pose, about ten per second. With a period (whole
    /// milliseconds), only the most recent pose is sent once per period.
    /// Nothing is sent while no marker is in view.
    ///
    /// The most recent period applies to all subscriptions of this client to
    /// the device. Resolves when the request has been sent; dropping the future
    /// cancels it.
    ///
    /// # Errors
    /// The client is closed. A missing device is not an error: the subscription
    /// starts when the device appears.
    pub async fn subscribe(&self, period: Option<Duration>) -> Result<Subscription<Pose>> {
        self.proxy
            .subscribe_by(terms(period), |bytes| {
                let message = DriverMsg::decode(bytes)?;
                Ok(message.localization_data.map(Pose::from))
            })
            .await
    }

    /// The same with encoded messages, for the command line.
    #[cfg(feature = "cli")]
    pub(crate) async fn subscribe_raw(
        &self,
        period: Option<Duration>,
    ) -> Result<Subscription<bytes::Bytes>> {
        self.proxy
            .subscribe_by(terms(period), |bytes| Ok(Some(bytes)))
            .await
    }
}

/// The message that asks for the last pose.
pub(crate) fn question() -> DriverMsg {
    DriverMsg {
        data_request: Some(DataRequest {}),
        ..DriverMsg::data()
    }
}

fn terms(period: Option<Duration>) -> Terms {
    // 0 is every pose, and the field has 32 bits.
    let ms = |period: Duration| u32::try_from(period.as_millis()).unwrap_or(u32::MAX);
    let period_ms = period.map_or(0, |period| ms(period).max(1));
    Terms {
        join: subscribe_action(Action::Subscribe, period_ms),
        leave: subscribe_action(Action::Unsubscribe, period_ms),
        period: period.unwrap_or_default(),
    }
}

/// A DATA message, since the drivers of the original know no other.
fn subscribe_action(action: Action, period_ms: u32) -> bytes::Bytes {
    let message = DriverMsg {
        subscribe_action: Some(SubscribeAction {
            action: action.into(),
            freq: Some(period_ms),
        }),
        ..DriverMsg::data()
    };
    message.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    /// Message bytes that the hardware sheet gives.
    const ASK_100: &[u8] = b"\x10\x01\x18\x64\xfa\x01\x00";
    const ANSWER_100: &[u8] = b"\x10\x01\x20\x64\xf2\x01\x1a\
        \x0d\x71\x3d\x6a\xc0\x15\xec\x51\x06\xc2\x1d\x7b\x54\x48\x43\
        \x25\xf6\x28\x2f\x43\x28\x96\x04\x30\xd2\x09";

    fn check_sheet_fix(pose: &Pose) {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
        assert!(near(pose.x_cm, -3.66) && near(pose.y_cm, -33.58) && near(pose.z_cm, 200.33));
        assert!(near(pose.heading_deg, 175.16), "{pose:?}");
        assert_eq!((pose.marker, pose.timestamp_ms), (534, Some(1234)));
    }

    #[tokio::test]
    async fn a_pose_is_requested_and_may_be_missing() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            fake.answer(&asked, ANSWER_100).await;
            let again = fake.receive().await.unwrap();
            fake.answer(&again, b"\x10\x01").await;
            (asked, fake)
        });
        let stargazer = client.stargazer(0);
        let pose = stargazer.pose().await.unwrap().unwrap();
        check_sheet_fix(&pose);
        assert_eq!(pose.lost_ms, None);
        assert_eq!(stargazer.pose().await.unwrap(), None);
        let (asked, _fake) = device.await.unwrap();
        assert_eq!(asked.device.to_string(), "stargazer:0");
        let mut expected = DriverMsg::decode(ASK_100).unwrap();
        expected.syn_num = Some(asked.syn());
        assert_eq!(DriverMsg::decode(asked.bytes).unwrap(), expected);
    }

    #[tokio::test]
    async fn subscriptions_are_requests_and_each_kind_is_ended_on_its_own() {
        let (client, mut fake) = Fake::new();
        let stargazer = client.stargazer(0);
        let mut poses = stargazer.subscribe(None).await.unwrap();
        let asked = fake.receive().await.unwrap();
        assert_eq!(asked.without_syn(), b"\x10\x01\x82\x02\x04\x08\x01\x10\x00");
        let mut published = ANSWER_100.to_vec();
        // ackNum 0: published data.
        published.extend(b"\x20\0");
        fake.say(stargazer.address(), &published).await;
        check_sheet_fix(&poses.next().await.unwrap().message);

        let period = Some(Duration::from_millis(200));
        let slower = stargazer.subscribe(period).await.unwrap();
        let mut sent = async || loop {
            let asked = fake.receive().await.unwrap();
            // Among it is the question whether the mediator is there.
            if asked.device == stargazer.address() {
                return asked.without_syn().to_vec();
            }
        };
        assert_eq!(sent().await, b"\x10\x01\x82\x02\x04\x08\x02\x10\x00");
        assert_eq!(sent().await, b"\x10\x01\x82\x02\x05\x08\x01\x10\xc8\x01");
        drop((poses, slower));
        assert_eq!(sent().await, b"\x10\x01\x82\x02\x05\x08\x02\x10\xc8\x01");
    }
}
