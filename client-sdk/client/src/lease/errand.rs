//! The end of a motion that goes on without commands. IO.

use std::time::Duration;

use amber_proto::{Device, DeviceType};
use tokio::time::sleep;

use crate::error::Result;
use crate::proxy::{DriveToPoint, MappingService, PidFollowTrajectory, Proxy};

/// The time between two requests for what is left.
const PERIOD: Duration = Duration::from_millis(500);

/// Whether a device says what is left of its errand.
pub(super) fn has_known_end(device: Device) -> bool {
    matches!(
        device.device_type,
        DeviceType::DRIVE_TO_POINT | DeviceType::PID_FOLLOW_TRAJECTORY | DeviceType::MAPPING
    )
}

/// Resolves when nothing is left of the errand of a device: a `drive-to-point`, a
/// `pid-follow-trajectory` or a `mapping`. Call it after the command. For other devices, it never
/// resolves.
///
/// Dropping the future stops nothing.
pub async fn over(device: &Proxy) {
    loop {
        sleep(PERIOD).await;
        if let Ok(true) = is_over(device).await {
            return;
        }
    }
}

async fn is_over(device: &Proxy) -> Result<bool> {
    match device.address().device_type {
        DeviceType::DRIVE_TO_POINT => {
            let left = DriveToPoint::new(device.clone()).next_targets().await?;
            Ok(left.targets.is_empty())
        }
        DeviceType::PID_FOLLOW_TRAJECTORY => {
            let left = PidFollowTrajectory::new(device.clone());
            Ok(left.next_targets().await?.is_empty())
        }
        DeviceType::MAPPING => {
            let progress = MappingService::new(device.clone()).progress().await?;
            Ok(!MappingService::explores(&progress))
        }
        _ => Ok(false),
    }
}
