//! Lends the code of the driver `mapping` to `amber map make --from`. PURE.

use std::time::SystemTime;

use amber_cli::{LogMapper, LoggedMap};
use amber_client::{Scan, WheelSpeeds};
use amber_drivers::mapping::LogMap;
use amber_map::Pose;
use amber_proto::mapping::{Progress, StartMap};
use amber_proto::robot::Shape;
use amber_terminal::Failure;

/// A map with these settings.
///
/// # Errors
/// A value is invalid, or the position of the laser is unknown.
pub(crate) fn new(start: &StartMap, shape: Option<&Shape>) -> Result<Box<dyn LogMapper>, Failure> {
    let map = LogMap::new(start, shape).map_err(|error| {
        let failure = Failure::wrong(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint.to_owned()),
            None => failure,
        }
    })?;
    Ok(Box::new(Mapper(map)))
}

struct Mapper(LogMap);

impl LogMapper for Mapper {
    fn handle_scan(&mut self, arrived: SystemTime, scan: &Scan) {
        self.0.handle_scan(arrived, scan);
    }

    fn handle_wheels(&mut self, measured: SystemTime, speeds: WheelSpeeds) {
        self.0.handle_wheels(measured, speeds);
    }

    fn handle_odometry(&mut self, measured: SystemTime, pose: Pose) {
        self.0.handle_odometry(measured, pose);
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }

    fn finish(self: Box<Self>, name: &str, cell_m: f64) -> Result<LoggedMap, Failure> {
        let made = self.0.finish(name, cell_m).map_err(|why| {
            Failure::new(why)
                .hint("use the recording of a longer drive, or larger cells: --cell-mm")
        })?;
        Ok(LoggedMap {
            saved: made.saved,
            grid: made.grid,
            roson: made.roson,
        })
    }
}
