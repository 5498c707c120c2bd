//! One client: its topics, its subscriptions, and its waiting messages. PURE.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use amber_navigation::kinematics::Twist;
use amber_proto::location::KnownPose;
use amber_robot::maps;
use amber_robot::robot::{Trip, TripEnd, TripNews};
use amber_values::Target;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::rosbridge::actions::{self, Goals};
use crate::rosbridge::codec::{
    Advertise, CallService, Id, Level, Malformed, Publish, Request, Response, Subscribe, read,
};
use crate::rosbridge::messages;
use crate::rosbridge::published::{Form, Message};
use crate::rosbridge::rosapi;
use crate::rosbridge::topics::{self, Direction, Input, Output, Service};
use crate::shared::clock::Now;

/// Topics that a client may subscribe to under different names, and topics that it may advertise.
pub const MAX_TOPICS: usize = 32;
/// Responses that may wait for a client that does not read. Further ones are dropped.
pub const MAX_REPLIES: usize = 64;
/// Maps of one client that are being saved.
const MAX_SAVES: usize = 4;
/// The longest queue of a subscription: five seconds of scans.
pub const MAX_QUEUE: usize = 50;

/// The requests of a client, and its waiting messages.
#[derive(Debug)]
pub struct Session {
    level: Level,
    advertised: BTreeSet<String>,
    subscriptions: Vec<Subscription>,
    replies: VecDeque<Response>,
    /// Calls that wait for a saved map, by their numbers: the id of the call, and the name of the
    /// service.
    saves: BTreeMap<u32, (Option<Id>, String)>,
    last_save: u32,
    dropped: u64,
    /// The messages that a new subscriber gets at once.
    wanted: Vec<Output>,
    /// The interaction of the last command.
    commanded: Option<Id>,
    /// The last problem, for the log.
    problem: Option<(Level, String)>,
    goals: Goals,
}

/// All subscriptions of a client to one topic. The client library passes a message on to each of
/// them, so it gets one message.
#[derive(Debug)]
struct Subscription {
    /// As the client writes it; it expects messages under this name.
    name: String,
    output: Output,
    wishes: Vec<Wish>,
    /// The oldest first.
    waiting: VecDeque<Arc<Message>>,
    sent: Option<Duration>,
}

#[derive(Debug)]
struct Wish {
    id: Option<Id>,
    period: Duration,
    queue: usize,
    form: Form,
}

/// A command of a client to the robot.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Move at these speeds.
    Drive(Twist),
    /// Drive to this point.
    Goal(Target),
    /// Drive to this point, and tell how it goes and how it ends.
    Trip(Trip, Target),
    /// End this trip.
    CancelTrip(Trip),
    /// The robot is here.
    Here(KnownPose),
    /// Stop, and forget the goal.
    Stop,
    /// Halt everything that moves, or release the halt.
    Halt(bool),
    /// Save the map that is being made under this name. [`Session::saved`] takes the result, with this
    /// number.
    SaveMap(u32, String),
}

impl Effect {
    /// Whether the robot may begin to move by it.
    #[must_use]
    pub fn moves(&self) -> bool {
        match self {
            Self::Drive(twist) => (twist.forward_m_s, twist.turn_rad_s) != (0.0, 0.0),
            Self::Goal(_) | Self::Trip(..) => true,
            Self::Stop | Self::Here(_) | Self::SaveMap(..) | Self::CancelTrip(_) => false,
            Self::Halt(is_halted) => !is_halted,
        }
    }
}

/// The reason why a text of a client was not carried out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Problem {
    /// It is not an operation.
    Malformed(Malformed),
    /// It is an operation that cannot be done.
    Refused,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            // The default of the original server.
            level: Level::Error,
            advertised: BTreeSet::new(),
            subscriptions: Vec::new(),
            replies: VecDeque::new(),
            saves: BTreeMap::new(),
            last_save: 0,
            dropped: 0,
            wanted: Vec::new(),
            commanded: None,
            problem: None,
            goals: Goals::default(),
        }
    }
}

