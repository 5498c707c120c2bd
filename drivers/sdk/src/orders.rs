//! The orders of a device, each with an id, its progress and its end: the bookkeeping of drivers
//! whose errands take time. The messages are in `proto/order.proto`. PURE.
//!
//! ```text
//!             begin                 end: arrived, stopped, cancelled, halted, ...
//!   a client --------> current one ------------------------------------------------> ended ones
//!                          |                                                       (the last 16)
//!                          +-- begin of another order: replaced ------------------------^
//! ```
//!
//! Nothing here moves the robot. The driver calls [`Orders::end`] before it stops the robot for one of
//! the reasons in [`End`], and also when the robot is done.

use std::collections::VecDeque;
use std::fmt;

use amber_proto::ClientId;
use amber_proto::order;
use amber_proto::order::order::State;

use crate::motion::{StopCause, client_name};
use crate::request::Origin;

/// So many ended orders are remembered, for late questions.
pub const MAX_ENDED: usize = 16;
/// The id that means the current order, or the last one.
pub const LATEST: u64 = 0;

/// A client that gives or ends an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// Its id.
    pub client: ClientId,
    /// What it calls itself, such as "amber goto".
    pub name: Option<String>,
}

impl Author {
    /// The sender of a request, with what it calls itself, if anything. The name becomes one printable
    /// line.
    pub fn of(origin: &Origin, name: Option<&str>) -> Self {
        let client = origin.client().unwrap_or(ClientId(0));
        let id = client_name(None, client);
        let name = Some(client_name(name, client)).filter(|name| *name != id);
        Self { client, name }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = client_name(None, self.client);
        match &self.name {
            Some(name) => write!(f, "{name} ({id})"),
            None => f.write_str(&id),
        }
    }
}

/// How an order ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// All targets were visited.
    Arrived,
    /// The robot is done, and gave up at least one target: why, as a sentence.
    Skipped(String),
    /// A newer order has replaced it.
    Replaced(Author),
    /// A client has stopped the robot.
    Stopped(Author),
    /// The robot has stopped by a rule of the driver, as a sentence.
    StoppedByRule(String),
    /// A client has cancelled it.
    Cancelled(Author),
    /// The driver did not accept it: why, as a sentence.
    Refused(String),
    /// Its client is gone.
    ClientLost,
    /// The device was halted: by whom, in words.
    Halted(String),
    /// Its client has lost the lease.
    LeaseLost {
        /// How, as a sentence.
        why: String,
        /// The client that has taken it, if one has.
        to: Option<ClientId>,
    },
}

impl End {
    /// The reason, as a sentence; `None` if there is nothing to explain.
    pub fn reason(&self) -> Option<String> {
        Some(match self {
            Self::Arrived => return None,
            Self::Skipped(why)
            | Self::StoppedByRule(why)
            | Self::Refused(why)
            | Self::LeaseLost { why, .. } => why.clone(),
            Self::Replaced(by) => format!("replaced by {by}"),
            Self::Stopped(by) => format!("stopped by {by}"),
            Self::Cancelled(by) => format!("cancelled by {by}"),
            Self::ClientLost => "the client that gave the order is gone".into(),
            Self::Halted(by) => format!("the device was halted by {by}"),
        })
    }

    /// The client that ended it.
    pub fn by(&self) -> Option<ClientId> {
        match self {
            Self::Replaced(by) | Self::Stopped(by) | Self::Cancelled(by) => Some(by.client),
            Self::LeaseLost { to, .. } => *to,
            _ => None,
        }
    }

    /// A request stops the robot: that of a client, or of the harness.
    pub fn of_stop(by: Author, origin: &Origin) -> Self {
        match &origin.stop_cause {
            None => Self::Stopped(by),
            Some(StopCause::ClientGone) => Self::ClientLost,
            Some(StopCause::LeaseLost { how, to }) => Self::LeaseLost {
                why: how.clone(),
                to: *to,
            },
            Some(StopCause::Halted { by }) => Self::Halted(by.clone()),
            Some(cause @ StopCause::Expired) => Self::StoppedByRule(cause.to_string()),
        }
    }

