//! Sends all messages to far robots from one thread, and receives the answers. IO.
//!
//! Zenoh waits while a link is full. So the loop that serves the mediator never calls it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use amber_proto::Device;
use bytes::Bytes;
use tokio::sync::{Notify, mpsc as channel};
use zenoh::bytes::Encoding;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::query::Reply;
use zenoh::{Session, Wait};

use super::far_devices::{Letter, Output};
use crate::counters::Counters;
use crate::limits::{FAR_DEADLINE, MAX_LETTERS, MAX_PUBLISHED};
use crate::problem::{Kind, Problem};

/// An answer.
pub(super) enum Event {
    /// The answer to a question; `None` if there is none.
    Answer(u64, Option<Result<Bytes, Problem>>),
    /// The description of a local device.
    Description(Device, Bytes),
}

/// The channel to the thread.
pub(super) struct Sender {
    work: mpsc::Sender<(Instant, Output)>,
    waiting: Arc<AtomicUsize>,
    events: channel::UnboundedSender<Event>,
    counters: Counters,
}

impl Sender {
    /// Starts the thread. It ends with the sender.
    pub(super) fn start(
        session: Session,
        events: channel::UnboundedSender<Event>,
        inbox: Arc<Inbox>,
        counters: Counters,
    ) -> Self {
        let (work, received) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let thread = Thread {
            session,
            events: events.clone(),
            inbox,
            counters: counters.clone(),
            waiting: waiting.clone(),
            tokens: HashMap::new(),
            watched: HashMap::new(),
        };
        thread::spawn(move || thread.run(&received));
        Self {
            work,
            waiting,
            events,
            counters,
        }
    }

    /// Sends messages to the fleet. Messages beyond [`MAX_LETTERS`] are dropped; tokens and
    /// subscriptions are not, and their number is that of clients and devices.
    pub(super) fn send(&self, output: Output) {
        let is_letter = matches!(output, Output::Put(_) | Output::Ask(..));
        if is_letter && self.waiting.load(Ordering::Relaxed) >= MAX_LETTERS {
            self.counters.count("messages_dropped_link_full");
            if let Output::Ask(number, _) = output {
                let problem = Problem::new(Kind::Busy, "too many messages wait for a slow link");
                let _ = self.events.send(Event::Answer(number, Some(Err(problem))));
            }
            return;
        }
        if is_letter {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        // The thread ends last.
        let _ = self.work.send((Instant::now(), output));
    }
}

struct Thread {
    session: Session,
    events: channel::UnboundedSender<Event>,
    inbox: Arc<Inbox>,
    counters: Counters,
    waiting: Arc<AtomicUsize>,
    tokens: HashMap<String, LivelinessToken>,
    watched: HashMap<Device, Subscriber<()>>,
}

impl Thread {
    fn run(mut self, work: &Receiver<(Instant, Output)>) {
        while let Ok((since, output)) = work.recv() {
            if matches!(output, Output::Put(_) | Output::Ask(..)) {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            if let Err(error) = self.perform(since, output) {
                self.counters.count("not_sent");
                tracing::debug!("not sent: {error}");
            }
        }
    }

    fn perform(&mut self, since: Instant, output: Output) -> Result<(), zenoh::Error> {
        match output {
            Output::Token(key) => {
                let token = self.session.liveliness().declare_token(&key).wait()?;
                self.tokens.insert(key, token);
            }
            Output::NoToken(key) => drop(self.tokens.remove(&key)),
            Output::Watch(device, key) => {
                let inbox = self.inbox.clone();
                let subscriber = (self.session.declare_subscriber(key))
                    .callback(move |sample| {
                        let bytes = Bytes::copy_from_slice(&sample.payload().to_bytes());
                        inbox.put(device, bytes);
                    })
                    .wait()?;
                self.watched.insert(device, subscriber);
            }
            Output::Unwatch(device) => drop(self.watched.remove(&device)),
            Output::Describe(device, key) => {
                let events = self.events.clone();
                let asked = self.session.get(key).timeout(FAR_DEADLINE);
                asked
                    .callback(move |reply| {
                        if let Ok(sample) = reply.result() {
                            let files = Bytes::copy_from_slice(&sample.payload().to_bytes());
                            let _ = events.send(Event::Description(device, files));
                        }
                    })
                    .wait()?;
            }
            Output::Put(letter) if letter.is_late(since.elapsed()) => {
                self.counters.count("messages_dropped_old");
                tracing::debug!(key = letter.key, "not sent: it is too old");
            }
            Output::Put(letter) => {
                // One priority for all motion: the robot refuses overtaken messages.
                (self.session.put(&letter.key, letter.message.to_vec()))
                    .encoding(Encoding::APPLICATION_PROTOBUF)
                    .attachment(letter.stamp.encode())
                    .congestion_control(CongestionControl::Drop)
                    .priority(Priority::InteractiveHigh)
                    .express(true)
                    .wait()?;
                self.counters.count("messages_sent");
            }
            Output::Ask(number, letter) => {
                let waiting = Waiting {
                    number,
                    events: Some(self.events.clone()),
                };
                if letter.is_late(since.elapsed()) {
                    self.counters.count("messages_dropped_old");
                    let text =
                        "it could not be sent in time: the link to the fleet was full, or new";
                    waiting.end(Some(Err(Problem::new(Kind::Late, text))));
                    return Ok(());
                }
                self.ask(letter, waiting)?;
                self.counters.count("messages_sent");
            }
            // These are for the mediator.
            Output::Frame(_) | Output::Data(_) => {}
        }
        Ok(())
    }

    fn ask(&self, letter: Letter, mut waiting: Waiting) -> Result<(), zenoh::Error> {
        let key = format!("{}?deadline_ms={}", letter.key, FAR_DEADLINE.as_millis());
        let priority = match letter.moves {
            true => Priority::InteractiveHigh,
            false => Priority::Data,
        };
        (self.session.get(key))
            .payload(letter.message.to_vec())
            .encoding(Encoding::APPLICATION_PROTOBUF)
            .attachment(letter.stamp.encode())
            .timeout(FAR_DEADLINE + Duration::from_secs(1))
            .priority(priority)
            .express(letter.moves)
            // It is dropped after the last answer.
            .callback_mut(move |reply| waiting.answer(&reply))
            .wait()
    }
}

/// A question that is answered once, at the latest when it is dropped.
struct Waiting {
    number: u64,
    events: Option<channel::UnboundedSender<Event>>,
}

impl Waiting {
    fn answer(&mut self, reply: &Reply) {
        let answer = match reply.result() {
            Ok(sample) => Ok(Bytes::copy_from_slice(&sample.payload().to_bytes())),
            Err(error) => Err(serde_json::from_slice(&error.payload().to_bytes())
                .unwrap_or_else(|_| Problem::new(Kind::TimedOut, "the robot did not answer"))),
        };
        self.tell(Some(answer));
    }

