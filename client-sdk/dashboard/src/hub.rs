//! The centre of the dashboard: pages, the seat, and the data of each page. PURE.
//!
//! Inputs come with a time, and the actions to perform are [`Output`]s: take all of them after each
//! call. [`Controls`] of the gateways keeps the seat and ends commands.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use amber_client::values::Target;
use amber_client::{MappingService, WheelSpeeds};
use amber_proto::Device;
use amber_proto::mapping::Progress;
use amber_proto::mediator::Driver;
use amber_robot::bucket::Bucket;
use amber_robot::controls::{Controls, Seat};
use amber_robot::lag::Lag;
use amber_scene::trip::TripEnd;
use amber_scene::{Drive, Part};
use amber_web::Role;
use serde_json::{Value, json};

use crate::backlog::{Frame, Subject};
use crate::frames;
use crate::limits::{FOR_DRIVING, MAX_EVENTS, MAX_NOTICE, MAX_VIEWERS, MESSAGE_RATE, MOTION_LAG};
use crate::parts::Parts;

mod driving;
mod said;

pub use self::said::{Message, Said};

/// A page that is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewerId(pub u32);

/// A request of a page that gets an answer by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The page.
    pub viewer: ViewerId,
    /// The number that the page has given it.
    pub id: u32,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Show a frame to a page: the newest of its subject.
    Show(ViewerId, Subject, Frame),
    /// Append a line to a page.
    Line(ViewerId, Frame),
    /// Begin asking the devices because a page is open, or end it.
    Feed(bool),
    /// Turn the wheels, on behalf of a page.
    Drive(ViewerId, Device, WheelSpeeds),
    /// Drive to a target, on behalf of a page.
    Goal(Ticket, Device, Target),
    /// Explore, on behalf of a page.
    Explore(Ticket, Device),
    /// End the targets or the exploration of a page.
    EndErrand(ViewerId, Device),
    /// Stop a device because a page asks for it, whoever moves it.
    Stop(ViewerId, Device),
    /// Halt everything that moves, or release the halt.
    Halt(ViewerId, bool),
    /// Let a page take the leases of what it moves next from their holders.
    TakeOver(ViewerId),
    /// Tell a page the description of a device.
    Describe(Ticket, Device),
    /// Send a request, on behalf of a page.
    Call(Ticket, Device, String, Vec<String>, Permission),
    /// The page is gone: its motions stop.
    Leave(ViewerId),
}

/// The requests that a page may send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// All.
    All,
    /// Those that only read, with the reason.
    OnlyRead(&'static str),
}

/// The state of the dashboard.
#[derive(Debug)]
pub struct Hub {
    mediator: String,
    max_speed_mm_s: u32,
    viewers: BTreeMap<ViewerId, Viewer>,
    last_id: u32,
    controls: Controls<ViewerId>,
    /// The device that receives the current motion.
    route: Option<Device>,
    /// The page whose target the robot drives to.
    navigator: Option<ViewerId>,
    /// Pages that were stopped by another one, until they release the stick.
    halted: BTreeSet<ViewerId>,
    drivers: Vec<Driver>,
    counted: frames::Counted,
    parts: Parts,
    has_targets: bool,
    /// Whether a map grows, and whether the robot explores for it.
    grows: bool,
    explores: bool,
    /// The page for which the robot explores.
    explorer: Option<ViewerId>,
    /// The newest frames, for pages that come later.
    newest: BTreeMap<Subject, Frame>,
    events: VecDeque<Frame>,
    outputs: VecDeque<Output>,
    seat_shown: Value,
}

#[derive(Debug)]
struct Viewer {
    role: Role,
    address: String,
    messages: Bucket,
    ignored: u64,
    lag: Lag,
    /// How much longer than usual its last message took.
    late: Duration,
    /// Motions that came too late.
    delayed: u64,
}

/// Why a page cannot be opened.
pub const FULL: &str = "too many pages are open: close one of them";

