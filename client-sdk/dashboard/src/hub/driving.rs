//! The motion of the robot: the stick, targets, explorations, and how a page stops or takes over the robot. PURE.

use std::time::Duration;

use amber_client::WheelSpeeds;
use amber_client::values::Target;
use amber_proto::Device;
use serde_json::json;

use super::{Hub, Output, Ticket, ViewerId};
use crate::backlog::Subject;
use crate::frames;
use crate::limits::MOTION_LIFE;
use crate::parts::is_up;

impl Hub {
    pub(super) fn drive(
        &mut self,
        now: Duration,
        id: ViewerId,
        left: f64,
        right: f64,
        guard: bool,
    ) {
        let limit = f64::from(self.max_speed_mm_s);
        if !(left.is_finite() && right.is_finite()) {
            return self.refuse(id, "invalid speeds");
        }
        let side = |speed: f64| speed.clamp(-limit, limit).round() as i32;
        let speeds = WheelSpeeds::sides(side(left), side(right));
        let is_stop = speeds == WheelSpeeds::STOP;
        if is_stop {
            self.halted.remove(&id);
        } else if self.halted.contains(&id) {
            return;
        }
        let route = match (self.route, is_stop) {
            // A motion keeps its device until it ends.
            (Some(route), _) if self.controls.holder() == Some(id) => Some(route),
            (_, true) => None,
            (_, false) => match self.way(guard) {
                Ok(route) => Some(route),
                Err(why) => return self.refuse(id, &why),
            },
        };
        let was_moving = self.controls.moves();
        if self.controls.drive(now, id, speeds, MOTION_LIFE).is_err() {
            return self.refuse(id, "another page is driving the robot");
        }
        if is_stop {
            return;
        }
        self.route = route;
        // Two drivers must not command the wheels at once.
        if !was_moving && self.has_targets {
            self.cancel_targets(id);
        }
        if !was_moving && self.explores {
            self.stop_exploring(id);
        }
    }

    /// The device for the wheels.
    fn way(&self, guard: bool) -> Result<Device, String> {
        let wheels = self.parts.wheels.ok_or("this robot has no wheels")?;
        match self.parts.guard {
            Some(device) if guard => match is_up(&self.drivers, device) {
                true => Ok(device),
                false => Err(format!(
                    "{device} is not running: start it, or turn off 'Stop before obstacles'"
                )),
            },
            _ => Ok(wheels),
        }
    }

