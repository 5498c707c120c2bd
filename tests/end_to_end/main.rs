//! End-to-end tests with real processes over loopback, one file per promise.
//!
//! Every mediator listens on port 0. Tests never use fixed sleeps: they wait for a condition, and
//! fail with the log of the mediator if it does not occur.

#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub)]

mod common;

mod arm;
mod bases;
mod batteries;
mod bench;
mod boards;
mod bus_servos;
mod camera;
mod chaos;
mod cli;
mod configuration;
#[cfg(feature = "web")]
mod dashboard;
mod demo;
#[cfg(feature = "discovery")]
mod discovery;
// Builds without all features lack commands.
#[cfg(all(
    feature = "discovery",
    feature = "record",
    feature = "top",
    feature = "web"
))]
mod documented;
mod driving;
mod fairness;
mod feed;
mod follow_wall;
mod foreign_robots;
#[cfg(feature = "web")]
mod foxglove;
#[cfg(feature = "record")]
mod gallery;
mod gamepad;
mod gateway_programs;
mod gateway_protocols;
mod gateways;
mod geometry;
mod gps;
mod i2c_servos;
mod init;
mod kit;
mod languages;
mod laser_scanners;
mod limits;
mod location;
mod logs;
mod lost_clients;
mod map;
mod map_show;
mod markers;
mod markers_and_servos;
mod motion_sensors;
mod network;
mod new_device;
mod ninedof;
mod no_survivors;
mod old_clients;
mod one_driver;
#[cfg(feature = "web")]
mod over_wifi;
mod overview;
#[cfg(all(feature = "record", feature = "web"))]
mod pictures;
#[cfg(feature = "record")]
mod play;
mod python_package;
#[cfg(feature = "record")]
mod record;
mod relay;
mod restart;
mod return_home;
mod roaming;
mod robot;
mod rosbridge;
mod routing;
mod sdk;
mod sensors;
mod service;
mod servo;
mod shape;
mod streams;
mod teleop;
mod terminal;
mod tidy;
mod trouble;
mod wheel_bases;
mod who_drives;
