//! Amber's robot as a vehicle of RflySim: its state is sent, and it follows commands. PURE.
//!
//! The vehicle starts locked. It moves only after an arm command, and only if arming is allowed. An
//! option lets the first command unlock it, for programs that arm only over MAVLink.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_robot::bucket::Bucket;
use amber_robot::controls::{Controls, Seat};
use amber_robot::limits::{MOTION_LIFE, ORDER_RATE};
use amber_robot::robot::{Measurement, RobotSetup, User, UserOrder};
use amber_values::{ImuReading, MapPose, Target, WheelSpeeds};

use super::codec::{
    ControlMode, ExternalMessage, FRAME_BODY, FullCommand, FullEstimate, NO_COLLISION, Packet,
    Padding, ShortCommand, SimpleEstimate, SimpleKind, Truth168, Truth200, ignored,
};
use super::limits::{MAX_AGE, MAX_DISTANCE_M, MAX_SPEED_M_S, MAX_TURN_RAD_S, PAUSE, SAME_TARGET_M};
use super::mapping::{AT_REST_M_S2, GpsOrigin, NedPose, body_axes, twist, wheels_rpm};
use super::ports::Vehicle;
use crate::shared::clock::Now;
use crate::shared::machine::{Outputs, Socket};

/// The kind of vehicle in the telemetry: the usual one of published programs.
const VEHICLE_TYPE: i32 = 3;

/// Reasons for dropped commands. Each names the option that changes it.
pub(super) const LOCKED: &str = "locked: send an arm command, or set unlock_by_command";
pub(super) const DISARMED: &str = "disarmed: send an arm command, or pause commands for 1 s";
pub(super) const NO_ARMING: &str =
    "locked: arming is not allowed, set allow_arm or unlock_by_command";

/// The presentation of Amber's robot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownSettings {
    /// The number of its vehicle.
    pub vehicle: Vehicle,
    /// The host of the program that sees and commands it.
    pub peer: IpAddr,
    /// The time between two packets of each kind.
    pub period: Duration,
    /// The packets that carry the estimated state.
    pub mode: Mode,
    /// The packets that carry the true state, and their ports.
    pub truth: TruthPorts,
    /// The position of the origin of the map on the earth.
    pub origin: GpsOrigin,
    /// How the peer unlocks the robot.
    pub unlock: Unlock,
    /// Also send messages of the autopilot, with the motion of the wheels.
    pub messages: bool,
}

/// The interface mode of the simulator.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// 120-byte packets.
    #[default]
    Full,
    /// 52-byte estimates and 24-byte commands.
    Simple,
}

/// The ports of the peer that get the true state, by its form. A form without a port is not sent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TruthPorts {
    /// 200 bytes: the published format.
    pub of_200_bytes: Option<u16>,
    /// 168 bytes: the format of newer versions of RflySim.
    pub of_168_bytes: Option<u16>,
}

/// How the peer unlocks the robot.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unlock {
    /// Not at all.
    #[default]
    Never,
    /// By an arm command.
    Arm,
    /// By an arm command, or by its first command of motion.
    FirstCommand,
}

/// Whether the robot follows commands of motion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lock {
    /// It has not been unlocked.
    Locked,
    /// A disarm command has ended motion. Commands that go on without a pause do not unlock it.
    Disarmed,
    /// It follows commands.
    Open,
}

/// A robot that is shown.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) settings: ShownSettings,
    robot: RobotSetup,
    user: User,
    pose: Option<(Duration, MapPose)>,
    wheels: Option<(Duration, WheelSpeeds)>,
    imu: Option<(Duration, ImuReading)>,
    sent: Option<Duration>,
    lock: Lock,
    /// The last command of motion, whether it was followed or not.
    commanded: Option<Duration>,
    controls: Controls<User>,
    target: Option<(Duration, Target)>,
    orders: Bucket,
    pub(super) heard: Option<Duration>,
}

impl Shown {
    pub(super) fn new(settings: ShownSettings, robot: RobotSetup, user: User) -> Self {
        Self {
            settings,
            robot,
            user,
            pose: None,
            wheels: None,
            imu: None,
            sent: None,
            lock: Lock::Locked,
            commanded: None,
            controls: Controls::new(Seat::Exclusive),
            target: None,
            orders: Bucket::new(ORDER_RATE),
            heard: None,
        }
    }

    /// Amber's devices have measured something.
    pub(super) fn measured(&mut self, now: Now, measurement: &Measurement) {
        let at = now.elapsed;
        match measurement {
            Measurement::Pose(pose) => self.pose = Some((at, *pose)),
            Measurement::Wheels(speeds) => self.wheels = Some((at, *speeds)),
            Measurement::Imu(reading) => self.imu = Some((at, *reading)),
            _ => {}
        }
    }

