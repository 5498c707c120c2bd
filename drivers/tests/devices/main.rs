//! Whole drivers against devices that are not real. One program: linking costs more than
//! these tests.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

mod bno055_drive;
mod camera_drive;
mod common;
mod dummy;
mod gamepad_drive;
mod gps_drive;
mod icm20948_drive;
mod ina2xx_drive;
mod lsm6dsox_drive;
mod markers_drive;
mod motion_drive;
mod mpu_drive;
mod ninedof_drive;
mod odrive_drive;
mod python_example;
mod simulated;
mod vesc_drive;
mod wheels;
