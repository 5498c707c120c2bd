//! Decides when the camera is on, and who gets which picture. PURE.
//!
//! ```text
//!        somebody wants pictures       opened                     no picture, or a failure
//!  Off --------------------------> Opening ----> On ------------------------------------+
//!   ^                                 ^           |                                     v
//!   |  nobody has for a while         |           +---> Off                          Absent
//!   +---------------------------------+------------------- after a pause ---------------+
//! ```
//!
//! A camera that nobody uses is off: then its light is off, other programs can use it, and it needs no
//! power. At the start it is on for one picture, so that a missing camera is noticed. After a failure it
//! is tried again until it works, so that `amber status` is right.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin, StreamRequest};
use amber_proto::camera::{
    Calibration, CameraInfo, Control, ControlValue, Mode, Picture, PictureRequest, PictureStream,
};

use super::audience::{Audience, Rate, Wish};
use super::jpeg::Jpeg;
pub use super::note::Note;
use super::pixels::{self, Made, Recipe};
use crate::outage::Outage;

/// How long a request waits for a picture: a camera that is off needs some time. Less than clients
/// wait.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most requests that wait.
const MAX_WAITING: usize = 64;
/// A camera never sends the same bytes twice, because of its noise. A program that does so for this
/// long has lost its camera.
const FROZEN: Duration = Duration::from_secs(10);

const OFF: &str = "the camera is off: ask for a picture first";
const TOO_MANY: &str = "too many requests wait for a picture";
const NO_PICTURE: &str = "no picture has come within 5 s";
const HANGS: &str = "the camera neither sends pictures nor fails: unplug it for a moment";
const SAME: &str =
    "the same picture comes again and again: the program that sends it has lost its camera";

/// Settings of the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How long the camera stays on when nobody uses it; `None`: for ever.
    pub idle: Option<Duration>,
    /// The longest time without a picture. Sources notice it themselves, and say why; the logic waits
    /// twice as long.
    pub timeout: Duration,
    /// How long a camera adjusts its exposure after it was switched on. Until then, it answers no
    /// requests.
    pub settle: Duration,
    /// The optics.
    pub calibration: Option<Calibration>,
}

/// A picture of the camera.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The file.
    pub jpeg: Jpeg,
    /// When it was taken, in microseconds since 1970.
    pub captured_us: i64,
}

/// What a camera offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Sizes and rates.
    pub modes: Vec<Mode>,
    /// What can be set.
    pub controls: Vec<Control>,
}

/// An action for the caller. `T` stands for a request that waits for its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Output<T> {
    /// Start the source, then call [`CameraLogic::opened`] or [`CameraLogic::failed`].
    Open,
    /// Stop the source.
    Close,
    /// Answer a request.
    Answer(T, Picture),
    /// Refuse a request, with the reason.
    Refuse(T, String),
    /// Publish to these clients.
    Publish(Origin, Picture),
    /// A log message.
    Say(Note),
    /// Nothing is left to do.
    End,
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pictures of the camera.
    pub frames: u64,
    /// Those whose end was missing.
    pub damaged: u64,
    /// Published: one for all clients with the same wish.
    pub published: u64,
    /// Pictures that could not be made smaller.
    pub unmade: u64,
}

/// The state of the camera.
#[derive(Debug)]
pub struct CameraLogic<T> {
    settings: Settings,
    /// The name of the source, for people.
    source: String,
    phase: Phase,
    audience: Audience,
    waiting: VecDeque<Waiting<T>>,
    /// When somebody last wanted pictures; `None`: nobody has since the start.
    used: Option<Instant>,
    /// When the camera was switched on, and when its first and its last picture came.
    opened: Instant,
    first: Option<Instant>,
    heard: Instant,
    last: Option<(Instant, Frame)>,
    /// Since when the picture is the same.
    same_since: Instant,
    is_frozen: bool,
    sequence: u32,
    rate: Rate,
    facts: Facts,
    /// What was logged once.
    has_said_calibration: bool,
    has_said_unmade: bool,
    outage: Outage,
    outputs: VecDeque<Output<T>>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Off,
    Opening,
    On,
    Absent { until: Instant },
    Ended,
}

#[derive(Debug)]
struct Waiting<T> {
    wish: Wish,
    until: Instant,
    asker: T,
}