impl Hub {
    /// No page is open. `mediator` is its address, for people.
    #[must_use]
    pub fn new(mediator: String, max_speed_mm_s: u32) -> Self {
        Self {
            mediator,
            max_speed_mm_s,
            viewers: BTreeMap::new(),
            last_id: 0,
            controls: Controls::new(Seat::Exclusive),
            route: None,
            navigator: None,
            halted: BTreeSet::new(),
            drivers: Vec::new(),
            counted: frames::Counted::default(),
            parts: Parts::default(),
            has_targets: false,
            grows: false,
            explores: false,
            explorer: None,
            newest: BTreeMap::new(),
            events: VecDeque::new(),
            outputs: VecDeque::new(),
            seat_shown: Value::Null,
        }
    }

    /// The next action; `None` if there is none.
    pub fn take(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The devices that the page shows together.
    #[must_use]
    pub fn parts(&self) -> Parts {
        self.parts
    }

    /// The name of a page as others see it: who drives.
    #[must_use]
    pub fn name(&self, id: ViewerId) -> String {
        match self.viewers.get(&id) {
            Some(viewer) => format!("dashboard {}", viewer.address),
            None => "dashboard".to_owned(),
        }
    }

    /// The number of pages.
    #[must_use]
    pub fn viewers(&self) -> usize {
        self.viewers.len()
    }

    /// A page has connected, and may do this. `None` if all places are taken: the last ones are for pages
    /// that may drive.
    pub fn open(&mut self, role: Role, address: String) -> Option<ViewerId> {
        let places = match role {
            Role::Drive => MAX_VIEWERS,
            Role::Look => MAX_VIEWERS - FOR_DRIVING,
        };
        if self.viewers.len() >= places {
            return None;
        }
        self.last_id += 1;
        let id = ViewerId(self.last_id);
        let viewer = Viewer {
            role,
            address,
            messages: Bucket::new(MESSAGE_RATE),
            ignored: 0,
            lag: Lag::default(),
            late: Duration::ZERO,
            delayed: 0,
        };
        self.viewers.insert(id, viewer);
        if self.viewers.len() == 1 {
            self.outputs.push_back(Output::Feed(true));
        }
        let hello = json!({
            "t": "hello", "you": id.0, "name": self.name(id), "role": role.name(), "mediator": self.mediator,
            "max_speed_mm_s": self.max_speed_mm_s,
        });
        let lines = [frames::text(&hello)]
            .into_iter()
            .chain(self.events.clone());
        self.outputs
            .extend(lines.map(|line| Output::Line(id, line)));
        let newest = self.newest.clone().into_iter();
        let shown = newest.map(|(subject, frame)| Output::Show(id, subject, frame));
        self.outputs.extend(shown);
        self.show_seat();
        Some(id)
    }

    /// When the next message of a page was sent, in ms on its clock. The page says hello with it.
    pub fn sent_at(&mut self, now: Duration, id: ViewerId, at_ms: Option<f64>) {
        if let Some(viewer) = self.viewers.get_mut(&id) {
            // Casts from floating point saturate.
            let sent_ns = at_ms.map(|ms| (ms * 1e6) as u64);
            viewer.late = sent_ns.map_or(Duration::ZERO, |ns| viewer.lag.arrived(now, ns));
        }
    }

    /// A page is gone.
    pub fn close(&mut self, now: Duration, id: ViewerId) {
        if self.viewers.remove(&id).is_none() {
            return;
        }
        self.controls.release(id);
        self.halted.remove(&id);
        self.end_errands(id);
        self.settle(now);
        self.outputs.push_back(Output::Leave(id));
        if self.viewers.is_empty() {
            self.outputs.push_back(Output::Feed(false));
            // The next page must not see old measurements.
            self.newest.clear();
        }
    }

    /// A page that usually answers has fallen silent: it may have frozen.
    pub fn handle_silence(&mut self, now: Duration, id: ViewerId) {
        if self.end_errands(id) {
            self.notice(id, "stopped the robot: this page did not answer");
            self.settle(now);
        }
    }

    /// A page has sent a message.
    pub fn handle(&mut self, now: Duration, id: ViewerId, said: Said) {
        let Some(viewer) = self.viewers.get_mut(&id) else {
            return;
        };
        // A stop is always accepted.
        let stops = matches!(said, Said::Stop | Said::Halt { halt: true });
        if !stops && !viewer.messages.take(now) {
            viewer.ignored += 1;
            if viewer.ignored == 1 {
                self.notice(id, "too many messages from this page: some are ignored");
            }
            return;
        }
        let may_drive = viewer.role == Role::Drive;
        let is_late = viewer.late > MOTION_LAG;
        if is_late && said.moves() {
            viewer.delayed += 1;
            tracing::debug!(
                page = id.0,
                delayed = viewer.delayed,
                "a motion came too late"
            );
            let why = "the network delays this page: its old commands are dropped";
            self.refuse_said(id, &said, why);
            return self.settle(now);
        }
        match said {
            Said::Hello { .. } => {}
            Said::Describe { id: number, device } => {
                let ticket = Ticket {
                    viewer: id,
                    id: number,
                };
                match said::read_device(&device) {
                    Ok(_) if !may_drive && said::is_mediator(&device) => {
                        self.answer(ticket, Err(NO_MEDIATOR.to_owned()));
                    }
                    Ok(device) => self.outputs.push_back(Output::Describe(ticket, device)),
                    Err(why) => self.answer(ticket, Err(why)),
                }
            }
            Said::Call {
                id: number,
                device,
                method,
                args,
            } => {
                let ticket = Ticket {
                    viewer: id,
                    id: number,
                };
                if !may_drive && said::is_mediator(&device) {
                    return self.answer(ticket, Err(NO_MEDIATOR.to_owned()));
                }
                let permission = match may_drive {
                    false => Permission::OnlyRead("this page is view-only"),
                    true if is_late => {
                        Permission::OnlyRead("the network has delayed this request: send it again")
                    }
                    true if self.is_taken_from(now, id) => {
                        Permission::OnlyRead("another page is driving the robot")
                    }
                    true => Permission::All,
                };
                match said::read_device(&device) {
                    Ok(device) => {
                        let call = Output::Call(ticket, device, method, args, permission);
                        self.outputs.push_back(call);
                    }
                    Err(why) => self.answer(ticket, Err(why)),
                }
            }
            said if !may_drive => self.refuse_said(id, &said, "this page is view-only"),
            Said::Drive { left, right, guard } => self.drive(now, id, left, right, guard),
            Said::Stop => self.stop(now, id),
            Said::Halt { halt } => {
                if halt {
                    self.stop(now, id);
                }
                self.outputs.push_back(Output::Halt(id, halt));
            }
            Said::TakeOver => self.take_over(now, id),
            Said::Goal { id: number, x, y } => {
                let ticket = Ticket {
                    viewer: id,
                    id: number,
                };
                if let Err(why) = self.goal(now, ticket, x, y) {
                    self.answer(ticket, Err(why.to_owned()));
                }
            }
            Said::Explore { id: number } => {
                let ticket = Ticket {
                    viewer: id,
                    id: number,
                };
                if let Err(why) = self.explore(now, ticket) {
                    self.answer(ticket, Err(why.to_owned()));
                }
            }
        }
        self.settle(now);
    }

    /// The time of [`Hub::next_due`] has come. May also be called earlier.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.settle(now);
    }