impl Session {
    /// Handles a message of the client, which may have come as text or as binary: some programs send
    /// their texts so.
    ///
    /// # Errors
    /// It was not carried out. The client gets a `status` or a `service_response` with the reason.
    pub fn receive(&mut self, bytes: &[u8], now: Now) -> Result<Option<Effect>, Problem> {
        let request = match read(bytes) {
            Ok(request) => request,
            Err(malformed) => {
                self.tell(None, Level::Error, malformed.text().into());
                return Err(Problem::Malformed(malformed));
            }
        };
        match request {
            Request::Advertise(advertise) => self.advertise(advertise)?,
            Request::Unadvertise(topic) => {
                self.advertised.remove(&topic.topic);
            }
            Request::Publish(publish) => return self.publish(&publish).map(Some),
            Request::Subscribe(subscribe) => self.subscribe(subscribe)?,
            Request::Unsubscribe(topic) => self.unsubscribe(&topic.topic, topic.id.as_ref()),
            Request::CallService(call) => return self.call(call, now),
            Request::SendActionGoal(goal) => {
                let (id, action) = (goal.id.clone(), goal.action.clone());
                return match self.goals.begin(now, goal) {
                    Ok((trip, target)) => Ok(Some(Effect::Trip(trip, target))),
                    Err(why) => {
                        self.reply(actions::refused(id, action, why));
                        Err(Problem::Refused)
                    }
                };
            }
            Request::CancelActionGoal(cancel) => {
                return match self.goals.cancel(&cancel) {
                    Ok(trip) => Ok(Some(Effect::CancelTrip(trip))),
                    Err(why) => Err(self.refuse(cancel.id, why)),
                };
            }
            Request::SetLevel(set) => self.level = set.level,
            Request::Unsupported { op, id } => {
                return Err(self.refuse(id, format!("operation \"{op}\" is not supported")));
            }
        }
        Ok(None)
    }

    /// Tells the client how a trip goes, or how it has ended.
    pub fn take_news(&mut self, now: Now, trip: Trip, news: &TripNews) {
        let is_progress = matches!(news, TripNews::Progress { .. });
        if is_progress && self.replies.len() >= MAX_REPLIES / 2 {
            // A client that does not read still gets the results.
            return;
        }
        if let Some(response) = self.goals.news(now, trip, news) {
            self.reply(response);
        }
    }

    /// Tells the client why a trip that [`Session::receive`] returned does not begin.
    pub fn refuse_trip(&mut self, now: Now, trip: Trip, why: &str) {
        let end = TripNews::Ended(TripEnd::Refused(why.to_owned()));
        self.take_news(now, trip, &end);
    }

    /// Tells the client why the command that [`Session::receive`] returned is not carried out.
    pub fn refuse_command(&mut self, reason: &str) {
        let id = self.commanded.take();
        self.tell(id, Level::Error, reason.to_owned());
    }

    /// Hands a message of the robot to the client, if the client subscribes to it.
    pub fn offer(&mut self, output: Output, message: &Arc<Message>, now: Duration) {
        for subscription in &mut self.subscriptions {
            if subscription.output == output {
                while subscription.waiting.len() >= subscription.queue() {
                    // Fewer messages than there are is what a throttle rate asks for.
                    self.dropped += u64::from(subscription.due().is_some_and(|due| due < now));
                    subscription.waiting.pop_front();
                }
                subscription.waiting.push_back(message.clone());
            }
        }
    }

