//! Reports of the robot to clients. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_navigation::kinematics::Twist;
use amber_proto::Device;
use amber_robot::robot::{Measurement, User};
use amber_values::{LearnedLaser, MapPose, Target, WheelSpeeds};

use super::Server;
use crate::galileo::codec::{Op, encode_chunk};
use crate::galileo::mapping::{self, Path};
use crate::galileo::{messages, records};
use crate::limits::MAX_AGE;
use crate::shared::clock::Now;
use crate::shared::machine::Outputs;

/// The newest measurements, with their times.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) wheels: Option<(Duration, WheelSpeeds)>,
    pub(super) pose: Option<(Duration, MapPose)>,
    pub(super) next: Vec<Target>,
    pub(super) visited: Vec<Target>,
    laser: LearnedLaser,
    /// The motion that was last ordered.
    pub(super) commanded: Twist,
}

impl Server {
    pub(super) fn measured(&mut self, now: Now, measurement: Measurement, out: &mut Outputs) {
        let (path, text) = match measurement {
            Measurement::Scan(scan) => {
                let stamp = scan.timestamp_ms().and_then(|ms| u64::try_from(ms).ok());
                let laser = self.robot.laser.handle(&scan, now.elapsed);
                let text = mapping::scan(stamp.unwrap_or(now.unix_ms()), &scan, &laser);
                (Path::Scan, text)
            }
            Measurement::Scanner(told) => return self.robot.laser.describe(*told),
            Measurement::Imu(reading) => (Path::Imu, Some(mapping::imu(now.unix_ms(), &reading))),
            Measurement::Pose(pose) => {
                self.robot.pose = Some((now.elapsed, pose));
                (Path::Pose, Some(mapping::pose(now.unix_ms(), pose)))
            }
            Measurement::Wheels(speeds) => {
                self.robot.wheels = Some((now.elapsed, speeds));
                return;
            }
            Measurement::Targets { next, visited } => {
                let text = mapping::targets(&next, &visited);
                (self.robot.next, self.robot.visited) = (next, visited);
                (Path::Goal, Some(text))
            }
            // Galileo has no path for them, so they are not watched.
            Measurement::Battery(_)
            | Measurement::Gamepad(_)
            | Measurement::Gps(_)
            | Measurement::Contacts(_)
            | Measurement::Map(_)
            | Measurement::Mount(_)
            | Measurement::Odometry(..)
            | Measurement::Picture(_)
            | Measurement::CameraInfo(_)
            | Measurement::CameraPlace(_)
            | Measurement::Progress(_) => return,
        };
        let Some(text) = text else {
            return;
        };
        for (from, session) in &mut self.sessions {
            if session.path == path && session.may_get_data(now) {
                session.send(now, *from, Op::Text(&text), out);
            }
        }
    }

    /// Sends a report that has a fixed rate.
    pub(super) fn report(&mut self, now: Now, from: SocketAddr, out: &mut Outputs) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        session.reported = now.elapsed;
        let (robot, measured) = (&self.config.robot, &self.robot);
        let wheels = measured.wheels.filter(|(at, _)| now.since(*at) <= MAX_AGE);
        let pose = measured.pose.filter(|(at, _)| now.since(*at) <= MAX_AGE);
        let pose = pose.map(|(_, pose)| pose).filter(MapPose::is_known);
        let Some(twist) = wheels.map(|(_, speeds)| robot.twist(speeds)) else {
            return;
        };
        let text = match session.path {
            Path::Odom => mapping::odometry(now.unix_ms(), pose, twist),
            _ => {
                let next = measured.next.first().zip(pose);
                let distance = |(target, pose): (&Target, MapPose)| {
                    (target.x_m - pose.x_m).hypot(target.y_m - pose.y_m)
                };
                mapping::status(&mapping::Status {
                    commanded: measured.commanded,
                    measured: twist,
                    has_pose: pose.is_some(),
                    visited: measured.visited.len(),
                    left: measured.next.len(),
                    distance_m: next.map(distance),
                })
            }
        };
        session.send(now, from, Op::Text(&text), out);
    }

    /// Tells the client of a user that a device refuses its motion, for example because another program
    /// drives.
    pub(super) fn tell_refusal(&mut self, now: Now, user: User, why: &str, out: &mut Outputs) {
        let mut sessions = self.sessions.iter_mut();
        let Some((&from, session)) = sessions.find(|(_, session)| session.user == user) else {
            return;
        };
        // BINARY frames of a session are records of its device.
        if session.speaks_text && session.may_get_data(now) {
            session.send(now, from, Op::Text(&mapping::refusal(why)), out);
        }
    }

    /// Sends a message of a device to the session of a user.
    pub(super) fn send_message(
        &mut self,
        now: Now,
        user: User,
        device: Device,
        message: &[u8],
        out: &mut Outputs,
    ) {
        let mut sessions = self.sessions.iter_mut();
        let Some((&from, session)) = sessions.find(|(_, session)| session.user == user) else {
            return;
        };
        if !session.speaks_text {
            for data in records::split(message) {
                let index = session.has_index.then_some(session.next_out);
                session.next_out = session.next_out.wrapping_add(1);
                session.send(now, from, Op::Binary(&encode_chunk(index, &data)), out);
            }
            return;
        }
        match messages::write(&self.schemas, device.device_type, message) {
            Some(text) if mapping::fits(&text) => session.send(now, from, Op::Text(&text), out),
            _ => out
                .tally
                .dropped(now.elapsed, "message too long for TEXT; use BINARY", from),
        }
    }
}
