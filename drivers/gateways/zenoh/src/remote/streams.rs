//! The clients that hear one far device. PURE.
//!
//! A robot publishes the data of a device once for all. Drivers of some devices send each client what
//! it has asked for, at its own period: that is done here.

use std::collections::BTreeMap;
use std::time::Duration;

use amber_proto::stargazer::subscribe_action::Action;
use amber_proto::{ClientId, DeviceType, ninedof, stargazer};
use bytes::Bytes;
use prost::Message;

use crate::pacing::Pacing;

/// What a client wants to hear.
#[derive(Clone, Debug, PartialEq)]
pub enum Terms {
    /// Nothing.
    None,
    /// Everything: it has sent SUBSCRIBE.
    All,
    /// The newest message each period; a period of 0 means everything.
    Newest(Duration),
    /// Readings of some motion sensors, one each period.
    Readings(Duration, ninedof::SubscribeAction),
}

/// The clients of one device.
#[derive(Debug)]
pub struct Streams {
    device_type: DeviceType,
    listeners: BTreeMap<ClientId, Listener>,
}

#[derive(Debug)]
struct Listener {
    terms: Terms,
    pacing: Pacing<Bytes>,
}

/// The clients of a message, and what they get.
pub type Sent = (Vec<i32>, Bytes);

impl Terms {
    /// Reads a message that starts, changes or stops a stream; `None` for other messages.
    #[must_use]
    pub fn of(device_type: DeviceType, message: &Bytes) -> Option<Self> {
        let period = |ms: u32| Duration::from_millis(ms.into());
        match device_type {
            DeviceType::NINEDOF => {
                let message = ninedof::DriverMsg::decode(message.clone()).ok()?;
                let action = message.subscribe_action?;
                Some(match action.freq() {
                    0 => Self::None,
                    ms => Self::Readings(period(ms), action),
                })
            }
            DeviceType::STARGAZER => {
                let message = stargazer::DriverMsg::decode(message.clone()).ok()?;
                let action = message.subscribe_action?;
                Some(match action.action() {
                    Action::Subscribe => Self::Newest(period(action.freq())),
                    Action::Unsubscribe => Self::None,
                })
            }
            _ => None,
        }
    }

    fn period(&self) -> Duration {
        match self {
            Self::None | Self::All => Duration::ZERO,
            Self::Newest(period) | Self::Readings(period, _) => *period,
        }
    }

    /// What a client with these terms gets of a message.
    fn part(&self, message: &Bytes) -> Bytes {
        let Self::Readings(_, wanted) = self else {
            return message.clone();
        };
        let Ok(mut read) = ninedof::DriverMsg::decode(message.clone()) else {
            return message.clone();
        };
        if let Some(data) = &mut read.sensor_data {
            let extended = wanted.extended();
            data.accel.take_if(|_| !wanted.accel());
            data.gyro.take_if(|_| !wanted.gyro());
            data.gyro_milli.take_if(|_| !(wanted.gyro() && extended));
            data.magnet.take_if(|_| !wanted.magnet());
            let has_attitude = wanted.accel() && wanted.magnet() && extended;
            data.attitude.take_if(|_| !has_attitude);
        }
        read.encode_to_vec().into()
    }
}

impl Streams {
    /// Nobody listens.
    #[must_use]
    pub fn new(device_type: DeviceType) -> Self {
        Self {
            device_type,
            listeners: BTreeMap::new(),
        }
    }

    /// Sets what a client hears.
    pub fn set(&mut self, client: ClientId, terms: Terms) {
        // Drivers of these devices do not know SUBSCRIBE.
        let by_request = [DeviceType::NINEDOF, DeviceType::STARGAZER];
        if terms == Terms::All && by_request.contains(&self.device_type) {
            return;
        }
        if terms == Terms::None {
            self.listeners.remove(&client);
            return;
        }
        if let Some(listener) = self.listeners.get(&client)
            && listener.terms == terms
        {
            return;
        }
        let pacing = Pacing::new(terms.period());
        self.listeners.insert(client, Listener { terms, pacing });
    }

    /// Whether nobody listens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    /// The device has published a message. Returns what to send now.
    pub fn data(&mut self, now: Duration, message: &Bytes) -> Vec<Sent> {
        let mut all = Vec::new();
        for (client, listener) in &mut self.listeners {
            match listener.terms {
                Terms::All => all.push(client.0),
                _ => listener.pacing.offer(listener.terms.part(message)),
            }
        }
        let mut sent = Vec::new();
        if !all.is_empty() {
            sent.push((all, message.clone()));
        }
        sent.extend(self.due(now));
        sent
    }

