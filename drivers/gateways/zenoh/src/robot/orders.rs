//! The orders of operators to the devices of the robot, and their duration. PURE.
//!
//! Each program of an operator is a separate client of the mediator, so drivers can distinguish
//! them and notice when one is gone. One of them drives; a motion command is valid for half a
//! second by the clock of the robot, independent of the network. See [`Helm`].

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::LazyLock;
use std::time::Duration;

use amber_navigation::kinematics::Wheels;
use amber_proto::limits::MAX_PART;
use amber_proto::mediator::DriverMsg;
use amber_proto::{Device, DeviceId, DeviceMessage, DeviceType, MsgType};
use amber_robot::bucket::Bucket;
use amber_robot::controls::Seat;
use amber_robot::helm::Helm;
use amber_robot::lag::Lag;
use amber_robot::motion::{self, Motion};
use amber_robot::robot::{User, UserOrder};
use amber_values::WheelSpeeds;
use bytes::Bytes;
use prost::Message;

use self::errands::Errands;
use super::seats::{SeatAction, SeatRequest, Seats, occupied};
use crate::config::Controls;
use crate::health::SeatInfo;
use crate::keys::{Address, Way};
use crate::limits::{
    ERRAND_LIFE, IDLE_OPERATOR, MAX_OPERATORS, MAX_PROGRAMS, ORDER_AGE, ORDER_RATE,
};
use crate::names::{Name, ROS_OPERATOR};
use crate::problem::{Kind, Problem};
use crate::stamp::OrderStamp;

mod errands;

/// The operators and the seat of the robot.
#[derive(Debug)]
pub struct Orders {
    controls: Controls,
    /// The devices that the fleet sees; all but the mediator if there are none.
    devices: Vec<Device>,
    helm: Helm,
    seats: Seats,
    /// The operators who may take the seat from another operator.
    may_force: Vec<Name>,
    operators: BTreeMap<Program, Operator>,
    last_user: u32,
    actions: VecDeque<Action>,
    errands: Errands,
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
    lag: Lag,
    rate: Bucket,
    /// The same for stops: no other message takes their place.
    stops: Bucket,
    used: Duration,
    /// The last sign of life: errands end [`ERRAND_LIFE`] later, whatever tokens say.
    alive: Duration,
    has_token: bool,
}

/// Sends the stops for which there is no room.
static RESERVED: LazyLock<Program> = LazyLock::new(|| Program {
    who: "stops".parse().expect("a name"),
    instance: u64::MAX,
});

/// The robot's handling of a message; wheel motion comes from [`Orders::poll`].
#[derive(Clone, Debug, PartialEq)]
pub enum Accepted {
    /// Send the message to the device, and return its answer.
    Ask(User, Bytes),
    /// Send the message to the device, which does not answer it.
    Tell(User, Bytes),
    /// Nothing: the message only moves wheels.
    Done,
}

/// An action for operators.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A new client of the mediator.
    Open(User),
    /// The client leaves the mediator, after all that it has ordered.
    Close(User),
    /// A motion.
    Move(User, UserOrder),
    /// The errands of the client end, because its program gives no sign of life. Their ends follow.
    Abandon(User),
}

impl Orders {
    /// No operator drives. `devices` are those that the fleet sees; all but the mediator if there
    /// are none.
    #[must_use]
    pub fn new(controls: Controls, devices: Vec<Device>) -> Self {
        Self {
            helm: Helm::new(&controls.robot, controls.seat),
            controls,
            devices,
            seats: Seats::default(),
            may_force: Vec::new(),
            operators: BTreeMap::new(),
            last_user: 0,
            actions: VecDeque::new(),
            errands: Errands::default(),
        }
    }

