//! A camera whose answers a test has chosen.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use amber_proto::camera::Control;
use nix::errno::Errno;

use super::video::{Capability, FourCc, MJPG, Shot, Video};

/// What it answers; the rest is that of a good camera.
#[derive(Debug)]
pub(super) struct Fake {
    pub(super) formats: Vec<FourCc>,
    /// What it takes instead of any size.
    pub(super) size: (u32, u32),
    pub(super) controls: Vec<Control>,
    pub(super) set_format: Option<Errno>,
    pub(super) set_control: Option<Errno>,
    pub(super) start: Option<Errno>,
    /// Then there is no picture.
    pub(super) shots: VecDeque<Result<Shot, Errno>>,
    /// The calls.
    pub(super) calls: Vec<&'static str>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            formats: vec![MJPG],
            size: (64, 48),
            controls: Vec::new(),
            set_format: None,
            set_control: None,
            start: None,
            shots: VecDeque::new(),
            calls: Vec::new(),
        }
    }
}

fn result(errno: Option<Errno>) -> io::Result<()> {
    errno.map_or(Ok(()), |errno| Err(errno.into()))
}

impl Video for Fake {
    fn capability(&mut self) -> io::Result<Capability> {
        Ok(Capability::default())
    }

    fn formats(&mut self) -> io::Result<Vec<FourCc>> {
        Ok(self.formats.clone())
    }

    fn sizes(&mut self, _format: FourCc) -> io::Result<Vec<(u32, u32)>> {
        Ok(vec![(640, 480), (64, 48)])
    }

    fn intervals(&mut self, _format: FourCc, (width, _): (u32, u32)) -> io::Result<Vec<f64>> {
        match width {
            640 => Ok(vec![1.0 / 15.0, 0.04]),
            _ => Err(Errno::ENOTTY.into()),
        }
    }

    fn set_format(
        &mut self,
        format: FourCc,
        _size: (u32, u32),
    ) -> io::Result<(FourCc, (u32, u32))> {
        result(self.set_format)?;
        Ok((format, self.size))
    }

    fn set_interval(&mut self, seconds: f64) -> io::Result<Option<f64>> {
        Ok(Some(seconds))
    }

    fn controls(&mut self) -> io::Result<Vec<Control>> {
        Ok(self.controls.clone())
    }

    fn set_control(&mut self, id: u32, value: i64) -> io::Result<()> {
        result(self.set_control)?;
        for control in self.controls.iter_mut().filter(|it| it.id() == id) {
            control.value = Some(value);
        }
        Ok(())
    }

    fn start(&mut self) -> io::Result<()> {
        self.calls.push("start");
        result(self.start)
    }

    fn next(&mut self, _patience: Duration) -> io::Result<Option<Shot>> {
        match self.shots.pop_front() {
            Some(shot) => Ok(Some(shot?)),
            None => {
                // As a camera that sends nothing, but faster.
                std::thread::sleep(Duration::from_millis(1));
                Ok(None)
            }
        }
    }

    fn stop(&mut self) {
        self.calls.push("stop");
    }
}
