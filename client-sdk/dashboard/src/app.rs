//! The task around the hub: feeds it inputs and performs its outputs. IO.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use amber_client::Client;
use amber_map::Mounting;
use amber_proto::Device;
use amber_proto::mapping::Progress;
use amber_scene::{Part, Scene, State, mount};
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, sleep_until};

use crate::backlog::{Frame, Mailbox, ROOM, Subject};
use crate::feeds;
use crate::frames::{self, Points};
use crate::hub::{Hub, Message, Output, Ticket, ViewerId};
use crate::input::{Input, Measured};
use crate::page_client::{self, PageClients, PageOrder};
use crate::panel;
use crate::parts::Parts;

/// The hub and its helpers.
pub(crate) struct App {
    mediator: String,
    hub: Hub,
    inputs: mpsc::Sender<Input>,
    received: mpsc::Receiver<Input>,
    mailboxes: HashMap<ViewerId, Arc<Mailbox>>,
    page_clients: PageClients,
    client: Option<Client>,
    connecting: Option<AbortHandle>,
    connected: (mpsc::Sender<Client>, mpsc::Receiver<Client>),
    /// Requests the data that all pages show.
    robot: Option<(Parts, AbortHandle)>,
    mediator_feed: Option<AbortHandle>,
    is_fed: bool,
    /// A page has set targets.
    new_targets: Arc<Notify>,
    scene: State,
    /// The map that is being made. While it grows, it is shown instead of that of the location driver.
    growing: Option<Box<Progress>>,
    drawn: Option<Frame>,
    mount: Part<Mounting>,
    started: Instant,
}

impl App {
    pub(crate) fn new(
        mediator: String,
        max_speed_mm_s: u32,
        inputs: mpsc::Sender<Input>,
        received: mpsc::Receiver<Input>,
    ) -> Self {
        let new_targets = Arc::new(Notify::new());
        Self {
            hub: Hub::new(mediator.clone(), max_speed_mm_s),
            page_clients: PageClients::new(mediator.clone(), inputs.clone(), new_targets.clone()),
            mediator,
            inputs,
            received,
            mailboxes: HashMap::new(),
            client: None,
            connecting: None,
            connected: mpsc::channel(1),
            robot: None,
            mediator_feed: None,
            is_fed: false,
            new_targets,
            scene: State::default(),
            growing: None,
            drawn: None,
            mount: no_mount(),
            started: Instant::now(),
        }
    }

    /// Runs until `end`.
    pub(crate) async fn run(mut self, end: impl Future<Output = ()>) {
        tokio::pin!(end);
        loop {
            self.perform();
            let due = self.hub.next_due().map(|due| self.started + due);
            tokio::select! {
                biased;
                () = &mut end => break,
                // A command ends in time even if many inputs wait.
                () = until(due) => self.hub.handle_timeout(self.now()),
                Some(client) = self.connected.1.recv() => {
                    self.client = Some(client);
                    self.feed();
                }
                Some(input) = self.received.recv() => self.handle(input),
            }
        }
        for id in self.mailboxes.keys().copied().collect::<Vec<_>>() {
            self.hub.close(self.now(), id);
        }
        self.perform();
        self.page_clients.end().await;
        if let Some(client) = self.client {
            client.close().await;
        }
    }

    fn handle(&mut self, input: Input) {
        let now = self.now();
        match input {
            Input::Opened(role, address, opened) => {
                // Without an answer, the page is told that there is no place.
                let Some(id) = self.hub.open(role, address) else {
                    return;
                };
                let mailbox = Arc::new(Mailbox::new(ROOM));
                self.mailboxes.insert(id, mailbox.clone());
                if opened.send((id, mailbox)).is_err() {
                    self.hub.close(now, id);
                }
            }
            Input::Said(id, Message { at, said }) => {
                self.hub.sent_at(now, id, at);
                self.hub.handle(now, id, said);
            }
            Input::Silent(id) => self.hub.handle_silence(now, id),
            Input::Closed(id) => self.hub.close(now, id),
            Input::Drivers(drivers) => {
                self.hub.handle_drivers(now, drivers);
                self.feed();
            }
            Input::Event(frame) => self.hub.handle_event(frame),
            Input::Measured(measured) => self.take(measured),
            Input::Answer(ticket, answer) => self.hub.answer(ticket, answer),
            Input::TripEnded(id, order, end) => self.hub.trip_ended(id, order, &end),
            Input::Notice(id, text) => self.hub.notice(id, &text),
            Input::Refused(id, why) => self.hub.refuse(id, &why),
        }
    }

