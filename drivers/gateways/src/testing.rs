//! Helpers of the tests: hex, a machine on a virtual clock, and files with options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use amber_navigation::kinematics::SkidSteer;
use amber_robot::robot::{RobotSetup, UserOrder};
use amber_values::{Target, WheelSpeeds};
use bytes::Bytes;

use crate::shared::clock::Now;
use crate::shared::event::Event;
use crate::shared::machine::{Datagram, Machine, Output, Outputs, Socket};

/// The usual robot with a track of 0.4 m and wheels of at most 0.4 m/s.
pub(crate) fn robot() -> RobotSetup {
    RobotSetup::with(SkidSteer {
        track_m: 0.4,
        max_wheel_m_s: 0.4,
    })
}

/// The bytes of hex digits; blanks are ignored.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
    pairs
        .map(|pair| u8::from_str_radix(&pair, 16).unwrap())
        .collect()
}

/// The result of options with a configuration file that contains this text.
pub(crate) fn with_file<T>(text: &str, checked: impl FnOnce(PathBuf) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, text).unwrap();
    checked(file)
}

/// A machine on a virtual clock, and all its outputs with their times.
pub(crate) struct Bench<M> {
    pub(crate) machine: M,
    pub(crate) out: Outputs,
    pub(crate) now: Duration,
    outputs: Vec<(Duration, Output)>,
}

/// The wall clock at the start of each test.
pub(crate) const START_UNIX: Duration = Duration::from_secs(1_700_000_000);

impl<M: Machine> Bench<M> {
    pub(crate) fn new(machine: M) -> Self {
        let mut bench = Self {
            machine,
            out: Outputs::default(),
            now: Duration::ZERO,
            outputs: Vec::new(),
        };
        bench.machine.start(bench.clock(), &mut bench.out);
        bench.collect();
        bench
    }

    pub(crate) fn datagram(&mut self, socket: u32, from: &str, bytes: &[u8]) {
        let datagram = Datagram {
            socket: Socket(socket),
            from: from.parse().unwrap(),
            bytes,
        };
        let now = self.clock();
        self.machine.handle_datagram(now, datagram, &mut self.out);
        self.collect();
    }

    pub(crate) fn event(&mut self, event: Event) {
        let now = self.clock();
        self.machine.handle_event(now, event, &mut self.out);
        self.collect();
    }

    pub(crate) fn stop(&mut self) {
        let now = self.clock();
        self.machine.stop(now, &mut self.out);
        self.collect();
    }

    /// Lets time pass, with all timeouts in between.
    pub(crate) fn advance_ms(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        let mut idle = 0;
        while let Some(due) = self.machine.next_timeout().filter(|due| *due <= end) {
            idle = if due <= self.now { idle + 1 } else { 0 };
            assert!(idle < 100, "a timeout that is due again and again");
            self.now = self.now.max(due);
            let now = self.clock();
            self.machine.handle_timeout(now, &mut self.out);
            self.collect();
        }
        self.now = end;
    }

    /// All outputs since the last call, with their times in ms.
    pub(crate) fn take(&mut self) -> Vec<(u64, Output)> {
        let outputs = self.outputs.drain(..);
        outputs
            .map(|(at, output)| (at.as_millis() as u64, output))
            .collect()
    }

    /// The datagrams since the last call of any of these: receiver and content.
    pub(crate) fn take_sent(&mut self) -> Vec<(SocketAddr, Bytes)> {
        let outputs = self.take().into_iter();
        let sent = outputs.filter_map(|(_, output)| match output {
            Output::Send(_, to, bytes) => Some((to, bytes)),
            _ => None,
        });
        sent.collect()
    }

    /// The wheel speeds since the last call of any of these, with their times in ms.
    pub(crate) fn take_drives(&mut self) -> Vec<(u64, WheelSpeeds)> {
        let outputs = self.take().into_iter();
        let drives = outputs.filter_map(|(at, output)| match output {
            Output::Order(_, UserOrder::Drive(_, speeds)) => Some((at, speeds)),
            _ => None,
        });
        drives.collect()
    }

    /// The targets since the last call of any of these, with their times in ms.
    pub(crate) fn take_targets(&mut self) -> Vec<(u64, Vec<Target>)> {
        let outputs = self.take().into_iter();
        let targets = outputs.filter_map(|(at, output)| match output {
            Output::Order(_, UserOrder::Targets(_, targets)) => Some((at, targets)),
            _ => None,
        });
        targets.collect()
    }

    /// How often something was dropped for this reason.
    pub(crate) fn count(&self, reason: &str) -> u64 {
        self.out.tally.count(reason)
    }

    fn clock(&self) -> Now {
        Now {
            elapsed: self.now,
            unix: START_UNIX + self.now,
        }
    }

    fn collect(&mut self) {
        while let Some(output) = self.out.take() {
            self.outputs.push((self.now, output));
        }
    }
}