    fn end(mut self, answer: Option<Result<Bytes, Problem>>) {
        self.tell(answer);
    }

    fn tell(&mut self, answer: Option<Result<Bytes, Problem>>) {
        if let Some(events) = self.events.take() {
            let _ = events.send(Event::Answer(self.number, answer));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.tell(None);
    }
}

/// Published messages that wait for the mediator. Of each device, the newest stay.
pub(super) struct Inbox {
    waiting: Mutex<HashMap<Device, Vec<Bytes>>>,
    pub(super) changed: Notify,
    counters: Counters,
}

impl Inbox {
    pub(super) fn new(counters: Counters) -> Self {
        Self {
            waiting: Mutex::default(),
            changed: Notify::new(),
            counters,
        }
    }

    fn put(&self, device: Device, message: Bytes) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = waiting.entry(device).or_default();
        if queue.len() >= MAX_PUBLISHED {
            queue.remove(0);
            self.counters.count("data_replaced");
        }
        queue.push(message);
        drop(waiting);
        self.counters.count("data_received");
        self.changed.notify_one();
    }

    /// All that waits, in the order of arrival for each device.
    pub(super) fn take(&self) -> HashMap<Device, Vec<Bytes>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting)
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;
    use crate::stamp::OrderStamp;

    #[test]
    fn the_newest_data_waits_for_the_mediator() {
        let counters = Counters::default();
        let inbox = Inbox::new(counters.clone());
        let scanner = Device::new(DeviceType::HOKUYO, 0);
        let wheels = Device::new(DeviceType::ROBOCLAW, 0);
        for number in 0..=MAX_PUBLISHED as u8 {
            inbox.put(scanner, vec![number].into());
        }
        inbox.put(wheels, vec![0].into());
        let waiting = inbox.take();
        assert_eq!(waiting[&scanner].len(), MAX_PUBLISHED);
        assert_eq!(waiting[&scanner][0][..], [1]);
        assert_eq!(waiting[&wheels].len(), 1);
        assert!(inbox.take().is_empty());
        assert_eq!(counters.all()["data_replaced"], 1);
    }

    #[test]
    fn few_messages_wait_for_a_full_link() {
        let counters = Counters::default();
        let (work, queue) = mpsc::channel();
        let (events, mut answers) = channel::unbounded_channel();
        let sender = Sender {
            work,
            waiting: Arc::default(),
            events,
            counters: counters.clone(),
        };
        let ask = |number| {
            let letter = Letter {
                key: "amber/r2/dummy/0/call/alice".to_owned(),
                stamp: OrderStamp {
                    instance: 1,
                    sequence: number,
                    sent_ns: None,
                },
                message: Bytes::new(),
                moves: false,
                age: Duration::ZERO,
            };
            sender.send(Output::Ask(number, letter));
        };
        for number in 0..MAX_LETTERS as u64 {
            ask(number);
        }
        assert!(answers.try_recv().is_err());
        ask(9_999);
        let refused = answers.try_recv();
        let Ok(Event::Answer(9_999, Some(Err(problem)))) = refused else {
            panic!("no refusal");
        };
        assert_eq!(problem.kind, Kind::Busy);
        // Tokens always pass.
        sender.send(Output::Token("amber/r2/operators/alice/1".to_owned()));
        assert_eq!(queue.try_iter().count(), MAX_LETTERS + 1);
        assert_eq!(counters.all()["messages_dropped_link_full"], 1);
    }
}
