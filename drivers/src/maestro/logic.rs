//! Decides what to send to a Maestro, and tracks its errors. PURE.
//!
//! Report each event to [`ServoLogic`], drain [`ServoLogic::poll_output`] after every change, and carry out
//! each output. Call [`ServoLogic::handle_timeout`] at [`ServoLogic::wake_at`].
//!
//! A Maestro never sends anything unasked, so the driver reads its errors: at the start, which
//! shows that it is connected, and then once a second. Commands are sent immediately. Speed limits
//! are sent again after a reconnect, since without them servos turn at full speed.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::protocol::{Command, Framing, errors};
use crate::servos::{Model, Order, Service};

/// The interval between two requests for errors.
const POLL: Duration = Duration::from_secs(1);

/// Time limit for a reply.
const ANSWER: Duration = Duration::from_millis(300);

/// How often a request is sent before the device counts as disconnected.
const MAX_TRIES: u8 = 3;

/// How to communicate with the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How packets start and end.
    pub framing: Framing,
    /// Send the byte from which a device on a serial line detects the baud rate.
    pub detect_baud: bool,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the connection, then call [`ServoLogic::opened`] or [`ServoLogic::failed`].
    Open,
    /// Close the connection.
    Close,
    /// Send this to the device.
    Write(Vec<u8>),
    /// Nothing is left to do.
    End,
}

/// The logic of the driver.
#[derive(Debug)]
pub struct ServoLogic {
    settings: Settings,
    phase: Phase,
    pub(super) service: Service,
    answer: Vec<u8>,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Asked { until: Instant, tries: u8 },
    Idle { until: Instant },
    Ended,
}

impl Model for ServoLogic {
    fn service(&mut self) -> &mut Service {
        &mut self.service
    }

    fn is_connected(&self) -> bool {
        matches!(self.phase, Phase::Asked { .. } | Phase::Idle { .. })
    }

    fn carry_out(&mut self, _now: Instant, orders: &[Order]) {
        let commands = orders.iter().map(|order| match *order {
            Order::Turn { servo, us, .. } => Command::SetTarget {
                servo,
                quarters_us: (us * 4.0).round() as u16,
            },
            Order::Speed { servo, speed } => Command::SetSpeed { servo, speed },
            Order::Release { servo } => Command::SetTarget {
                servo,
                quarters_us: 0,
            },
        });
        self.send(commands.collect());
    }
}

impl ServoLogic {
    /// Starts without a connection. The given servos turn on and on, as motors do.
    pub fn new(settings: Settings, continuous: BTreeSet<u8>) -> Self {
        Self {
            settings,
            phase: Phase::Opening,
            service: Service::new(continuous),
            answer: Vec::new(),
            outputs: VecDeque::from([Output::Open]),
        }
    }

    /// The connection is open.
    pub fn opened(&mut self, now: Instant) {
        if self.settings.detect_baud {
            self.outputs.push_back(Output::Write(vec![0xAA]));
        }
        let speeds = self.service.speeds();
        self.carry_out(now, &speeds);
        // It may have had power all the time.
        self.stop(now);
        self.ask(now, 1);
    }

    /// The connection is closed or could not be opened.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        self.give_up(now, problem.to_owned());
    }

    /// Bytes from the device.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        let Phase::Asked { .. } = self.phase else {
            // No request is pending.
            return;
        };
        self.answer.extend(bytes);
        let Some(answer) = self.answer.first_chunk().copied() else {
            return;
        };
        // An oversized reply, or undefined error bits, indicate a bad line.
        match errors(answer).filter(|_| self.answer.len() == answer.len()) {
            None => {}
            Some(errors) if errors.is_empty() => {
                self.phase = Phase::Idle { until: now + POLL };
                self.service.is_well(now, "Maestro");
            }
            Some(errors) => {
                self.phase = Phase::Idle { until: now + POLL };
                self.service.counters.errors += 1;
                let errors = errors.join(", ");
                let trouble = format!("the Maestro reports errors: {errors}");
                self.service.complain(now, trouble);
            }
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Absent { until } if now >= until => {
                self.phase = Phase::Opening;
                self.outputs.push_back(Output::Open);
            }
            Phase::Idle { until } if now >= until => self.ask(now, 1),
            Phase::Asked { until, tries } if now >= until => match tries < MAX_TRIES {
                true => self.ask(now, tries + 1),
                false if self.answer.is_empty() => {
                    self.give_up(now, "the Maestro does not answer".to_owned());
                }
                false => self.give_up(now, "the Maestro sends invalid replies".to_owned()),
            },
            Phase::Absent { .. }
            | Phase::Opening
            | Phase::Asked { .. }
            | Phase::Idle { .. }
            | Phase::Ended => {}
        }
    }

    /// Shuts down. Servos stay where they are, except for those that turn like motors.
    pub fn shut_down(&mut self, now: Instant) {
        if self.is_connected() {
            self.stop(now);
        }
        self.phase = Phase::Ended;
        self.outputs.push_back(Output::End);
    }

    /// The next action for the caller.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`ServoLogic::handle_timeout`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Absent { until } | Phase::Asked { until, .. } | Phase::Idle { until } => {
                Some(until)
            }
            Phase::Opening | Phase::Ended => None,
        }
    }

    /// Stops the servos that turn like motors.
    fn stop(&mut self, now: Instant) {
        let stops = self.service.stops();
        self.service.take(&[], &stops, true);
        self.carry_out(now, &stops);
    }

    fn send(&mut self, commands: Vec<Command>) {
        let framing = self.settings.framing;
        let bytes = commands.iter().flat_map(|command| command.bytes(framing));
        let bytes: Vec<_> = bytes.collect();
        if !bytes.is_empty() {
            self.outputs.push_back(Output::Write(bytes));
        }
    }

    fn ask(&mut self, now: Instant, tries: u8) {
        self.answer.clear();
        self.send(vec![Command::GetErrors]);
        let until = now + ANSWER;
        self.phase = Phase::Asked { until, tries };
    }

    /// Starts over.
    fn give_up(&mut self, now: Instant, trouble: String) {
        if self.phase == Phase::Ended {
            return;
        }
        let until = self.service.complain(now, trouble);
        self.outputs.push_back(Output::Close);
        self.phase = Phase::Absent { until };
    }
}

#[cfg(test)]
mod tests;
