//! The logic of a driver at simulated servos, for the tests of each maker. IO: it reads
//! the clock once.

use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_proto::bus_servos::{MoveServos, ServoAngles, ServoSpeeds, ServoState, ServoTorque};
use amber_sim::bus_servos::{Bus, Protocol, Servo};

use super::logic::{BusLogic, Output};
use super::{Claim, Options, Preset};
use crate::servos::Note;

pub(crate) const ME: ClientId = ClientId(7);
pub(crate) const OTHER: ClientId = ClientId(8);
pub(crate) const MS: Duration = Duration::from_millis(1);
/// A turn has 4096 steps.
pub(crate) const DEG: f64 = 4096.0 / 360.0;

/// The logic at simulated servos, which have their own time.
pub(crate) struct Bench<P: Preset, S: Protocol> {
    pub(crate) logic: BusLogic<P::Maker>,
    pub(crate) twin: Bus<S>,
    pub(crate) start: Instant,
    pub(crate) now: Instant,
    /// Whether what the driver sends arrives.
    pub(crate) is_cut: bool,
    /// Spoils so many of the next answers.
    pub(crate) spoils: u32,
    pub(crate) has_ended: bool,
}

impl<P: Preset, S: Protocol> Bench<P, S> {
    pub(crate) fn with(twin: Bus<S>, ids: &[u8], wheels: &[u8]) -> Self {
        let start = Instant::now();
        let mut bench = Self {
            logic: logic::<P>(ids, wheels, start),
            twin,
            start,
            now: start,
            is_cut: false,
            spoils: 0,
            has_ended: false,
        };
        bench.run(400 * MS);
        bench
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += MS;
            self.twin.advance(self.now - self.start);
            while let Some(mut bytes) = self.twin.poll_output(self.now - self.start) {
                if self.spoils > 0 {
                    self.spoils -= 1;
                    bytes[5] ^= 0x10;
                }
                self.logic.handle_bytes(self.now, &bytes);
            }
            self.logic.handle_timeout(self.now);
            self.act();
        }
    }

    pub(crate) fn act(&mut self) {
        while let Some(output) = self.logic.poll_output(self.now) {
            match output {
                Output::Open => self.logic.opened(self.now),
                Output::Write(bytes) if !self.is_cut => {
                    self.twin.handle_bytes(self.now - self.start, &bytes);
                }
                Output::Write(_) | Output::Close => {}
                Output::End => {
                    self.has_ended = true;
                    return;
                }
            }
        }
    }

    pub(crate) fn move_to(
        &mut self,
        client: ClientId,
        targets: &[(u32, f64)],
    ) -> Result<(), String> {
        let (ids, angles) = targets.iter().copied().unzip();
        let targets = ServoAngles { ids, angles };
        let command = MoveServos {
            targets,
            speed: None,
        };
        self.logic.move_to(&of(client, None), &command)
    }

    pub(crate) fn turn(&mut self, client: ClientId, speeds: &[(u32, f64)]) -> Result<(), String> {
        self.turn_for(client, None, speeds)
    }

    /// The same with a command that holds for this time.
    pub(crate) fn turn_for(
        &mut self,
        client: ClientId,
        time: Option<Duration>,
        speeds: &[(u32, f64)],
    ) -> Result<(), String> {
        let (ids, speeds) = speeds.iter().copied().unzip();
        let command = ServoSpeeds { ids, speeds };
        let claim = of(client, time.map(|time| self.now + time));
        self.logic.turn(self.now, &claim, &command)
    }

    pub(crate) fn torque(&mut self, on: bool, ids: &[u32]) -> Result<(), String> {
        let ids = ids.to_vec();
        self.logic.set_torque(self.now, &ServoTorque { on, ids })
    }

    pub(crate) fn steps(&self, index: usize) -> f64 {
        self.twin.servos()[index].show().steps
    }

    pub(crate) fn state(&self, index: usize) -> ServoState {
        self.logic.states().0[index].clone()
    }

    #[track_caller]
    pub(crate) fn expect_trouble(&self, text: &str) {
        let trouble = self.logic.trouble().unwrap_or_default();
        assert!(trouble.starts_with(text), "{trouble:?}");
    }

    /// Runs on, and checks that nothing moves more than half a degree.
    #[track_caller]
    pub(crate) fn expect_rest(&mut self, time: Duration) {
        let count = self.twin.servos().len();
        let before: Vec<_> = (0..count).map(|index| self.steps(index)).collect();
        self.run(time);
        for (index, before) in before.iter().enumerate() {
            let way_deg = (self.steps(index) - before) / DEG;
            assert!(way_deg.abs() < 0.5, "{index}: {way_deg} degrees");
        }
    }

    pub(crate) fn notes(&mut self) -> Vec<Note> {
        std::iter::from_fn(|| self.logic.poll_note()).collect()
    }

    pub(crate) fn memory_writes(&self) -> u32 {
        let servos = self.twin.servos().iter();
        servos.map(|it| it.show().memory_writes).sum()
    }
}

/// What a client wants.
pub(crate) fn of(client: ClientId, until: Option<Instant>) -> Claim {
    let clients = vec![client];
    Claim { clients, until }
}

/// The logic for these servos.
pub(crate) fn logic<P: Preset>(ids: &[u8], wheels: &[u8], now: Instant) -> BusLogic<P::Maker> {
    let options = Options::<P> {
        ids: Some(ids.to_vec()),
        wheels: Some(wheels.to_vec()),
        baud: Some(1_000_000),
        ..Options::default()
    };
    BusLogic::new(options.settings().unwrap().0, now)
}