    pub(super) fn goal(
        &mut self,
        now: Duration,
        ticket: Ticket,
        x: f64,
        y: f64,
    ) -> Result<(), &'static str> {
        let id = ticket.viewer;
        let device = self.parts.targets;
        let device = device.ok_or("this robot has no drive-to-point driver")?;
        if !(x.is_finite() && y.is_finite()) {
            return Err("invalid target");
        }
        if self.grows {
            return Err("this map still grows: save and use it, then drive to points on it");
        }
        self.take_from_stick(now, id)?;
        self.navigator = Some(id);
        let goal = Output::Goal(ticket, device, Target::new(x, y));
        self.outputs.push_back(goal);
        Ok(())
    }

    pub(super) fn explore(&mut self, now: Duration, ticket: Ticket) -> Result<(), &'static str> {
        let id = ticket.viewer;
        let device = self.parts.mapping;
        let device = device.ok_or("this robot has no driver that makes maps")?;
        self.take_from_stick(now, id)?;
        // Two drivers must not command the wheels at once.
        if self.has_targets {
            self.cancel_targets(id);
        }
        self.explorer = Some(id);
        self.outputs.push_back(Output::Explore(ticket, device));
        Ok(())
    }

    /// A driver drives for this page from now on.
    fn take_from_stick(&mut self, now: Duration, id: ViewerId) -> Result<(), &'static str> {
        if self.is_taken_from(now, id) {
            return Err("another page is driving the robot");
        }
        // The same page may still hold the stick.
        let _ = self.controls.drive(now, id, WheelSpeeds::STOP, MOTION_LIFE);
        self.settle(now);
        Ok(())
    }

    pub(super) fn stop(&mut self, now: Duration, id: ViewerId) {
        self.stop_pages(now, "stopped: release the stick to drive again");
        self.navigator = None;
        self.explorer = None;
        let devices = [self.parts.targets, self.parts.mapping, self.parts.wheels];
        let stops = devices.into_iter().flatten();
        self.outputs
            .extend(stops.map(|device| Output::Stop(id, device)));
        // A program that holds a lease would drive on with its next command.
        if self.is_driven_by_others() {
            self.outputs.push_back(Output::Halt(id, true));
        }
    }

    /// The page that drives must release its stick first.
    fn stop_pages(&mut self, now: Duration, why: &str) {
        if let Some(holder) = self.controls.holder() {
            if self.controls.moves() && self.halted.insert(holder) {
                self.refuse(holder, why);
            }
            self.controls.release(holder);
        }
        self.settle(now);
    }

    /// Whether a program that is no page of this dashboard holds the lease of a device.
    fn is_driven_by_others(&self) -> bool {
        let pages: Vec<_> = self.viewers.keys().map(|id| self.name(*id)).collect();
        let motions = self.drivers.iter().flat_map(|driver| &driver.motions);
        let mut holders = motions.filter_map(|motion| motion.holder.as_deref());
        holders.any(|holder| {
            // Drivers say for whom they move another device: "NAME via DEVICE".
            let name = holder.split(" via ").next().unwrap_or(holder);
            !pages.iter().any(|page| page == name)
        })
    }

    pub(super) fn take_over(&mut self, now: Duration, id: ViewerId) {
        if self.is_taken_from(now, id) {
            self.stop_pages(
                now,
                "another page has taken over: release the stick to drive again",
            );
        }
        self.outputs.push_back(Output::TakeOver(id));
    }

    /// Ends what drivers do for a page. `false` if that is nothing.
    pub(super) fn end_errands(&mut self, id: ViewerId) -> bool {
        let (navigates, explores) = (self.navigator == Some(id), self.explorer == Some(id));
        if navigates {
            self.cancel_targets(id);
        }
        if explores {
            self.stop_exploring(id);
        }
        navigates || explores
    }

    fn cancel_targets(&mut self, id: ViewerId) {
        self.navigator = None;
        if let Some(device) = self.parts.targets {
            self.outputs.push_back(Output::EndErrand(id, device));
        }
    }

    fn stop_exploring(&mut self, id: ViewerId) {
        self.explorer = None;
        if let Some(device) = self.parts.mapping {
            self.outputs.push_back(Output::EndErrand(id, device));
        }
    }

    /// Whether another page drives.
    pub(super) fn is_taken_from(&self, now: Duration, id: ViewerId) -> bool {
        self.controls.seated(now).is_some_and(|holder| holder != id)
    }

    /// Sends the commands that are due, and shows who drives.
    pub(super) fn settle(&mut self, now: Duration) {
        while let Some((id, speeds)) = self.controls.poll(now) {
            let Some(device) = self.route.or(self.parts.wheels) else {
                continue;
            };
            self.outputs.push_back(Output::Drive(id, device, speeds));
        }
        if !self.controls.moves() {
            self.route = None;
        }
        self.show_seat();
    }

    pub(super) fn show_seat(&mut self) {
        let holder = self.controls.holder();
        let address = holder.and_then(|id| Some(&self.viewers.get(&id)?.address));
        let seat = json!({
            "t": "seat", "holder": holder.map(|id| id.0), "address": address,
            "navigator": self.navigator.map(|id| id.0), "viewers": self.viewers.len(),
        });
        if seat != self.seat_shown {
            self.seat_shown = seat.clone();
            self.show(Subject::Seat, frames::text(&seat));
        }
    }
}
