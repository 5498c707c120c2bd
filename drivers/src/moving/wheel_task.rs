//! The task that owns the wheels: gives the pilot its inputs, and sends its speeds. IO.
//!
//! The pilot decides at least 20 times per second, and soon after each scan and each request. While
//! the robot stands still, nothing is sent, so that another client may drive. A stop is repeated
//! for a while: a datagram may be lost.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use amber_driver::client::proxy::Roboclaw;
use amber_driver::now;
use amber_navigation::kinematics::Wheels;
use amber_navigation::scan;
use amber_values::WheelSpeeds;
use tokio::sync::mpsc;

use super::convert;
use super::feeds::{SensorEvent, follow};
use super::lease::{Kept, follow_lease};
use super::pilot::{Input, Pilot};
use super::sources::{Source, Sources};
use crate::device_task::{Next, Owner, until};
use crate::robot_options::Setup;
use crate::sim_clock::DriverClock;

/// The longest time between two decisions...
const PERIOD: Duration = Duration::from_millis(50);
/// ...and the shortest, even if much data arrives.
const MIN_PERIOD: Duration = Duration::from_millis(10);
/// How long a stop is repeated.
const REPEAT_STOP: Duration = Duration::from_millis(500);
/// How long a command holds at the wheels: six decisions, so that they survive a few lost messages
/// and a busy computer. If this driver, the mediator or the network freezes, the wheels stop then.
const VALIDITY: Duration = Duration::from_millis(300);
/// A command that cannot be sent in this time is outdated.
const SEND_DEADLINE: Duration = Duration::from_millis(100);

/// The wheels, driven as the pilot decides.
pub(crate) struct WheelTask<P> {
    pilot: P,
    setup: Setup,
    /// As in the setup, or as the scanner describes itself.
    scanner: scan::Laser,
    sources: Sources,
    feeds: mpsc::Receiver<SensorEvent>,
    wheels: Option<Roboclaw>,
    /// The lease of the wheels.
    lease: Kept,
    clock: DriverClock,
    /// When to decide next.
    due: Instant,
    decided: Instant,
    /// When a speed other than 0 was last sent.
    moved: Option<Instant>,
    ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    No,
    Stopping,
    Stopped,
}

impl<P: Pilot> WheelTask<P> {
    /// Starts to follow the other devices, over its own link unless the setup names a mediator.
    pub(crate) fn new(pilot: P, setup: Setup, link: &P::Link) -> Self {
        let started = now();
        let lease = match setup.devices_of {
            // Clients of another mediator have other numbers.
            Some(_) => Kept::default(),
            None => follow_lease(link, setup.devices.wheels),
        };
        Self {
            pilot,
            lease,
            sources: Sources::new(setup.devices),
            feeds: follow(
                link.devices().clone(),
                setup.devices_of.clone(),
                setup.devices,
            ),
            scanner: setup.scanner,
            clock: setup.start_clock(),
            setup,
            wheels: None,
            due: started,
            decided: started,
            moved: None,
            ending: Ending::No,
        }
    }

    /// Lets the pilot decide soon.
    fn decide_soon(&mut self) {
        self.due = self.due.min(self.decided + MIN_PERIOD);
    }

    fn handle(&mut self, feed: SensorEvent) {
        let now = self.clock.now(now());
        let (source, input) = match feed {
            SensorEvent::Connected(client) => {
                let wheels = Roboclaw::new(client.device(self.setup.devices.wheels));
                let wheels = wheels.with_deadline(SEND_DEADLINE);
                self.wheels = Some(wheels.with_validity(VALIDITY));
                return;
            }
            SensorEvent::Failed(source, error) => return self.sources.failed(source, error),
            SensorEvent::Scanner(told) => {
                self.scanner = self.setup.scanner_as_described(&told);
                return;
            }
            SensorEvent::Scan(time, scan) => {
                let end = self.clock.at(time);
                let read = scan::Scan::from_values(&scan, end, &self.scanner);
                self.decide_soon();
                (Source::Scans, Some(Input::Scan(read, scan)))
            }
            SensorEvent::Wheels(time, speeds) => {
                let time = self.clock.at(time);
                let input = Input::Wheels(time, Wheels::from(speeds), speeds);
                (Source::Wheels, Some(input))
            }
            SensorEvent::Imu(time, reading) => {
                let time = self.clock.at(time);
                let input = convert::imu(&reading).map(|imu| Input::Imu(time, imu));
                (Source::Imu, input)
            }
            SensorEvent::Contacts(time, contacts) => {
                self.decide_soon();
                let input = Input::Contacts(self.clock.at(time), convert::touches(&contacts));
                (Source::Contacts, Some(input))
            }
            SensorEvent::Pose(time, pose) => {
                let read = convert::pose(pose, self.clock.at(time));
                (Source::Poses, read.map(|read| Input::Pose(read, pose)))
            }
        };
        self.sources.heard(source, now);
        if let Some(input) = input {
            self.pilot.handle(now, input);
        }
    }

    /// Whether to send these speeds, or whether the robot simply stays where it is.
    fn is_worth_sending(&mut self, now: Instant, speeds: WheelSpeeds) -> bool {
        if self.lease.is_refused() {
            self.moved = None;
            return false;
        }
        if speeds != WheelSpeeds::STOP {
            self.moved = Some(now);
        }
        self.moved
            .is_some_and(|moved| now.saturating_duration_since(moved) <= REPEAT_STOP)
    }
}

impl<P: Pilot> Owner for WheelTask<P> {
    type Request = P::Request;
    type Message = P::Message;
    type Link = P::Link;
    type Action = WheelSpeeds;

    fn request(&mut self, link: &P::Link, request: P::Request) {
        let now = self.clock.now(now());
        self.pilot.request(now, link, request);
        self.decide_soon();
    }

    fn shut_down(&mut self) {
        self.ending = Ending::Stopping;
    }

    fn next(&mut self, link: &P::Link) -> Next<WheelSpeeds> {
        match self.ending {
            Ending::No => {}
            Ending::Stopping if self.moved.is_some() => {
                self.ending = Ending::Stopped;
                return Next::Perform(WheelSpeeds::STOP);
            }
            Ending::Stopping | Ending::Stopped => return Next::End,
        }
        let instant = now();
        let now = self.clock.now(instant);
        let mut next = Next::Wait;
        if instant >= self.due {
            self.decided = instant;
            self.due = instant + PERIOD;
            let wanted = WheelSpeeds::from(self.pilot.step(now));
            // Without measured speeds the pilot does not know how the robot moves.
            let speeds = match self.sources.is_alive(Source::Wheels, now) {
                true => wanted,
                false => WheelSpeeds::STOP,
            };
            if self.is_worth_sending(instant, speeds) {
                next = Next::Perform(speeds);
            }
        }
        self.pilot.notice(self.sources.trouble(now).as_deref());
        self.pilot.tell(now, link);
        next
    }

    async fn perform(&mut self, speeds: WheelSpeeds) {
        let Some(wheels) = &self.wheels else {
            return;
        };
        let wheels = wheels.clone().for_client(self.pilot.client());
        if let Err(error) = wheels.drive(speeds).await {
            self.sources.failed(Source::Wheels, error.to_string());
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            Some(feed) = self.feeds.recv() => self.handle(feed),
            () = until(Some(self.due)) => {}
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        let now = self.clock.now(now());
        let silent = self.sources.trouble(now).map(Cow::Owned);
        silent.or_else(|| self.pilot.trouble())
    }

    fn log_counters(&self) {
        tracing::debug!(counters = self.pilot.counters(), "ended");
    }
}
