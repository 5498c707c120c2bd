//! The entry of queries and orders of the fleet. IO.
//!
//! Zenoh calls it in its own threads, so it never waits: what is beyond the limits is dropped and
//! counted.

use std::sync::Arc;
use std::time::Duration;

use amber_proto::Device;
use amber_robot::motion;
use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use zenoh::bytes::ZBytes;
use zenoh::query::Query;
use zenoh::sample::SampleKind;

use super::control::{Incoming, Input};
use super::orders::{Program, is_stop};
use super::seats::{SeatAction, SeatRequest};
use super::send_thread::{Asker, Permit};
use crate::counters::Counters;
use crate::keys::{Address, RobotKeys, parse_operator, parse_seat};
use crate::limits::{DEADLINE, MAX_DEADLINE};
use crate::names::{Name, ROS_OPERATOR};
use crate::problem::{Kind, Problem};
use crate::quota::{Place, Quota};
use crate::stamp::OrderStamp;

/// A question about the robot.
pub(super) enum Question {
    Info(Asker),
    Health(Asker),
    Description(Asker),
}

/// How to make a question of a query.
pub(super) type MakeQuestion = fn(Asker) -> Question;

/// The entry of queries and orders: Zenoh calls it in its own threads, so it never waits.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) keys: RobotKeys,
    pub(super) inputs: mpsc::UnboundedSender<Input>,
    pub(super) questions: mpsc::Sender<Question>,
    pub(super) orders: Quota,
    pub(super) queries: Quota,
    /// For stops, if there is no room for anything else.
    pub(super) stops: Quota,
    /// For questions, which nobody asks by name.
    pub(super) facts: Arc<Semaphore>,
    /// A device that takes the commands of a Roboclaw.
    pub(super) wheels: Device,
    pub(super) counters: Counters,
}

impl Door {
    pub(super) fn query(&self, query: Query) {
        let Some(address) = Address::parse(query.key_expr().as_str()) else {
            return self.counters.count("queries_dropped_invalid");
        };
        let deadline_ms = query.parameters().get("deadline_ms");
        let deadline_ms = deadline_ms.and_then(|text| text.parse().ok());
        let deadline = deadline_ms.map_or(DEADLINE, Duration::from_millis);
        let stamp = query.attachment().and_then(order_stamp);
        let message = query.payload().map(bytes).unwrap_or_default();
        let key = self.keys.address(&address);
        let place = self.place(&self.queries, &address, &message);
        let Some(asker) = self.asker(query, key, place.map(Permit::Operator)) else {
            return;
        };
        if let Some(problem) = not_an_operator(&address.who) {
            return self.input(Input::Refuse(problem, asker));
        }
        self.input(Input::Message(Box::new(Incoming {
            address,
            stamp,
            message,
            deadline: deadline.min(MAX_DEADLINE),
            asker: Some(asker.into()),
            _permit: None,
        })));
    }

    pub(super) fn put(&self, key: &str, attachment: Option<&ZBytes>, payload: &ZBytes) {
        let Some(address) = Address::parse(key) else {
            return self.counters.count("orders_dropped_invalid");
        };
        if not_an_operator(&address.who).is_some() {
            return self.counters.count("orders_dropped_invalid");
        }
        let message = bytes(payload);
        let Some(place) = self.place(&self.orders, &address, &message) else {
            return self.counters.count("orders_dropped_busy");
        };
        self.input(Input::Message(Box::new(Incoming {
            address,
            stamp: attachment.and_then(order_stamp),
            message,
            deadline: DEADLINE,
            asker: None,
            _permit: Some(Permit::Operator(place)),
        })));
    }