    /// The kept messages to which the client has subscribed since the last call. It gets the current
    /// ones, as from a map server of ROS.
    pub fn take_wanted(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.wanted)
    }

    /// The last problem since the last call: its text is for the log of all clients.
    pub fn take_problem(&mut self) -> Option<(Level, String)> {
        self.problem.take()
    }

    /// Whether the client subscribes to these messages.
    pub fn wants(&self, output: Output) -> bool {
        (self.subscriptions.iter()).any(|subscription| subscription.output == output)
    }

    /// The time between two of these messages, as the client wants them; `None` if it does not
    /// subscribe to them.
    pub fn period(&self, output: Output) -> Option<Duration> {
        let same = self.subscriptions.iter().filter(|it| it.output == output);
        same.map(Subscription::period).min()
    }

    /// The next message for the client, if its time has come: a text, or bytes that are no text. Ask
    /// when the connection can take it.
    pub fn next(&mut self, now: Duration) -> Option<Bytes> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply.text().into());
        }
        let due = (self.subscriptions.iter_mut())
            .filter(|subscription| subscription.due().is_some_and(|due| due <= now));
        // The one that has waited longest, so that no topic blocks another.
        let subscription = due.min_by_key(|subscription| subscription.sent)?;
        let message = subscription.waiting.pop_front()?;
        subscription.sent = Some(now);
        Some(message.published(&subscription.name, subscription.form()))
    }

    /// When [`Session::next`] is due, if nothing else happens.
    pub fn deadline(&self) -> Option<Duration> {
        if !self.replies.is_empty() {
            return Some(Duration::ZERO);
        }
        self.subscriptions
            .iter()
            .filter_map(Subscription::due)
            .min()
    }

    /// The number of messages and responses dropped since the last call because the client reads
    /// too slowly.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn advertise(&mut self, advertise: Advertise) -> Result<(), Problem> {
        let Advertise { id, topic, kind } = advertise;
        let Some(channel @ Direction::In(_)) = topics::find(&topic).next() else {
            return Err(self.refuse(id, no_topic(&topic, "publish on")));
        };
        if !channel.has_kind(&kind) {
            return Err(self.refuse(id, wrong_type(&topic, channel.kind(), &kind)));
        }
        if self.advertised.len() >= MAX_TOPICS {
            return Err(self.refuse(id, format!("more than {MAX_TOPICS} topics")));
        }
        self.advertised.insert(topic);
        Ok(())
    }

    /// A message for the robot. As with the original server, no `advertise` is needed.
    fn publish(&mut self, publish: &Publish) -> Result<Effect, Problem> {
        let Publish { id, topic, msg } = publish;
        self.commanded.clone_from(id);
        let effect = match topics::find(topic).next() {
            Some(Direction::In(Input::Twist)) => messages::twist(msg).map(Effect::Drive),
            Some(Direction::In(Input::Goal)) => messages::goal(msg).map(Effect::Goal),
            Some(Direction::In(Input::Here)) => messages::here(msg).map(Effect::Here),
            _ => Err(no_topic(topic, "publish on")),
        };
        effect.map_err(|problem| self.refuse(id.clone(), format!("{topic}: {problem}")))
    }

    fn subscribe(&mut self, subscribe: Subscribe) -> Result<(), Problem> {
        let Subscribe {
            id,
            topic,
            kind,
            throttle_rate,
            queue_length,
            compression,
        } = subscribe;
        let output = match self.output(&topic, kind.as_deref()) {
            Ok(output) => output,
            Err(problem) => return Err(self.refuse(id, problem)),
        };
        let compression = compression.unwrap_or_else(|| "none".to_owned());
        let form = Form::of_compression(&compression);
        if form.is_none() {
            let text = format!("compression \"{compression}\" is not supported: sent as JSON");
            self.tell(id.clone(), Level::Warning, text);
        }
        let wishes: usize = (self.subscriptions.iter())
            .map(|one| one.wishes.len())
            .sum();
        if wishes >= MAX_TOPICS {
            return Err(self.refuse(id, format!("more than {MAX_TOPICS} subscriptions")));
        }
        let wish = Wish {
            id,
            period: Duration::from_millis(throttle_rate.into()),
            queue: usize::try_from(queue_length)
                .unwrap_or(MAX_QUEUE)
                .clamp(1, MAX_QUEUE),
            form: form.unwrap_or_default(),
        };
        if output.is_kept() && !self.wanted.contains(&output) {
            self.wanted.push(output);
        }
        let same = self.subscriptions.iter_mut().find(|one| one.name == topic);
        match same {
            Some(subscription) => {
                (subscription.wishes).retain(|one| one.id.is_none() || one.id != wish.id);
                subscription.wishes.push(wish);
            }
            None => self.subscriptions.push(Subscription {
                name: topic,
                output,
                wishes: vec![wish],
                waiting: VecDeque::new(),
                sent: None,
            }),
        }
        Ok(())
    }

    /// The data of a topic in the type that the client wants. All its subscriptions to one topic
    /// have one type.
    fn output(&self, topic: &str, kind: Option<&str>) -> Result<Output, String> {
        let same = self.subscriptions.iter().find(|one| one.name == topic);
        let mut outputs = topics::find(topic).filter_map(|channel| match channel {
            Direction::Out(output) => Some(output),
            Direction::In(_) => None,
        });
        let usual = same.map(|one| one.output).or_else(|| outputs.next());
        let usual = usual.ok_or_else(|| no_topic(topic, "subscribe to"))?;
        let has_kind =
            |output: &Output| kind.is_none_or(|kind| Direction::Out(*output).has_kind(kind));
        if has_kind(&usual) {
            return Ok(usual);
        }
        let other = if same.is_some() {
            None
        } else {
            outputs.find(has_kind)
        };
        other.ok_or_else(|| wrong_type(topic, usual.kind(), kind.unwrap_or_default()))
    }

    fn unsubscribe(&mut self, topic: &str, id: Option<&Id>) {
        for subscription in &mut self.subscriptions {
            if subscription.name == topic {
                (subscription.wishes).retain(|wish| id.is_some() && wish.id.as_ref() != id);
            }
        }
        self.subscriptions
            .retain(|subscription| !subscription.wishes.is_empty());
    }

    fn call(&mut self, call: CallService, now: Now) -> Result<Option<Effect>, Problem> {
        let CallService { id, service, args } = call;
        self.commanded.clone_from(&id);
        let Some(offer) = topics::service(&service) else {
            let hint = "\"/rosapi/services\" lists the services";
            self.reply(Response::ServiceResponse {
                values: format!("service \"{service}\" does not exist: {hint}").into(),
                id,
                service,
                result: false,
            });
            return Err(Problem::Refused);
        };
        let data = args.get("data").or_else(|| args.get(0));
        let halts = data.and_then(Value::as_bool).unwrap_or(true);
        let values = match offer.service {
            Service::SaveMap => return self.save_map(id, service, &args).map(Some),
            Service::Stop | Service::Halt => json!({ "success": true, "message": "" }),
            Service::Time => json!({ "time": messages::stamp(now.unix) }),
            Service::About(question) => rosapi::answer(offer, question, &args),
        };
        self.reply(Response::ServiceResponse {
            id,
            service,
            values,
            result: true,
        });
        Ok(match offer.service {
            Service::Stop => Some(Effect::Stop),
            // Without an argument it is a halt.
            Service::Halt => Some(Effect::Halt(halts)),
            Service::SaveMap | Service::Time | Service::About(_) => None,
        })
    }

    /// Tells the client that the robot does not obey, and why.
    pub fn warn(&mut self, text: String) {
        self.tell(None, Level::Error, text);
    }

    /// The answer comes later.
    fn save_map(
        &mut self,
        id: Option<Id>,
        service: String,
        args: &Value,
    ) -> Result<Effect, Problem> {
        let url = args.get("map_url").or_else(|| args.get(1));
        let name = maps::name_of(url.and_then(Value::as_str).unwrap_or(""));
        if self.saves.len() >= MAX_SAVES {
            self.reply(Response::ServiceResponse {
                values: format!("{MAX_SAVES} maps are being saved: wait for them").into(),
                id,
                service,
                result: false,
            });
            return Err(Problem::Refused);
        }
        self.last_save = self.last_save.wrapping_add(1);
        self.saves.insert(self.last_save, (id, service));
        Ok(Effect::SaveMap(self.last_save, name.to_owned()))
    }

    /// The map of a call is saved, or the reason why not.
    pub fn saved(&mut self, number: u32, saved: Result<(), String>) {
        let Some((id, service)) = self.saves.remove(&number) else {
            return;
        };
        let is_saved = saved.is_ok();
        if let Err(why) = saved {
            self.tell(id.clone(), Level::Error, why);
        }
        self.reply(Response::ServiceResponse {
            id,
            service,
            values: json!({ "result": is_saved }),
            result: true,
        });
    }

    fn refuse(&mut self, id: Option<Id>, text: String) -> Problem {
        self.tell(id, Level::Error, text);
        Problem::Refused
    }

    fn tell(&mut self, id: Option<Id>, level: Level, msg: String) {
        self.problem = Some((level, msg.clone()));
        if level >= self.level {
            self.reply(Response::Status { id, level, msg });
        }
    }

    fn reply(&mut self, response: Response) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(response);
        } else {
            self.dropped += 1;
        }
    }
}

