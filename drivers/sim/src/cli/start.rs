//! The options for starting a simulation. IO: it reads the map.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, PoseArgument, read_map};
use crate::{Devices, simulator};

#[derive(Args, Clone, Debug)]
pub(super) struct Start {
    /// Map: a .roson file, the YAML file of a map of ROS map_server, or a built-in map: flat or
    /// maze
    #[arg(long, value_name = "FILE", default_value = "flat")]
    map: PathBuf,
    /// Start position in map coordinates: metres with y down, degrees clockwise
    #[arg(long, value_name = "X,Y,HEADING", allow_hyphen_values = true)]
    start: Option<PoseArgument>,
    /// Seed of the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    devices: Devices,
    /// Speed of the simulation relative to real time
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    speed: f64,
    /// Exit when stdin ends; for programs that start the simulation
    #[arg(long)]
    pub(super) until_eof: bool,
}

impl Start {
    /// The configuration for a folder, with the map loaded.
    pub(super) fn config(&self, folder: PathBuf) -> Result<simulator::Config, Failure> {
        Ok(simulator::Config {
            map: read_map(&self.map)?,
            folder,
            start: self
                .start
                .map(|place| (place.x_m, place.y_m, place.heading_deg)),
            seed: self.seed,
            speed: self.speed,
            devices: self.devices.clone(),
        })
    }
}
