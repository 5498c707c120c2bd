//! The entry of queries and orders of the fleet. IO.
//!
//! Zenoh calls it in its own threads, so it never waits: what is beyond the limits is dropped and
//! counted.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc};
use zenoh::bytes::ZBytes;
use zenoh::query::Query;
use zenoh::sample::SampleKind;

use super::control::{Incoming, Input};
use super::orders::Program;
use super::outbox::Asker;
use super::seats::SeatRequest;
use crate::counters::Counters;
use crate::keys::{Address, RobotKeys, parse_operator, parse_seat};
use crate::limits::{DEADLINE, MAX_DEADLINE};
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
    pub(super) orders: Arc<Semaphore>,
    pub(super) queries: Arc<Semaphore>,
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
        let Some(asker) = self.asker(query, key) else {
            return;
        };
        self.input(Input::Message(Box::new(Incoming {
            address,
            stamp,
            message,
            deadline: deadline.min(MAX_DEADLINE),
            asker: Some(asker),
            _permit: None,
        })));
    }

    pub(super) fn put(&self, key: &str, attachment: Option<&ZBytes>, payload: &ZBytes) {
        let Some(address) = Address::parse(key) else {
            return self.counters.count("orders_dropped_invalid");
        };
        let Ok(permit) = self.orders.clone().try_acquire_owned() else {
            return self.counters.count("orders_dropped_busy");
        };
        self.input(Input::Message(Box::new(Incoming {
            address,
            stamp: attachment.and_then(order_stamp),
            message: bytes(payload),
            deadline: DEADLINE,
            asker: None,
            _permit: Some(permit),
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
        let program = who.map(|who| Program {
            who,
            instance: stamp.map_or(0, |stamp| stamp.instance),
        });
        let Some(asker) = self.asker(query, key) else {
            return;
        };
        self.input(match request {
            Ok(request) => Input::Seat(request, program, asker),
            Err(problem) => Input::Refuse(problem, asker),
        });
    }

    pub(super) fn operator(&self, key: &str, kind: SampleKind) {
        let Some((who, instance)) = parse_operator(key) else {
            return self.counters.count("operators_dropped_invalid");
        };
        let program = Program { who, instance };
        self.input(match kind {
            SampleKind::Put => Input::Announced(program),
            SampleKind::Delete => Input::Gone(program),
        });
    }

    pub(super) fn question(&self, query: Query, question: MakeQuestion) {
        if let Some(asker) = self.asker(query, String::new())
            && self.questions.try_send(question(asker)).is_err()
        {
            self.counters.count("queries_dropped_busy");
        }
    }

    /// Dropping a query tells its sender that there is no answer.
    fn asker(&self, query: Query, key: String) -> Option<Asker> {
        match self.queries.clone().try_acquire_owned() {
            Ok(permit) => Some(Asker {
                query,
                key,
                _permit: permit,
            }),
            Err(_) => {
                self.counters.count("queries_dropped_busy");
                None
            }
        }
    }

    fn input(&self, input: Input) {
        // The thread ends when the robot leaves.
        let _ = self.inputs.send(input);
    }
}

fn order_stamp(attachment: &ZBytes) -> Option<OrderStamp> {
    OrderStamp::decode(&attachment.to_bytes())
}

fn bytes(payload: &ZBytes) -> Bytes {
    Bytes::copy_from_slice(&payload.to_bytes())
}
