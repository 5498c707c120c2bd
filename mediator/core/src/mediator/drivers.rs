//! The processes of drivers: what they write, and what happens in their lives. PURE.

use std::time::Instant;

use amber_proto::frame::{Frame, StreamError, check_prefix};
use amber_proto::mediator::log_line::{Level, Source};
use amber_proto::mediator::{self, event::Kind};
use amber_proto::{Device, DeviceMessage, Header, MsgType, SynNum};
use bytes::Bytes;
use prost::Message;
use tracing::{debug, error, info, warn};

use super::health::{Health, News};
use super::motion::Motion;
use super::words::{Words, level_of};
use super::{Core, absence, device_notice, log};
use crate::address::DriverKey;
use crate::config::DriverConfig;
use crate::counters::{Count, DropReason};
use crate::limits;
use crate::rate::Rate;
use crate::router::Portion;
use crate::supervise::{Action, Event, Exit, State, Supervisor};

/// A configured driver.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) config: DriverConfig,
    pub(super) supervisor: Supervisor,
    pub(super) words: Words,
    /// The health of each of its devices, in the same order.
    pub(super) health: Vec<Health>,
    /// The description of each of its devices, in the same order, as its process has sent it.
    pub(super) descriptions: Vec<Option<Bytes>>,
    /// Who moves each of its devices, in the same order.
    pub(super) motions: Vec<Motion>,
    /// Its clients were told that it is unavailable.
    pub(super) gone: bool,
    /// What to check after a failure.
    pub(super) hint: Option<String>,
    /// The hint of the previous process.
    pub(super) last_exit_hint: Option<String>,
    /// No longer configured: forgotten when it has ended.
    pub(super) obsolete: bool,
    /// It is started with this configuration when it has ended.
    pub(super) next_config: Option<DriverConfig>,
    /// It is started when all drivers have ended whose devices it takes over.
    pub(super) waits: bool,
}

impl Core {
    /// A driver has written a frame. Returns false if the frame is invalid; then the driver is
    /// being stopped.
    pub fn driver_frame(&mut self, now: Instant, key: DriverKey, frame: Frame<'_>) -> bool {
        self.driver_frame_at(now, key, frame, None)
    }

    /// The same. `at` is the offset of the frame in a buffer of the caller. If
    /// [`Outbox::borrows`](crate::router::Outbox::borrows) is true afterwards, the caller must [lend](Core::lend) that buffer
    /// before anything is sent. If it is true before, there must be no other buffer.
    pub fn driver_frame_at(
        &mut self,
        now: Instant,
        key: DriverKey,
        frame: Frame<'_>,
        at: Option<usize>,
    ) -> bool {
        let mut whole = Portion::WHOLE;
        self.driver_frame_portion(now, key, frame, at, &mut whole)
    }

    /// The same for a portion of the frame: see [`Router::driver_frame`](crate::router::Router::driver_frame).
    pub fn driver_frame_portion(
        &mut self,
        now: Instant,
        key: DriverKey,
        frame: Frame<'_>,
        at: Option<usize>,
        portion: &mut Portion,
    ) -> bool {
        let header = match Header::parse(frame.header) {
            Ok(header) => header,
            Err(error) => {
                self.bad_framing(now, key, frame.header, error.into());
                return false;
            }
        };
        self.set_feed_time(now);
        let Some(driver) = self.drivers.get_mut(&key) else {
            return true;
        };
        if !driver.supervisor.heard() {
            self.driver_event(now, key, Event::Frame);
        }
        let message =
            self.router
                .driver_frame(now, key, &header, frame, at, portion, &mut self.outbox);
        if let Some(message) = message {
            self.for_mediator(now, message);
        }
        self.tend(now);
        true
    }

    /// The number of frames from drivers that had an effect so far: a datagram, a frame for a
    /// driver, or a message that the mediator understands.
    pub fn driver_effects(&self) -> u64 {
        let counters = &self.router.counters;
        let for_mediator = counters.counted(Count::ForMediator);
        counters.counted(Count::CopiesToClients)
            + counters.counted(Count::CopiesToDrivers)
            + counters.counted(Count::Requests)
            + for_mediator.saturating_sub(counters.dropped(DropReason::MediatorMessage))
    }

    /// A driver has written the beginning of a frame. Returns false if it cannot become one;
    /// then the driver is being stopped.
    pub fn driver_prefix(&mut self, now: Instant, key: DriverKey, bytes: &[u8]) -> bool {
        match check_prefix(bytes) {
            Ok(()) => true,
            Err(error) => {
                self.bad_framing(now, key, bytes, error);
                false
            }
        }
    }

