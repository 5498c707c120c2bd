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
    let chosen = chosen(path, laser, wheels)?;
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
                let device = *of_channel
                    .entry(channel)
                    .or_insert_with(|| device_of(stored).filter(|it| chosen.contains(it)));
                let Some((device, (_, message))) = device.zip(stored.message(data)) else {
                    return;
                };
                let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(header.log_time);
                match measured(device, at, &message) {
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

/// The devices whose messages count: one of each type.
fn chosen(
    path: &Path,
    laser: Option<Device>,
    wheels: Option<Device>,
) -> Result<Vec<Device>, Failure> {
    let failed = |error| cannot_read(path, error);
    let mut messages = Messages::new(open(path)?).map_err(failed)?;
    if messages.expected().is_none() {
        // Without an index, all channels are known only at the end.
        while messages.next(|_, _| {}).map_err(failed)? {}
    }
    let devices = messages.channels().values().filter_map(device_of);
    let devices: Vec<_> = devices.collect();
    let first = |device_type| {
        let of_type = devices.iter().filter(|it| it.device_type == device_type);
        of_type.min_by_key(|it| it.id.0).copied()
    };
    let chosen = [
        laser.or_else(|| first(DeviceType::HOKUYO)),
        wheels.or_else(|| first(DeviceType::ROBOCLAW)),
        first(DeviceType::ROBOT),
    ];
    Ok(chosen.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use amber_proto::feed::{Direction, Record, Writer};
    use amber_proto::{ClientId, DeviceMessage, SynNum};
    use amber_record::Recording;
    use amber_reflect::Schemas;

    use super::*;

    /// A recording without an index of two scanners that take turns, in the order of their numbers.
    fn unfinished(scanners: [i32; 2]) -> tempfile::NamedTempFile {
        let mut feed = Vec::new();
        let mut writer = Writer {
            bytes: &mut feed,
            time_ns: 1_000_000_000,
        };
        writer.start("1.2.3");
        for id in scanners.into_iter().cycle().take(6) {
            let mut message = hokuyo::DriverMsg::data();
            message.set_ack(Some(SynNum(0)));
            message.scan = Some(hokuyo::Scan {
                angles: vec![0.0],
                distances: vec![1000 + id],
            });
            let scanner = Device::new(DeviceType::HOKUYO, id);
            let to = [ClientId(3)];
            writer.time_ns += 1000;
            writer.frame(
                Direction::FromDriver,
                scanner,
                "",
                to,
                &message.encode_to_vec(),
            );
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let schemas = Arc::new(Schemas::built_in());
        let mut recording = Recording::new(file.reopen().unwrap(), schemas).unwrap();
        let mut rest = &feed[..];
        while let Some((record, length)) = Record::parse(rest).unwrap() {
            recording.add(&record).unwrap();
            rest = &rest[length..];
        }
        recording.flush().unwrap();
        file
    }

    fn distances(file: &Path, laser: Option<Device>) -> Vec<i32> {
        let mut distances = Vec::new();
        read(file, (laser, None), |measured, _| {
            if let Measured::Scan(_, scan) = measured {
                distances.extend(scan.points().iter().map(|it| it.distance_mm));
            }
            Ok(())
        })
        .unwrap();
        distances
    }

    #[test]
    fn scans_of_two_scanners_are_not_mixed_in_a_recording_without_an_index() {
        for scanners in [[0, 1], [1, 0]] {
            let file = unfinished(scanners);
            assert_eq!(distances(file.path(), None), [1000; 3]);
            let second = Some(Device::new(DeviceType::HOKUYO, 1));
            assert_eq!(distances(file.path(), second), [1001; 3]);
        }
    }
}
