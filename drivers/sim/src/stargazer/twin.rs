//! The StarGazer in the robot: its options, and its view of the ceiling. PURE.

use std::time::Duration;

use amber_map::Pose;

use super::{Guide, Stargazer};
use crate::ceiling::{self, Ceiling, Seen};
use crate::control::SimulationState;
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::world::World;

/// The marker sensor.
pub const DEVICE: Device = Device {
    name: "stargazer",
    connection: Connection::Serial,
    is_extra: false,
    driver: "stargazer",
    options: &[],
    files: &[("--markers", ceiling::FILE)],
    model_option: None,
    demonstrations: &[("call stargazer pose", "position by markers")],
};

/// The variant of the marker sensor.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Version of the manufacturer's guide that the StarGazer follows when it builds a map
    #[arg(
        long = "stargazer",
        value_name = "STARGAZER",
        value_enum,
        default_value_t
    )]
    pub guide: Guide,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let mark_type = setup.ceiling.mark_type();
        let sensor = Stargazer::new(setup.seed, self.guide, mark_type, Duration::ZERO);
        vec![(DEVICE, Box::new(sensor))]
    }
}

impl Twin for Stargazer {
    fn advance(&mut self, now: Duration, around: &mut Surroundings<'_>) {
        while let Some(time) = self.poll_look(now) {
            let view = self.view(around.world, around.world.pose_at(time), around.ceiling);
            self.handle_view(&view);
        }
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Stargazer::handle_bytes(self, now, bytes);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Stargazer::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Stargazer::next_timeout(self)
    }

    fn handle_plug_in(&mut self, now: Duration) {
        self.restart(now);
    }

    fn show(&self, world: &World, ceiling: &Ceiling, state: &mut SimulationState) {
        let seen = ceiling.seen_from(world.pose(), world.walls());
        state.markers = seen.into_iter().map(|seen| seen.id).collect();
    }
}

impl Stargazer {
    /// What it sees from a pose.
    fn view(&self, world: &World, pose: Pose, ceiling: &Ceiling) -> Vec<Seen> {
        let mut view = ceiling.seen_from(pose, world.walls());
        if let Some(reference) = self.reference()
            && let Some(pose) = ceiling.from_marker(reference, pose)
        {
            view.iter_mut().for_each(|seen| seen.pose = pose);
        }
        view
    }
}
