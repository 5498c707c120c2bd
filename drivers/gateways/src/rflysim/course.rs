//! The targets of a vehicle, one after the other. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use amber_proto::ClientId;
use amber_robot::limits::SEAT_HOLD;
use amber_robot::robot::OrderNumber;
use amber_values::{MapPose, Target};

/// Targets that a client of Amber has set, and how far the vehicle has come.
#[derive(Debug, Default)]
pub(super) struct Course {
    client: Option<ClientId>,
    order: Option<OrderNumber>,
    set: Duration,
    next: VecDeque<Target>,
    visited: Vec<Target>,
}

impl Course {
    /// Replaces all targets.
    pub(super) fn set(
        &mut self,
        now: Duration,
        client: ClientId,
        order: OrderNumber,
        targets: &[Target],
    ) {
        *self = Self {
            client: Some(client),
            order: Some(order),
            set: now,
            next: targets.iter().copied().collect(),
            visited: Vec::new(),
        };
    }

    /// Drops the targets that are left. Returns whether there were any.
    pub(super) fn end(&mut self) -> bool {
        let was_running = self.is_running();
        self.next.clear();
        self.client = None;
        was_running
    }

    /// The same, if they are those of this client.
    pub(super) fn end_of(&mut self, client: ClientId) -> bool {
        self.client == Some(client) && self.end()
    }

    /// Whether there is a target left.
    pub(super) fn is_running(&self) -> bool {
        !self.next.is_empty()
    }

    /// Whether another client has just set targets.
    pub(super) fn is_taken_from(&self, now: Duration, client: ClientId) -> bool {
        self.is_running() && self.client != Some(client) && now < self.set + SEAT_HOLD
    }

    /// The vehicle is here: targets that it has reached are visited. Returns whether there were any.
    pub(super) fn pass(&mut self, pose: &MapPose) -> bool {
        let before = self.visited.len();
        while let Some(target) = self.next.front()
            && (target.x_m - pose.x_m).hypot(target.y_m - pose.y_m) <= target.radius_m
        {
            self.visited.extend(self.next.pop_front());
        }
        self.visited.len() > before
    }

    /// The order that set the targets, also after its end.
    pub(super) fn order(&self) -> Option<OrderNumber> {
        self.order
    }

    /// The current target.
    pub(super) fn target(&self) -> Option<Target> {
        self.next.front().copied()
    }

    /// The targets that are left, and those that are visited.
    pub(super) fn lists(&self) -> (Vec<Target>, Vec<Target>) {
        (self.next.iter().copied().collect(), self.visited.clone())
    }
}
