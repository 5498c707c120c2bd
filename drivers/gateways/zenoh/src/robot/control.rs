//! The thread that decides about orders and stops the wheels. IO.
//!
//! It calls neither Zenoh nor anything else that may wait for the network: a stop cannot be late
//! because a link is slow. See [`Orders`] for the decisions.

use std::collections::BTreeMap;
use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use amber_proto::Device;
use amber_robot::robot::{News, Trip, TripEnd, TripNews, UserOrder};
use amber_values::Target;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::goals::Goals;
use super::operators::{Forwarded, Job, Operators, Reports};
use super::orders::{Accepted, Action, Orders, Program};
use super::seats::SeatRequest;
use super::send_thread::{Asker, Caller, Fact, Out, Permit, SendThread};
use crate::config::Controls;
use crate::counters::Counters;
use crate::health::{OperatorInfo, SeatInfo};
use crate::keys::Address;
use crate::limits::MAX_NEWS;
use crate::names::{Name, ROS_OPERATOR};
use crate::problem::{Kind, Problem};
use crate::quota::Place;
use crate::stamp::OrderStamp;

/// What comes from operators. Messages need a permit, so the channel is bounded; that an operator is
/// gone is never dropped.
pub(super) enum Input {
    /// A message for a device.
    Message(Box<Incoming>),
    /// A question about a seat. Without a program, it is only to be told who holds it.
    Seat(SeatRequest, Option<Program>, Asker),
    /// A question that cannot be read.
    Refuse(Problem, Asker),
    /// A program makes a trip.
    Travel(Travel),
    /// A program ends a trip.
    CancelTrip(Program, Trip),
    /// An errand of a device with this number is over.
    ErrandEnded(Device, u64),
    /// A program gives a sign of life, since this time. Its stamp, if it has sent it by itself.
    Signed(Program, Instant, Option<OrderStamp>, Option<Place>),
    /// An operator's program has a token.
    Announced(Program),
    /// It has none any more.
    Gone(Program),
}

/// A way to a target, of whose progress and end the trips of [`Control`] tell.
pub(super) struct Travel {
    pub(super) program: Program,
    pub(super) device: Device,
    pub(super) trip: Trip,
    pub(super) target: Target,
    /// Bounds those that wait.
    pub(super) _permit: Permit,
}

/// A message for a device.
pub(super) struct Incoming {
    pub(super) address: Address,
    pub(super) stamp: Option<OrderStamp>,
    pub(super) message: Bytes,
    /// How long to wait for the answer.
    pub(super) deadline: Duration,
    /// The receiver of the answer; `None` if the message was put.
    pub(super) asker: Option<Caller>,
    /// Bounds the messages without an asker.
    pub(super) _permit: Option<Permit>,
}

/// The inputs of the thread.
pub(super) struct Control {
    pub(super) controls: Controls,
    /// The devices that the fleet sees; all if there are none.
    pub(super) devices: Vec<Device>,
    pub(super) mediator: String,
    /// True ends the thread.
    pub(super) stopped: watch::Receiver<bool>,
    pub(super) out: SendThread,
    pub(super) counters: Counters,
    /// The operators, for those who ask.
    pub(super) operators: watch::Sender<Vec<OperatorInfo>>,
    /// The operators who may take the seat from another operator.
    pub(super) may_force: Vec<Name>,
    /// For the goals of ROS 2 nodes.
    pub(super) goals: Goals,
    /// The occupied seats, for subscribers.
    pub(super) seats: watch::Sender<BTreeMap<i32, SeatInfo>>,
    /// How trips go. Unbounded, because an end is never dropped and nothing here waits: some messages
    /// per second, for a task that only forwards them.
    pub(super) trips: mpsc::UnboundedSender<(Trip, TripNews)>,
    /// Hears of the ends of errands.
    pub(super) inputs: mpsc::UnboundedSender<Input>,
}

