//! One device of a recording. IO.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use amber_driver::{ClientId, Driver, Link, Origin, Request, SendError, now};
use amber_proto::Device;
use amber_record::play::{Answers, Player, key};
use amber_reflect::Schemas;
use tokio::sync::Notify;

use crate::message::Message;
use crate::requests::{Meaning, NO_ANSWER, NO_COMMANDS, Requests};
use crate::streams::Streams;

/// The state that all devices of a recording share.
pub(crate) struct Shared {
    pub(crate) player: Mutex<Player<File>>,
    answers: Mutex<Answers<File>>,
    pub(crate) links: Mutex<BTreeMap<Device, Link<Message>>>,
    pub(crate) streams: Mutex<BTreeMap<Device, Streams>>,
    /// The action when all devices have started, and their number.
    begin: Mutex<Option<Begin>>,
    devices: usize,
    /// The player was changed.
    pub(crate) changed: Notify,
    pub(crate) counts: Counts,
}

pub(crate) type Begin = Box<dyn FnOnce(Arc<Shared>) + Send>;

/// See [`crate::Status`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) published: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) not_sent: AtomicU64,
}

impl Shared {
    /// `begin` is called when this many devices have started.
    pub(crate) fn new(
        player: Player<File>,
        answers: Answers<File>,
        devices: usize,
        begin: Begin,
    ) -> Self {
        Self {
            player: Mutex::new(player),
            answers: Mutex::new(answers),
            links: Mutex::default(),
            streams: Mutex::default(),
            begin: Mutex::new(Some(begin)),
            devices,
            changed: Notify::new(),
            counts: Counts::default(),
        }
    }
}

/// Nothing panics while it holds a lock of this crate.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The driver of a recorded device.
pub(crate) struct Playback {
    device: Device,
    requests: Requests,
    shared: Arc<Shared>,
    link: Option<Link<Message>>,
    description: Option<&'static [u8]>,
    has_warned: bool,
}

impl Playback {
    /// `description` is that of a device that Amber does not know by itself.
    pub(crate) fn new(
        device: Device,
        schemas: Schemas,
        description: Option<&'static [u8]>,
        shared: Arc<Shared>,
    ) -> Self {
        let requests = Requests::new(schemas, device.device_type);
        if requests.has_streams_by_request() {
            let streams = Streams::new(requests.published());
            lock(&shared.streams).insert(device, streams);
        }
        Self {
            device,
            requests,
            shared,
            link: None,
            description,
            has_warned: false,
        }
    }

    /// The requested value, or the recorded answer to the same request.
    async fn answer(&self, request: Vec<u8>, method: Option<usize>) -> Option<Message> {
        let shared = self.shared.clone();
        let device = self.device;
        let wanted = method.and_then(|method| self.requests.value(method));
        // Reading the file must not delay the answers to PINGs.
        let search = move || {
            let time_ns = lock(&shared.player).clock().position_ns(now());
            let mut answers = lock(&shared.answers);
            // Published values are often nearer than the answers to this request.
            if let Some(wanted) = wanted {
                let said = answers.said(device, &wanted.name, &wanted.fields, time_ns)?;
                if let Some(answer) = said.and_then(|message| wanted.answer(&message)) {
                    return Ok(Some(answer));
                }
            }
            let answer = answers.to(device, &request, time_ns)?;
            Ok::<_, amber_record::Error>(answer.and_then(|answer| key(&answer)))
        };
        match tokio::task::spawn_blocking(search).await {
            Ok(Ok(found)) => found.map(Message::with),
            Ok(Err(error)) => {
                tracing::warn!("cannot search the recording for an answer: {error}");
                None
            }
            // The process ends.
            Err(_) => None,
        }
    }

    /// Refuses a request.
    fn refuse(&mut self, origin: &Origin, method: Option<usize>, why: &str) -> Option<Message> {
        count(&self.shared.counts.refused);
        if !std::mem::replace(&mut self.has_warned, true) {
            let device = self.device;
            tracing::warn!("refused a request to {device}: {why} (logged once per device)");
        }
        if let Some(fields) = method.and_then(|method| self.requests.refusal(method, why)) {
            return Some(Message::with(fields));
        }
        if let Some(link) = &self.link {
            match link.refused(origin, why) {
                Ok(()) | Err(SendError::ShutDown) => {}
                Err(error) => tracing::debug!("a refusal was not sent: {error}"),
            }
        }
        None
    }

    fn with_streams(&self, change: impl FnOnce(&mut Streams)) {
        lock(&self.shared.streams).get_mut(&self.device).map(change);
    }
}

impl Driver for Playback {
    type Message = Message;

    fn description(&self) -> Option<&'static [u8]> {
        self.description
    }

    async fn start(&mut self, link: Link<Message>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link.clone());
        let started = {
            let mut links = lock(&self.shared.links);
            links.insert(self.device, link);
            links.len()
        };
        if started == self.shared.devices
            && let Some(begin) = lock(&self.shared.begin).take()
        {
            begin(self.shared.clone());
        }
        Ok(())
    }

    async fn request(&mut self, request: Request<Message>) -> Option<Message> {
        let Request { message, origin } = request;
        match self.requests.meaning(&message.fields) {
            Meaning::Ask(method) => {
                let key = key(&message.fields).unwrap_or_default();
                match self.answer(key, method).await {
                    Some(answer) => {
                        count(&self.shared.counts.answered);
                        Some(answer)
                    }
                    None => self.refuse(&origin, method, NO_ANSWER),
                }
            }
            Meaning::Command => self.refuse(&origin, None, NO_COMMANDS),
            Meaning::Start(period) => {
                self.accept(&origin);
                self.with_streams(|streams| streams.start(origin, period));
                None
            }
            Meaning::Stop => {
                self.accept(&origin);
                self.with_streams(|streams| {
                    origin.client().into_iter().for_each(|it| streams.stop(it))
                });
                None
            }
        }
    }

    async fn client_died(&mut self, client: ClientId) {
        self.with_streams(|streams| streams.stop(client));
    }
}

impl Playback {
    fn accept(&self, origin: &Origin) {
        if let Some(link) = &self.link {
            // Only fails if the process ends.
            let _ = link.accepted(origin);
        }
    }
}