    /// These operators may take the seat from another operator.
    #[must_use]
    pub fn with_force(mut self, may_force: Vec<Name>) -> Self {
        self.may_force = may_force;
        self
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
        self.check_shown(device)?;
        let asks = has_answer(&message, address.way)?;
        let motion = motion::of(device, wheels, &message)
            .map_err(|_| Problem::new(Kind::BadRequest, format!("invalid message for {device}")))?;
        let moves = motion != Motion::None || motion::moves(device, &message);
        if moves && address.way == Way::Call {
            let problem = format!("a message that moves {device} needs the key of drivers");
            let hint = "send it to .../drive/OPERATOR instead of .../call/OPERATOR";
            return Err(Problem::new(Kind::Refused, problem).hint(hint));
        }
        let program = Program {
            who: address.who.clone(),
            instance: stamp.map_or(0, |stamp| stamp.instance),
        };
        let stops = is_stop(&motion);
        let operator = self.admit_for(now, program, stops)?;
        // Requests may overtake each other: the sender waits for the answers.
        if address.way == Way::Drive {
            operator.check(stamp.map(|stamp| stamp.sequence), stops)?;
        }
        let sent_ns = stamp.and_then(|stamp| stamp.sent_ns);
        let lag = sent_ns.map(|sent_ns| operator.lag.arrived(now, sent_ns));
        if starts_motion(&motion) && lag.is_some_and(|lag| lag > ORDER_AGE) {
            return Err(held_up(lag.unwrap_or_default()));
        }
        operator.pay(now, stops)?;
        // All nodes of ROS are one program: that one of them drives says nothing about the others.
        if address.who.as_str() != ROS_OPERATOR || matches!(motion, Motion::Begin(_)) {
            operator.signed(now.saturating_sub(lag.unwrap_or_default()));
        }
        let user = operator.user;
        let robot = self.helm.robot_of(device);
        let begins = !matches!(motion, Motion::None | Motion::End(_));
        let rest = match motion {
            Motion::None => Some(message),
            Motion::Wheels(speeds, rest) => {
                let limited = Wheels::from(speeds).limited(self.controls.robot.drive.max_wheel_m_s);
                let speeds = WheelSpeeds::from(limited);
                if speeds != WheelSpeeds::STOP {
                    self.check_seat(now, robot, &address.who)?;
                }
                let driven = self.helm.drive(now, user, device, speeds);
                driven.map_err(|_| self.occupied(now, robot))?;
                rest
            }
            Motion::Begin(errand) => {
                self.check_seat(now, robot, &address.who)?;
                let begun = self.helm.begin(now, user, errand);
                begun.map_err(|_| self.occupied(now, robot))?;
                self.number_errand(device);
                Some(message)
            }
            // A stop is always allowed.
            Motion::End(errand) => {
                self.helm.forget(errand);
                Some(message)
            }
        };
        if begins {
            self.settle(now, robot.0);
        }
        Ok(match rest {
            None => Accepted::Done,
            Some(rest) if asks => Accepted::Ask(user, rest),
            Some(rest) => Accepted::Tell(user, rest),
        })
    }

    fn check_shown(&self, device: Device) -> Result<(), Problem> {
        let is_shown = self.devices.is_empty() || self.devices.contains(&device);
        // The mediator lets programs of its own machine start and stop drivers, and this is one.
        match is_shown && device.device_type != DeviceType::MEDIATOR {
            true => Ok(()),
            false => {
                let problem = format!("the fleet does not see {device}");
                Err(Problem::new(Kind::NoSuchDevice, problem))
            }
        }
    }

    /// An operator's program has a token, so its end will be noticed. It is admitted immediately,
    /// before its first message.
    pub fn announced(&mut self, now: Duration, program: Program) {
        if let Ok(operator) = self.admit(now, program) {
            operator.has_token = true;
        }
    }

    /// A program gives a sign of life. `age` is how long ago it has given it, if that is known
    /// otherwise; the stamp of the program may show that it was delayed.
    pub fn signed(
        &mut self,
        now: Duration,
        program: &Program,
        age: Duration,
        stamp: Option<OrderStamp>,
    ) {
        let Some(operator) = self.operators.get_mut(program) else {
            // It has ordered nothing.
            return;
        };
        let sent_ns = stamp.and_then(|stamp| stamp.sent_ns);
        let lag = sent_ns.map(|sent_ns| operator.lag.arrived(now, sent_ns));
        let age = age.max(lag.unwrap_or_default());
        operator.signed(now.saturating_sub(age));
        operator.used = now;
    }