    /// What waited for the period of its client.
    pub fn due(&mut self, now: Duration) -> Vec<Sent> {
        let polled = |(client, listener): (&ClientId, &mut Listener)| {
            Some((vec![client.0], listener.pacing.poll(now)?))
        };
        self.listeners.iter_mut().filter_map(polled).collect()
    }

    /// When [`Streams::due`] has something.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let listeners = self.listeners.values();
        listeners.filter_map(|it| it.pacing.next_due()).min()
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceMessage;

    use super::*;

    const A: ClientId = ClientId(7);
    const B: ClientId = ClientId(8);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn wants(freq: u32, accel: bool, gyro: bool) -> Bytes {
        let mut message = ninedof::DriverMsg::data();
        message.subscribe_action = Some(ninedof::SubscribeAction {
            freq: Some(freq),
            accel: Some(accel),
            gyro: Some(gyro),
            ..ninedof::SubscribeAction::default()
        });
        message.encode_to_vec().into()
    }

    fn reading(x: i32) -> Bytes {
        let axes = |x_axis| ninedof::AxisData {
            x_axis,
            y_axis: 0,
            z_axis: 0,
        };
        let mut message = ninedof::DriverMsg::data();
        message.ack_num = Some(0);
        message.sensor_data = Some(ninedof::SensorData {
            accel: Some(axes(x)),
            gyro: Some(axes(x)),
            magnet: Some(axes(x)),
            ..ninedof::SensorData::default()
        });
        message.encode_to_vec().into()
    }

    #[test]
    fn each_client_gets_its_sensors_at_its_period() {
        let mut streams = Streams::new(DeviceType::NINEDOF);
        let terms = |message: &Bytes| Terms::of(DeviceType::NINEDOF, message).unwrap();
        streams.set(A, terms(&wants(100, true, false)));
        streams.set(B, terms(&wants(50, true, true)));
        let mut got = Vec::new();
        for at in (0..=200).step_by(50) {
            for (clients, message) in streams.data(ms(at), &reading(at as i32)) {
                let data = ninedof::DriverMsg::decode(message).unwrap();
                let data = data.sensor_data.unwrap();
                assert_eq!(data.gyro.is_some(), clients == [B.0]);
                assert_eq!(data.magnet, None);
                got.push((at, clients[0], data.accel.unwrap().x_axis));
            }
        }
        let of = |client: ClientId| got.iter().filter(move |it| it.1 == client.0);
        assert_eq!(of(B).count(), 5);
        let times: Vec<_> = of(A).map(|it| (it.0, it.2)).collect();
        assert_eq!(times, [(0, 0), (100, 100), (200, 200)]);
        streams.set(A, terms(&wants(0, false, false)));
        streams.set(B, terms(&wants(0, true, true)));
        assert!(streams.is_empty() && streams.next_due().is_none());
    }

    #[test]
    fn the_stargazer_sends_the_newest_pose_each_period() {
        let wants = |action: Action, freq| {
            let mut message = stargazer::DriverMsg::data();
            message.subscribe_action = Some(stargazer::SubscribeAction {
                action: action.into(),
                freq,
            });
            let message = message.encode_to_vec().into();
            Terms::of(DeviceType::STARGAZER, &message).unwrap()
        };
        let mut streams = Streams::new(DeviceType::STARGAZER);
        // Its drivers do not know SUBSCRIBE.
        streams.set(A, Terms::All);
        assert!(streams.is_empty());
        streams.set(A, wants(Action::Subscribe, Some(100)));
        let mut got = Vec::new();
        for at in (0..=200).step_by(50) {
            let pose = Bytes::from(vec![at as u8]);
            got.extend(streams.data(ms(at), &pose));
        }
        let poses: Vec<_> = got.iter().map(|(_, pose)| pose[0]).collect();
        assert_eq!(poses, [0, 100, 200]);
        streams.set(A, wants(Action::Unsubscribe, None));
        assert!(streams.is_empty());
    }

    #[test]
    fn subscribers_share_a_message() {
        let mut streams = Streams::new(DeviceType::HOKUYO);
        assert_eq!(Terms::of(DeviceType::HOKUYO, &wants(5, true, true)), None);
        streams.set(A, Terms::All);
        streams.set(B, Terms::All);
        streams.set(A, Terms::All);
        let scan = Bytes::from_static(b"scan");
        for at in [0, 0] {
            assert_eq!(
                streams.data(ms(at), &scan),
                [(vec![A.0, B.0], scan.clone())]
            );
        }
        streams.set(A, Terms::None);
        assert_eq!(streams.data(ms(1), &scan), [(vec![B.0], scan)]);
    }
}