    fn state(&self) -> State {
        match self {
            Self::Arrived => State::Arrived,
            Self::Skipped(_) => State::Skipped,
            Self::Replaced(_) => State::Replaced,
            Self::Stopped(_) | Self::StoppedByRule(_) => State::Stopped,
            Self::Cancelled(_) => State::Cancelled,
            Self::Refused(_) => State::Refused,
            Self::ClientLost => State::ClientLost,
            Self::Halted(_) => State::Halted,
            Self::LeaseLost { .. } => State::LeaseLost,
        }
    }
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The number that its client chose, or the driver.
    pub id: u64,
    /// The client that gave it.
    pub by: Author,
    /// The number of its targets.
    pub targets: usize,
    /// The number of visited targets.
    pub visited: usize,
    /// The number of targets that the robot gave up.
    pub skipped: usize,
    /// How it ended; `None` while it is carried out.
    pub end: Option<End>,
}

impl Order {
    /// The message. `remaining_m` is the rest of the path, which only a running order has.
    pub fn to_wire(&self, remaining_m: Option<f64>) -> order::Order {
        let count = |number: usize| u32::try_from(number).ok();
        let (state, end) = match &self.end {
            None => (State::Running, None),
            Some(end) => (end.state(), Some(end)),
        };
        order::Order {
            id: Some(self.id),
            state: Some(state.into()),
            client_id: Some(self.by.client.0),
            name: self.by.name.clone(),
            targets: count(self.targets),
            visited: count(self.visited),
            skipped: count(self.skipped),
            remaining: remaining_m.filter(|_| end.is_none()),
            reason: end.and_then(End::reason),
            ended_by: end.and_then(End::by).map(|client| client.0),
        }
    }
}

/// The id of an order belongs to another client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id {id} is that of an order of {by}; choose another one")]
pub struct IdTaken {
    id: u64,
    by: Author,
}

/// The orders of a device: at most one that runs, and the last ones that have ended.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    current: Option<Order>,
    /// The newest first.
    ended: VecDeque<Order>,
    /// The number of ids that were chosen here.
    chosen: u64,
}

impl Orders {
    /// Whether a client repeats an order that is known already, because it got no answer. Such a
    /// request must not start anything.
    ///
    /// # Errors
    /// The id is that of an order of another client.
    pub fn repeated(&self, id: u64, client: ClientId) -> Result<Option<&Order>, IdTaken> {
        let known = match id {
            LATEST => None,
            id => self.find(id),
        };
        match known {
            Some(order) if order.by.client != client => Err(IdTaken {
                id,
                by: order.by.clone(),
            }),
            known => Ok(known),
        }
    }

    /// A new order begins and replaces the current one. For the id 0, an id is chosen.
    pub fn begin(&mut self, id: u64, by: Author, targets: usize) {
        self.end(End::Replaced(by.clone()));
        let id = self.id_or_choice(id);
        self.current = Some(Order {
            id,
            by,
            targets,
            visited: 0,
            skipped: 0,
            end: None,
        });
    }

    /// A new order is not accepted. The current one goes on.
    pub fn refuse(&mut self, id: u64, by: Author, targets: usize, why: impl Into<String>) {
        let id = self.id_or_choice(id);
        self.remember(Order {
            id,
            by,
            targets,
            visited: 0,
            skipped: 0,
            end: Some(End::Refused(why.into())),
        });
    }

    /// The progress of the current order.
    pub fn note_progress(&mut self, visited: usize, skipped: usize) {
        if let Some(order) = &mut self.current {
            (order.visited, order.skipped) = (visited, skipped);
        }
    }

    /// The current order ends. Returns it.
    pub fn end(&mut self, end: End) -> Option<&Order> {
        let order = self.current.take()?;
        self.remember(Order {
            end: Some(end),
            ..order
        });
        self.ended.front()
    }

    /// The order that the robot carries out.
    pub fn current(&self) -> Option<&Order> {
        self.current.as_ref()
    }

    /// The order with this id; for [`LATEST`] the current one, else the last one.
    pub fn find(&self, id: u64) -> Option<&Order> {
        self.iter().find(|order| id == LATEST || order.id == id)
    }