    /// The token of a program is gone: its motions stop.
    pub fn gone(&mut self, now: Duration, program: &Program) {
        let Some(operator) = self.operators.remove(program) else {
            return;
        };
        self.helm.release(operator.user);
        self.drain(now);
        self.actions.push_back(Action::Close(operator.user));
        if !self.operators.keys().any(|other| other.who == program.who) {
            for id in self.seats.ids() {
                self.seats.withdraw(now, id, &program.who);
            }
        }
        self.settle_all(now);
    }

    /// An operator requests a seat, or releases it. The answer contains the new holder.
    ///
    /// # Errors
    /// The operator may not, or there are too many.
    pub fn seat(
        &mut self,
        now: Duration,
        program: Program,
        request: SeatRequest,
    ) -> Result<SeatInfo, Problem> {
        let robot = self.seat_of(request);
        let id = robot.0;
        if request.action == SeatAction::Show {
            return Ok(self.seat_info(now, request));
        }
        let who = program.who.clone();
        let stops = request.action == SeatAction::Halt;
        let operator = self.admit_for(now, program, stops)?;
        operator.pay(now, stops)?;
        if let SeatAction::Halt | SeatAction::ReleaseHalt = request.action {
            let is_halted = request.action == SeatAction::Halt;
            let user = operator.user;
            if is_halted {
                self.helm.stop();
                self.drain(now);
            }
            let order = UserOrder::Halt(is_halted);
            self.actions.push_back(Action::Move(user, order));
            return Ok(self.seat_info(now, request));
        }
        if self.controls.seat == Seat::Shared {
            let problem = "all operators may drive this robot at the same time";
            return Err(Problem::new(Kind::Refused, problem)
                .hint("enabled by `shared_controls` in its configuration"));
        }
        self.settle(now, id);
        match request.action {
            SeatAction::Show | SeatAction::Halt | SeatAction::ReleaseHalt => {}
            SeatAction::Take => self.seats.claim(now, id, &who)?,
            SeatAction::Release => {
                self.vacate(robot, |other| *other == who);
                self.seats.withdraw(now, id, &who);
            }
            SeatAction::Force if !self.may_force.contains(&who) => {
                let problem = format!("{who} may not take the seat of others");
                return Err(Problem::new(Kind::Refused, problem)
                    .hint("list the operator in `may_force` of the robot's configuration"));
            }
            SeatAction::Force => {
                self.seats.claim(now, id, &who)?;
                self.seats.prefer(now, id, &who);
                self.vacate(robot, |other| *other != who);
            }
        }
        self.settle(now, id);
        self.drain(now);
        Ok(self.seats.info(now, id))
    }

    /// The holder of a seat, and the waiting operators.
    pub fn seat_info(&mut self, now: Duration, request: SeatRequest) -> SeatInfo {
        let id = self.seat_of(request).0;
        self.settle(now, id);
        self.seats.info(now, id)
    }

    /// The seats whose holders or waiting operators have changed since the last call.
    pub fn take_changed_seats(&mut self, now: Duration) -> Vec<SeatInfo> {
        self.seats.take_changed(now)
    }

    /// The robot leaves the fleet: everything stops.
    pub fn stop(&mut self, now: Duration) {
        self.helm.stop();
        self.drain(now);
        self.settle_all(now);
        let all = std::mem::take(&mut self.operators);
        let users = all.into_values().map(|it| Action::Close(it.user));
        self.actions.extend(users);
    }