    /// A question about a seat, on the own key of an operator or on that for all.
    pub(super) fn seat(&self, query: Query, is_own: bool) {
        let who = parse_seat(query.key_expr().as_str());
        if is_own && who.is_none() {
            return self.counters.count("queries_dropped_invalid");
        }
        let parameters = query.parameters();
        // On the key for all, no seat can be taken.
        let action = parameters.get("action").filter(|_| is_own);
        let request = SeatRequest::parse(action, parameters.get("id"));
        let stamp = query.attachment().and_then(order_stamp);
        let key = match &who {
            Some(who) => self.keys.seat(who),
            None => self.keys.own("seat"),
        };
        let permit = match &who {
            Some(who) => {
                let stops = matches!(&request, Ok(it) if it.action == SeatAction::Halt);
                let own = self.queries.take(who);
                let place = own.or_else(|| stops.then(|| self.stops.take(who)).flatten());
                place.map(Permit::Operator)
            }
            None => self.fact(),
        };
        let program = who.map(|who| Program {
            who,
            instance: stamp.map_or(0, |stamp| stamp.instance),
        });
        let Some(asker) = self.asker(query, key, permit) else {
            return;
        };
        let refused = program.as_ref().and_then(|it| not_an_operator(&it.who));
        if let Some(problem) = refused {
            return self.input(Input::Refuse(problem, asker));
        }
        self.input(match request {
            Ok(request) => Input::Seat(request, program, asker),
            Err(problem) => Input::Refuse(problem, asker),
        });
    }

    pub(super) fn operator(&self, key: &str, kind: SampleKind) {
        let Some((who, instance)) = parse_operator(key) else {
            return self.counters.count("operators_dropped_invalid");
        };
        if not_an_operator(&who).is_some() {
            return self.counters.count("operators_dropped_invalid");
        }
        let program = Program { who, instance };
        self.input(match kind {
            SampleKind::Put => Input::Announced(program),
            SampleKind::Delete => Input::Gone(program),
        });
    }

    /// A sign of life of an operator's program.
    pub(super) fn sign(&self, key: &str, attachment: Option<&ZBytes>) {
        let Some((who, instance)) = parse_operator(key) else {
            return self.counters.count("operators_dropped_invalid");
        };
        let Some(place) = self.orders.take(&who) else {
            return self.counters.count("orders_dropped_busy");
        };
        let stamp = attachment.and_then(order_stamp);
        let program = Program { who, instance };
        self.input(Input::Signed(program, Instant::now(), stamp, Some(place)));
    }

    pub(super) fn question(&self, query: Query, question: MakeQuestion) {
        if let Some(asker) = self.asker(query, String::new(), self.fact())
            && self.questions.try_send(question(asker)).is_err()
        {
            self.counters.count("queries_dropped_busy");
        }
    }

    /// A place for a message of an operator. A stop finds one even if there is no room.
    fn place(&self, quota: &Quota, address: &Address, message: &Bytes) -> Option<Place> {
        if let Some(place) = quota.take(&address.who) {
            return Some(place);
        }
        let place = self.stops.take(&address.who)?;
        let motion = motion::of(address.device, self.wheels, message).ok()?;
        is_stop(&motion).then_some(place)
    }

    fn fact(&self) -> Option<Permit> {
        let permit = self.facts.clone().try_acquire_owned().ok()?;
        Some(Permit::Other(permit))
    }

    /// Dropping a query tells its sender that there is no answer.
    fn asker(&self, query: Query, key: String, permit: Option<Permit>) -> Option<Asker> {
        let Some(_permit) = permit else {
            self.counters.count("queries_dropped_busy");
            return None;
        };
        Some(Asker {
            query,
            key,
            _permit,
        })
    }

    fn input(&self, input: Input) {
        // The thread ends when the robot leaves.
        let _ = self.inputs.send(input);
    }
}

/// The nodes of ROS 2 come through another door: nobody else may be one of them.
fn not_an_operator(who: &Name) -> Option<Problem> {
    (who.as_str() == ROS_OPERATOR).then(|| {
        let problem = format!("'{who}' is the name of the nodes of ROS 2");
        Problem::new(Kind::Refused, problem).hint("operators need another name")
    })
}

fn order_stamp(attachment: &ZBytes) -> Option<OrderStamp> {
    OrderStamp::decode(&attachment.to_bytes())
}

fn bytes(payload: &ZBytes) -> Bytes {
    Bytes::copy_from_slice(&payload.to_bytes())
}