    fn take(&mut self, measured: Measured) {
        match measured {
            Measured::Shape(shape) => {
                let shape = shape.as_deref();
                self.mount = shape
                    .and_then(mount::laser)
                    .ok_or_else(feeds::unknown_mount);
                let shown = frames::text(&frames::shape(shape));
                self.hub.show(Subject::Shape, shown);
            }
            Measured::Mapping(progress, drawn) => self.take_mapping(progress, drawn),
            Measured::Map(map) => {
                self.scene.map.set(map);
                self.show_map();
            }
            Measured::Pose(pose) => {
                self.scene.take_pose(pose);
                self.show_pose();
            }
            Measured::Located(located) => {
                self.scene.take_located(located);
                self.show_pose();
            }
            Measured::Scan(scan) => {
                let around = scan.clone();
                self.scene.take_scan(scan);
                if self.growing.is_some() {
                    return;
                }
                match (self.scene.scan(&self.mount), around) {
                    (Ok(places), _) => {
                        let shown = frames::scan(Points::ScanOnMap, &places);
                        self.hub.show(Subject::Scan, shown);
                    }
                    (Err(_), Ok(scan)) => {
                        let at_start = amber_client::MapPose::new(0.0, 0.0, 0.0);
                        let mount = self.mount.clone().unwrap_or_default();
                        let places = amber_scene::scan_places(&scan, at_start, mount);
                        let shown = frames::scan(Points::ScanAroundRobot, &places);
                        self.hub.show(Subject::Scan, shown);
                    }
                    (Err(_), Err(_)) => {}
                }
            }
            Measured::Particles(particles) => {
                self.scene.particles.set(particles);
                self.show_particles();
            }
            Measured::Drive(drive) => {
                self.scene.drive.set(drive);
                if self.growing.is_none() {
                    self.hub.handle_path(self.scene.drive.get());
                }
            }
        }
    }

    /// Shows a growing map, or that of the location driver again.
    fn take_mapping(&mut self, progress: Box<Progress>, drawn: Option<Frame>) {
        self.hub.handle_mapping(&progress);
        let is_new = drawn.is_some();
        self.drawn = drawn.or(self.drawn.take());
        let grew = self.growing.is_some();
        let grows = frames::grows(&progress);
        self.growing = grows.then_some(progress);
        if is_new || grew != grows {
            self.show_map();
        }
        if grew && !grows {
            self.drawn = None;
            self.show_pose();
            self.show_particles();
            self.hub.handle_path(self.scene.drive.get());
        }
        let Some(progress) = &self.growing else {
            return;
        };
        let scene = Scene::of_growing(None, progress, "");
        let scan = scene.scan.as_deref().unwrap_or_default();
        let scan = frames::scan(Points::ScanOnMap, scan);
        self.hub.show(Subject::Scan, scan);
        self.hub.handle_path(&scene.drive);
        let pose = frames::text(&frames::pose(&scene.located));
        self.hub.show(Subject::Pose, pose);
        if !grew {
            self.show_particles();
        }
    }

    fn show_map(&mut self) {
        let missing = || Err("the map begins".to_owned());
        let map = match (&self.growing, &self.drawn) {
            (None, _) => frames::text(&frames::map(self.scene.map.get())),
            (Some(_), Some(drawn)) => drawn.clone(),
            (Some(_), None) => frames::text(&frames::map(&missing())),
        };
        self.hub.show(Subject::Map, map);
    }

    fn show_particles(&mut self) {
        let all: &[_] = match self.growing {
            // They are on another map.
            Some(_) => &[],
            None => self.scene.particles.get().as_deref().unwrap_or_default(),
        };
        self.hub.show(Subject::Particles, frames::particles(all));
    }

    fn show_pose(&mut self) {
        if self.growing.is_some() {
            return;
        }
        let pose = frames::pose(&self.scene.located());
        self.hub.show(Subject::Pose, frames::text(&pose));
    }

