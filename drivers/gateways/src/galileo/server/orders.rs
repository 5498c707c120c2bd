//! What clients want from the robot. PURE.

use std::net::SocketAddr;

use amber_navigation::kinematics::Wheels;
use amber_proto::{Device, DeviceType, roboclaw};
use amber_values::WheelSpeeds;
use bytes::Bytes;
use prost::Message;

use super::Server;
use crate::galileo::codec::decode_chunk;
use crate::galileo::mapping::{self, Path};
use crate::galileo::messages;
use crate::limits::MOTION_LIFE;
use crate::shared::clock::Now;
use crate::shared::controls::Controls;
use crate::shared::machine::Outbox;
use crate::shared::robot::Order;

impl Server {
    pub(super) fn handle_text(
        &mut self,
        now: Now,
        from: SocketAddr,
        text: &[u8],
        out: &mut Outbox,
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
                Some(targets) if session.orders.take(now.elapsed) => {
                    out.order(user, Order::Targets(robot.targets, targets));
                }
                Some(_) => out.tally.dropped(now.elapsed, "too many messages", from),
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
        out: &mut Outbox,
    ) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        let (index, data) = match decode_chunk(body) {
            Ok(chunk) => chunk,
            Err(bad) => return out.tally.bad(now.elapsed, bad.text(), from),
        };
        if session.next_in.is_some_and(|expected| expected != index) {
            out.tally.dropped(now.elapsed, "gap in BINARY frames", from);
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

    /// Passes a message on. Motion goes through the controls, like any other.
    fn order_message(
        &mut self,
        now: Now,
        from: SocketAddr,
        device: Device,
        message: Bytes,
        out: &mut Outbox,
    ) {
        let mut message = message;
        if device.device_type == DeviceType::ROBOCLAW
            && let Ok(mut read) = roboclaw::DriverMsg::decode(message.clone())
            && let Some(speeds) = read.motors_command.take()
        {
            let wheels = Wheels::from(WheelSpeeds::from(speeds));
            let speeds = wheels.limited(self.config.robot.drive.max_wheel_m_s).into();
            self.command(now, from, device, speeds, out);
            if read.current_speed_request.is_none() {
                return;
            }
            // The request that came in the same message.
            message = read.encode_to_vec().into();
        }
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        match session.orders.take(now.elapsed) {
            true => out.order(session.user, Order::Message(device, message)),
            false => out.tally.dropped(now.elapsed, "too many messages", from),
        }
    }

    /// A session commands wheel speeds.
    fn command(
        &mut self,
        now: Now,
        from: SocketAddr,
        device: Device,
        speeds: WheelSpeeds,
        out: &mut Outbox,
    ) {
        let Some(session) = self.sessions.get(&from) else {
            return;
        };
        let seat = self.config.seat;
        let controls = (self.controls.entry(device)).or_insert_with(|| Controls::new(seat));
        if controls
            .drive(now.elapsed, session.user, speeds, MOTION_LIFE)
            .is_err()
        {
            out.tally
                .dropped(now.elapsed, "another session drives", from);
        }
    }

    /// Sends the motion commands that are due.
    pub(super) fn drive(&mut self, now: Now, out: &mut Outbox) {
        for (&device, controls) in &mut self.controls {
            while let Some((user, speeds)) = controls.poll(now.elapsed) {
                if device == self.config.robot.wheels {
                    self.robot.commanded = self.config.robot.twist(speeds);
                }
                out.order(user, Order::Drive(device, speeds));
            }
        }
    }
}
