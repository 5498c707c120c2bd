//! One servo: what it is, what it was told, and what it does. PURE.

use std::time::{Duration, Instant};

use amber_proto::bus_servos::{ServoState, servo_state};

use super::{Claim, Kind, Measured, Model, NEAR_DEG, Write};

/// So many measurements in a row without an answer, and the servo is away.
const ENOUGH_MISSES: u8 = 3;
/// How often a servo is told something that it does not take.
const MAX_TELLING: u8 = 5;
/// How often its answers may be damaged before it is no chance.
const ENOUGH_DAMAGE: u8 = 3;
/// How often a servo that is away is asked for what it is.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// It warns so many degrees before it switches its motor off.
const HOT_C: i32 = 5;

/// What a servo is told. What is absent stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// A goal, and the speed of the way there.
    pub(super) goal: Option<(i32, i32)>,
    /// The speed of a wheel.
    pub(super) speed: Option<i32>,
    pub(super) torque: Option<bool>,
}

impl Order {
    /// This order after an earlier one that may not have been carried out.
    fn after(self, earlier: Self) -> Self {
        Self {
            goal: self.goal.or(earlier.goal),
            speed: self.speed.or(earlier.speed),
            torque: self.torque.or(earlier.torque),
        }
    }

    /// Whether it was carried out.
    fn is_done(self, found: &Measured) -> bool {
        let has_goal = |(step, units)| (step, units) == (found.goal, found.goal_speed);
        self.goal.is_none_or(has_goal)
            && self.speed.is_none_or(|units| units == found.goal_speed)
            && self.torque.is_none_or(|is_on| is_on == found.torque)
    }
}

/// An order that the servo has not confirmed.
#[derive(Clone, Copy, Debug)]
struct Telling {
    order: Order,
    is_sent: bool,
    tries: u8,
}

/// A servo of the configuration.
#[derive(Debug)]
pub(super) struct Servo<M> {
    pub(super) id: u8,
    pub(super) kind: Kind,
    /// What it is; `None` while it is away.
    pub(super) model: Option<M>,
    /// Why it cannot be used.
    unusable: Option<String>,
    pub(super) measured: Option<Measured>,
    misses: u8,
    /// It was the first one of a group that has not answered, so it is asked last.
    pub(super) is_suspect: bool,
    damaged: u8,
    set_ups: u8,
    pub(super) ask_at: Instant,
    telling: Option<Telling>,
    /// The target of a joint, or the speed of a wheel, in units of the servo.
    target: Option<i32>,
    pub(super) claim: Claim,
    /// It does not take what it is told, or has switched its motor off.
    fault: Option<&'static str>,
}

impl<M: Model> Servo<M> {
    pub(super) fn new(id: u8, kind: Kind, now: Instant) -> Self {
        Self {
            id,
            kind,
            model: None,
            unusable: None,
            measured: None,
            misses: 0,
            is_suspect: false,
            damaged: 0,
            set_ups: 0,
            ask_at: now,
            telling: None,
            target: None,
            claim: Claim::default(),
            fault: None,
        }
    }

    /// Nothing is known of it any more.
    pub(super) fn forget(&mut self, now: Instant) {
        *self = Self::new(self.id, self.kind, now);
    }

    /// It has said what it is. Returns what makes it what the configuration says.
    pub(super) fn identify(&mut self, now: Instant, model: M, silence: Duration) -> Vec<Write> {
        self.misses = 0;
        match model.set_up(self.kind, silence) {
            Ok(writes) if writes.is_empty() => {
                self.set_ups = 0;
                (self.unusable, self.model) = (None, Some(model));
                Vec::new()
            }
            Ok(writes) => {
                self.set_ups = self.set_ups.saturating_add(1);
                if self.set_ups > MAX_TELLING {
                    let what = "does not take its settings: switch its supply off and on";
                    self.unusable = Some(what.to_owned());
                    self.ask_at = now + ASK_AGAIN;
                    // To write again and again would wear its memory.
                    return Vec::new();
                }
                // It is asked again, to see whether it has done so.
                self.ask_at = now;
                writes
            }
            Err(why) => {
                (self.unusable, self.model) = (Some(why), Some(model));
                Vec::new()
            }
        }
    }

    /// Whether nothing is known of it, because it does not answer.
    pub(super) fn is_silent(&self) -> bool {
        self.model.is_none() && self.misses > 0
    }

    /// It was asked, and has not answered. `is_damaged` says whether something else has arrived.
    pub(super) fn miss(&mut self, now: Instant, is_damaged: bool) {
        self.damaged = match is_damaged {
            true => self.damaged.saturating_add(1),
            false => 0,
        };
        self.misses = self.misses.saturating_add(1);
        if self.model.is_none() {
            self.ask_at = now + ASK_AGAIN;
        } else if self.misses >= ENOUGH_MISSES {
            // When it is back it may have been without power: it is told nothing of what was before.
            let damaged = self.damaged;
            self.forget(now);
            (self.damaged, self.misses) = (damaged, ENOUGH_MISSES);
        }
    }

    /// It has measured something. Returns whether it has switched its motor off by itself.
    pub(super) fn handle(&mut self, found: Measured) -> bool {
        (self.misses, self.damaged, self.is_suspect) = (0, 0, false);
        let was_on = self.measured.as_ref().is_some_and(|last| last.torque);
        let mut has_let_go = false;
        match &mut self.telling {
            Some(telling) if !telling.is_sent => {}
            Some(telling) if telling.order.is_done(&found) => {
                self.telling = None;
                self.fault = None;
            }
            Some(telling) if telling.tries >= MAX_TELLING => {
                // It may move all the same, so it keeps its target.
                self.telling = None;
                self.fault = Some("does not take what it is told: check its supply and its cable");
            }
            Some(telling) => telling.is_sent = false,
            None if was_on && !found.torque => {
                has_let_go = true;
                self.target = None;
                self.fault = Some("has switched its motor off: check its supply and its load");
            }
            None => {}
        }
        self.measured = Some(found);
        has_let_go
    }

