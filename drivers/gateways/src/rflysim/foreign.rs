//! A vehicle of RflySim as devices of Amber: pose, motion sensors, wheels and targets. PURE.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_map::wrap;
use amber_navigation::kinematics::SkidSteer;
use amber_proto::gateway::Vehicle as VehicleStatus;
use amber_proto::{ClientId, Device};
use amber_robot::controls::{Controls, Seat};
use amber_robot::limits::MOTION_LIFE;
use amber_robot::robot::{Measurement, OrderNumber, Progress};
use amber_values::{MapPose, WheelSpeeds};

use super::codec::{
    FRAME_BODY, FRAME_LOCAL_NED, FullCommand, NO_COLLISION, Packet, ShortCommand, SimpleKind,
    ignored,
};
use super::course::Course;
use super::limits::{FULL_PERIOD, MAX_AGE, MAX_DISTANCE_M, PROGRESS_PERIOD, SIMPLE_PERIOD};
use super::mapping::{MapFrame, NedPose, imu_reading, twist, wheel_speeds};
use super::ports::{Port, Vehicle};
use super::shown::Mode;
use crate::shared::clock::Now;
use crate::shared::event::{Asked, Emulated};
use crate::shared::machine::{Output, Outputs, Socket};

/// The presentation of a vehicle to Amber's clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForeignSettings {
    pub vehicle: Vehicle,
    /// The host of the simulator.
    pub host: IpAddr,
    /// The mode of the simulator, for commands.
    pub mode: Mode,
    /// The presentation of its pose.
    pub frame: MapFrame,
    /// The device for its pose.
    pub location: Option<Device>,
    /// The device for its motion sensors.
    pub imu: Option<Device>,
    /// The device for its speed, which takes commands.
    pub wheels: Option<Device>,
    /// The device that takes targets.
    pub targets: Option<Device>,
    /// How high the vehicle flies to its targets, in metres above its take-off point.
    pub height_m: f64,
    /// Between wheel speeds and the motion of the vehicle.
    pub drive: SkidSteer,
    /// Send an arm command before the first motion.
    pub arm: bool,
}

/// A vehicle that is shown.
#[derive(Debug)]
pub(super) struct Foreign {
    pub(super) settings: ForeignSettings,
    controls: Controls<ClientId>,
    /// The speeds to send while they are valid; `None` when the last zero is sent.
    motion: Option<WheelSpeeds>,
    course: Course,
    /// The last targets that were not accepted, and why.
    refused: Option<(OrderNumber, &'static str)>,
    /// The vehicle is on its way to a target.
    is_on_course: bool,
    commanded: Option<Duration>,
    armed: bool,
    progress_shown: Option<Duration>,
    /// The last true state, which is better than the estimate.
    truth: Option<Duration>,
    /// Yaw and time of the last estimate, which has no turn rate.
    estimate: Option<(Duration, f64)>,
    pose: Option<(Duration, MapPose, NedPose)>,
    /// The last numbers of the autopilot.
    controls_sent: Option<(Duration, [f32; 8])>,
    /// The last object that the vehicle hit.
    hit: Option<(Duration, i32)>,
    pub(super) heard: Option<Duration>,
}

impl Foreign {
    pub(super) fn new(settings: ForeignSettings) -> Self {
        Self {
            settings,
            controls: Controls::new(Seat::Exclusive),
            motion: None,
            course: Course::default(),
            refused: None,
            is_on_course: false,
            commanded: None,
            armed: false,
            progress_shown: None,
            truth: None,
            estimate: None,
            pose: None,
            controls_sent: None,
            hit: None,
            heard: None,
        }
    }

    pub(super) fn emulated(&self) -> impl Iterator<Item = (Device, Emulated)> {
        let devices = [
            (self.settings.location, Emulated::Location),
            (self.settings.imu, Emulated::Imu),
            (self.settings.wheels, Emulated::Wheels),
            (self.settings.targets, Emulated::Targets),
        ];
        devices
            .into_iter()
            .filter_map(|(device, kind)| Some((device?, kind)))
    }

