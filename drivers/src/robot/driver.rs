//! The driver between the file and clients. IO.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use amber_driver::devices::robot::{RobotDriver as RobotMethods, RobotLink, Shape};
use amber_driver::{ClientId, Reply, now};

use super::urdf;
use crate::robot_file::RobotFile;
use crate::stream::complain;

/// How often the driver looks for a change of the file.
const LOOK: Duration = Duration::from_secs(1);

/// The driver of the robot as a whole.
#[derive(Debug)]
pub(super) struct RobotDriver {
    file: Option<PathBuf>,
    seen: Option<Stamp>,
    look_at: Instant,
    shape: Shape,
    /// `Some` after the start.
    link: Option<RobotLink>,
}

/// What tells versions of a file apart.
type Stamp = (Option<SystemTime>, u64);

impl RobotDriver {
    pub(super) fn new(file: Option<PathBuf>, shape: Shape) -> Self {
        Self {
            seen: stamp(file.as_ref()),
            file,
            look_at: now() + LOOK,
            shape,
            link: None,
        }
    }

    /// Reads the file again.
    fn reread(&mut self) {
        let Some(link) = &self.link else {
            return;
        };
        let read = RobotFile::read(self.file.as_deref()).and_then(|file| file.shape());
        match read {
            Ok(shape) => {
                link.recovered();
                if shape != self.shape {
                    tracing::info!("the file of the robot has changed");
                    self.shape = shape;
                    complain(link.shape_updates(self.shape.clone()));
                }
            }
            Err(error) => {
                tracing::error!("{error}; the shape before counts");
                link.trouble(&error.to_string());
            }
        }
    }
}

fn stamp(file: Option<&PathBuf>) -> Option<Stamp> {
    let metadata = fs::metadata(file?).ok()?;
    Some((metadata.modified().ok(), metadata.len()))
}

impl RobotMethods for RobotDriver {
    async fn start(&mut self, link: RobotLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
        Ok(())
    }

    async fn shape(&mut self, reply: Reply<Shape>) {
        reply.send(self.shape.clone());
    }

    async fn urdf(&mut self, reply: Reply<String>) {
        reply.send(urdf::text(&self.shape));
    }

    /// Each subscriber gets the shape at once, also when it subscribes again after a restart.
    async fn subscribed(&mut self, _client: ClientId) {
        if let Some(link) = &self.link {
            complain(link.shape_updates(self.shape.clone()));
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.file.is_some().then_some(self.look_at)
    }

    async fn wake(&mut self) {
        self.look_at = now() + LOOK;
        let seen = stamp(self.file.as_ref());
        if seen != self.seen {
            self.seen = seen;
            self.reread();
        }
    }
}

#[cfg(test)]
mod tests;
