//! Drives around without touching a wall, until Ctrl-C.
//!
//! ```sh
//! cargo run --release -- demo                      # in one terminal
//! cargo run --example wander                       # in another; Ctrl-C stops
//! ```
//!
//! The rule is simple: drive on while the path ahead is free, slower with less space, and keep away
//! from obstacles at the sides. If the path is blocked, turn in place to the side with more space.

#![allow(clippy::print_stderr)] // For people.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use amber_sdk::{Client, Error, Result, Robot, Scan, WheelSpeeds};
use tokio::time::timeout;

/// Half of the width that must be free.
const HALF_WIDTH_MM: f64 = 260.0;
/// The robot turns if an obstacle ahead is nearer.
const TURN_AT_MM: f64 = 500.0;
/// It turns until this distance is free.
const FREE_MM: f64 = 900.0;
const FASTEST_MM_S: f64 = 300.0;
const TURN_MM_S: i32 = 120;
/// The robot stops after this time without a scan; scans come ten times per second.
const BLIND: Duration = Duration::from_millis(500);

#[amber_sdk::main]
async fn main(robot: Robot) -> Result<()> {
    wander(&robot, &Seen::default()).await
}

/// The scans received so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) scans: Cell<u64>,
    /// Scans that arrived faster than they were processed.
    pub(crate) missed: Cell<u64>,
}

/// Drives around until the client ends. After dropping this, stop the wheels.
pub(crate) async fn wander(client: &Client, seen: &Seen) -> Result<()> {
    let (wheels, laser) = (client.roboclaw(0), client.hokuyo(0));
    // The robot goes on when its wheels are there again, so a refused command is not the end.
    let wheels = wheels.without_waiting(shown_once());
    let mut scans = laser.scans().await?;
    let mut mood = Mood::Ahead;
    loop {
        match timeout(BLIND, scans.next()).await {
            Ok(Some(scan)) => {
                seen.scans.update(|scans| scans + 1);
                seen.missed.update(|missed| missed + scan.missed);
                mood = mood.next(&scan.message);
                wheels.drive(mood.speeds(&scan.message)).await?;
            }
            Ok(None) => return Ok(()),
            Err(_) => wheels.stop().await?,
        }
    }
}

/// Shows why commands are refused, each reason once in a row.
fn shown_once() -> impl Fn(Error) + Send + Sync {
    let last = Mutex::new(String::new());
    move |error| {
        let why = error.to_string();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != why {
            eprintln!("{why}");
            *last = why;
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Ahead,
    TurnLeft,
    TurnRight,
}

impl Mood {
    fn next(self, scan: &Scan) -> Self {
        let ahead = ahead_mm(scan);
        match self {
            Self::Ahead if ahead < TURN_AT_MM => {
                // The side with more space. The direction is kept until the path is free, so that
                // the robot does not oscillate in corners.
                if room_mm(scan, -110.0, -20.0) > room_mm(scan, 20.0, 110.0) {
                    Self::TurnLeft
                } else {
                    Self::TurnRight
                }
            }
            Self::TurnLeft | Self::TurnRight if ahead > FREE_MM => Self::Ahead,
            mood => mood,
        }
    }

    fn speeds(self, scan: &Scan) -> WheelSpeeds {
        match self {
            Self::TurnLeft => WheelSpeeds::sides(-TURN_MM_S, TURN_MM_S),
            Self::TurnRight => WheelSpeeds::sides(TURN_MM_S, -TURN_MM_S),
            Self::Ahead => {
                let speed = ((ahead_mm(scan) - TURN_AT_MM) * 0.6 + 60.0).min(FASTEST_MM_S);
                // Steer away from obstacles at the sides.
                let left = nearest_mm(scan, -100.0, -25.0).min(600.0);
                let right = nearest_mm(scan, 25.0, 100.0).min(600.0);
                let turn = ((left - right) * 0.25).clamp(-0.4 * speed, 0.4 * speed);
                // With more space on the left, the right wheels turn faster.
                WheelSpeeds::sides((speed - turn) as i32, (speed + turn) as i32)
            }
        }
    }
}

/// The free distance straight ahead.
fn ahead_mm(scan: &Scan) -> f64 {
    let ahead = scan.valid_points().filter_map(|point| {
        let (angle, distance) = (point.angle_deg.to_radians(), f64::from(point.distance_mm));
        let (forward, aside) = (distance * angle.cos(), distance * angle.sin());
        (forward > 0.0 && aside.abs() < HALF_WIDTH_MM).then_some(forward)
    });
    ahead.fold(5_000.0, f64::min)
}

fn nearest_mm(scan: &Scan, from_deg: f64, to_deg: f64) -> f64 {
    let nearest = scan.nearest(from_deg..=to_deg);
    nearest.map_or(5_000.0, |point| f64::from(point.distance_mm))
}

/// The mean distance in a sector.
fn room_mm(scan: &Scan, from_deg: f64, to_deg: f64) -> f64 {
    let sector = scan
        .valid_points()
        .filter(|point| (from_deg..=to_deg).contains(&point.angle_deg));
    let (sum, count) = sector.fold((0.0, 0.0), |(sum, count), point| {
        (sum + f64::from(point.distance_mm), count + 1.0)
    });
    if count > 0.0 { sum / count } else { 0.0 }
}
