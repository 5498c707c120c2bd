//! What the controllers store that explains why wheels do not turn. IO, but [`Values`] is PURE.
//!
//! The commands are those of the RoboClaw user manual: 24 and 59 for the main battery and its limits,
//! 135 and 136 for the highest currents. All of them only read.

use std::fmt::Write as _;

use super::bus::Bus;
use super::logic::ExchangeError;
use super::probe::{PATIENCE, TRIES, failed, firmware};
use super::protocol::{Check, Shape, checked};
use crate::connection::Connection;
use crate::presence::{Presence, Remark};
use crate::probe::NoAnswer;

const MAIN_BATTERY: u8 = 24;
const MAIN_LIMITS: u8 = 59;
/// Of M1 and M2.
const MOST_CURRENT: [u8; 2] = [135, 136];

/// Most motors of robots need more than this to start, in 10 mA.
const LITTLE_CURRENT: u32 = 100;

/// Reads what the controllers at these addresses store.
///
/// # Errors
/// No controller answers.
pub(crate) async fn read(
    port: Box<dyn Connection>,
    place: String,
    addresses: &[u8],
) -> Result<Presence, NoAnswer> {
    let mut bus = Bus::new(port, place, PATIENCE);
    // The controllers forget what they have received before.
    bus.settle().await.map_err(failed)?;
    let mut found = Presence::default();
    for &address in addresses {
        match firmware(&mut bus, address).await? {
            None => found.remarks.push(Remark {
                text: format!("no controller answers at the address {address}"),
                hint: "check its power, the wires, and its address in Motion Studio".into(),
            }),
            Some((firmware, check)) => {
                let values = Values::read(&mut bus, address, check).await?;
                if !found.text.is_empty() {
                    found.text.push_str("; ");
                }
                let _ = write!(found.text, "{address} is {firmware}{}", values.text());
                found.remarks.extend(values.remarks(address));
            }
        }
    }
    match found.text.is_empty() {
        false => Ok(found),
        true => Err(NoAnswer::Silent),
    }
}

/// What a controller stores. Old firmware does not tell all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Values {
    /// The voltage of the main battery, in tenths of a volt.
    battery_dv: Option<u16>,
    /// The motors stop below the first and above the second, in tenths of a volt.
    limits_dv: Option<[u16; 2]>,
    /// The highest currents of M1 and M2, in 10 mA.
    most_10ma: [Option<u32>; 2],
}

impl Values {
    async fn read(bus: &mut Bus, address: u8, check: Check) -> Result<Self, NoAnswer> {
        let battery = ask(bus, address, check, MAIN_BATTERY).await?;
        // The latest firmware adds a byte.
        let limits = ask(bus, address, check, MAIN_LIMITS).await?;
        let mut most_10ma = [None; 2];
        for (most, command) in most_10ma.iter_mut().zip(MOST_CURRENT) {
            let reply = ask(bus, address, check, command).await?;
            *most = reply.and_then(|it| Some(u32::from_be_bytes(*it.first_chunk()?)));
        }
        Ok(Self {
            battery_dv: battery.and_then(|it| Some(u16::from_be_bytes(*it.first_chunk()?))),
            limits_dv: limits.and_then(|it| match it.first_chunk()? {
                [a, b, c, d] => Some([[*a, *b], [*c, *d]].map(u16::from_be_bytes)),
            }),
            most_10ma,
        })
    }

    /// The values for people, behind the name of the controller.
    fn text(self) -> String {
        let mut text = String::new();
        if let Some(battery) = self.battery_dv {
            let _ = write!(text, ", battery {:.1} V", volts(battery));
        }
        if let Some(limits) = self.limits_dv {
            let [low, high] = limits.map(volts);
            let _ = write!(text, " (limits {low:.1} and {high:.1} V)");
        }
        if let [Some(m1), Some(m2)] = self.most_10ma.map(|most| most.map(amperes)) {
            let _ = write!(text, ", motors at most {m1:.1} and {m2:.1} A");
        }
        text
    }

