//! The task around the hub: feeds it inputs and performs its outputs. IO.

use std::collections::HashMap;
use std::sync::Arc;

use amber_client::Client;
use amber_proto::Device;
use amber_reflect::Schemas;
use amber_web::backlog::{Backlog, Frame};
use amber_web::calls;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, spawn_local};

use super::catalog::{Described, Upstream};
use super::hub::{CallId, Hub, Output, ViewerId};
use super::input::{Input, Mailbox, ROOM};
use super::{now_ns, upstream};

/// Who moves devices, for people.
const NAME: &str = "amber foxglove";

/// The hub and its helpers.
pub(super) struct App {
    mediator: String,
    hub: Hub,
    inputs: mpsc::Sender<Input>,
    received: mpsc::Receiver<Input>,
    mailboxes: HashMap<ViewerId, Arc<Mailbox>>,
    client: Option<Client>,
    /// Those of requests of viewers.
    leases: Option<calls::Leases>,
    devices: HashMap<Device, Arc<Schemas>>,
    /// Whether there are viewers.
    is_watched: bool,
    /// Connects, or requests the devices.
    watching: Option<AbortHandle>,
    upstreams: HashMap<Upstream, Option<AbortHandle>>,
}

impl App {
    pub(super) fn new(
        mediator: String,
        session: String,
        has_services: bool,
        inputs: mpsc::Sender<Input>,
        received: mpsc::Receiver<Input>,
    ) -> Self {
        Self {
            mediator,
            hub: Hub::new(session, has_services),
            inputs,
            received,
            mailboxes: HashMap::new(),
            client: None,
            leases: None,
            devices: HashMap::new(),
            is_watched: false,
            watching: None,
            upstreams: HashMap::new(),
        }
    }

    /// Runs until `end`.
    pub(super) async fn run(mut self, end: impl Future<Output = ()>) {
        tokio::pin!(end);
        loop {
            self.perform();
            tokio::select! {
                biased;
                () = &mut end => break,
                Some(input) = self.received.recv() => self.handle(input),
            }
        }
        let upstreams = self.upstreams.into_values().flatten();
        upstreams.chain(self.watching).for_each(|task| task.abort());
        if let Some(client) = self.client {
            client.close().await;
        }
    }

    fn handle(&mut self, input: Input) {
        match input {
            Input::Opened(opened) => {
                let mailbox = Arc::new(Mailbox::new(ROOM));
                let id = self.hub.open();
                self.mailboxes.insert(id, mailbox.clone());
                if opened.send((id, mailbox)).is_err() {
                    self.close(id);
                }
            }
            Input::Text(id, text) => self.hub.handle_text(id, &text),
            Input::Binary(id, bytes) => self.hub.handle_binary(id, &bytes),
            Input::Answer(id, answer) => self.hub.handle_answer(id, answer),
            Input::Closed(id) => self.close(id),
            Input::Connected(client) => {
                self.client = Some(client);
                self.leases = None;
                self.watch();
                let waiting: Vec<_> = self.upstreams.keys().cloned().collect();
                waiting
                    .into_iter()
                    .for_each(|upstream| self.start(upstream));
            }
            Input::Devices(devices) => {
                let schemas = |it: &Described| (it.device, it.schemas.clone());
                self.devices = devices.iter().map(schemas).collect();
                self.hub.handle_devices(now_ns(), &devices);
            }
            Input::Shape(shape) => self.hub.handle_shape(&shape),
            Input::Message(device, message) => {
                self.hub.handle_message(now_ns(), device, &message);
            }
            Input::Event(event) => self.hub.handle_event(now_ns(), &event),
        }
    }

    fn close(&mut self, id: ViewerId) {
        self.mailboxes.remove(&id);
        self.hub.close(id);
    }

    /// Performs all outputs of the hub.
    fn perform(&mut self) {
        while let Some(output) = self.hub.take() {
            match output {
                Output::Text(id, text) => {
                    self.change(id, |backlog| backlog.line(Frame::Text(text)));
                }
                Output::Line(id, line) => {
                    self.change(id, |backlog| backlog.line(Frame::Binary(line)));
                }
                Output::Data(id, subscription, data) => {
                    self.change(id, |backlog| {
                        backlog.show(subscription, Frame::Binary(data))
                    });
                }
                Output::Forget(id, subscription) => {
                    self.change(id, |backlog| backlog.forget(&subscription));
                }
                Output::Devices(is_watched) => {
                    self.is_watched = is_watched;
                    self.watch();
                }
                Output::Call(id, words) => self.call(id, words),
                Output::Start(upstream) => self.start(upstream),
                Output::Stop(upstream) => {
                    let task = self.upstreams.remove(&upstream).flatten();
                    task.inspect(AbortHandle::abort);
                }
            }
        }
    }

    fn change(&self, id: ViewerId, change: impl FnOnce(&mut Backlog<u32>)) {
        if let Some(mailbox) = self.mailboxes.get(&id) {
            mailbox.change(change);
        }
    }

    /// Requests the devices while there are viewers.
    fn watch(&mut self) {
        self.watching.take().inspect(AbortHandle::abort);
        if !self.is_watched {
            return;
        }
        let inputs = self.inputs.clone();
        let task = match self.client.clone() {
            Some(client) => spawn_local(upstream::watch_devices(client, inputs)),
            None => spawn_local(upstream::connect(self.mediator.clone(), inputs)),
        };
        self.watching = Some(task.abort_handle());
    }

    /// Sends a request of a viewer, whose answer comes as an input.
    fn call(&mut self, id: CallId, words: Vec<String>) {
        let (Some(client), Some(service)) = (self.client.clone(), self.hub.service(id).cloned())
        else {
            let why = "the mediator is unavailable".to_owned();
            return self.hub.handle_answer(id, Err(why));
        };
        let inputs = self.inputs.clone();
        let new = || calls::Leases::new(client.clone(), NAME);
        let leases = self.leases.get_or_insert_with(new).clone();
        spawn_local(async move {
            let answer = match service.described() {
                Some((_, method)) => {
                    let (device, schemas) = (service.device, &service.schemas);
                    calls::call(&client, &leases, device, schemas, method, &words).await
                }
                None => Err("unknown request".to_owned()),
            };
            let _ = inputs.send(Input::Answer(id, answer)).await;
        });
    }

    /// Without a connection, the upstream waits for it.
    fn start(&mut self, upstream: Upstream) {
        let task = self.client.clone().map(|client| {
            let inputs = self.inputs.clone();
            let device = upstream::device(&upstream);
            let schemas = device.and_then(|device| self.devices.get(&device).cloned());
            spawn_local(upstream::run(client, upstream.clone(), schemas, inputs)).abort_handle()
        });
        let before = self.upstreams.insert(upstream, task).flatten();
        before.inspect(AbortHandle::abort);
    }
}