    /// Whether the peer has unlocked it.
    pub(super) fn is_armed(&self) -> bool {
        self.lock == Lock::Open
    }

    pub(super) fn drives(&self) -> bool {
        self.controls.moves() || self.target.is_some()
    }

    /// A packet on the control port, from the right host.
    pub(super) fn handle_packet(
        &mut self,
        now: Now,
        from: SocketAddr,
        packet: &Packet,
        out: &mut Outputs,
    ) {
        self.heard = Some(now.elapsed);
        let result = match packet {
            Packet::ShortCommand(command) => self.short(now, command, out),
            Packet::FullCommand(command) => self.full(now, command, out),
            Packet::Restart(_) => Err("restart command"),
            _ => Err("unexpected packet"),
        };
        if let Err(reason) = result {
            out.tally.dropped(now.elapsed, reason, from);
        }
        self.settle(now, out);
    }

    fn short(&mut self, now: Now, command: &ShortCommand, out: &mut Outputs) -> Outcome {
        let [a, b, _, d] = command.controls.map(f64::from);
        match ControlMode::from_number(command.mode) {
            ControlMode::None => Ok(()),
            ControlMode::VelocityNed => {
                let pose = self
                    .ned(now)
                    .ok_or("velocity to the north without a pose")?;
                self.drive(now, [a, b], pose.forward_m_s(a, b), d, out)
            }
            ControlMode::VelocityBody => self.drive(now, [a, b], a, d, out),
            ControlMode::PositionNed => self.go_to(now, [a, b], NedPose::target(a, b), out),
            ControlMode::PositionBody => {
                let pose = self.ned(now).ok_or("target ahead without a pose")?;
                self.go_to(now, [a, b], pose.target_from_here(a, b), out)
            }
            ControlMode::Arm => self.arm(now, a != 0.0, out),
            _ => Err("unsupported control mode"),
        }
    }

    fn full(&mut self, now: Now, command: &FullCommand, out: &mut Outputs) -> Outcome {
        if command.copter_id != u32::from(self.settings.vehicle.number()) {
            return Err("command for another vehicle");
        }
        let is_body = command.flags == FRAME_BODY;
        let sets = |bits: u32| command.modes & bits == 0;
        let mut short = ShortCommand {
            mode: i32::from(is_body),
            controls: [0.0; 4],
        };
        if sets(ignored::POSITION) {
            short.mode += 2;
            short.controls[..3].copy_from_slice(&command.position_m);
        } else if sets(ignored::VELOCITY) {
            short.controls[..3].copy_from_slice(&command.velocity_m_s);
            if sets(ignored::YAW_RATE) {
                short.controls[3] = command.yaw_rate_rad_s;
            }
        } else {
            return Err("unsupported control mode");
        }
        self.short(now, &short, out)
    }

    /// `yaw_rate` is clockwise.
    fn drive(
        &mut self,
        now: Now,
        velocity: [f64; 2],
        forward_m_s: f64,
        yaw_rate: f64,
        out: &mut Outputs,
    ) -> Outcome {
        self.check_unlocked(now)?;
        if velocity[0].hypot(velocity[1]) > MAX_SPEED_M_S || yaw_rate.abs() > MAX_TURN_RAD_S {
            return Err("speed above the limit");
        }
        let speeds = self
            .robot
            .speeds(forward_m_s, -yaw_rate)
            .ok_or("number is not finite")?;
        if speeds != WheelSpeeds::STOP {
            self.clear_target(out);
        }
        let user = self.user;
        let driven = self.controls.drive(now.elapsed, user, speeds, MOTION_LIFE);
        driven.map_err(|_| "another session drives")
    }

    fn go_to(&mut self, now: Now, place: [f64; 2], target: Target, out: &mut Outputs) -> Outcome {
        self.check_unlocked(now)?;
        if place[0].hypot(place[1]) > MAX_DISTANCE_M {
            return Err("target too far away");
        }
        if let Some((at, same)) = &mut self.target
            && (same.x_m - target.x_m).hypot(same.y_m - target.y_m) < SAME_TARGET_M
        {
            *at = now.elapsed;
            return Ok(());
        }
        if !self.orders.take(now.elapsed) {
            return Err("too many targets");
        }
        self.controls.release(self.user);
        self.settle(now, out);
        self.target = Some((now.elapsed, target));
        out.order(
            self.user,
            UserOrder::Targets(self.robot.targets, vec![target]),
        );
        Ok(())
    }

