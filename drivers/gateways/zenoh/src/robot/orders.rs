//! What operators may do with the devices of the robot, and for how long. PURE.
//!
//! Each program of an operator is a client of its own at the mediator, so drivers tell them apart and
//! learn when one is gone. One of them drives; a motion command holds for half a second by the clock
//! of the robot, whatever the network does. See [`Helm`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use amber_gateways::shared::gate::Bucket;
use amber_gateways::shared::helm::Helm;
use amber_gateways::shared::motion::{self, Motion};
use amber_gateways::shared::robot::{Order, User};
use amber_navigation::kinematics::Wheels;
use amber_proto::limits::MAX_PART;
use amber_proto::mediator::DriverMsg;
use amber_proto::{Device, DeviceMessage, DeviceType, MsgType};
use bytes::Bytes;
use prost::Message;

use crate::config::Controls;
use crate::keys::{Address, Way};
use crate::limits::{IDLE_OPERATOR, MAX_OPERATORS, ORDER_RATE};
use crate::names::Name;
use crate::problem::{Kind, Problem};
use crate::stamp::OrderStamp;

/// The operators and the seat of the robot.
#[derive(Debug)]
pub struct Orders {
    controls: Controls,
    /// The devices that the fleet sees; all but the mediator if there are none.
    devices: Vec<Device>,
    helm: Helm,
    operators: BTreeMap<Program, Operator>,
    last_user: u32,
    actions: VecDeque<Action>,
}

/// A program of an operator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// The operator.
    pub who: Name,
    /// The number of the program, as in [`OrderStamp`]; 0 for programs without stamps.
    pub instance: u64,
}

#[derive(Debug)]
struct Operator {
    user: User,
    last_sequence: Option<u64>,
    rate: Bucket,
    used: Duration,
    has_token: bool,
}

/// What the robot does with a message: what moves wheels comes with [`Orders::poll`].
#[derive(Clone, Debug, PartialEq)]
pub enum Accepted {
    /// Send the message to the device, and return its answer.
    Ask(User, Bytes),
    /// Send the message to the device, which does not answer it.
    Tell(User, Bytes),
    /// Nothing: the message only moves wheels.
    Done,
}

/// What to do for operators.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A new client of the mediator.
    Open(User),
    /// The client leaves the mediator, after all that it has ordered.
    Close(User),
    /// A motion.
    Move(User, Order),
}

impl Orders {
    /// Nobody drives. `devices` are those that the fleet sees; all but the mediator if there are
    /// none.
    #[must_use]
    pub fn new(controls: Controls, devices: Vec<Device>) -> Self {
        Self {
            helm: Helm::new(&controls.robot, controls.seat),
            controls,
            devices,
            operators: BTreeMap::new(),
            last_user: 0,
            actions: VecDeque::new(),
        }
    }

    /// A message of an operator.
    ///
    /// # Errors
    /// It is not carried out.
    pub fn handle(
        &mut self,
        now: Duration,
        address: &Address,
        stamp: Option<OrderStamp>,
        message: Bytes,
    ) -> Result<Accepted, Problem> {
        let (device, wheels) = (address.device, self.controls.robot.wheels);
        let is_shown = self.devices.is_empty() || self.devices.contains(&device);
        // The mediator lets programs of its own machine start and stop drivers, and this is one.
        if !is_shown || device.device_type == DeviceType::MEDIATOR {
            let problem = format!("the fleet does not see {device}");
            return Err(Problem::new(Kind::NoSuchDevice, problem));
        }
        let asks = has_answer(&message, address.way)?;
        let motion = motion::of(device, wheels, &message)
            .map_err(|_| Problem::new(Kind::BadRequest, format!("invalid message for {device}")))?;
        if motion != Motion::None && address.way == Way::Call {
            let problem = format!("a message that moves {device} needs the key of drivers");
            let hint = "send it to .../drive/OPERATOR instead of .../call/OPERATOR";
            return Err(Problem::new(Kind::Refused, problem).hint(hint));
        }
        let program = Program {
            who: address.who.clone(),
            instance: stamp.map_or(0, |stamp| stamp.instance),
        };
        let operator = self.admit(now, program)?;
        // Requests may overtake each other: whoever asks waits for the answers.
        if address.way == Way::Drive {
            operator.check(stamp.map(|stamp| stamp.sequence))?;
        }
        if !operator.rate.take(now) {
            let problem = format!("more than {ORDER_RATE} messages per second");
            return Err(Problem::new(Kind::Busy, problem));
        }
        let user = operator.user;
        let rest = match motion {
            Motion::None => Some(message),
            Motion::Wheels(speeds, rest) => {
                let limited = Wheels::from(speeds).limited(self.controls.robot.drive.max_wheel_m_s);
                let driven = self.helm.drive(now, user, device, limited.into());
                driven.map_err(|_| occupied(device))?;
                rest
            }
            Motion::Begin(errand) => {
                let begun = self.helm.begin(now, user, errand);
                begun.map_err(|_| occupied(device))?;
                Some(message)
            }
            // A stop is always allowed.
            Motion::End(errand) => {
                self.helm.forget(errand);
                Some(message)
            }
        };
        Ok(match rest {
            None => Accepted::Done,
            Some(rest) if asks => Accepted::Ask(user, rest),
            Some(rest) => Accepted::Tell(user, rest),
        })
    }