    /// Gives it an order, which it is told soon.
    pub(super) fn give(&mut self, order: Order, target: Option<i32>, claim: Claim) {
        let earlier = self.telling.map(|telling| telling.order);
        self.telling = Some(Telling {
            order: order.after(earlier.unwrap_or_default()),
            is_sent: false,
            tries: 0,
        });
        self.target = target;
        self.claim = claim;
        self.fault = None;
    }

    /// What it must be told now. The caller sends it.
    pub(super) fn take_order(&mut self) -> Option<Order> {
        let telling = self.telling.as_mut().filter(|it| !it.is_sent)?;
        telling.is_sent = true;
        telling.tries += 1;
        Some(telling.order)
    }

    /// Whether it has an order that was not sent.
    pub(super) fn has_order(&self) -> bool {
        self.telling.is_some_and(|telling| !telling.is_sent)
    }

    /// Whether it moves, as far as is known.
    pub(super) fn moves(&self) -> bool {
        let Some(target) = self.target else {
            return false;
        };
        match (self.kind, &self.model, &self.measured) {
            (Kind::Wheel, ..) => target != 0,
            (Kind::Joint, Some(model), Some(found)) => {
                let rest_deg = model.angle_deg(target) - found.angle_deg;
                self.telling.is_some() || found.is_moving || rest_deg.abs() > NEAR_DEG
            }
            (Kind::Joint, ..) => false,
        }
    }

    /// Whether it moves, or has not confirmed yet that it was told to stop.
    pub(super) fn may_move(&self) -> bool {
        self.moves() || self.telling.is_some()
    }

    /// When it must stop, if it moves.
    pub(super) fn until(&self) -> Option<Instant> {
        self.claim.until.filter(|_| self.moves())
    }

    /// Where a joint has come `age` after its last measurement, in its steps.
    pub(super) fn place(&self, age: Duration) -> Option<i32> {
        let (model, found) = (self.model.as_ref()?, self.measured.as_ref()?);
        // At rest, it stays where it is to the step.
        let step = match found.is_moving {
            true => {
                let deg = found.angle_deg + found.speed_deg_s * age.as_secs_f64().min(0.1);
                model.step(deg).unwrap_or(found.position)
            }
            false => found.position,
        };
        Some(model.within(step))
    }

    /// What is wrong with it, as what follows its name.
    pub(super) fn problem(&self) -> Option<String> {
        if self.damaged >= ENOUGH_DAMAGE {
            return Some("gives damaged answers: have two servos this id?".to_owned());
        }
        if self.model.is_none() {
            return match (&self.unusable, self.misses) {
                (Some(why), _) => Some(why.clone()),
                (None, 1..) => {
                    Some("does not answer: check its id, its cable and its supply".to_owned())
                }
                (None, 0) => None,
            };
        }
        let found = self.measured.as_ref();
        let alarm = found.and_then(|found| found.alarm).or(self.fault);
        let too_hot = || {
            let most = self.model.as_ref()?.max_temperature_c();
            let is = found?.temperature_c;
            // Without a limit there is nothing to compare with.
            let is_hot = most > 0 && is >= most - HOT_C;
            is_hot.then(|| format!("is hot: {is} degrees of at most {most}"))
        };
        let unusable = self.unusable.clone();
        unusable.or(alarm.map(str::to_owned)).or_else(too_hot)
    }

    /// Whether it takes orders: if not, why.
    pub(super) fn check(&self) -> Result<(&M, &Measured), String> {
        let of_servo = |why: &str| format!("servo {} {why}", self.id);
        if let Some(why) = &self.unusable {
            return Err(of_servo(why));
        }
        match (&self.model, &self.measured) {
            (Some(model), Some(found)) => Ok((model, found)),
            _ => Err(of_servo(
                self.problem().as_deref().unwrap_or("was not measured yet"),
            )),
        }
    }

    /// What clients are told of it.
    pub(super) fn state(&self) -> ServoState {
        let kind = match self.kind {
            Kind::Joint => servo_state::Kind::Joint,
            Kind::Wheel => servo_state::Kind::Wheel,
        };
        let found = self.measured.as_ref();
        let model = self.model.as_ref();
        let target = self.target.filter(|_| self.kind == Kind::Joint);
        let joint = model.filter(|_| self.kind == Kind::Joint);
        let limits = joint.map(|it| {
            let (least, most) = it.limits();
            (it.angle_deg(least), it.angle_deg(most))
        });
        let offset = model.and_then(|it| Some((it, it.homing_offset()?)));
        ServoState {
            id: Some(self.id.into()),
            kind: Some(kind.into()),
            model: model.map(ToString::to_string),
            angle: found.map(|it| it.angle_deg),
            speed: found.map(|it| it.speed_deg_s),
            load: found.map(|it| it.load_percent),
            current: found.and_then(|it| it.current_ma),
            voltage: found.map(|it| it.voltage_v),
            temperature: found.map(|it| it.temperature_c),
            torque: found.map(|it| it.torque),
            moving: found.map(|it| it.is_moving),
            target: model.zip(target).map(|(model, step)| model.angle_deg(step)),
            problem: self.problem(),
            lowest: limits.map(|(least, _)| least),
            highest: limits.map(|(_, most)| most),
            homing_offset: offset.map(|(model, steps)| model.angle_deg(steps) - model.angle_deg(0)),
        }
    }
}
