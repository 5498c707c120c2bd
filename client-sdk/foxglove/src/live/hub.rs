//! All viewers, and what is sent to each. PURE.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use amber_proto::Device;
use amber_proto::mediator::Event;
use amber_proto::robot::Shape;
use bytes::Bytes;
use serde_json::{Map, Value};

use super::catalog::{Catalog, Described, Upstream, fields};
use super::limits::{MAX_CALLS, MAX_SUBSCRIPTIONS};
use super::protocol::{self, Level, Said};
use super::services::{self, Service, Services};
use crate::{Converter, Published};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ViewerId(u64);

/// A call of a service by a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallId {
    viewer: ViewerId,
    service: u32,
    /// Chosen by the viewer.
    call: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Send this text.
    Text(ViewerId, String),
    /// Send this message of a subscription, unless a newer one comes.
    Data(ViewerId, u32, Bytes),
    /// Send this message in any case.
    Line(ViewerId, Bytes),
    /// Send nothing more of this subscription.
    Forget(ViewerId, u32),
    /// Ask the mediator for its devices, or stop that.
    Devices(bool),
    /// Ask for these messages.
    Start(Upstream),
    /// Stop that.
    Stop(Upstream),
    /// Send the request of this call with these arguments: see [`Hub::service`].
    Call(CallId, Vec<String>),
}

/// See the [module](self).
pub(super) struct Hub {
    session: String,
    catalog: Catalog,
    /// `None` if viewers cannot call anything.
    services: Option<Services>,
    calls: BTreeSet<CallId>,
    converter: Converter,
    /// The channel of each subscription of each viewer.
    viewers: BTreeMap<ViewerId, BTreeMap<u32, u32>>,
    last_viewer: u64,
    running: HashSet<Upstream>,
    /// The last messages, which later viewers also get.
    kept: HashMap<u32, (u64, Vec<u8>)>,
    outputs: VecDeque<Output>,
}

impl Hub {
    /// A hub without viewers. `session` is another text for each start of the program. `has_services`
    /// says whether viewers can call requests of devices.
    pub(super) fn new(session: String, has_services: bool) -> Self {
        Self {
            session,
            catalog: Catalog::new(),
            services: has_services.then(Services::default),
            calls: BTreeSet::new(),
            converter: Converter::new(),
            viewers: BTreeMap::new(),
            last_viewer: 0,
            running: HashSet::new(),
            kept: HashMap::new(),
            outputs: VecDeque::new(),
        }
    }