    fn arm(&mut self, now: Now, on: bool, out: &mut Outputs) -> Outcome {
        if on {
            if self.settings.unlock == Unlock::Never {
                return Err(NO_ARMING);
            }
            self.lock = Lock::Open;
        } else {
            if self.is_armed() {
                self.lock = Lock::Disarmed;
            }
            self.halt(now, out);
        }
        Ok(())
    }

    /// A command of motion has arrived.
    fn check_unlocked(&mut self, now: Now) -> Outcome {
        let last = self.commanded.replace(now.elapsed);
        let is_first = last.is_none_or(|last| now.since(last) >= PAUSE);
        if self.is_armed() {
            return Ok(());
        }
        match self.settings.unlock {
            Unlock::FirstCommand if self.lock == Lock::Disarmed && !is_first => Err(DISARMED),
            Unlock::FirstCommand => {
                self.lock = Lock::Open;
                Ok(())
            }
            Unlock::Arm => Err(LOCKED),
            Unlock::Never => Err(NO_ARMING),
        }
    }

    /// Stops everything that the peer has set in motion.
    pub(super) fn halt(&mut self, now: Now, out: &mut Outputs) {
        self.controls.release(self.user);
        self.clear_target(out);
        self.settle(now, out);
    }

    fn clear_target(&mut self, out: &mut Outputs) {
        if self.target.take().is_some() {
            out.order(
                self.user,
                UserOrder::Targets(self.robot.targets, Vec::new()),
            );
        }
    }

    fn settle(&mut self, now: Now, out: &mut Outputs) {
        while let Some((user, speeds)) = self.controls.poll(now.elapsed) {
            out.order(user, UserOrder::Drive(self.robot.wheels, speeds));
        }
    }

