//! The configuration of the collision monitor. PURE.

use std::time::Duration;

use amber_map::{Outline, Pose};

use super::WatchConfig;
use crate::kinematics::SkidSteer;

/// The configuration of a [`Monitor`](super::Monitor).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The wheels.
    pub drive: SkidSteer,
    /// The outline of the robot.
    pub outline: Outline,
    /// The pose of the scanner on the robot: x ahead, y to the left of the centre. Measure it; a
    /// wrong value is worse than noise.
    pub laser: Pose,
    /// The robot stops this far before an obstacle, in metres. With 0.08 m a Capo can still turn on
    /// the spot in front of a wall: its corners need 0.063 m.
    pub stop_ahead_m: f64,
    /// The margin at the sides, in metres.
    pub stop_beside_m: f64,
    /// The braking that the robot certainly has, in m/s².
    pub braking_m_s2: f64,
    /// The time from a change in the world to braking wheels: the age of a scan, its period, and
    /// the lag of the motors. In seconds, for ten scans per second; fewer scans make it longer.
    pub reaction_s: f64,
    /// Obstacles within this distance limit the speed, in metres; 0 switches the limit off.
    pub limit_zone_m: f64,
    /// The speed limit in that zone, in m/s.
    pub limit_forward_m_s: f64,
    /// The limit of turns in that zone, in rad/s.
    pub limit_turn_rad_s: f64,
    /// The speed limit backwards, in m/s, if the laser does not look there.
    pub limit_reverse_m_s: f64,
    /// Whether the robot also drives backwards to places that the laser has never seen.
    pub reverses_blindly: bool,
    /// Whether the robot works in rooms that are larger than the range of its laser, so that it may
    /// also drive where it has never had an echo.
    pub large_rooms: bool,
    /// Whether the robot has bumpers, which must say what they feel.
    pub has_bumper: bool,
    /// The limit of the sideways acceleration in curves, in m/s².
    pub lateral_m_s2: f64,
    /// Up to this age a scan allows full speed. Of a slow scanner, one scan may be lost.
    pub scan_fresh: Duration,
    /// From this age on, the wheels stop. Longer for slow scanners.
    pub scan_timeout: Duration,
    /// From this age on, a command no longer counts.
    pub command_timeout: Duration,
    /// Obstacles that the laser no longer sees are remembered for this long. With 3 s a robot that
    /// turns and backs up at random touched walls behind it.
    pub memory: Duration,
    /// Points that the laser no longer sees count as this much nearer, in metres, because dead
    /// reckoning drifts: by 7 mm within the memory, in turns at random.
    pub drift_m: f64,
    /// The detection of a stuck or bumped robot.
    pub watch: WatchConfig,
}

impl Config {
    /// The defaults of a Capo robot with its scanner at this pose.
    #[must_use]
    pub fn new(laser: Pose) -> Self {
        Self {
            drive: SkidSteer::default(),
            outline: Outline {
                half_length_m: 0.185,
                half_width_m: 0.165,
            },
            laser,
            stop_ahead_m: 0.08,
            stop_beside_m: 0.015,
            braking_m_s2: 1.0,
            reaction_s: 0.25,
            limit_zone_m: 0.15,
            limit_forward_m_s: 0.2,
            limit_turn_rad_s: 1.0,
            limit_reverse_m_s: 0.15,
            reverses_blindly: false,
            large_rooms: false,
            has_bumper: false,
            lateral_m_s2: 1.5,
            scan_fresh: Duration::from_millis(300),
            scan_timeout: Duration::from_millis(600),
            command_timeout: Duration::from_millis(500),
            memory: Duration::from_secs(10),
            drift_m: 0.015,
            watch: WatchConfig::default(),
        }
    }
}
