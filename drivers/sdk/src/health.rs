//! Health reports of a driver about its devices. PURE.

use std::collections::BTreeMap;

use amber_proto::mediator::{self, Health};
use amber_proto::{Device, DeviceMessage, DriverHdr, Packet};
use prost::Message;

/// The trouble of each device or of all devices; the most recent report counts.
#[derive(Debug, Default)]
pub(crate) struct HealthTable {
    /// The report about all devices that precedes reports about single ones.
    of_all: Option<String>,
    of_one: BTreeMap<Device, Option<String>>,
    /// The reports that the mediator has not received, in the order of the calls, at most one per
    /// device.
    unsent: Vec<(Option<Device>, Health)>,
}

impl HealthTable {
    /// Reports the state of one device or of all. Returns whether it changed.
    pub(crate) fn say(&mut self, device: Option<Device>, health: Health) -> bool {
        let trouble = health.text.clone();
        match device {
            None if self.of_one.is_empty() && self.of_all == trouble => return false,
            None => {
                self.of_all = trouble;
                self.of_one.clear();
                self.unsent.clear();
            }
            Some(one) if *self.of_one.get(&one).unwrap_or(&self.of_all) == trouble => return false,
            Some(one) => {
                self.of_one.insert(one, trouble);
                self.unsent.retain(|(unsent, _)| *unsent != device);
            }
        }
        self.unsent.push((device, health));
        true
    }

    /// The next frame for the mediator.
    pub(crate) fn take_unsent(&mut self) -> Vec<Packet> {
        let unsent = std::mem::take(&mut self.unsent);
        let packet = |(device, health): (Option<Device>, Health)| {
            let mut message = mediator::DriverMsg::data();
            message.health = Some(health);
            let header = DriverHdr {
                device_type: device.map(|device| device.device_type.0),
                device_id: device.map(|device| device.id.0),
                client_ids: Vec::new(),
            };
            let message = message.encode_to_vec().into();
            Packet { header, message }
        };
        unsent.into_iter().map(packet).collect()
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    const ONE: Device = Device::new(DeviceType::MAESTRO, 1);
    const TWO: Device = Device::new(DeviceType::MAESTRO, 2);

    fn unsent(table: &mut HealthTable) -> Vec<(Option<i32>, Option<String>)> {
        let packets = table.take_unsent().into_iter().map(|packet| {
            assert!(packet.header.client_ids.is_empty());
            let message = mediator::DriverMsg::decode(packet.message).unwrap();
            let trouble = message.health.unwrap().trouble().unwrap();
            (packet.header.device_id, trouble)
        });
        packets.collect()
    }

    fn trouble(text: &str) -> Health {
        Health::in_trouble(text)
    }

    #[test]
    fn only_changes_are_reported() {
        let mut table = HealthTable::default();
        assert!(!table.say(None, Health::ok()), "the initial state is ok");
        assert!(table.say(None, trouble("gone")));
        assert!(!table.say(None, trouble("gone\n")));
        assert!(table.say(None, trouble("noisy")));
        assert_eq!(unsent(&mut table), [(None, Some("noisy".into()))]);
        assert!(!table.say(None, trouble("noisy")));
        assert!(table.say(None, Health::ok()));
        assert!(!table.say(None, Health::ok()));
        assert_eq!(unsent(&mut table), [(None, None)]);
        assert_eq!(unsent(&mut table), []);
    }

    #[test]
    fn the_last_of_several_waiting_reports_is_sent() {
        let mut table = HealthTable::default();
        for i in 0..1000 {
            table.say(None, trouble(&i.to_string()));
            table.say(Some(ONE), trouble(&i.to_string()));
            table.say(Some(TWO), trouble("gone"));
            table.say(Some(ONE), Health::ok());
        }
        let last = [
            (None, Some("999".into())),
            (Some(2), Some("gone".into())),
            (Some(1), None),
        ];
        assert_eq!(unsent(&mut table), last);
    }

    #[test]
    fn a_report_about_all_devices_overrides_those_about_one() {
        let mut table = HealthTable::default();
        assert!(!table.say(Some(ONE), Health::ok()));
        table.say(Some(ONE), trouble("gone"));
        table.take_unsent();
        assert!(table.say(None, Health::ok()));
        assert!(!table.say(Some(ONE), Health::ok()));
        assert_eq!(unsent(&mut table), [(None, None)]);
        table.say(None, trouble("no power"));
        assert!(!table.say(Some(TWO), trouble("no power")));
    }
}