impl<T> CameraLogic<T> {
    /// Starts with the camera on.
    pub fn new(settings: Settings, source: String, now: Instant) -> Self {
        let mut logic = Self {
            settings,
            source,
            phase: Phase::Off,
            audience: Audience::default(),
            waiting: VecDeque::new(),
            used: None,
            opened: now,
            first: None,
            heard: now,
            last: None,
            same_since: now,
            is_frozen: false,
            sequence: 0,
            rate: Rate::default(),
            facts: Facts::default(),
            has_said_calibration: false,
            has_said_unmade: false,
            outage: Outage::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        };
        logic.open(now);
        logic
    }

    /// A client asks for one picture.
    pub fn ask(&mut self, now: Instant, request: &PictureRequest, asker: T) {
        let wish = Wish::from(request);
        let max_age = Duration::from_millis(request.max_age().into());
        let last = self.last.as_ref();
        let last = last.filter(|(at, _)| now.saturating_duration_since(*at) < max_age);
        if let Some((_, frame)) = last {
            let made = Kitchen::new(frame, self.sequence).make(wish);
            self.answer(asker, made);
        } else if let Some(trouble) = self.outage.trouble().map(str::to_owned) {
            self.refuse(asker, &trouble);
        } else if self.waiting.len() >= MAX_WAITING {
            self.refuse(asker, TOO_MANY);
        } else {
            let until = now + PATIENCE;
            self.waiting.push_back(Waiting { wish, until, asker });
        }
        self.used = Some(now);
        self.switch(now);
    }

    /// A client starts, changes or stops its stream.
    ///
    /// # Errors
    /// There are too many clients.
    pub fn stream(
        &mut self,
        now: Instant,
        origin: &Origin,
        request: &StreamRequest<PictureStream>,
    ) -> Result<(), String> {
        match request {
            StreamRequest::Start(stream) => self.audience.start(origin, stream)?,
            StreamRequest::Stop(_) => self.audience.stop(origin),
            StreamRequest::ClientGone => {
                for client in &origin.clients {
                    self.audience.remove(*client);
                }
            }
        }
        self.used = Some(now);
        self.switch(now);
        Ok(())
    }

    /// A client is gone.
    pub fn client_gone(&mut self, client: ClientId) {
        self.audience.remove(client);
    }

    /// What is known of the camera.
    pub fn info(&self) -> CameraInfo {
        let is_on = matches!(self.phase, Phase::Opening | Phase::On);
        let jpeg = self.last.as_ref().map(|(_, frame)| &frame.jpeg);
        CameraInfo {
            source: Some(self.source.clone()),
            is_on: Some(is_on),
            width: jpeg.map(|jpeg| jpeg.width),
            height: jpeg.map(|jpeg| jpeg.height),
            measured_rate: self.rate.hz().filter(|_| is_on),
            calibration: self.settings.calibration.clone(),
            modes: self.facts.modes.clone(),
            controls: self.facts.controls.clone(),
        }
    }

    /// The id of a control, and its new value.
    ///
    /// # Errors
    /// It cannot be set now, or not to this value.
    pub fn control(&self, wanted: &ControlValue) -> Result<(u32, i64), String> {
        if self.phase != Phase::On {
            return Err(OFF.into());
        }
        let is_it = |control: &&Control| match (wanted.id, &wanted.name) {
            (Some(id), _) => control.id() == id,
            (None, Some(name)) => control.name().eq_ignore_ascii_case(name),
            (None, None) => false,
        };
        let controls = &self.facts.controls;
        let Some(control) = controls.iter().find(is_it) else {
            let names: Vec<_> = controls.iter().map(Control::name).collect();
            return Err(match names.is_empty() {
                true => "this camera has no controls".into(),
                false => format!("no such control; there are {}", names.join(", ")),
            });
        };
        let name = control.name();
        if control.automatic() {
            return Err(format!(
                "an automatic mode sets {name} now: switch that off first"
            ));
        }
        let value = wanted.value.unwrap_or(control.default_value());
        let (minimum, maximum) = (control.minimum(), control.maximum());
        if !(minimum..=maximum).contains(&value) {
            return Err(format!(
                "{name} goes from {minimum} to {maximum}, not to {value}"
            ));
        }
        let choices = &control.choices;
        if !choices.is_empty() && !choices.iter().any(|choice| choice.value() == value) {
            let known = choices
                .iter()
                .map(|it| format!("{} ({})", it.value(), it.name()));
            let known: Vec<_> = known.collect();
            return Err(format!(
                "{name} is one of {}, not {value}",
                known.join(", ")
            ));
        }
        Ok((control.id(), value))
    }