    /// A packet of the simulator, from the right host.
    pub(super) fn handle_packet(
        &mut self,
        now: Now,
        from: SocketAddr,
        packet: &Packet,
        out: &mut Outputs,
    ) {
        let id = match packet {
            Packet::FullEstimate(_, state) => Some(i64::from(state.copter_id)),
            Packet::Truth200(_, state) => Some(state.copter_id.into()),
            Packet::Truth168(state) => Some(state.copter_id.into()),
            Packet::Truth112(state) => Some(state.copter_id.into()),
            Packet::External(message) => Some(message.copter_id.into()),
            Packet::CollisionTarget(collision) => Some(collision.copter_id.into()),
            _ => None,
        };
        if id.is_some_and(|id| id != i64::from(self.settings.vehicle.number())) {
            return out
                .tally
                .dropped(now.elapsed, "packet of another vehicle", from);
        }
        self.heard = Some(now.elapsed);
        let hit = match packet {
            Packet::FullEstimate(tag, _) | Packet::Truth200(tag, _) => Some(*tag),
            Packet::SimpleEstimate(SimpleKind::Collision, state) => Some(state.gps_home[1]),
            Packet::CollisionTarget(collision) => Some(collision.target_id),
            _ => None,
        };
        if let Some(hit) = hit.filter(|hit| *hit > NO_COLLISION) {
            self.hit = Some((now.elapsed, hit));
        }
        match packet {
            Packet::Truth200(_, state) => {
                let position = state.position_m.map(f64::from);
                self.true_state(
                    now,
                    position,
                    state.velocity_m_s,
                    state.angles_rad,
                    out,
                    Some((state.acceleration_m_s2, state.rates_rad_s, state.time_s)),
                );
            }
            Packet::Truth168(state) => {
                let (position, velocity) = (state.position_m, state.velocity_m_s);
                self.true_state(
                    now,
                    position,
                    velocity,
                    state.angles_rad,
                    out,
                    Some((state.acceleration_m_s2, state.rates_rad_s, state.time_s)),
                );
            }
            Packet::Truth112(state) => {
                let (position, velocity) = (state.position_m, state.velocity_m_s);
                self.true_state(now, position, velocity, state.angles_rad, out, None);
            }
            Packet::FullEstimate(_, state) => {
                let accuracy_m = f64::from(state.horizontal_accuracy_m.max(0.0));
                let (position, velocity) = (state.position_m, state.velocity_m_s);
                let quality = 1.0 / (1.0 + accuracy_m);
                self.estimate(now, position, velocity, state.angles_rad, quality, out);
            }
            Packet::SimpleEstimate(SimpleKind::State, state) => {
                let (position, velocity) = (state.position_m, state.velocity_m_s);
                self.estimate(now, position, velocity, state.angles_rad, 1.0, out);
            }
            Packet::External(message) => {
                self.controls_sent = Some((now.elapsed, message.controls));
            }
            // They contain nothing that Amber's devices can show.
            _ => {}
        }
    }

    fn true_state(
        &mut self,
        now: Now,
        position_m: [f64; 3],
        velocity_m_s: [f32; 3],
        angles_rad: [f32; 3],
        out: &mut Outputs,
        body: Option<([f32; 3], [f32; 3], f64)>,
    ) {
        self.truth = Some(now.elapsed);
        let yaw_rad = f64::from(angles_rad[2]);
        let turn_rad_s = match body {
            Some((_, rates, _)) => -f64::from(rates[2]),
            None => self.turn_rad_s(now, yaw_rad),
        };
        if let (Some(device), Some((acceleration, rates, time_s))) = (self.settings.imu, body) {
            let reading = imu_reading(acceleration.map(f64::from), rates.map(f64::from), time_s);
            out.push(Output::Show(device, Measurement::Imu(reading)));
        }
        self.show(now, position_m, velocity_m_s, yaw_rad, turn_rad_s, 1.0, out);
    }