    /// A driver has written an incomplete frame, and nothing more for a long time.
    pub fn driver_stalled(&mut self, now: Instant, key: DriverKey, bytes: &[u8]) {
        let seconds = limits::PARTIAL_FRAME.as_secs();
        let what = format!(
            "an incomplete frame, then nothing for {seconds} s: {}",
            show_bytes(bytes)
        );
        self.framing_event(now, key, what);
    }

    /// A driver could not be started.
    pub fn spawn_failed(&mut self, now: Instant, key: DriverKey, error: String, hint: String) {
        if let Some(driver) = self.drivers.get_mut(&key) {
            driver.hint = Some(hint);
        }
        self.driver_event(now, key, Event::SpawnFailed(error));
        self.forget_if_at_rest(now, key);
    }

    /// The process of a driver has ended.
    pub fn exited(&mut self, now: Instant, key: DriverKey, exit: Exit) {
        if let Some(driver) = self.drivers.get_mut(&key)
            && *driver.supervisor.state() == State::Starting
        {
            let command = shell_words::join(&driver.config.command);
            driver.hint = Some(format!(
                "it exited right after its start; run it by hand to see the reason: {command}"
            ));
        }
        let stopping =
            |driver: &Driver| matches!(driver.supervisor.state(), State::Stopping { .. });
        // Of any other end, the reason is logged.
        if self.drivers.get(&key).is_some_and(stopping) {
            self.log_about(now, key, Level::Info, &exit.text);
        }
        self.driver_event(now, key, Event::Exited(exit));
        self.forget_if_at_rest(now, key);
    }

    /// A driver has written a line to stderr.
    pub fn driver_said(&mut self, now: Instant, key: DriverKey, line: &str) {
        let moment = self.moment(now);
        let Some(driver) = self.drivers.get_mut(&key) else {
            return;
        };
        let device = driver.config.devices[0];
        let rate = Rate::per_second(self.limits.stderr_lines_per_second);
        let counters = &mut self.router.counters;
        driver.words.say(now, device, line, rate, counters);
        let (level, text) = match level_of(line) {
            Some((level, _)) => (Some(log::level(level)), line.trim_start()),
            None => (None, line),
        };
        (self.log).add(moment, device, Source::Driver, level, text, counters);
    }

    /// An event of a driver's life.
    pub fn driver_event(&mut self, now: Instant, key: DriverKey, event: Event) {
        self.set_feed_time(now);
        if let Event::Spawned { pid } = event {
            self.log_about(now, key, Level::Info, &format!("started as process {pid}"));
        }
        let must_wait = matches!(event, Event::Start | Event::Restart) && self.must_wait(key);
        let Some(driver) = self.drivers.get_mut(&key) else {
            return;
        };
        if must_wait || event == Event::Stop {
            driver.waits = must_wait;
        }
        self.timers_changed = true;
        if must_wait {
            if let Some(why) = absence::of(driver) {
                self.router.set_absence(key, why);
            }
            return;
        }
        if let Event::Spawned { pid } = event {
            // A driver that was stopped before it existed gets no frames.
            if *driver.supervisor.state() == State::Starting {
                driver.gone = false;
                driver.last_exit_hint = driver.hint.take();
                self.router.driver_up(key);
            }
            self.router.counters.count(Count::DriverStarts);
            info!(driver = %driver.config.devices[0], pid, "started");
        }
        if matches!(event, Event::Exited(_)) && !driver.supervisor.is_asked_to_end() {
            self.router.counters.count(Count::DriverDeaths);
        }
        if matches!(event, Event::Deaf(_)) {
            self.router.counters.count(Count::DriversDeaf);
            driver.hint = Some("does its main loop still read stdin?".into());
        }
        let actions = driver.supervisor.step(now, self.random.f64(), event);
        if let Some(why) = absence::of(driver) {
            self.router.set_absence(key, why);
        }
        for action in actions {
            self.act(now, key, action);
        }
        self.tend(now);
    }

    fn bad_framing(&mut self, now: Instant, key: DriverKey, bytes: &[u8], error: StreamError) {
        self.framing_event(now, key, format!("{} ({error})", show_bytes(bytes)));
    }

    fn framing_event(&mut self, now: Instant, key: DriverKey, what: String) {
        if let Some(driver) = self.drivers.get_mut(&key) {
            let hint = "stdout carries the protocol: print everything else to stderr";
            driver.hint = Some(hint.into());
        }
        self.driver_event(now, key, Event::BadFraming(what));
    }