    /// When to call [`Hub::handle_timeout`].
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.controls.next_due()
    }

    /// The mediator has listed its drivers, or does not answer.
    pub fn handle_drivers(&mut self, now: Duration, drivers: Result<Vec<Driver>, String>) {
        let overview = match drivers {
            Ok(drivers) => {
                let counted = frames::Counted::of(&drivers, now.as_secs_f64());
                let overview =
                    frames::Overview::new(&self.mediator, &drivers, &self.counted, &counted);
                self.parts = Parts::of(&drivers);
                self.counted = counted;
                self.drivers = drivers;
                overview
            }
            Err(why) => frames::Overview::missing(&self.mediator, why),
        };
        self.show(Subject::Drivers, overview.frame());
    }

    /// The targets and the path, or the reason why they are unknown.
    pub fn handle_path(&mut self, drive: &Part<Drive>) {
        self.has_targets = drive.as_ref().is_ok_and(|drive| !drive.targets.is_empty());
        self.show(Subject::Path, frames::text(&frames::path(drive)));
    }

    /// The state of the map that is being made.
    pub fn handle_mapping(&mut self, progress: &Progress) {
        self.grows = frames::grows(progress);
        let explored = self.explores;
        self.explores = MappingService::explores(progress);
        if explored && !self.explores {
            self.explorer = None;
        }
        self.show(Subject::Mapping, frames::text(&frames::mapping(progress)));
    }

    /// A measurement.
    pub fn show(&mut self, subject: Subject, frame: Frame) {
        if self.viewers.is_empty() || self.newest.get(&subject) == Some(&frame) {
            return;
        }
        self.newest.insert(subject.clone(), frame.clone());
        for &id in self.viewers.keys() {
            let shown = Output::Show(id, subject.clone(), frame.clone());
            self.outputs.push_back(shown);
        }
    }

    /// An event of the mediator.
    pub fn handle_event(&mut self, frame: Frame) {
        self.events.push_back(frame.clone());
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
        for &id in self.viewers.keys() {
            self.outputs.push_back(Output::Line(id, frame.clone()));
        }
    }

    /// The answer to a request of a page.
    pub fn answer(&mut self, ticket: Ticket, answer: Result<Value, String>) {
        let shown = match answer {
            Ok(value) => json!({ "t": "answer", "id": ticket.id, "value": value }),
            Err(why) => json!({ "t": "answer", "id": ticket.id, "error": shortened(&why) }),
        };
        let line = Output::Line(ticket.viewer, frames::text(&shown));
        self.outputs.push_back(line);
    }

    /// Tells a page how the robot's way to its target ended.
    pub fn trip_ended(&mut self, id: ViewerId, order: u64, end: &TripEnd) {
        let line = frames::text(&frames::trip(order, end));
        self.outputs.push_back(Output::Line(id, line));
    }

    /// Shows a notice on a page.
    pub fn notice(&mut self, id: ViewerId, text: &str) {
        self.tell(id, "notice", text);
    }

    /// Tells a page at its stick why the robot does not obey it.
    pub fn refuse(&mut self, id: ViewerId, why: &str) {
        self.tell(id, "refused", why);
    }

    /// Tells a page why its message has no effect, at the place where its operator looks.
    fn refuse_said(&mut self, id: ViewerId, said: &Said, why: &str) {
        if let Some(number) = said.number() {
            let ticket = Ticket {
                viewer: id,
                id: number,
            };
            self.answer(ticket, Err(why.to_owned()));
        } else if matches!(said, Said::Drive { .. }) {
            self.refuse(id, why);
        } else {
            self.notice(id, why);
        }
    }

    fn tell(&mut self, id: ViewerId, kind: &str, text: &str) {
        let line = frames::text(&json!({ "t": kind, "text": shortened(text) }));
        self.outputs.push_back(Output::Line(id, line));
    }
}

/// View-only pages see no command lines, and the mediator knows those of all drivers.
const NO_MEDIATOR: &str = "view-only pages do not show the mediator itself";

/// A text that may contain parts of a message of the page, which may be long.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_NOTICE) {
        Some((end, _)) => format!("{} …", &text[..end]).into(),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests;