    /// An operator's program has a token, and so will be missed. It is admitted at once, before
    /// its first message.
    pub fn announced(&mut self, now: Duration, program: Program) {
        if let Ok(operator) = self.admit(now, program) {
            operator.has_token = true;
        }
    }

    /// The token of a program is gone: what it has set in motion stops.
    pub fn gone(&mut self, now: Duration, program: &Program) {
        let Some(operator) = self.operators.remove(program) else {
            return;
        };
        self.helm.release(operator.user);
        self.drain(now);
        self.actions.push_back(Action::Close(operator.user));
    }

    /// The robot leaves the fleet: everything stops.
    pub fn stop(&mut self, now: Duration) {
        self.helm.stop();
        self.drain(now);
        let all = std::mem::take(&mut self.operators);
        let users = all.into_values().map(|it| Action::Close(it.user));
        self.actions.extend(users);
    }

    /// Programs without a token that have been silent for a while are gone.
    pub fn handle_timeout(&mut self, now: Duration) {
        let silent = |it: &Operator| !it.has_token && it.used + IDLE_OPERATOR <= now;
        let silent: Vec<_> = (self.operators.iter())
            .filter(|(_, operator)| silent(operator))
            .map(|(program, _)| program.clone())
            .collect();
        for program in silent {
            self.gone(now, &program);
        }
    }

    /// What to do next. Call it until it returns `None`: after each change, and when
    /// [`Orders::next_due`] has come.
    pub fn poll(&mut self, now: Duration) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let (user, order) = self.helm.poll(now)?;
        Some(Action::Move(user, order))
    }

    /// When [`Orders::handle_timeout`] or [`Orders::poll`] has something to do.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let operators = self.operators.values().filter(|it| !it.has_token);
        let silent = operators.map(|it| it.used + IDLE_OPERATOR).min();
        silent.into_iter().chain(self.helm.next_due()).min()
    }

    /// The programs of operators that use the robot.
    #[must_use]
    pub fn operators(&self) -> Vec<(&Program, bool)> {
        let all = self.operators.iter();
        all.map(|(program, it)| (program, self.helm.is_driven_by(it.user)))
            .collect()
    }

    fn admit(&mut self, now: Duration, program: Program) -> Result<&mut Operator, Problem> {
        let is_full = self.operators.len() >= MAX_OPERATORS;
        let operator = match self.operators.entry(program) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(_) if is_full => {
                let problem = format!("more than {MAX_OPERATORS} operators use this robot");
                return Err(Problem::new(Kind::Busy, problem));
            }
            Entry::Vacant(entry) => {
                self.last_user += 1;
                let user = User(self.last_user);
                self.actions.push_back(Action::Open(user));
                entry.insert(Operator {
                    user,
                    last_sequence: None,
                    rate: Bucket::new(ORDER_RATE),
                    used: now,
                    has_token: false,
                })
            }
        };
        operator.used = now;
        Ok(operator)
    }

    fn drain(&mut self, now: Duration) {
        while let Some((user, order)) = self.helm.poll(now) {
            self.actions.push_back(Action::Move(user, order));
        }
    }
}

impl Operator {
    /// The numbers of orders grow. Programs need not number them.
    fn check(&mut self, sequence: Option<u64>) -> Result<(), Problem> {
        if sequence.is_some() && sequence <= self.last_sequence {
            return Err(Problem::new(
                Kind::Late,
                "a newer message has arrived before",
            ));
        }
        self.last_sequence = sequence.or(self.last_sequence);
        Ok(())
    }
}

/// Whether a device answers this message.
fn has_answer(message: &Bytes, way: Way) -> Result<bool, Problem> {
    let bad = |why: &str| Problem::new(Kind::BadRequest, why);
    if message.len() > MAX_PART {
        return Err(bad(&format!("a message of more than {MAX_PART} bytes")));
    }
    let head = DriverMsg::decode(message.clone()).map_err(|_| bad("not a DriverMsg"))?;
    match head.kind() {
        Some(MsgType::Data) => Ok(head.syn().is_some()),
        Some(MsgType::Ping) if way == Way::Call => Ok(true),
        _ => Err(bad("only messages of type DATA or PING are passed on")
            .hint("subscribe to .../data for what a device publishes")),
    }
}

fn occupied(device: Device) -> Problem {
    Problem::new(Kind::Occupied, format!("another operator drives {device}"))
        .hint("the seat is free a second after the last command of that operator")
}

#[cfg(test)]
mod tests;
