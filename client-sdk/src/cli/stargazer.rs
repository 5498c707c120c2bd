//! What `amber call` and `amber watch` do with a pose by markers. IO.

use amber_proto::Device;
use serde::Serialize;

use super::Failure;
use super::output::{self, Human};
use crate::client::Client;
use crate::proxy::Pose;

/// Requests the pose of the robot, and shows it.
pub(super) async fn call(client: &Client, device: Device, json: bool) -> Result<(), Failure> {
    match client.stargazer(device.id.0).pose().await? {
        Some(fix) => output::show(&FixShown::of(device, &fix, 0), json),
        None => Err(Failure::new(format!("{device} has not seen a marker yet"))
            .hint("the driver needs a marker above the robot that is in its file of markers")),
    }
}

/// A pose for people and programs.
#[derive(Debug, Serialize)]
pub(super) struct FixShown {
    device: String,
    x_cm: f64,
    y_cm: f64,
    z_cm: f64,
    heading_deg: f64,
    marker: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_ms: Option<u32>,
    missed: u64,
}

impl FixShown {
    pub(super) fn of(device: Device, fix: &Pose, missed: u64) -> Self {
        Self {
            device: device.to_string(),
            x_cm: hundredths(fix.x_cm),
            y_cm: hundredths(fix.y_cm),
            z_cm: hundredths(fix.z_cm),
            heading_deg: hundredths(fix.heading_deg),
            marker: fix.marker,
            timestamp_ms: fix.timestamp_ms,
            lost_ms: fix.lost_ms,
            missed,
        }
    }
}

/// The resolution of the device.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

impl Human for FixShown {
    fn human(&self) -> String {
        let Self {
            x_cm,
            y_cm,
            z_cm,
            heading_deg,
            marker,
            ..
        } = self;
        let lost = self.lost_ms.map_or_else(String::new, |ms| {
            format!("  lost: {:.1} s ago", f64::from(ms) / 1000.0)
        });
        format!(
            "x {x_cm:7.2} y {y_cm:7.2} cm  heading {heading_deg:7.2} deg  \
             marker {marker}, {z_cm:.0} cm above{lost}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    #[test]
    fn a_fix_is_one_line_with_units() {
        let fix = Pose {
            x_cm: -3.660_000_1,
            y_cm: 133.58,
            z_cm: 200.33,
            heading_deg: 175.16,
            marker: 534,
            timestamp_ms: Some(1234),
            lost_ms: Some(2_440),
        };
        let device = Device::new(DeviceType::STARGAZER, 0);
        let shown = FixShown::of(device, &fix, 0);
        assert_eq!(
            shown.human(),
            "x   -3.66 y  133.58 cm  heading  175.16 deg  marker 534, 200 cm above  \
             lost: 2.4 s ago\n"
        );
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(
            (&json["x_cm"], &json["lost_ms"]),
            (&(-3.66).into(), &2440.into())
        );
    }
}