impl Subscription {
    /// As many messages as the smallest of the wishes asks for; the newest one always waits for
    /// its time, otherwise a message that comes a moment early would halve the rate.
    fn queue(&self) -> usize {
        if self.output.newest_only() {
            return 1;
        }
        self.wishes.iter().map(|wish| wish.queue).min().unwrap_or(1)
    }

    /// The most compact of the forms that the wishes ask for, as from the original server.
    fn form(&self) -> Form {
        let forms = self.wishes.iter().map(|wish| wish.form);
        forms.max().unwrap_or_default()
    }

    /// The shortest of the periods that the wishes ask for.
    fn period(&self) -> Duration {
        let periods = self.wishes.iter().map(|wish| wish.period);
        periods.min().unwrap_or_default()
    }

    /// When the next message may be sent.
    fn due(&self) -> Option<Duration> {
        self.waiting.front()?;
        Some(
            self.sent
                .map_or(Duration::ZERO, |sent| sent + self.period()),
        )
    }
}

fn no_topic(topic: &str, verb: &str) -> String {
    format!("no topic \"{topic}\" to {verb}: \"/rosapi/topics\" lists the topics")
}

fn wrong_type(topic: &str, right: &str, kind: &str) -> String {
    format!("{topic} has the type \"{right}\", not \"{kind}\"")
}

#[cfg(test)]
mod tests;