impl Control {
    /// Starts the thread. It ends after `stopped` is true and everything that moves has been stopped.
    pub(super) fn start(
        self,
        inputs: mpsc::UnboundedReceiver<Input>,
    ) -> io::Result<JoinHandle<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(thread::spawn(move || runtime.block_on(self.run(inputs))))
    }

    async fn run(self, mut inputs: mpsc::UnboundedReceiver<Input>) {
        let start = Instant::now();
        let (report, mut news) = mpsc::channel(MAX_NEWS);
        let mut stopped = self.stopped.clone();
        let mut orders = Orders::new(self.controls, self.devices.clone());
        orders = orders.with_force(self.may_force.clone());
        let mut clients = Operators::new(
            self.mediator.clone(),
            self.controls.seat,
            self.out.clone(),
            self.counters.clone(),
            Reports {
                news: report,
                inputs: self.inputs.clone(),
            },
        );
        loop {
            let due = orders.next_due().map(|due| start + due);
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                input = inputs.recv() => match input {
                    Some(input) => self.take(start.elapsed(), &mut orders, &mut clients, input),
                    None => break,
                },
                Some(news) = news.recv() => self.take_news(&mut orders, news),
                () = wait_until(due) => {}
            }
            let now = start.elapsed();
            orders.handle_timeout(now);
            self.perform(&mut orders, &mut clients, now);
            self.show(&orders);
            self.show_seats(orders.take_changed_seats(now));
        }
        let now = start.elapsed();
        orders.stop(now);
        self.perform(&mut orders, &mut clients, now);
        // Nobody waits to report anything any more.
        drop(news);
        clients.end().await;
    }

    fn take(&self, now: Duration, orders: &mut Orders, clients: &mut Operators, input: Input) {
        let incoming = match input {
            Input::Message(incoming) => *incoming,
            Input::Seat(request, program, asker) => {
                let told = match program {
                    Some(program) => orders.seat(now, program, request),
                    None => Ok(orders.seat_info(now, request)),
                };
                self.perform(orders, clients, now);
                return match told {
                    Ok(info) => {
                        let facts = vec![(asker.key.clone(), Fact::json(&info))];
                        self.out.send(Out::Facts(asker, facts));
                    }
                    Err(problem) => self.refuse(Some(asker.into()), problem),
                };
            }
            Input::Refuse(problem, asker) => return self.refuse(Some(asker.into()), problem),
            Input::Travel(travel) => {
                let Travel { program, trip, .. } = &travel;
                let (device, target) = (travel.device, travel.target);
                match orders.travel(now, program, device, *trip, target) {
                    Ok(()) => self.counters.count("orders"),
                    Err(problem) => {
                        self.end_trip(*trip, problem.message.clone());
                        self.refuse(None, problem);
                    }
                }
                return;
            }
            Input::CancelTrip(program, trip) => return orders.cancel_trip(&program, trip),
            Input::ErrandEnded(device, number) => return orders.errand_ended(device, number),
            Input::Signed(program, since, stamp, _permit) => {
                return orders.signed(now, &program, since.elapsed(), stamp);
            }
            Input::Announced(program) => return orders.announced(now, program),
            Input::Gone(program) => return orders.gone(now, &program),
        };
        let device = incoming.address.device;
        let program = Program {
            who: incoming.address.who.clone(),
            instance: incoming.stamp.map_or(0, |stamp| stamp.instance),
        };
        let accepted = orders.handle(now, &incoming.address, incoming.stamp, incoming.message);
        let is_goal = program.who.as_str() == ROS_OPERATOR
            && device == self.controls.robot.targets
            && incoming.asker.is_none();
        match &accepted {
            Err(problem) if is_goal => self.goals.refused(&problem.message),
            Ok(_) if is_goal => self.goals.accepted(),
            _ => {}
        }
        // The replaced motion stops first.
        self.perform(orders, clients, now);
        let given = match accepted {
            Ok(Accepted::Done) => {
                self.counters.count("orders");
                // The lease of the wheels is taken after the answer: the next one knows more.
                if let Some(why) = orders.user_of(&program).and_then(|it| clients.refused(it)) {
                    let problem = Problem::new(Kind::Occupied, why);
                    return self.refuse(incoming.asker, problem);
                }
                if let Some(asker) = incoming.asker {
                    self.out.send(Out::Answer(asker, Bytes::new()));
                }
                return;
            }
            Ok(Accepted::Ask(user, message)) => {
                let message = self.forwarded(orders, device, message);
                match incoming.asker {
                    Some(asker) => clients.give(user, Job::Ask(message, incoming.deadline, asker)),
                    // It was put, so it needs no answer.
                    None => clients.give(user, Job::Tell(message, None)),
                }
            }
            Ok(Accepted::Tell(user, message)) => {
                let message = self.forwarded(orders, device, message);
                clients.give(user, Job::Tell(message, incoming.asker))
            }
            Err(problem) => return self.refuse(incoming.asker, problem),
        };
        match given {
            Ok(()) => self.counters.count("orders"),
            Err(job) => {
                let problem = Problem::new(Kind::Busy, "too many messages wait for the mediator");
                let asker = match *job {
                    Job::Ask(.., asker) => Some(asker),
                    Job::Tell(_, asker) => asker,
                    Job::Order(_) => None,
                };
                self.refuse(asker, problem);
            }
        }
    }

    fn forwarded(&self, orders: &Orders, device: Device, message: Bytes) -> Forwarded {
        Forwarded {
            device,
            message,
            errand: orders.errand_of(device),
        }
    }

    fn take_news(&self, orders: &mut Orders, news: News) {
        // The other news are for gateways.
        if let News::Trip(_, trip, news) = news {
            if matches!(news, TripNews::Ended(_)) {
                orders.trip_ended(trip);
            }
            // The task ends when the robot leaves.
            let _ = self.trips.send((trip, news));
        }
    }

    /// A trip that does not begin also has an end.
    fn end_trip(&self, trip: Trip, why: String) {
        let ended = TripNews::Ended(TripEnd::Refused(why));
        let _ = self.trips.send((trip, ended));
    }

    fn refuse(&self, asker: Option<Caller>, problem: Problem) {
        self.counters.count(match problem.kind {
            Kind::Occupied => "refused_occupied",
            Kind::Late => "refused_late",
            Kind::Busy => "refused_busy",
            Kind::BadRequest => "refused_invalid",
            _ => "refused_not_allowed",
        });
        tracing::debug!("refused: {problem}");
        if let Some(asker) = asker {
            self.out.send(Out::Refuse(asker, problem));
        }
    }

    fn show_seats(&self, changed: Vec<SeatInfo>) {
        if changed.is_empty() {
            return;
        }
        self.seats.send_modify(|seats| {
            for seat in changed {
                match seat.holder {
                    Some(_) => drop(seats.insert(seat.id, seat)),
                    None => drop(seats.remove(&seat.id)),
                }
            }
        });
    }

    fn show(&self, orders: &Orders) {
        let all = orders.operators().into_iter();
        let all = all.map(|(program, drives)| OperatorInfo {
            who: program.who.clone(),
            instance: format!("{:016x}", program.instance),
            drives,
        });
        let all: Vec<_> = all.collect();
        self.operators.send_if_modified(|shown| {
            let has_changed = *shown != all;
            *shown = all;
            has_changed
        });
    }

    fn perform(&self, orders: &mut Orders, clients: &mut Operators, now: Duration) {
        while let Some(action) = orders.poll(now) {
            match action {
                Action::Open(user) => clients.open(user, orders.name_of(user)),
                Action::Close(user) => clients.close(user),
                Action::Move(user, order) => {
                    let trip = match &order {
                        UserOrder::Trip(_, trip, _) => Some(*trip),
                        _ => None,
                    };
                    let is_given = clients.order(user, order);
                    if let Some(trip) = trip.filter(|_| !is_given) {
                        orders.trip_ended(trip);
                        self.end_trip(trip, "too many messages wait for the mediator".to_owned());
                    }
                }
                Action::Abandon(user) => {
                    clients.abandoned(&orders.name_of(user));
                }
            }
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