    /// The next output.
    pub(super) fn take(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// A viewer has connected.
    pub(super) fn open(&mut self) -> ViewerId {
        self.last_viewer += 1;
        let id = ViewerId(self.last_viewer);
        if self.viewers.is_empty() {
            self.outputs.push_back(Output::Devices(true));
        }
        self.viewers.insert(id, BTreeMap::new());
        let has_services = self.services.is_some();
        self.text(id, protocol::server_info(&self.session, has_services));
        let all = self.advertisement(&self.catalog.ids());
        self.text(id, all);
        if let Some(services) = &self.services {
            let all = services
                .ids()
                .into_iter()
                .filter_map(|id| services.told(id));
            let all = protocol::advertise_services(all);
            self.text(id, all);
        }
        id
    }

    /// A viewer is gone.
    pub(super) fn close(&mut self, id: ViewerId) {
        if self.viewers.remove(&id).is_some() {
            // Their requests are sent, but their answers are ignored.
            self.calls.retain(|call| call.viewer != id);
            self.settle();
            if self.viewers.is_empty() {
                self.outputs.push_back(Output::Devices(false));
            }
        }
    }

    /// A viewer has sent a text.
    pub(super) fn handle_text(&mut self, id: ViewerId, text: &str) {
        match serde_json::from_str(text) {
            Ok(Said::Subscribe { subscriptions }) => {
                for it in subscriptions {
                    if let Err(why) = self.subscribe(id, it.id, it.channel_id) {
                        self.text(id, protocol::status(Level::Error, &why));
                    }
                }
                self.settle();
            }
            Ok(Said::Unsubscribe { subscription_ids }) => {
                for subscription in subscription_ids {
                    let all = self.viewers.get_mut(&id);
                    if all.is_some_and(|all| all.remove(&subscription).is_some()) {
                        self.outputs.push_back(Output::Forget(id, subscription));
                    }
                }
                self.settle();
            }
            Ok(Said::Other) => {
                let why = "amber accepts only subscribe, unsubscribe and calls of services";
                self.text(id, protocol::status(Level::Warning, why));
            }
            Err(error) => {
                let why = format!("invalid message: {error}");
                self.text(id, protocol::status(Level::Error, &why));
            }
        }
    }

    /// A viewer has sent a binary message.
    pub(super) fn handle_binary(&mut self, id: ViewerId, bytes: &[u8]) {
        let services = self.services.as_ref();
        let Some((services, call)) = services.zip(protocol::call(bytes)) else {
            let why = match self.services {
                Some(_) => "invalid message: only calls of services are binary",
                None => "read-only: start `amber foxglove` with --calls to call requests",
            };
            return self.text(id, protocol::status(Level::Error, why));
        };
        let call_id = CallId {
            viewer: id,
            service: call.service,
            call: call.id,
        };
        let open = self.calls.iter().filter(|it| it.viewer == id).count();
        let words = match (services.get(call.service), call.payload) {
            (None, _) => Err("unknown service".to_owned()),
            (_, None) => Err("only the encoding json is supported".to_owned()),
            _ if open >= MAX_CALLS => Err("too many calls wait for their answers".to_owned()),
            _ if self.calls.contains(&call_id) => Err("this call id is in use".to_owned()),
            (Some(_), Some(payload)) => services::words(payload),
        };
        match words {
            Ok(words) => {
                self.calls.insert(call_id);
                self.outputs.push_back(Output::Call(call_id, words));
            }
            Err(why) => self.text(id, protocol::failure(call.service, call.id, &why)),
        }
    }

    /// The service of a call, unless it is gone.
    pub(super) fn service(&self, call: CallId) -> Option<&Service> {
        self.services.as_ref()?.get(call.service)
    }

    pub(super) fn handle_answer(&mut self, id: CallId, answer: Result<Value, String>) {
        if !self.calls.remove(&id) || !self.viewers.contains_key(&id.viewer) {
            return;
        }
        self.outputs.push_back(match answer {
            // A request without an answer was sent.
            Ok(Value::Null) => {
                let nothing = Value::Object(Map::new());
                Output::Line(id.viewer, protocol::response(id.service, id.call, &nothing))
            }
            Ok(answer) => Output::Line(id.viewer, protocol::response(id.service, id.call, &answer)),
            Err(why) => Output::Text(id.viewer, protocol::failure(id.service, id.call, &why)),
        });
    }

    fn subscribe(&mut self, id: ViewerId, subscription: u32, channel: u32) -> Result<(), String> {
        if self.catalog.told(channel).is_none() {
            return Err(format!("channel {channel} does not exist"));
        }
        let Some(all) = self.viewers.get_mut(&id) else {
            return Ok(());
        };
        if all.contains_key(&subscription) {
            return Err(format!("subscription {subscription} already exists"));
        }
        if all.len() >= MAX_SUBSCRIPTIONS {
            return Err(format!("more than {MAX_SUBSCRIPTIONS} subscriptions"));
        }
        all.insert(subscription, channel);
        if let Some((time_ns, message)) = self.kept.get(&channel) {
            let data = protocol::data(subscription, *time_ns, message);
            self.outputs.push_back(Output::Data(id, subscription, data));
        }
        Ok(())
    }

    /// These are the devices of the mediator now.
    pub(super) fn handle_devices(&mut self, time_ns: u64, devices: &[Described]) {
        let (new, gone) = self.catalog.set_devices(devices);
        for id in &gone {
            self.kept.remove(id);
            for (viewer, subscriptions) in &mut self.viewers {
                subscriptions.retain(|subscription, channel| {
                    if channel == id {
                        self.outputs
                            .push_back(Output::Forget(*viewer, *subscription));
                    }
                    channel != id
                });
            }
        }
        let viewers: Vec<_> = self.viewers.keys().copied().collect();
        for viewer in viewers {
            if !gone.is_empty() {
                self.text(viewer, protocol::unadvertise(&gone));
            }
            if !new.is_empty() {
                let new = self.advertisement(&new);
                self.text(viewer, new);
            }
        }
        if !new.is_empty() || !gone.is_empty() {
            self.settle();
        }
        self.change_services(devices);
        let repeated = (self.converter).repeated(time_ns, devices.iter().map(|it| it.device));
        self.publish(time_ns, repeated);
    }

    fn change_services(&mut self, devices: &[Described]) {
        let Some(services) = &mut self.services else {
            return;
        };
        let (new, gone) = services.set_devices(devices);
        let new: Vec<_> = new.iter().filter_map(|id| services.told(*id)).collect();
        for viewer in self.viewers.keys() {
            if !gone.is_empty() {
                let text = protocol::unadvertise_services(&gone);
                self.outputs.push_back(Output::Text(*viewer, text));
            }
            if !new.is_empty() {
                let text = protocol::advertise_services(new.iter().cloned());
                self.outputs.push_back(Output::Text(*viewer, text));
            }
        }
    }

    /// The shape of the robot.
    pub(super) fn handle_shape(&mut self, shape: &Shape) {
        self.converter.set_shape(shape);
    }

    pub(super) fn handle_message(&mut self, time_ns: u64, device: Device, message: &[u8]) {
        for channel in self.catalog.raw(device, &fields(message)) {
            self.send(channel, time_ns, message);
        }
        let mut wanted = self.viewers.values().flat_map(BTreeMap::values);
        if Converter::reads(device.device_type) && wanted.any(|id| self.catalog.is_made(*id)) {
            let made = self.converter.message(time_ns, device, message);
            self.publish(time_ns, made);
        }
    }

    /// An event of the mediator.
    pub(super) fn handle_event(&mut self, time_ns: u64, event: &Event) {
        let line = self.converter.event(time_ns, event);
        self.publish(time_ns, vec![line]);
    }

    fn publish(&mut self, time_ns: u64, all: Vec<Published>) {
        for made in all {
            let Some(channel) = self.catalog.id(&made.topic) else {
                continue;
            };
            self.send(channel, time_ns, &made.data);
            if self.catalog.is_kept(channel) {
                self.kept.insert(channel, (time_ns, made.data));
            }
        }
    }

    fn send(&mut self, channel: u32, time_ns: u64, message: &[u8]) {
        let is_log = self.catalog.is_log(channel);
        for (viewer, subscriptions) in &self.viewers {
            let mine = subscriptions.iter().filter(|(_, id)| **id == channel);
            for subscription in mine.map(|(subscription, _)| *subscription) {
                let data = protocol::data(subscription, time_ns, message);
                self.outputs.push_back(match is_log {
                    true => Output::Line(*viewer, data),
                    false => Output::Data(*viewer, subscription, data),
                });
            }
        }
    }

    fn text(&mut self, id: ViewerId, text: String) {
        self.outputs.push_back(Output::Text(id, text));
    }

    fn advertisement(&self, ids: &[u32]) -> String {
        protocol::advertise(ids.iter().filter_map(|id| self.catalog.told(*id)))
    }

    /// Starts and stops upstreams according to the subscriptions of viewers.
    fn settle(&mut self) {
        let channels = self.viewers.values().flat_map(BTreeMap::values);
        let wanted: HashSet<Upstream> = channels
            .flat_map(|id| self.catalog.upstreams(*id))
            .collect();
        let stop = self.running.difference(&wanted).cloned();
        self.outputs.extend(stop.map(Output::Stop));
        let start = wanted.difference(&self.running).cloned();
        self.outputs.extend(start.map(Output::Start));
        self.running = wanted;
    }
}

#[cfg(test)]
mod tests;
