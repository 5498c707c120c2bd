//! The centre of the dashboard: pages, and the data of each page. PURE.
//!
//! Inputs come with a time, and the actions to perform are [`Output`]s: take all of them after each
//! call.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use amber_proto::Device;
use amber_proto::mediator::Driver;
use amber_robot::bucket::Bucket;
use amber_web::Role;
use serde_json::{Value, json};

use crate::backlog::{Frame, Subject};
use crate::frames;
use crate::limits::{FOR_DRIVING, MAX_EVENTS, MAX_NOTICE, MAX_VIEWERS, MESSAGE_RATE};
use crate::parts::Parts;

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
    /// Stop the robot because a page asks for it, whoever moves it.
    Stop(ViewerId, Stop),
    /// Tell a page the description of a device.
    Describe(Ticket, Device),
}

/// How to stop the robot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The devices that drive it.
    pub parts: Parts,
    /// Whether to halt everything that moves: another page or program would drive on.
    pub halts: bool,
    /// Who stops it, for people.
    pub name: String,
}

/// The state of the dashboard.
#[derive(Debug)]
pub struct Hub {
    mediator: String,
    max_speed_mm_s: u32,
    viewers: BTreeMap<ViewerId, Viewer>,
    last_id: u32,
    drivers: Vec<Driver>,
    counted: frames::Counted,
    parts: Parts,
    /// The newest frames, for pages that come later.
    newest: BTreeMap<Subject, Frame>,
    events: VecDeque<Frame>,
    outputs: VecDeque<Output>,
}

#[derive(Debug)]
struct Viewer {
    role: Role,
    address: String,
    messages: Bucket,
    ignored: u64,
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
            drivers: Vec::new(),
            counted: frames::Counted::default(),
            parts: Parts::default(),
            newest: BTreeMap::new(),
            events: VecDeque::new(),
            outputs: VecDeque::new(),
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

    /// The name of a page as others see it: who drives. Several pages may be on one machine.
    #[must_use]
    pub fn name(&self, id: ViewerId) -> String {
        match self.viewers.get(&id) {
            Some(viewer) => format!("dashboard {} page {}", viewer.address, id.0),
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
        };
        self.viewers.insert(id, viewer);
        if self.viewers.len() == 1 {
            self.outputs.push_back(Output::Feed(true));
        }
        let hello = json!({
            "t": "hello", "name": self.name(id), "role": role.name(), "mediator": self.mediator,
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
        self.show_pages();
        Some(id)
    }

    /// A page is gone.
    pub fn close(&mut self, id: ViewerId) {
        if self.viewers.remove(&id).is_none() {
            return;
        }
        self.show_pages();
        if self.viewers.is_empty() {
            self.outputs.push_back(Output::Feed(false));
            // The next page must not see old measurements.
            self.newest.clear();
        }
    }

    /// A page has sent a message.
    pub fn handle(&mut self, now: Duration, id: ViewerId, said: Said) {
        let Some(viewer) = self.viewers.get_mut(&id) else {
            return;
        };
        // A stop is always accepted.
        if said != Said::Stop && !viewer.messages.take(now) {
            viewer.ignored += 1;
            if viewer.ignored == 1 {
                self.notice(id, "too many messages from this page: some are ignored");
            }
            return;
        }
        let may_drive = viewer.role == Role::Drive;
        match said {
            Said::Hello { .. } => {}
            Said::Stop if may_drive => {
                let stop = Stop {
                    parts: self.parts,
                    halts: self.is_driven_by_others(id),
                    name: self.name(id),
                };
                self.outputs.push_back(Output::Stop(id, stop));
            }
            Said::Stop => self.notice(id, "this page is view-only"),
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
        }
    }

    /// Whether another page or program holds the lease of a device, and would drive on with its next
    /// command.
    fn is_driven_by_others(&self, id: ViewerId) -> bool {
        let own = self.name(id);
        let motions = self.drivers.iter().flat_map(|driver| &driver.motions);
        let mut holders = motions.filter_map(|motion| motion.holder.as_deref());
        holders.any(|holder| {
            // Drivers say for whom they move another device: "NAME via DEVICE".
            let name = holder.split(" via ").next().unwrap_or(holder);
            name != own
        })
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

    /// Shows a notice on a page.
    pub fn notice(&mut self, id: ViewerId, text: &str) {
        let line = frames::text(&json!({ "t": "notice", "text": shortened(text) }));
        self.outputs.push_back(Output::Line(id, line));
    }

    /// Shows how many pages are open.
    fn show_pages(&mut self) {
        let pages = json!({ "t": "pages", "open": self.viewers.len() });
        self.show(Subject::Pages, frames::text(&pages));
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