    /// Programs without a token that have been silent for a while are gone. Errands end earlier.
    pub fn handle_timeout(&mut self, now: Duration) {
        let is_over = |it: &Operator| it.alive + ERRAND_LIFE <= now;
        let all = self.operators.values().filter(|it| is_over(it));
        let lost: Vec<_> = all.map(|it| it.user).collect();
        for user in lost {
            if self.helm.has_errands(user) {
                self.helm.abandon(user);
                self.actions.push_back(Action::Abandon(user));
                self.drain(now);
            }
        }
        let silent = |it: &Operator| !it.has_token && it.used + IDLE_OPERATOR <= now;
        let silent: Vec<_> = (self.operators.iter())
            .filter(|(_, operator)| silent(operator))
            .map(|(program, _)| program.clone())
            .collect();
        for program in silent {
            self.gone(now, &program);
        }
        self.settle_all(now);
    }

    /// The next action. Call it until it returns `None`: after each change, and when
    /// [`Orders::next_due`] has come.
    pub fn poll(&mut self, now: Duration) -> Option<Action> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let (user, order) = self.helm.poll(now)?;
        Some(Action::Move(user, order))
    }

    /// When [`Orders::handle_timeout`] or [`Orders::poll`] is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let operators = self.operators.values().filter(|it| !it.has_token);
        let silent = operators.map(|it| it.used + IDLE_OPERATOR);
        let busy = (self.operators.values()).filter(|it| self.helm.has_errands(it.user));
        let lost = busy.map(|it| it.alive + ERRAND_LIFE);
        let own = silent.chain(lost).chain(self.helm.next_due());
        own.chain(self.seats.next_due()).min()
    }

    /// The programs of operators that use the robot.
    #[must_use]
    pub fn operators(&self) -> Vec<(&Program, bool)> {
        let all = self.operators.iter();
        all.map(|(program, it)| (program, self.helm.is_driven_by(it.user)))
            .collect()
    }

    /// The client of a program.
    #[must_use]
    pub fn user_of(&self, program: &Program) -> Option<User> {
        Some(self.operators.get(program)?.user)
    }

    /// The name of a client for people on the robot: who drives.
    #[must_use]
    pub fn name_of(&self, user: User) -> String {
        let mut all = self.operators.iter();
        match all.find(|(_, operator)| operator.user == user) {
            Some((program, _)) => format!("fleet operator {}", program.who),
            None => "a fleet operator".to_owned(),
        }
    }

    #[cfg(test)]
    fn wheels_in_memory(&self) -> usize {
        self.helm.wheels_in_memory()
    }

    fn admit(&mut self, now: Duration, program: Program) -> Result<&mut Operator, Problem> {
        self.admit_for(now, program, false)
    }

    /// A stop needs no place among the operators: there is one client more for all such stops.
    fn admit_for(
        &mut self,
        now: Duration,
        mut program: Program,
        stops: bool,
    ) -> Result<&mut Operator, Problem> {
        if let Err(problem) = self.check_room(&program) {
            if !stops {
                return Err(problem);
            }
            program = RESERVED.clone();
        }
        let operator = match self.operators.entry(program) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.last_user += 1;
                let user = User(self.last_user);
                self.actions.push_back(Action::Open(user));
                entry.insert(Operator {
                    user,
                    last_sequence: None,
                    lag: Lag::default(),
                    rate: Bucket::new(ORDER_RATE),
                    stops: Bucket::new(ORDER_RATE),
                    used: now,
                    alive: now,
                    has_token: false,
                })
            }
        };
        operator.used = now;
        Ok(operator)
    }

    /// Whether there is room for a program: among all, and among those of its operator.
    fn check_room(&self, program: &Program) -> Result<(), Problem> {
        if self.operators.contains_key(program) {
            return Ok(());
        }
        let others = self.operators.keys().filter(|it| **it != *RESERVED);
        if others.clone().count() >= MAX_OPERATORS {
            let problem = format!("more than {MAX_OPERATORS} operators use this robot");
            return Err(Problem::new(Kind::Busy, problem));
        }
        let who = &program.who;
        if others.filter(|it| it.who == *who).count() >= MAX_PROGRAMS {
            let problem = format!("{who} uses this robot with {MAX_PROGRAMS} programs");
            return Err(Problem::new(Kind::Busy, problem).hint(
                "end some of them; without a token, they count until 10 s after their last message",
            ));
        }
        Ok(())
    }

    /// The robot whose seat is meant: that of the configuration, unless the request names another.
    fn seat_of(&self, request: SeatRequest) -> DeviceId {
        let usual = self.helm.robot_of(self.controls.robot.wheels);
        request.id.map_or(usual, DeviceId)
    }

    fn check_seat(&mut self, now: Duration, robot: DeviceId, who: &Name) -> Result<(), Problem> {
        if self.controls.seat == Seat::Shared {
            return Ok(());
        }
        self.settle(now, robot.0);
        self.seats.check(now, robot.0, who)
    }

    /// Another program of the same operator drives.
    fn occupied(&self, now: Duration, robot: DeviceId) -> Problem {
        match self.driver(now, robot) {
            Some((who, until)) => occupied(&format!("another program of {who}"), until - now),
            None => occupied("another program", Duration::ZERO),
        }
    }

    /// The motions of these operators stop.
    fn vacate(&mut self, robot: DeviceId, which: impl Fn(&Name) -> bool) {
        for (program, operator) in &self.operators {
            if which(&program.who) {
                self.helm.vacate(operator.user, robot);
            }
        }
    }

    fn driver(&self, now: Duration, robot: DeviceId) -> Option<(Name, Duration)> {
        let (user, until) = self.helm.seated(now, robot)?;
        let mut all = self.operators.iter();
        let (program, _) = all.find(|(_, operator)| operator.user == user)?;
        Some((program.who.clone(), until))
    }

    /// Records the current holder of the seat of a robot.
    fn settle(&mut self, now: Duration, id: i32) {
        let driver = self.driver(now, DeviceId(id));
        self.seats.driven(now, id, driver);
    }

    fn settle_all(&mut self, now: Duration) {
        for id in self.seats.ids() {
            self.settle(now, id);
        }
    }

    fn drain(&mut self, now: Duration) {
        while let Some((user, order)) = self.helm.poll(now) {
            self.actions.push_back(Action::Move(user, order));
        }
    }
}