    fn remarks(self, address: u8) -> Vec<Remark> {
        let mut remarks = Vec::new();
        if let (Some(battery), Some([low, high])) = (self.battery_dv, self.limits_dv) {
            let sides = [
                (battery < low, "below", low, "charge the battery, or lower"),
                (battery > high, "above", high, "check the battery, or raise"),
            ];
            for (_, side, limit, hint) in sides.into_iter().filter(|(is_outside, ..)| *is_outside) {
                remarks.push(Remark {
                    text: format!(
                        "the controller {address} stops its motors {side} {:.1} V, and the main \
                         battery has {:.1} V",
                        volts(limit),
                        volts(battery)
                    ),
                    hint: format!("{hint} the limit of the main battery in Motion Studio"),
                });
            }
        }
        for (motor, most) in self.most_10ma.into_iter().enumerate() {
            if let Some(most) = most.filter(|most| *most < LITTLE_CURRENT) {
                remarks.push(Remark {
                    text: format!(
                        "the controller {address} gives motor M{} at most {:.2} A, with which most \
                         motors do not start",
                        motor + 1,
                        amperes(most)
                    ),
                    hint: "raise Max Current in Motion Studio to what the motor may have".into(),
                });
            }
        }
        remarks
    }
}

fn volts(tenths: u16) -> f64 {
    f64::from(tenths) / 10.0
}

fn amperes(hundredths: u32) -> f64 {
    f64::from(hundredths) / 100.0
}

/// The data of a reply; `None` if the controller does not know the command.
async fn ask(
    bus: &mut Bus,
    address: u8,
    check: Check,
    command: u8,
) -> Result<Option<Vec<u8>>, NoAnswer> {
    for _ in 0..TRIES {
        match bus.exchange(&[address, command], Shape::UntilSilence).await {
            Ok(reply) => {
                if let Ok(data) = checked(address, command, check, &reply) {
                    return Ok(Some(data.to_vec()));
                }
            }
            Err(ExchangeError::Silent | ExchangeError::Half) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::probe::tests::device;
    use crate::roboclaw::fake::{FakePair, Mood};

    async fn stored(pair: FakePair) -> Result<Presence, NoAnswer> {
        let pair = Mutex::new(pair);
        let (port, _) = device(move |packet| pair.lock().unwrap().reply(packet));
        read(port, "the port".into(), &[0x80, 0x81]).await
    }

    #[tokio::test(start_paused = true)]
    async fn each_controller_tells_its_values() {
        for check in [Check::Crc16, Check::Legacy] {
            let found = stored(FakePair::new(check)).await.unwrap();
            let one = "USB Roboclaw 2x30a v4.2.8, battery 12.1 V (limits 10.5 and 34.0 V), motors \
                       at most 5.0 and 5.0 A";
            assert_eq!(found.text, format!("128 is {one}; 129 is {one}"));
            assert_eq!(found.remarks, []);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn old_firmware_does_not_know_all_questions() {
        let mut pair = FakePair::new(Check::Legacy);
        pair.unknown = vec![59, 135, 136];
        let found = stored(pair).await.unwrap();
        let one = "USB Roboclaw 2x30a v4.2.8, battery 12.1 V";
        assert_eq!(found.text, format!("128 is {one}; 129 is {one}"));
        assert_eq!(found.remarks, []);
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_controller_is_named() {
        let mut pair = FakePair::new(Check::Crc16);
        pair.mood[0] = Mood::Silent;
        let found = stored(pair.clone()).await.unwrap();
        assert!(found.text.starts_with("128 is "), "{found:?}");
        assert_eq!(
            found.remarks[0].text,
            "no controller answers at the address 129"
        );
        pair.mood[1] = Mood::Silent;
        assert_eq!(stored(pair).await, Err(NoAnswer::Silent));
    }

    #[test]
    fn values_that_stop_the_motors_are_remarks() {
        let good = Values {
            battery_dv: Some(121),
            limits_dv: Some([105, 340]),
            most_10ma: [Some(500), Some(100)],
        };
        let remarks = |values: Values| {
            let all = values.remarks(128).into_iter();
            all.map(|it| it.text).collect::<Vec<_>>()
        };
        assert_eq!(remarks(good), [""; 0]);
        let low = Values {
            limits_dv: Some([122, 340]),
            ..good
        };
        assert_eq!(
            remarks(low),
            ["the controller 128 stops its motors below 12.2 V, and the main battery has 12.1 V"]
        );
        let high = Values {
            limits_dv: Some([60, 120]),
            ..good
        };
        assert_eq!(
            remarks(high),
            ["the controller 128 stops its motors above 12.0 V, and the main battery has 12.1 V"]
        );
        let weak = Values {
            most_10ma: [Some(500), Some(99)],
            ..good
        };
        assert_eq!(
            remarks(weak),
            [
                "the controller 128 gives motor M2 at most 0.99 A, with which most motors do not start"
            ]
        );
        assert_eq!(remarks(Values::default()), [""; 0]);
    }
}