    /// The source works. Pictures follow.
    pub fn opened(&mut self, now: Instant, facts: Facts) {
        if self.phase == Phase::Opening {
            self.phase = Phase::On;
            self.facts = facts;
            self.heard = now;
            self.switch(now);
        }
    }

    /// The controls have changed: setting one may change others.
    pub fn controls_changed(&mut self, controls: Vec<Control>) {
        self.facts.controls = controls;
    }

    /// The source has ended, or could not be started.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        if matches!(self.phase, Phase::Opening | Phase::On) {
            self.give_up(now, problem);
            self.switch(now);
        }
    }

    /// A picture has come.
    pub fn frame(&mut self, now: Instant, frame: Frame) {
        if self.phase != Phase::On {
            return;
        }
        self.heard = now;
        self.sequence = self.sequence.wrapping_add(1);
        self.counters.frames += 1;
        self.counters.damaged += u64::from(frame.jpeg.is_damaged);
        let is_first = self.first.is_none();
        let first = *self.first.get_or_insert(now);
        if !is_first {
            self.rate.count(now);
        }
        if is_first {
            self.compare_with_calibration(&frame.jpeg);
            let size = (frame.jpeg.width, frame.jpeg.height);
            let note = self.outage.over(now).map_or(Note::Ready(size), Note::Back);
            self.say(note);
        }
        self.watch_for_freeze(now, &frame.jpeg);
        let mut kitchen = Kitchen::new(&frame, self.sequence);
        if now.saturating_duration_since(first) >= self.settings.settle {
            for Waiting { wish, asker, .. } in std::mem::take(&mut self.waiting) {
                let made = kitchen.make(wish);
                self.answer(asker, made);
            }
        }
        for (wish, origin) in self.audience.take_due(now, self.rate.interval()) {
            match kitchen.make(wish) {
                Ok(picture) => {
                    self.counters.published += 1;
                    self.outputs.push_back(Output::Publish(origin, picture));
                }
                Err(why) => self.unmade(why),
            }
        }
        self.last = Some((now, frame));
        self.switch(now);
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self
            .waiting
            .front()
            .is_some_and(|waiting| waiting.until <= now)
            && let Some(Waiting { asker, .. }) = self.waiting.pop_front()
        {
            self.refuse(asker, NO_PICTURE);
        }
        match self.phase {
            Phase::Absent { until } if now >= until => self.open(now),
            Phase::Opening | Phase::On if now >= self.silent_at() => self.give_up(now, HANGS),
            _ => {}
        }
        self.switch(now);
    }

    /// Shuts down.
    pub fn shut_down(&mut self) {
        self.phase = Phase::Ended;
        self.outputs.push_back(Output::Close);
        self.outputs.push_back(Output::End);
    }

    /// The next action for the caller.
    pub fn poll_output(&mut self) -> Option<Output<T>> {
        self.outputs.pop_front()
    }

    /// When to call [`CameraLogic::handle_timeout`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        let refusal = self.waiting.front().map(|waiting| waiting.until);
        let own = match self.phase {
            Phase::Absent { until } => Some(until),
            Phase::Opening | Phase::On => {
                let off = self.off_at().unwrap_or(self.silent_at());
                Some(off.min(self.silent_at()))
            }
            Phase::Off | Phase::Ended => None,
        };
        refusal.into_iter().chain(own).min()
    }

    /// The reason why there are no pictures, or no new ones.
    pub fn trouble(&self) -> Option<&str> {
        let frozen = self.is_frozen.then_some(SAME);
        self.outage.trouble().or(frozen)
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Switches the camera on or off, as it is wanted.
    fn switch(&mut self, now: Instant) {
        if self.is_wanted() {
            self.used = Some(now);
        }
        match self.phase {
            Phase::Off if self.is_wanted() => self.open(now),
            Phase::Opening | Phase::On if self.off_at().is_some_and(|at| now >= at) => {
                self.phase = Phase::Off;
                self.is_frozen = false;
                self.outputs.push_back(Output::Close);
            }
            _ => {}
        }
    }

    /// Whether somebody waits for pictures. While there are none although there should be, the camera
    /// is wanted, too: else nobody would notice that it works again.
    fn is_wanted(&self) -> bool {
        let is_used = !self.audience.is_empty() || !self.waiting.is_empty();
        is_used || self.settings.idle.is_none() || self.outage.trouble().is_some()
    }

    /// When the camera is switched off. Never before it has sent a picture, which is all that the
    /// start is for.
    fn off_at(&self) -> Option<Instant> {
        let idle = self.settings.idle?;
        let is_proven = self.first.is_some();
        let off_at = self.used.map_or(self.opened, |used| used + idle);
        (is_proven && !self.is_wanted()).then_some(off_at)
    }

    fn silent_at(&self) -> Instant {
        self.heard.max(self.opened) + 2 * self.settings.timeout
    }

    fn open(&mut self, now: Instant) {
        self.phase = Phase::Opening;
        self.opened = now;
        self.first = None;
        self.rate = Rate::default();
        (self.same_since, self.is_frozen) = (now, false);
        self.outputs.push_back(Output::Open);
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: &str) {
        if self.outage.complain(now, trouble) {
            self.say(Note::Trouble(trouble.to_owned()));
        }
        // The client can try again; the driver does so anyway.
        for Waiting { asker, .. } in std::mem::take(&mut self.waiting) {
            self.refuse(asker, trouble);
        }
        self.is_frozen = false;
        self.outputs.push_back(Output::Close);
        self.phase = Phase::Absent {
            until: self.outage.try_again_at(now),
        };
    }

    fn watch_for_freeze(&mut self, now: Instant, jpeg: &Jpeg) {
        let last = self.last.as_ref().map(|(_, frame)| &frame.jpeg.bytes);
        if last != Some(&jpeg.bytes) {
            (self.same_since, self.is_frozen) = (now, false);
        } else if !self.is_frozen && now.saturating_duration_since(self.same_since) >= FROZEN {
            self.is_frozen = true;
            self.say(Note::Frozen(SAME));
        }
    }

    /// Says once that the calibration is that of another size.
    fn compare_with_calibration(&mut self, jpeg: &Jpeg) {
        let Some(calibration) = &self.settings.calibration else {
            return;
        };
        let theirs = (calibration.width(), calibration.height());
        let ours = (jpeg.width, jpeg.height);
        // It may be that of a whole multiple.
        let fits = theirs.0 % ours.0 == 0 && theirs.0 / ours.0 == theirs.1 / ours.1;
        if !fits && !std::mem::replace(&mut self.has_said_calibration, true) {
            self.say(Note::OtherCalibration { theirs, ours });
        }
    }

    fn answer(&mut self, asker: T, made: Result<Picture, String>) {
        match made {
            Ok(picture) => self.outputs.push_back(Output::Answer(asker, picture)),
            Err(why) => {
                self.refuse(asker, &why);
                self.unmade(why);
            }
        }
    }

    fn refuse(&mut self, asker: T, why: &str) {
        self.outputs
            .push_back(Output::Refuse(asker, why.to_owned()));
    }

    fn unmade(&mut self, why: String) {
        self.counters.unmade += 1;
        if !std::mem::replace(&mut self.has_said_unmade, true) {
            self.say(Note::Unmade(why));
        }
    }

    fn say(&mut self, note: Note) {
        self.outputs.push_back(Output::Say(note));
    }
}

/// Makes the pictures that clients want of one frame; each kind once.
struct Kitchen<'a> {
    frame: &'a Frame,
    sequence: u32,
    made: Vec<(Recipe, Result<Made, String>)>,
}

impl<'a> Kitchen<'a> {
    fn new(frame: &'a Frame, sequence: u32) -> Self {
        Self {
            frame,
            sequence,
            made: Vec::new(),
        }
    }

    fn make(&mut self, wish: Wish) -> Result<Picture, String> {
        let jpeg = &self.frame.jpeg;
        let recipe = wish.recipe(jpeg.width);
        let known = self.made.iter().find(|(other, _)| *other == recipe);
        let made = match known {
            Some((_, made)) => made.clone(),
            None => {
                let made = pixels::make(jpeg, recipe);
                self.made.push((recipe, made.clone()));
                made
            }
        };
        made.map(|made| Picture {
            data: Some(made.data),
            format: Some(recipe.format.into()),
            width: Some(made.width),
            height: Some(made.height),
            captured: Some(self.frame.captured_us),
            sequence: Some(self.sequence),
            damaged: jpeg.is_damaged.then_some(true),
        })
    }
}

#[cfg(test)]
mod tests;
