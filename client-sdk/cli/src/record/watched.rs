//! `amber record --watch camera:0`: asks a camera for pictures while it is recorded. IO, but for reading
//! the option.

use std::str::FromStr;
use std::time::Duration;

use amber_client::{Client, Event};
use amber_proto::camera::{CameraInfo, PictureStream};
use amber_proto::{Device, DeviceType};
use amber_terminal::note;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::limits::WATCH_AGAIN;

/// A camera answers at once, also without its pictures; drivers of others may know no such request.
const DEADLINE: Duration = Duration::from_millis(500);

/// A camera, and the pictures that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    pub(super) device: Device,
    period: Duration,
    max_width: Option<u32>,
}

/// The shortest period: each picture that the camera makes.
const EACH: Duration = Duration::from_millis(1);
const MAX_PERIOD: Duration = Duration::from_secs(3600);
/// As in camera.proto.
const WIDTHS: std::ops::RangeInclusive<u32> = 16..=8192;

impl FromStr for Watched {
    type Err = String;

    /// Reads `camera:0`, `camera:0@10Hz` and `camera:0@2.5Hz,640px`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (device, wishes) = match text.split_once('@') {
            Some((device, wishes)) => (device, Some(wishes)),
            None => (text, None),
        };
        let device = amber_terminal::device(device).map_err(|error| error.to_string())?;
        if device.device_type != DeviceType::CAMERA {
            return Err(format!(
                "{device} is no camera: other devices are recorded as their clients use them"
            ));
        }
        let mut watched = Self {
            device,
            period: EACH,
            max_width: None,
        };
        for wish in wishes.into_iter().flat_map(|wishes| wishes.split(',')) {
            let is_read = match wish.strip_suffix("px") {
                Some(width) => {
                    watched.max_width = width.parse().ok().filter(|it| WIDTHS.contains(it));
                    watched.max_width.is_some()
                }
                None => match period(wish.strip_suffix("Hz").unwrap_or(wish)) {
                    Some(period) => {
                        watched.period = period;
                        true
                    }
                    None => false,
                },
            };
            if !is_read {
                return Err(format!(
                    "'{wish}' is neither a rate such as 10Hz nor a width from 16px to 8192px"
                ));
            }
        }
        Ok(watched)
    }
}

/// The time between pictures at a rate in Hz.
fn period(rate: &str) -> Option<Duration> {
    let rate_hz: f64 = rate.parse().ok()?;
    let period = Duration::try_from_secs_f64(1.0 / rate_hz).ok()?;
    let period_ms = (period.as_secs_f64() * 1000.0).round() as u64;
    let period = Duration::from_millis(period_ms);
    (EACH..=MAX_PERIOD).contains(&period).then_some(period)
}

/// Receives the pictures of these cameras until the set is dropped: the feed has them because their
/// drivers send them.
pub(super) fn watch(client: &Client, all: &[Watched]) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for watched in all {
        tasks.spawn(receive(client.clone(), *watched));
    }
    tasks
}

async fn receive(client: Client, watched: Watched) {
    let Watched { device, .. } = watched;
    let stream = PictureStream {
        max_width: watched.max_width,
        ..PictureStream::default()
    };
    let mut is_said = false;
    loop {
        let camera = client.camera(device.id.0);
        match camera.pictures(watched.period, stream).await {
            Ok(mut pictures) => {
                while let Some(event) = pictures.next_event().await {
                    match event {
                        Event::Message(_) => {}
                        Event::Interrupted(why) => note(format!("no pictures of {device}: {why}")),
                        Event::Resumed => note(format!("pictures of {device} come again")),
                    }
                }
            }
            Err(error) if !is_said => {
                is_said = true;
                note(format!("no pictures of {device}: {error}; trying again"));
            }
            Err(_) => {}
        }
        sleep(WATCH_AGAIN).await;
    }
}

/// The cameras of the mediator that are recorded, and what they say about themselves. `devices` are
/// those that are recorded; all if there are none.
pub(super) async fn cameras(client: &Client, devices: &[Device]) -> Vec<(Device, CameraInfo)> {
    let drivers = client.mediator().drivers().await.unwrap_or_default();
    let served = drivers.iter().flat_map(|driver| &driver.devices);
    let served = served.map(|it| Device::new(DeviceType(it.r#type), it.id));
    let is_wanted = |it: &Device| {
        it.device_type == DeviceType::CAMERA && (devices.is_empty() || devices.contains(it))
    };
    let mut found = Vec::new();
    for device in served.filter(is_wanted) {
        let camera = client.camera(device.id.0).with_deadline(DEADLINE);
        if let Ok(info) = camera.info().await {
            found.push((device, info));
        }
    }
    found
}

/// Says that a recording has only pictures for which somebody asks, if nobody does.
pub(super) fn hint(cameras: &[(Device, CameraInfo)], watched: &[Watched]) {
    for (device, info) in cameras {
        if !info.is_on() && !watched.iter().any(|it| it.device == *device) {
            note(format!(
                "hint: {device} sends pictures only to clients that ask for them, and none does; \
                 `--watch {device}` asks for them"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, u128, Option<u32>), String> {
        let watched: Watched = text.parse()?;
        let device = watched.device.to_string();
        Ok((device, watched.period.as_millis(), watched.max_width))
    }

    #[test]
    fn a_camera_has_a_rate_and_a_width() {
        let camera = |period, width| Ok(("camera:0".to_owned(), period, width));
        assert_eq!(read("camera"), camera(1, None));
        assert_eq!(read("camera:0"), camera(1, None));
        assert_eq!(read("camera:0@10"), camera(100, None));
        assert_eq!(read("camera:0@2.5Hz"), camera(400, None));
        assert_eq!(read("camera:0@640px"), camera(1, Some(640)));
        assert_eq!(read("camera:0@15Hz,320px"), camera(67, Some(320)));
        assert_eq!(read("17:3@0.1").unwrap().0, "camera:3");
        for (wrong, why) in [
            ("hokuyo", "no camera"),
            ("camera:0@", "neither a rate"),
            ("camera:0@0", "neither a rate"),
            ("camera:0@-1", "neither a rate"),
            ("camera:0@nan", "neither a rate"),
            ("camera:0@1e9", "neither a rate"),
            ("camera:0@10px", "'10px' is neither"),
            ("camera:0@10Hz,wide", "'wide' is neither"),
        ] {
            let said = read(wrong).unwrap_err();
            assert!(said.contains(why), "{wrong}: {said}");
        }
    }
}