impl Operator {
    /// Refuses what comes too often.
    fn pay(&mut self, now: Duration, stops: bool) -> Result<(), Problem> {
        let bucket = if stops {
            &mut self.stops
        } else {
            &mut self.rate
        };
        match bucket.take(now) {
            true => Ok(()),
            false => {
                let problem = format!("more than {ORDER_RATE} messages per second");
                Err(Problem::new(Kind::Busy, problem))
            }
        }
    }

    fn signed(&mut self, at: Duration) {
        self.alive = self.alive.max(at);
    }

    /// The numbers of orders grow. Programs need not number them. A stop is never late, but what was
    /// sent before it is.
    fn check(&mut self, sequence: Option<u64>, stops: bool) -> Result<(), Problem> {
        if !stops && sequence.is_some() && sequence <= self.last_sequence {
            return Err(Problem::new(
                Kind::Late,
                "a newer message has arrived before",
            ));
        }
        self.last_sequence = self.last_sequence.max(sequence);
        Ok(())
    }
}

/// Whether a message only stops something.
pub(super) fn is_stop(motion: &Motion) -> bool {
    match motion {
        Motion::End(_) => true,
        Motion::Wheels(speeds, rest) => *speeds == WheelSpeeds::STOP && rest.is_none(),
        Motion::None | Motion::Begin(_) => false,
    }
}

/// Whether a message moves the robot, and does not only stop it.
fn starts_motion(motion: &Motion) -> bool {
    match motion {
        Motion::None | Motion::End(_) => false,
        Motion::Wheels(speeds, _) => *speeds != WheelSpeeds::STOP,
        Motion::Begin(_) => true,
    }
}

fn held_up(lag: Duration) -> Problem {
    let problem = format!("delayed by the network for {:.1} s", lag.as_secs_f64());
    Problem::new(Kind::Late, problem)
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
        _ => Err(bad("only messages of type DATA or PING are forwarded")
            .hint("subscribe to .../data for the published data of a device")),
    }
}

#[cfg(test)]
mod tests;