    /// Sends the state, and stops motion without current commands.
    pub(super) fn handle_timeout(&mut self, now: Now, socket: Socket, out: &mut Outputs) {
        if self
            .target
            .is_some_and(|(at, _)| now.since(at) >= MOTION_LIFE)
        {
            self.clear_target(out);
        }
        self.settle(now, out);
        if self
            .sent
            .is_some_and(|sent| now.since(sent) < self.settings.period)
        {
            return;
        }
        self.sent = Some(now.elapsed);
        // Without a pose there is no state.
        if let Some(pose) = self.ned(now) {
            let message = self.settings.messages.then(|| self.message(now));
            let estimate = self.estimate(now, pose);
            let ported = |packet: Packet| (self.settings.vehicle.port(packet.port()), packet);
            let packets = [ported(estimate)].into_iter();
            let packets = packets.chain(self.truth(now, pose).into_iter().flatten());
            for (port, packet) in packets.chain(message.map(ported)) {
                let to = SocketAddr::new(self.settings.peer, port);
                out.send(socket, to, packet.encode());
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        let send = self
            .sent
            .map_or(Duration::ZERO, |sent| sent + self.settings.period);
        let target = self.target.map(|(at, _)| at + MOTION_LIFE);
        let others = [target, self.controls.next_due()];
        others.into_iter().flatten().chain([send]).min()
    }

    /// The current pose, if it is known.
    fn ned(&self, now: Now) -> Option<NedPose> {
        let pose = fresh(now, self.pose)?;
        pose.is_known().then(|| NedPose::from_map(pose))
    }

    /// The speeds of the wheels in m/s, and the motion of the body, in the message that an autopilot
    /// would send to programs.
    fn message(&self, now: Now) -> Packet {
        let wheels = fresh(now, self.wheels).unwrap_or_default();
        let twist = twist(self.robot.drive, wheels);
        let m_s = |mm_s: i32| (f64::from(mm_s) / 1000.0) as f32;
        Packet::External(ExternalMessage {
            copter_id: self.settings.vehicle.number().into(),
            time_s: now.elapsed.as_secs_f64(),
            controls: [
                m_s(wheels.front_left_mm_s),
                m_s(wheels.front_right_mm_s),
                m_s(wheels.rear_left_mm_s),
                m_s(wheels.rear_right_mm_s),
                twist.forward_m_s as f32,
                -twist.turn_rad_s as f32,
                0.0,
                0.0,
            ],
        })
    }

    /// The true state in each form that has a port.
    fn truth(&self, now: Now, pose: NedPose) -> [Option<(u16, Packet)>; 2] {
        let wheels = fresh(now, self.wheels).unwrap_or_default();
        let twist = twist(self.robot.drive, wheels);
        let imu = fresh(now, self.imu).and_then(|reading| body_axes(&reading));
        let measured = imu.unwrap_or((AT_REST_M_S2, [0.0, 0.0, -twist.turn_rad_s]));
        let Place {
            position_m,
            velocity_m_s,
            angles_rad,
        } = Place::new(pose, twist.forward_m_s);
        let (sin, cos) = (pose.yaw_rad / 2.0).sin_cos();

        let copter_id = i32::from(self.settings.vehicle.number());
        let quaternion = [cos as f32, 0.0, 0.0, sin as f32];
        let motors_rpm = wheels_rpm(wheels);
        let acceleration_m_s2 = measured.0.map(|number| number as f32);
        let rates_rad_s = measured.1.map(|number| number as f32);
        let gps_position = self.settings.origin.position(pose);
        let time_s = now.elapsed.as_secs_f64();
        let TruthPorts {
            of_200_bytes,
            of_168_bytes,
        } = self.settings.truth;
        let long = of_200_bytes.map(|port| {
            let truth = Truth200 {
                copter_id,
                vehicle_type: VEHICLE_TYPE,
                time_s,
                velocity_m_s,
                position_m: position_m.map(|number| number as f32),
                angles_rad,
                quaternion,
                motors_rpm,
                acceleration_m_s2,
                rates_rad_s,
                padding: Padding,
                gps_position,
            };
            (port, Packet::Truth200(NO_COLLISION, truth))
        });
        let short = of_168_bytes.map(|port| {
            let truth = Truth168 {
                copter_id,
                vehicle_type: VEHICLE_TYPE,
                reserved: 0,
                velocity_m_s,
                angles_rad,
                quaternion,
                motors_rpm,
                acceleration_m_s2,
                rates_rad_s,
                time_s,
                position_m,
                gps_position,
            };
            (port, Packet::Truth168(truth))
        });
        [long, short]
    }

    fn estimate(&self, now: Now, pose: NedPose) -> Packet {
        let wheels = fresh(now, self.wheels).unwrap_or_default();
        let twist = twist(self.robot.drive, wheels);
        let Place {
            position_m,
            velocity_m_s,
            angles_rad,
        } = Place::new(pose, twist.forward_m_s);
        let position_m = position_m.map(|number| number as f32);
        let gps_home = self.settings.origin.whole_position(NedPose::default());
        match self.settings.mode {
            Mode::Simple => Packet::SimpleEstimate(
                SimpleKind::State,
                SimpleEstimate {
                    gps_home,
                    angles_rad,
                    position_m,
                    velocity_m_s,
                },
            ),
            Mode::Full => {
                let quality = fresh(now, self.pose).map_or(0.0, |pose| pose.quality);
                Packet::FullEstimate(
                    NO_COLLISION,
                    FullEstimate {
                        // Wraps after 49 days, as that of the autopilot.
                        time_boot_ms: now.elapsed.as_millis() as u32,
                        copter_id: self.settings.vehicle.number().into(),
                        gps_position: self.settings.origin.whole_position(pose),
                        gps_velocity_cm_s: velocity_m_s.map(|m_s| (m_s * 100.0).round() as i32),
                        gps_home,
                        relative_altitude_mm: 0,
                        heading_mdeg: (pose.yaw_rad.to_degrees().rem_euclid(360.0) * 1000.0) as i32,
                        satellites_visible: 12,
                        fix_type: 3,
                        reserved_int: 0,
                        angles_rad,
                        position_m,
                        velocity_m_s,
                        horizontal_accuracy_m: (1.0 / quality.clamp(0.01, 1.0) - 1.0) as f32,
                        vertical_accuracy_m: 0.0,
                        reserved_float: 1.0,
                    },
                )
            }
        }
    }
}

/// Position, velocity and attitude towards N, E, D, as packets carry them.
struct Place {
    position_m: [f64; 3],
    velocity_m_s: [f32; 3],
    angles_rad: [f32; 3],
}

impl Place {
    fn new(pose: NedPose, forward_m_s: f64) -> Self {
        let [north_m_s, east_m_s] = pose.velocity_m_s(forward_m_s);
        Self {
            position_m: [pose.north_m, pose.east_m, 0.0],
            velocity_m_s: [north_m_s as f32, east_m_s as f32, 0.0],
            angles_rad: [0.0, 0.0, pose.yaw_rad as f32],
        }
    }
}

/// Whether a command is followed, or the reason why it is dropped.
type Outcome = Result<(), &'static str>;

/// A measurement that is not too old.
fn fresh<T: Copy>(now: Now, measured: Option<(Duration, T)>) -> Option<T> {
    let (at, value) = measured?;
    (now.since(at) <= MAX_AGE).then_some(value)
}
