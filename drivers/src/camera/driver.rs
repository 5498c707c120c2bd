//! The driver between the mediator and the camera. IO.
//!
//! The task that owns the camera makes pictures smaller for clients that want it, which takes
//! milliseconds. It has a thread of its own, so that nobody waits for that.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::error::Error;
use std::future::pending;
use std::time::Duration;

use amber_driver::devices::camera::{CameraDriver, CameraLink, DriverMsg};
use amber_driver::{ClientId, Origin, Reply, StreamRequest, now};
use amber_proto::camera::{
    CameraInfo, Control, ControlValue, Picture, PictureRequest, PictureStream,
};
use tokio::sync::mpsc;

use super::logic::{CameraLogic, Output, Settings};
use super::source::{Event, Running, Source, channel};
use crate::device_task::{DeviceTask, Next, Owner, until};
use crate::stream::{complain, say};

/// How often clients that send SUBSCRIBE are told what is known of the camera.
const INFO_PERIOD: Duration = Duration::from_secs(1);

/// The driver of a camera.
#[derive(Debug)]
pub struct CameraOf<S> {
    /// `Some` until the start.
    setup: Option<(Settings, S)>,
    task: DeviceTask<Request>,
}

impl<S: Source> CameraOf<S> {
    /// Creates a driver with the pictures of this source.
    pub fn new(settings: Settings, source: S) -> Self {
        Self {
            setup: Some((settings, source)),
            task: DeviceTask::default(),
        }
    }
}

/// A request for the task that owns the camera.
#[derive(Debug)]
enum Request {
    Picture(PictureRequest, Reply<Picture>),
    Stream(Origin, StreamRequest<PictureStream>),
    Info(Reply<CameraInfo>),
    PublishInfo,
    Set(ControlValue, Reply<Control>),
    ClientGone(ClientId),
}

impl<S: Source> CameraDriver for CameraOf<S> {
    async fn start(&mut self, link: CameraLink) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((settings, source)) = self.setup.take() {
            let logic = CameraLogic::new(settings, source.place(), now());
            let desk = Desk {
                logic,
                source,
                running: None,
                setting: VecDeque::new(),
            };
            self.task.open_in_thread(desk, link);
        }
        Ok(())
    }

    async fn picture(&mut self, request: PictureRequest, reply: Reply<Picture>) {
        if reply.is_possible() {
            self.task.request(Request::Picture(request, reply)).await;
        }
    }

    async fn pictures(&mut self, origin: Origin, request: StreamRequest<PictureStream>) {
        // `client_gone` follows.
        if request != StreamRequest::ClientGone {
            self.task.request(Request::Stream(origin, request)).await;
        }
    }

    async fn info(&mut self, reply: Reply<CameraInfo>) {
        self.task.request(Request::Info(reply)).await;
    }

    async fn set_control(&mut self, control: ControlValue, reply: Reply<Control>) {
        self.task.request(Request::Set(control, reply)).await;
    }

    fn period(&self) -> Option<Duration> {
        Some(INFO_PERIOD)
    }

    async fn publish(&mut self) -> Option<CameraInfo> {
        self.task.request(Request::PublishInfo).await;
        None
    }

    async fn client_gone(&mut self, client: ClientId) {
        self.task.request(Request::ClientGone(client)).await;
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
    }
}

/// The camera with its logic.
struct Desk<S> {
    logic: CameraLogic<Reply<Picture>>,
    source: S,
    /// The source, while the camera is on.
    running: Option<(Running, mpsc::Receiver<Event>)>,
    /// Requests whose control is being set, in the order of the orders.
    setting: VecDeque<Reply<Control>>,
}

/// An action on the source.
enum Action {
    Open,
    Close,
}

impl<S: Source> Owner for Desk<S> {
    type Request = Request;
    type Message = DriverMsg;
    type Link = CameraLink;
    type Action = Action;

    fn request(&mut self, link: &CameraLink, request: Request) {
        match request {
            Request::Picture(request, reply) => self.logic.ask(now(), &request, reply),
            Request::Stream(origin, request) => {
                let outcome = match self.logic.stream(now(), &origin, &request) {
                    Ok(()) => link.accepted(&origin),
                    Err(why) => link.refused(&origin, &why),
                };
                complain(outcome);
            }
            Request::Info(reply) => reply.send(self.logic.info()),
            Request::PublishInfo => complain(link.info_updates(self.logic.info())),
            Request::Set(control, reply) => self.set(&control, reply),
            Request::ClientGone(client) => self.logic.client_gone(client),
        }
    }

    fn shut_down(&mut self) {
        self.logic.shut_down();
    }

    fn next(&mut self, link: &CameraLink) -> Next<Action> {
        while let Some(output) = self.logic.poll_output() {
            match output {
                Output::Open => return Next::Perform(Action::Open),
                Output::Close => return Next::Perform(Action::Close),
                Output::Answer(reply, picture) => reply.send(picture),
                Output::Refuse(reply, why) => reply.refuse(&why),
                Output::Publish(origin, picture) => complain(link.pictures(&origin, picture)),
                Output::Say(note) => say(&note, note.is_warning()),
                Output::End => return Next::End,
            }
        }
        Next::Wait
    }

    async fn perform(&mut self, action: Action) {
        self.close();
        if let Action::Open = action {
            let (events, received) = channel();
            self.running = Some((self.source.start(events), received));
        }
    }

    async fn wait(&mut self) {
        let due = self.logic.wake_at();
        let running = self.running.as_mut();
        let event = async {
            match running {
                Some((_, events)) => events.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            // On a busy machine, this task runs late: a camera that has sent pictures is not silent.
            biased;
            event = event => self.handle(event),
            () = until(due) => {}
        }
        if due.is_some_and(|due| now() >= due) {
            self.logic.handle_timeout(now());
        }
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        self.logic.trouble().map(Cow::from)
    }

    fn log_counters(&self) {
        tracing::debug!(counters = ?self.logic.counters(), "ended");
    }
}

impl<S: Source> Desk<S> {
    fn handle(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Opened(facts)) => self.logic.opened(now(), facts),
            Some(Event::Frame(frame)) => self.logic.frame(now(), frame),
            Some(Event::ControlSet(done)) => {
                let reply = self.setting.pop_front();
                match (done, reply) {
                    (Ok((control, all)), reply) => {
                        self.logic.controls_changed(all);
                        reply
                            .into_iter()
                            .for_each(|reply| reply.send(control.clone()));
                    }
                    (Err(why), Some(reply)) => reply.refuse(&why),
                    (Err(_), None) => {}
                }
            }
            Some(Event::Failed(why)) => self.end(&why),
            None => self.end("the camera could not be started"),
        }
    }

    fn end(&mut self, why: &str) {
        self.close();
        self.logic.failed(now(), why);
    }

    fn close(&mut self) {
        self.running = None;
        for reply in self.setting.drain(..) {
            reply.refuse("the camera was switched off");
        }
    }

    fn set(&mut self, wanted: &ControlValue, reply: Reply<Control>) {
        let running = self.running.as_ref();
        match self.logic.control(wanted) {
            Ok((id, value)) if running.is_some_and(|(running, _)| running.set(id, value)) => {
                self.setting.push_back(reply);
            }
            Ok(_) => reply.refuse("this camera has no controls"),
            Err(why) => reply.refuse(&why),
        }
    }
}

#[cfg(test)]
mod tests;
