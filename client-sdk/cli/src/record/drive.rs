//! The measurements of a recorded drive: scans, wheel speeds, and the shape of the robot. IO.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use amber_client::{Scan, WheelSpeeds};
use amber_proto::{Device, DeviceType, hokuyo, roboclaw, robot};
use amber_record::{Entry, Messages, Stored};
use amber_terminal::Failure;
use prost::Message;

use super::info::{cannot_read, open};
use crate::map::Measured;

/// Hands over all measurements of these devices, with the part of the file that was read, 0 to 1.
/// Without a device, it is the one with the lowest number. Returns how many parts cannot be read.
pub(crate) fn read(
    path: &Path,
    (laser, wheels): (Option<Device>, Option<Device>),
    mut each: impl FnMut(Measured, f64) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let failed = |error| cannot_read(path, error);
    let mut messages = Messages::new(open(path)?).map_err(failed)?;
    let expected = messages.expected().unwrap_or(u64::MAX).max(1);
    let (mut count, mut damaged, mut done) = (0_u64, 0_u64, Ok(()));
    // The device of each channel that matters.
    let mut of_channel = BTreeMap::new();
    while done.is_ok() {
        let next = messages.next(|channels, entry| match entry {
            Entry::Message {
                channel,
                header,
                data,
                ..
            } => {
                count += 1;
                let Some(stored) = channels.get(&channel) else {
                    return;
                };
                let device = *of_channel.entry(channel).or_insert_with(|| {
                    let device = device_of(stored)?;
                    let wanted = match device.device_type {
                        DeviceType::HOKUYO => laser.or(first(channels, DeviceType::HOKUYO)),
                        DeviceType::ROBOCLAW => wheels.or(first(channels, DeviceType::ROBOCLAW)),
                        DeviceType::ROBOT => first(channels, DeviceType::ROBOT),
                        _ => None,
                    };
                    (wanted == Some(device)).then_some(device)
                });
                let Some((device, (_, message))) = device.zip(stored.message(data)) else {
                    return;
                };
                let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(header.log_time);
                match measured(device, at, message) {
                    Ok(Some(found)) => {
                        let part = (count as f64 / expected as f64).min(1.0);
                        done = each(found, part);
                    }
                    Ok(None) => {}
                    Err(Invalid) => damaged += 1,
                }
            }
            Entry::Damage(_) => damaged += 1,
            Entry::Metadata(_) | Entry::Attachment(_) | Entry::End => {}
        });
        if !next.map_err(failed)? {
            break;
        }
    }
    done.map(|()| damaged)
}

/// A message that is none of its device.
struct Invalid;

fn measured(device: Device, at: SystemTime, message: &[u8]) -> Result<Option<Measured>, Invalid> {
    Ok(match device.device_type {
        DeviceType::HOKUYO => {
            let message = hokuyo::DriverMsg::decode(message).map_err(|_| Invalid)?;
            if message.scan.is_none() {
                return Ok(None);
            }
            let scan = Scan::try_from(&message).map_err(|_| Invalid)?;
            Some(Measured::Scan(at, scan))
        }
        DeviceType::ROBOCLAW => {
            let message = roboclaw::DriverMsg::decode(message).map_err(|_| Invalid)?;
            let age = Duration::from_micros(message.speed_age.unwrap_or(0).into());
            let measured = at.checked_sub(age).unwrap_or(at);
            let speeds = message.current_speed.map(WheelSpeeds::from);
            speeds.map(|speeds| Measured::Wheels(measured, speeds))
        }
        _ => {
            let message = robot::DriverMsg::decode(message).map_err(|_| Invalid)?;
            message.shape.map(|shape| Measured::Shape(Box::new(shape)))
        }
    })
}

/// The device that has sent the messages of a channel.
fn device_of(stored: &Stored) -> Option<Device> {
    let is_other = ["/requests/", "/dropped/"]
        .iter()
        .any(|it| stored.topic.contains(it));
    match is_other {
        true => None,
        false => stored.about.get("device")?.parse().ok(),
    }
}

/// The first device of a type that has sent messages.
fn first(channels: &BTreeMap<u16, Stored>, device_type: DeviceType) -> Option<Device> {
    let devices = channels.values().filter_map(device_of);
    devices
        .filter(|device| device.device_type == device_type)
        .min_by_key(|device| device.id.0)
}