    fn estimate(
        &mut self,
        now: Now,
        position_m: [f32; 3],
        velocity_m_s: [f32; 3],
        angles_rad: [f32; 3],
        quality: f64,
        out: &mut Outputs,
    ) {
        let yaw_rad = f64::from(angles_rad[2]);
        let turn_rad_s = self.turn_rad_s(now, yaw_rad);
        if self.truth.is_none_or(|at| now.since(at) > MAX_AGE) {
            let position_m = position_m.map(f64::from);
            self.show(
                now,
                position_m,
                velocity_m_s,
                yaw_rad,
                turn_rad_s,
                quality,
                out,
            );
        }
    }

    /// The turn rate counter-clockwise, from the yaw now and before; 0 if that is too long ago.
    fn turn_rad_s(&mut self, now: Now, yaw_rad: f64) -> f64 {
        let before = self.estimate.replace((now.elapsed, yaw_rad));
        before.map_or(0.0, |(at, before)| {
            let passed = now.since(at);
            match passed > Duration::ZERO && passed <= MAX_AGE {
                true => -wrap(yaw_rad - before) / passed.as_secs_f64(),
                false => 0.0,
            }
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn show(
        &mut self,
        now: Now,
        [north_m, east_m, _]: [f64; 3],
        [north_m_s, east_m_s, _]: [f32; 3],
        yaw_rad: f64,
        turn_rad_s: f64,
        quality: f64,
        out: &mut Outputs,
    ) {
        let ned = NedPose {
            north_m,
            east_m,
            yaw_rad,
        };
        let pose = MapPose {
            quality,
            timestamp_ms: i64::try_from(now.unix_ms()).ok(),
            ..ned.to_map(self.settings.frame)
        };
        self.pose = Some((now.elapsed, pose, ned));
        let has_passed = self.course.pass(&pose);
        self.show_progress(now, has_passed, out);
        if let Some(device) = self.settings.location {
            out.push(Output::Show(device, Measurement::Pose(pose)));
        }
        if let Some(device) = self.settings.wheels {
            let forward_m_s = ned.forward_m_s(north_m_s.into(), east_m_s.into());
            let speeds = wheel_speeds(self.settings.drive, forward_m_s, turn_rad_s);
            out.push(Output::Show(device, Measurement::Wheels(speeds)));
        }
    }

    /// Shows the targets five times per second, or immediately.
    fn show_progress(&mut self, now: Now, at_once: bool, out: &mut Outputs) {
        let Some(device) = self.settings.targets else {
            return;
        };
        let is_due = (self.progress_shown).is_none_or(|at| now.since(at) >= PROGRESS_PERIOD);
        if at_once || is_due {
            self.progress_shown = Some(now.elapsed);
            let (next, visited) = self.course.lists();
            let progress = Progress {
                next,
                visited,
                pose: self.pose.map(|(_, pose, _)| pose),
                order: self.course.order(),
                refused: self.refused,
            };
            out.push(Output::Show(device, Measurement::Progress(progress)));
        }
    }

    /// A client of Amber uses the wheels or sets targets.
    pub(super) fn asked(&mut self, now: Now, device: Device, asked: &Asked, out: &mut Outputs) {
        const OCCUPIED: &str = "another client drives";
        match asked {
            Asked::Drive(client, speeds) => {
                let is_stop = *speeds == WheelSpeeds::STOP;
                if !is_stop && self.course.is_taken_from(now.elapsed, *client) {
                    return out.tally.dropped(now.elapsed, OCCUPIED, client);
                }
                let driven = (self.controls).drive(now.elapsed, *client, *speeds, MOTION_LIFE);
                match driven {
                    // The motion of the wheels replaces the path to the targets.
                    Ok(()) if !is_stop && self.course.end() => self.show_progress(now, true, out),
                    Ok(()) => {}
                    Err(_) => out.tally.dropped(now.elapsed, OCCUPIED, client),
                }
            }
            Asked::Targets(client, order, targets) => {
                let seated = self.controls.seated(now.elapsed);
                let is_far = |place: f64| place.abs() > MAX_DISTANCE_M;
                let refused = if seated.is_some_and(|holder| holder != *client)
                    || self.course.is_taken_from(now.elapsed, *client)
                {
                    Some(OCCUPIED)
                } else if targets.iter().any(|it| is_far(it.x_m) || is_far(it.y_m)) {
                    Some("target too far away")
                } else {
                    None
                };
                if let Some(reason) = refused {
                    self.refused = Some((*order, reason));
                    out.tally.dropped(now.elapsed, reason, client);
                    return self.show_progress(now, true, out);
                }
                if let Some(holder) = self.controls.holder() {
                    self.controls.release(holder);
                }
                self.course.set(now.elapsed, *client, *order, targets);
                if let Some((_, pose, _)) = &self.pose {
                    self.course.pass(pose);
                }
                self.show_progress(now, true, out);
            }
            Asked::ClientGone(client) if self.settings.targets == Some(device) => {
                if self.course.end_of(*client) {
                    self.show_progress(now, true, out);
                }
            }
            Asked::ClientGone(client) => self.controls.release(*client),
        }
    }

    /// Sends the commands that are due.
    pub(super) fn handle_timeout(&mut self, now: Now, socket: Socket, out: &mut Outputs) {
        let mut changed = false;
        while let Some((_, speeds)) = self.controls.poll(now.elapsed) {
            changed |= self.motion != Some(speeds);
            self.motion = Some(speeds);
        }
        if let Some(speeds) = self.motion {
            let is_due = self
                .commanded
                .is_none_or(|at| now.since(at) >= self.period());
            if changed || is_due {
                self.command(now, speeds, socket, out);
            }
        }
        if let Some((at, pose, _)) = self.pose
            && now.since(at) >= MAX_AGE
        {
            self.pose = None;
            self.show_progress(now, true, out);
            if let Some(device) = self.settings.location {
                let lost = MapPose {
                    quality: 0.0,
                    ..pose
                };
                out.push(Output::Show(device, Measurement::Pose(lost)));
            }
        }
        self.follow(now, changed, socket, out);
    }

    /// Sends the next target while nothing else moves the vehicle and its place is known. Otherwise
    /// the vehicle stops, because the simulator would go on to the last target.
    fn follow(&mut self, now: Now, has_moved: bool, socket: Socket, out: &mut Outputs) {
        let target = self.course.target().zip(self.pose);
        match target.filter(|_| self.motion.is_none()) {
            Some((target, (_, _, here))) => {
                let is_due = (self.commanded).is_none_or(|at| now.since(at) >= self.period());
                if !self.is_on_course || is_due {
                    self.is_on_course = true;
                    self.commanded = Some(now.elapsed);
                    let there = here.towards(target, self.settings.frame);
                    self.send_position(now, there, socket, out);
                }
            }
            None if std::mem::take(&mut self.is_on_course) && !has_moved => {
                self.command(now, WheelSpeeds::STOP, socket, out);
            }
            None => {}
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        let moves = self.motion.is_some() || self.is_on_course;
        let command = (self.commanded.filter(|_| moves)).map(|at| at + self.period());
        let pose = self.pose.map(|(at, ..)| at + MAX_AGE);
        [self.controls.next_due(), command, pose]
            .into_iter()
            .flatten()
            .min()
    }

    /// Stops the vehicle.
    pub(super) fn stop(&mut self, now: Now, socket: Socket, out: &mut Outputs) {
        if self.motion.is_some() || self.is_on_course {
            self.command(now, WheelSpeeds::STOP, socket, out);
        }
    }

    /// Whether a client of Amber moves it.
    pub(super) fn drives(&self) -> bool {
        self.motion.is_some() || self.course.is_running()
    }

    /// Data that no device of Amber can show.
    pub(super) fn status(&self, now: Now) -> VehicleStatus {
        let age_ms = |at| u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX);
        let (sent, controls) = self.controls_sent.unzip();
        let (hit_at, hit) = self.hit.unzip();
        VehicleStatus {
            number: Some(self.settings.vehicle.number().into()),
            controls: controls.map(Vec::from).unwrap_or_default(),
            controls_age_ms: sent.map(age_ms),
            hit,
            hit_age_ms: hit_at.map(age_ms),
        }
    }

    fn period(&self) -> Duration {
        match self.settings.mode {
            Mode::Simple => SIMPLE_PERIOD,
            Mode::Full => FULL_PERIOD,
        }
    }

    fn command(&mut self, now: Now, speeds: WheelSpeeds, socket: Socket, out: &mut Outputs) {
        self.commanded = Some(now.elapsed);
        let is_stop = speeds == WheelSpeeds::STOP;
        if is_stop {
            self.motion = None;
        }
        if !is_stop {
            self.arm(socket, out);
        }
        let twist = twist(self.settings.drive, speeds);
        let (forward, yaw_rate) = (twist.forward_m_s as f32, -twist.turn_rad_s as f32);
        let packet = match self.settings.mode {
            Mode::Simple => Packet::ShortCommand(ShortCommand {
                mode: 1,
                controls: [forward, 0.0, 0.0, yaw_rate],
            }),
            Mode::Full => Packet::FullCommand(FullCommand {
                // Wraps after 49 days, as that of the autopilot.
                time_boot_ms: now.elapsed.as_millis() as u32,
                copter_id: self.settings.vehicle.number().into(),
                modes: ignored::POSITION | ignored::ACCELERATION | 1 << 9 | ignored::YAW,
                flags: FRAME_BODY,
                position_m: [0.0; 3],
                velocity_m_s: [forward, 0.0, 0.0],
                acceleration_m_s2: [0.0; 3],
                yaw_rad: 0.0,
                yaw_rate_rad_s: yaw_rate,
                unused: [0.0; 5],
            }),
        };
        out.send(socket, self.address(), packet.encode());
    }

    /// To a place, with the yaw towards it.
    fn send_position(&mut self, now: Now, there: NedPose, socket: Socket, out: &mut Outputs) {
        self.arm(socket, out);
        let down_m = -self.settings.height_m;
        let position_m = [there.north_m, there.east_m, down_m].map(|number| number as f32);
        let yaw_rad = there.yaw_rad as f32;
        let [north, east, down] = position_m;
        let packet = match self.settings.mode {
            Mode::Simple => Packet::ShortCommand(ShortCommand {
                mode: 2,
                controls: [north, east, down, yaw_rad],
            }),
            Mode::Full => Packet::FullCommand(FullCommand {
                time_boot_ms: now.elapsed.as_millis() as u32,
                copter_id: self.settings.vehicle.number().into(),
                modes: ignored::VELOCITY | ignored::ACCELERATION | 1 << 9 | ignored::YAW_RATE,
                flags: FRAME_LOCAL_NED,
                position_m,
                velocity_m_s: [0.0; 3],
                acceleration_m_s2: [0.0; 3],
                yaw_rad,
                yaw_rate_rad_s: 0.0,
                unused: [0.0; 5],
            }),
        };
        out.send(socket, self.address(), packet.encode());
    }

    /// Sends an arm command before the first motion, if that is wanted.
    fn arm(&mut self, socket: Socket, out: &mut Outputs) {
        if self.settings.arm && !self.armed {
            self.armed = true;
            let arm = ShortCommand {
                mode: 9,
                controls: [1.0, 0.0, 0.0, 0.0],
            };
            out.send(socket, self.address(), Packet::ShortCommand(arm).encode());
        }
    }

    /// The receiver of its commands.
    fn address(&self) -> SocketAddr {
        let port = self.settings.vehicle.port(Port::Control);
        SocketAddr::new(self.settings.host, port)
    }
}
