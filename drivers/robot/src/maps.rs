//! The map of the robot: one that grows while there is one, else that of the location driver. IO.

use std::time::Duration;

use amber_client::proxy::{LocationService, MappingService};
use amber_client::{Client, Error};
use amber_map::{Layout, Occupancy};
use amber_proto::location;
use amber_proto::mapping::progress::State;
use amber_scene::{Ground, Growing};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::robot::MapDevices;

/// A growing map changes so often.
const GROWING_PERIOD: Duration = Duration::from_secs(2);
/// Maps of the location driver change rarely.
const MAP_PERIOD: Duration = Duration::from_secs(5);
/// A robot without a driver that makes maps is asked again after this time.
const WITHOUT_MAPPING: Duration = Duration::from_secs(10);
/// The driver encodes a map as PNG first.
const MAP_DEADLINE: Duration = Duration::from_secs(2);
const PROGRESS_DEADLINE: Duration = Duration::from_millis(300);
/// A map of walls becomes a grid with cells of this size and a border of this width.
const CELL_M: f64 = 0.05;
const BORDER_M: f64 = 0.5;

/// The name of a map for which a program has none.
const USUAL_NAME: &str = "map";

/// The name of a map to save. Programs of ROS name a file, such as `file:///maps/lab`; the folder is
/// that of the driver.
#[must_use]
pub fn name_of(url: &str) -> &str {
    match url.rsplit('/').next() {
        None | Some("") => USUAL_NAME,
        Some(name) => name,
    }
}

/// Forwards each new map: the grid, or the reason why a map is invalid. `take` returns whether it was
/// forwarded; otherwise it comes again.
pub async fn watch(
    client: &Client,
    devices: MapDevices,
    mut take: impl FnMut(Result<Occupancy, String>) -> bool,
) {
    let location = client.device(devices.location).with_deadline(MAP_DEADLINE);
    let location = LocationService::new(location);
    let mapping = client.device(devices.mapping);
    let mapping = MappingService::new(mapping.with_deadline(PROGRESS_DEADLINE));
    let mut ticks = interval(GROWING_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut growing = Growing::default();
    // The last map that was forwarded; `None` after a growing one.
    let mut last: Option<location::Map> = None;
    let mut is_forwarded = true;
    let (mut ask_mapping, mut ask_location) = (Instant::now(), Instant::now());
    loop {
        ticks.tick().await;
        let now = Instant::now();
        if now >= ask_mapping {
            match mapping.progress().await {
                Ok(progress) if progress.state() == State::Growing => {
                    last = None;
                    ask_location = now;
                    if growing.is_outdated(&progress) {
                        is_forwarded = growing.follow(&mapping).await.is_err();
                    }
                    if !is_forwarded && let Some(grid) = growing.occupancy() {
                        is_forwarded = take(Ok(grid));
                    }
                    continue;
                }
                Err(Error::NoSuchDevice { .. } | Error::Unavailable { .. }) => {
                    ask_mapping = now + WITHOUT_MAPPING;
                }
                _ => {}
            }
        }
        if now < ask_location {
            continue;
        }
        let Ok(map) = location.map().await else {
            continue;
        };
        ask_location = now + MAP_PERIOD;
        if last.as_ref() != Some(&map) && take(grid(&map)) {
            last = Some(map);
        }
    }
}

/// The map of a driver as a grid.
///
/// # Errors
/// The map is invalid.
fn grid(map: &location::Map) -> Result<Occupancy, String> {
    match Ground::of_message(map)? {
        Ground::Grid(grid) => Ok(grid),
        Ground::Walls(walls) => {
            let faces = walls.faces();
            let layout = Layout::around_walls(&faces, BORDER_M, CELL_M);
            let layout = layout.map_err(|error| error.to_string())?;
            Ok(Occupancy::from_walls(layout, &faces))
        }
    }
}