    pub(super) fn act(&mut self, now: Instant, key: DriverKey, action: Action) {
        let Some(driver) = self.drivers.get_mut(&key) else {
            return;
        };
        let devices = driver.config.devices.clone();
        match action {
            Action::Ping { syn_num } => {
                let mut ping = mediator::DriverMsg::of_kind(MsgType::Ping);
                ping.set_syn(Some(SynNum(syn_num)));
                self.router.ping_driver(key, &ping.encode_to_vec());
            }
            Action::Up => {
                info!(driver = %devices[0], "up");
                self.log_about(now, key, Level::Info, "up");
                for device in &devices {
                    self.notify(device_notice(Kind::DeviceUp, *device, None));
                }
            }
            Action::Gone { reason } => {
                if !std::mem::replace(&mut driver.gone, true) {
                    if driver.supervisor.is_asked_to_end() {
                        info!(driver = %devices[0], "stopping");
                    } else {
                        warn!(driver = %devices[0], hint = driver.hint, "{reason}");
                    }
                    driver.descriptions.fill(None);
                    driver.motions.iter_mut().for_each(Motion::forget_lease);
                    let untold = driver.health.iter_mut().map(Health::forget).sum();
                    let (level, text) = match (driver.supervisor.is_asked_to_end(), &driver.hint) {
                        (true, _) => (Level::Info, "stopping".to_owned()),
                        (false, None) => (Level::Warn, reason.clone()),
                        (false, Some(hint)) => (Level::Warn, format!("{reason}; hint: {hint}")),
                    };
                    self.log_about(now, key, level, &text);
                    self.router
                        .counters
                        .drop_many(DropReason::HealthEvents, untold);
                    self.router.driver_down(key, &mut self.outbox);
                    for device in &devices {
                        self.notify(device_notice(Kind::DeviceDown, *device, Some(&reason)));
                    }
                }
            }
            Action::GiveUp { reason } => {
                let device = devices[0];
                let text = format!("given up: {reason}; `amber start {device}` starts it again");
                let last_words: Vec<_> = self.log.last_words(device, 3).collect();
                error!(
                    driver = %device,
                    last_words = last_words.join(" | "),
                    hint = driver.hint,
                    "{text}"
                );
                self.log_about(now, key, Level::Error, &text);
                for device in &devices {
                    self.notify(device_notice(Kind::DeviceFailed, *device, Some(&reason)));
                }
            }
            Action::Process(action) => self.actions.push_back((key, action)),
        }
    }

    /// A driver reports the health of one of its devices, or of all.
    pub(super) fn driver_health(
        &mut self,
        now: Instant,
        key: DriverKey,
        about: Option<Device>,
        trouble: Option<&str>,
    ) {
        let Some(driver) = self.drivers.get_mut(&key) else {
            return;
        };
        for (device, health) in driver.config.devices.iter().zip(&mut driver.health) {
            if about.is_none_or(|about| about == *device) {
                let untold = health.report(now, trouble.map(str::to_owned));
                self.router
                    .counters
                    .drop_many(DropReason::HealthEvents, untold);
            }
        }
        self.timers_changed = true;
        self.tell_of_health(now, key);
    }

    /// A driver sends the description of one of its devices, or of all.
    pub(super) fn driver_describes(
        &mut self,
        key: DriverKey,
        about: Option<Device>,
        files: &Bytes,
    ) {
        let Some(driver) = self.drivers.get_mut(&key) else {
            return;
        };
        if files.len() > limits::DESCRIPTION_BYTES {
            return self.router.counters.drop(DropReason::Description);
        }
        // This is a separate copy, because `files` is part of a message that may be longer.
        let files = Bytes::copy_from_slice(files);
        for (device, known) in driver.config.devices.iter().zip(&mut driver.descriptions) {
            if about.is_none_or(|about| about == *device) {
                *known = Some(files.clone());
            }
        }
    }

    pub(super) fn tell_of_health(&mut self, now: Instant, key: DriverKey) {
        let Some(driver) = self.drivers.get_mut(&key) else {
            return;
        };
        let mut notices = Vec::new();
        for (device, health) in driver.config.devices.iter().zip(&mut driver.health) {
            // The driver has logged the cause itself.
            let (kind, text, said) = match health.poll_news(now) {
                None => continue,
                Some(News::Trouble(text)) => {
                    let said = (Level::Warn, format!("{device} does not work: {text}"));
                    (Kind::DeviceTrouble, text, said)
                }
                Some(News::Recovered { after }) => {
                    let text = format!("after {:.1} s", after.as_secs_f64());
                    let said = (Level::Info, format!("{device} works again {text}"));
                    (Kind::DeviceRecovered, text, said)
                }
            };
            debug!(%device, "{kind:?}: {text}");
            notices.push((device_notice(kind, *device, Some(&text)), said));
        }
        for (notice, (level, text)) in notices {
            self.log_about(now, key, level, &text);
            self.notify(notice);
        }
    }
}

/// The first bytes, as hex and as text.
fn show_bytes(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(32)];
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} {:?}", hex.join(" "), String::from_utf8_lossy(bytes))
}