    /// The message about the order with this id.
    pub fn answer(&self, id: u64, remaining_m: Option<f64>) -> order::Order {
        match self.find(id) {
            Some(order) => order.to_wire(remaining_m),
            None => order::Order {
                id: Some(id),
                state: Some(State::Unknown.into()),
                ..order::Order::default()
            },
        }
    }

    /// The message about all orders.
    pub fn list(&self, remaining_m: Option<f64>) -> order::Orders {
        order::Orders {
            orders: self.iter().map(|it| it.to_wire(remaining_m)).collect(),
        }
    }

    /// All orders that are remembered, the newest first.
    pub fn iter(&self) -> impl Iterator<Item = &Order> {
        self.current.iter().chain(&self.ended)
    }

    fn remember(&mut self, order: Order) {
        self.ended.push_front(order);
        self.ended.truncate(MAX_ENDED);
    }

    fn id_or_choice(&mut self, id: u64) -> u64 {
        if id != LATEST {
            return id;
        }
        loop {
            self.chosen += 1;
            if self.find(self.chosen).is_none() {
                return self.chosen;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ClientId = ClientId(7);
    const B: ClientId = ClientId(8);

    fn author(client: ClientId) -> Author {
        let name = (client == A).then(|| "amber goto".to_owned());
        Author { client, name }
    }

    /// Ids and reasons of all orders; `None` for the one that runs.
    fn listed(orders: &Orders) -> Vec<(u64, Option<String>)> {
        let line = |order: &Order| {
            let reason = order.end.as_ref().map(|end| {
                let reason = end.reason();
                reason.unwrap_or_else(|| "arrived".into())
            });
            (order.id, reason)
        };
        orders.iter().map(line).collect()
    }

    #[test]
    fn each_end_has_its_reason_and_author() {
        for (end, reason, by) in [
            (End::Arrived, None, None),
            (End::Skipped("no path".into()), Some("no path"), None),
            (
                End::Replaced(author(A)),
                Some("replaced by amber goto (client 7)"),
                Some(A),
            ),
            (
                End::Stopped(author(B)),
                Some("stopped by client 8"),
                Some(B),
            ),
            (
                End::StoppedByRule("the step is over".into()),
                Some("the step is over"),
                None,
            ),
            (
                End::Cancelled(author(B)),
                Some("cancelled by client 8"),
                Some(B),
            ),
            (
                End::ClientLost,
                Some("the client that gave the order is gone"),
                None,
            ),
            (
                End::Halted("the operator".into()),
                Some("the device was halted by the operator"),
                None,
            ),
            (
                End::LeaseLost {
                    why: "a page holds the lease".into(),
                    to: Some(B),
                },
                Some("a page holds the lease"),
                Some(B),
            ),
            (
                End::LeaseLost {
                    why: "amber goto did not keep its lease".into(),
                    to: None,
                },
                Some("amber goto did not keep its lease"),
                None,
            ),
        ] {
            let mut orders = Orders::default();
            orders.begin(100, author(A), 2);
            orders.note_progress(1, 1);
            let ended = orders.end(end.clone()).unwrap();
            assert_eq!((ended.visited, ended.skipped), (1, 1), "{end:?}");
            let ended = ended.end.as_ref().unwrap();
            assert_eq!(ended.reason().as_deref(), reason, "{end:?}");
            assert_eq!(ended.by(), by, "{end:?}");
            let message = orders.answer(100, Some(2.0));
            assert!(message.state() > State::Running, "{end:?}");
            assert_eq!(message.remaining, None, "{end:?}");
            assert_eq!(message.reason.as_deref(), reason, "{end:?}");
            assert_eq!(message.ended_by, by.map(|it| it.0), "{end:?}");
            assert_eq!(orders.current(), None);
            assert_eq!(orders.end(End::ClientLost), None, "it ends once");
            orders.note_progress(5, 5);
            assert_eq!(orders.find(100).unwrap().visited, 1);
        }
    }

    #[test]
    fn a_new_order_replaces_the_current_one_and_a_refused_one_does_not() {
        let mut orders = Orders::default();
        orders.begin(100, author(A), 1);
        orders.refuse(101, author(B), 0, "no targets");
        assert_eq!(orders.current().unwrap().id, 100);
        orders.begin(102, author(B), 1);
        let expected = [
            (102, None),
            (100, Some("replaced by client 8".to_owned())),
            (101, Some("no targets".to_owned())),
        ];
        assert_eq!(listed(&orders), expected);
        assert_eq!(orders.find(LATEST).unwrap().id, 102);
        orders.end(End::Arrived);
        assert_eq!(orders.find(LATEST).unwrap().id, 102, "the last one");
        assert_eq!(Orders::default().find(LATEST), None);
    }

    #[test]
    fn a_repeated_order_is_known_while_it_runs_and_afterwards() {
        let mut orders = Orders::default();
        assert_eq!(orders.repeated(100, A), Ok(None));
        orders.begin(100, author(A), 1);
        assert_eq!(orders.repeated(100, A).unwrap().unwrap().end, None);
        orders.end(End::Arrived);
        let again = orders.repeated(100, A).unwrap().unwrap();
        assert_eq!(again.end, Some(End::Arrived));
        let error = orders.repeated(100, B).unwrap_err().to_string();
        let expected =
            "the id 100 is that of an order of amber goto (client 7); choose another one";
        assert_eq!(error, expected);
        assert_eq!(orders.repeated(LATEST, B), Ok(None), "0 is no id");
    }

    #[test]
    fn ids_are_chosen_for_clients_without_and_never_those_of_others() {
        let mut orders = Orders::default();
        orders.begin(2, author(A), 1);
        for _ in 0..3 {
            orders.begin(LATEST, author(B), 1);
        }
        let ids: Vec<_> = orders.iter().map(|order| order.id).collect();
        assert_eq!(ids, [4, 3, 1, 2]);
    }

    #[test]
    fn a_request_of_the_harness_ends_an_order_for_its_cause() {
        let by = author(B);
        for (cause, expected) in [
            (None, End::Stopped(by.clone())),
            (Some(StopCause::ClientGone), End::ClientLost),
            (
                Some(StopCause::Halted { by: "a".into() }),
                End::Halted("a".into()),
            ),
            (
                Some(StopCause::LeaseLost {
                    how: "b holds the lease".into(),
                    to: Some(B),
                }),
                End::LeaseLost {
                    why: "b holds the lease".into(),
                    to: Some(B),
                },
            ),
            (
                Some(StopCause::Expired),
                End::StoppedByRule("the command is no longer valid".into()),
            ),
        ] {
            let origin = Origin {
                stop_cause: cause,
                ..Origin::of(B)
            };
            assert_eq!(End::of_stop(by.clone(), &origin), expected);
        }
    }

    #[test]
    fn messages_show_the_order_that_runs_with_its_way_and_unknown_ones_as_such() {
        let mut orders = Orders::default();
        orders.begin(100, author(A), 3);
        orders.note_progress(1, 0);
        let running = order::Order {
            id: Some(100),
            state: Some(State::Running.into()),
            client_id: Some(7),
            name: Some("amber goto".into()),
            targets: Some(3),
            visited: Some(1),
            skipped: Some(0),
            remaining: Some(2.5),
            ..order::Order::default()
        };
        assert_eq!(orders.answer(LATEST, Some(2.5)), running);
        assert_eq!(orders.list(Some(2.5)).orders, [running]);
        let unknown = orders.answer(5, Some(2.5));
        assert_eq!((unknown.id, unknown.state()), (Some(5), State::Unknown));
        assert_eq!((unknown.reason, unknown.remaining), (None, None));
    }

    #[test]
    fn names_of_clients_are_one_printable_line() {
        let origin = Origin::of(A);
        for (name, shown) in [
            (None, "client 7"),
            (Some(" "), "client 7"),
            (Some("client 7"), "client 7"),
            (Some("a\nb"), "a\\nb (client 7)"),
        ] {
            assert_eq!(Author::of(&origin, name).to_string(), shown);
        }
    }

    #[test]
    fn only_the_last_ended_orders_are_remembered() {
        let mut orders = Orders::default();
        for id in 100..140 {
            orders.begin(id, author(A), 1);
        }
        assert_eq!(orders.iter().count(), 1 + MAX_ENDED);
        assert_eq!(orders.find(122), None);
        assert!(orders.find(123).is_some());
        assert_eq!(orders.current().unwrap().id, 139);
    }
}
