//! Orders of clients to the robot. PURE.

use std::net::SocketAddr;

use amber_navigation::kinematics::Wheels;
use amber_proto::Device;
use amber_robot::errand::Errand;
use amber_robot::motion::{self, Motion};
use amber_robot::robot::UserOrder;
use amber_values::WheelSpeeds;
use bytes::Bytes;

use super::Server;
use crate::galileo::codec::decode_chunk;
use crate::galileo::mapping::{self, Path};
use crate::galileo::messages;
use crate::shared::clock::Now;
use crate::shared::machine::Outputs;

impl Server {
    pub(super) fn handle_text(
        &mut self,
        now: Now,
        from: SocketAddr,
        text: &[u8],
        out: &mut Outputs,
    ) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        let robot = &self.config.robot;
        let user = session.user;
        match session.path {
            Path::CmdVel => {
                let twist = mapping::read_twist(text);
                let speeds = twist.and_then(|it| robot.speeds(it.forward_m_s, it.turn_rad_s));
                match speeds {
                    Some(speeds) => self.command(now, from, robot.wheels, speeds, out),
                    None => out.tally.bad(now.elapsed, "invalid motion", from),
                }
            }
            Path::Goal => match mapping::read_targets(text) {
                Some(targets) if targets.is_empty() => {
                    if !session.orders.take(now.elapsed) {
                        return out.tally.dropped(now.elapsed, "too many messages", from);
                    }
                    self.helm.forget(Errand::Targets(robot.targets));
                    out.order(user, UserOrder::Targets(robot.targets, targets));
                }
                Some(targets) => {
                    let device = robot.targets;
                    let order = UserOrder::Targets(device, targets);
                    self.begin(now, from, Errand::Targets(device), order, out);
                }
                None => out.tally.bad(now.elapsed, "invalid targets", from),
            },
            Path::Device(device) => match messages::read(&self.schemas, device.device_type, text) {
                Some(message) => self.order_message(now, from, device, message, out),
                None => out.tally.bad(now.elapsed, "invalid message", from),
            },
            Path::Odom | Path::Status | Path::Scan | Path::Imu | Path::Pose => {
                out.tally
                    .dropped(now.elapsed, "this path takes no messages", from);
            }
        }
    }

    pub(super) fn handle_binary(
        &mut self,
        now: Now,
        from: SocketAddr,
        body: &[u8],
        out: &mut Outputs,
    ) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        let (index, data) = match decode_chunk(body) {
            Ok(chunk) => chunk,
            Err(bad) => return out.tally.bad(now.elapsed, bad.text(), from),
        };
        if let Some(expected) = session.next_in
            && expected != index
        {
            // Of a sequence number that wraps, half is ahead and half is behind.
            let lost = index.wrapping_sub(expected);
            match lost <= u32::MAX / 2 {
                true => {
                    let lost = u64::from(lost);
                    (out.tally).dropped_many(now.elapsed, "BINARY frames lost", from, lost);
                }
                false => (out.tally).dropped(now.elapsed, "BINARY frame out of order", from),
            }
            session.joiner.reset();
        }
        session.next_in = Some(index.wrapping_add(1));
        let Path::Device(device) = session.path else {
            return out
                .tally
                .dropped(now.elapsed, "this path takes no BINARY frames", from);
        };
        session.speaks_text = false;
        match session.joiner.take(data) {
            Ok(messages) => {
                for message in messages {
                    self.order_message(now, from, device, message.into(), out);
                }
            }
            Err(bad) => out.tally.bad(now.elapsed, bad.text(), from),
        }
    }

    /// Forwards a message. Motion goes through the controls, like any other.
    fn order_message(
        &mut self,
        now: Now,
        from: SocketAddr,
        device: Device,
        message: Bytes,
        out: &mut Outputs,
    ) {
        let wheels = self.config.robot.wheels;
        let message = match motion::of(device, wheels, &message) {
            Ok(Motion::Wheels(speeds, rest)) => {
                let wheels = Wheels::from(speeds);
                let speeds = wheels.limited(self.config.robot.drive.max_wheel_m_s).into();
                self.command(now, from, device, speeds, out);
                match rest {
                    Some(request) => request,
                    None => return,
                }
            }
            Ok(Motion::Begin(errand)) => {
                return self.begin(now, from, errand, UserOrder::Message(device, message), out);
            }
            Ok(Motion::End(errand)) => {
                self.helm.forget(errand);
                message
            }
            Ok(Motion::None) => message,
            Err(_) => return out.tally.bad(now.elapsed, "invalid message", from),
        };
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        match session.orders.take(now.elapsed) {
            true => out.order(session.user, UserOrder::Message(device, message)),
            false => out.tally.dropped(now.elapsed, "too many messages", from),
        }
    }

    /// A session begins an errand with this order.
    fn begin(
        &mut self,
        now: Now,
        from: SocketAddr,
        errand: Errand,
        order: UserOrder,
        out: &mut Outputs,
    ) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        let user = session.user;
        if !session.orders.take(now.elapsed) {
            return out.tally.dropped(now.elapsed, "too many messages", from);
        }
        match self.helm.begin(now.elapsed, user, errand) {
            Ok(()) => {
                // What it replaces stops first.
                self.drive(now, out);
                out.order(user, order);
            }
            Err(_) => out
                .tally
                .dropped(now.elapsed, "another session drives", from),
        }
    }

    /// A session commands wheel speeds.
    fn command(
        &mut self,
        now: Now,
        from: SocketAddr,
        device: Device,
        speeds: WheelSpeeds,
        out: &mut Outputs,
    ) {
        let Some(session) = self.sessions.get(&from) else {
            return;
        };
        let driven = self.helm.drive(now.elapsed, session.user, device, speeds);
        if driven.is_err() {
            out.tally
                .dropped(now.elapsed, "another session drives", from);
        }
    }

    /// Sends the motion commands that are due.
    pub(super) fn drive(&mut self, now: Now, out: &mut Outputs) {
        while let Some((user, order)) = self.helm.poll(now.elapsed) {
            if let UserOrder::Drive(device, speeds) = order
                && device == self.config.robot.wheels
            {
                self.robot.commanded = self.config.robot.twist(speeds);
            }
            out.order(user, order);
        }
    }
}