    /// Performs all outputs of the hub.
    fn perform(&mut self) {
        while let Some(output) = self.hub.take() {
            match output {
                Output::Show(id, subject, frame) => {
                    if let Some(mailbox) = self.mailboxes.get(&id) {
                        mailbox.change(|it| it.show(subject, frame));
                    }
                }
                Output::Line(id, frame) => {
                    if let Some(mailbox) = self.mailboxes.get(&id) {
                        mailbox.change(|it| it.line(frame));
                    }
                }
                Output::Feed(is_fed) => {
                    self.is_fed = is_fed;
                    self.feed();
                }
                Output::Drive(id, device, speeds) => {
                    self.page_client(id).drive(device, speeds);
                }
                Output::Goal(ticket, device, target) => {
                    self.order(ticket.viewer, PageOrder::Goal(ticket, device, target));
                }
                Output::Explore(ticket, device) => {
                    self.order(ticket.viewer, PageOrder::Explore(ticket, device));
                }
                Output::Stop(id, device) if self.hub.parts().has_errands(device) => {
                    self.order(id, PageOrder::Stop(device));
                }
                Output::Stop(id, device) => self.page_client(id).stop(device),
                Output::Halt(id, is_halted) => self.order(id, PageOrder::Halt(is_halted)),
                Output::TakeOver(id) => self.order(id, PageOrder::TakeOver),
                Output::EndErrand(id, device) => self.order(id, PageOrder::EndErrand(device)),
                Output::Describe(ticket, device) => self.describe(ticket, device),
                Output::Call(ticket, device, method, args, permission) => {
                    let call = PageOrder::Call(ticket, device, method, args, permission);
                    self.order(ticket.viewer, call);
                }
                Output::Leave(id) => {
                    self.page_clients.leave(id);
                    if let Some(mailbox) = self.mailboxes.remove(&id) {
                        let dropped = mailbox.dropped();
                        tracing::debug!(page = id.0, dropped, "a page is gone");
                    }
                }
            }
        }
    }

    fn order(&mut self, id: ViewerId, order: PageOrder) {
        if !self.page_client(id).order(order) {
            self.hub.notice(id, "dropped: too many pending requests");
        }
    }

    fn page_client(&mut self, id: ViewerId) -> &page_client::Handle {
        let (parts, name) = (self.hub.parts(), self.hub.name(id));
        self.page_clients.handle(id, parts, name)
    }

    /// Starts and stops the tasks that send requests to the mediator and the devices.
    fn feed(&mut self) {
        if !self.is_fed {
            let tasks = [self.connecting.take(), self.mediator_feed.take()];
            let robot = self.robot.take().map(|(_, task)| task);
            for task in tasks.into_iter().flatten().chain(robot) {
                task.abort();
            }
            self.forget();
            return;
        }
        let Some(client) = self.client.clone() else {
            if self.connecting.is_none() {
                let (mediator, inputs) = (self.mediator.clone(), self.inputs.clone());
                let connected = self.connected.0.clone();
                let task = tokio::spawn(async move {
                    let client = feeds::connected(&mediator, &inputs).await;
                    let _ = connected.send(client).await;
                });
                self.connecting = Some(task.abort_handle());
            }
            return;
        };
        let inputs = || self.inputs.clone();
        if self.mediator_feed.is_none() {
            let task = spawn_local(feeds::watch_mediator(client.clone(), inputs()));
            self.mediator_feed = Some(task.abort_handle());
        }
        let parts = self.hub.parts();
        if self.robot.as_ref().is_none_or(|(fed, _)| *fed != parts) {
            let feed = feeds::watch_robot(client, parts, inputs(), self.new_targets.clone());
            let task = spawn_local(feed);
            let before = self.robot.replace((parts, task.abort_handle()));
            if let Some((_, task)) = before {
                task.abort();
            }
            self.forget();
            self.mount = no_mount();
        }
    }

    /// Forgets what is shown.
    fn forget(&mut self) {
        self.scene = State::default();
        self.growing = None;
        self.drawn = None;
    }

    fn describe(&self, ticket: Ticket, device: Device) {
        let (client, inputs) = (self.client.clone(), self.inputs.clone());
        tokio::spawn(async move {
            let answer = match client {
                None => Err("the mediator is unavailable".to_owned()),
                Some(client) => panel::describe(&client, device).await,
            };
            let _ = inputs.send(Input::Answer(ticket, answer)).await;
        });
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

fn no_mount() -> Part<Mounting> {
    Err(feeds::unknown_mount())
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
