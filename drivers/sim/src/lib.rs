//! A simulated robot: a flat world with walls, and the robot's devices behind pseudo-terminals, for
//! development without a robot.
//!
//! ```text
//!            any program that uses the real devices
//!                 |  serial bytes            |  serial bytes, or TCP
//!           +-----v------+            +------v------+
//!   IO      | pty        |            | pty / tcp   |
//!           +-----+------+            +------+------+
//!   PURE    | roboclaw   |            | hokuyo      |   protocol machines:
//!           +-----+------+            +------+------+   bytes and time in, bytes out
//!                 | commands for motors      | ends of beams
//!           +-----v--------------------------v------+
//!   PURE    | world: robot, motors, walls, contacts |
//!           +---------------------------------------+
//! ```
//!
//! The other devices work in the same way: a NineDof board on an I2C bus, a StarGazer below the
//! markers of `ceiling`, and servos on a Maestro. A robot may also have a laser scanner of LDROBOT,
//! Slamtec or YDLIDAR, one more motion sensor (`motion_sensor`), servos on a PCA9685, a sensor INA2xx
//! of its battery, a GPS receiver, a gamepad, a camera, servos on a bus (`bus_servos`: those of Feetech
//! and of Dynamixel), an Arduino with Firmata whose pins programs use, and an Arduino (`diffdrive`), an
//! iRobot Create 2, VESCs or an ODrive that drive its wheels instead of the RoboClaws.
//!
//! The machines and the world have no clock; `simulator` contains the only loop. It advances the
//! world before each byte that arrives, so a device never answers with old measurements. It sleeps
//! while nothing moves and no device measures. Its time goes slower while the machine is too busy for
//! it: see `clock`.
//!
//! Internal units are metres, radians and seconds; angles are counter-clockwise, with x ahead and y
//! to the left. The modules of the devices document their external units.
//!
//! The first lines of each module say PURE or IO. PURE code only computes: it uses no sockets,
//! files, clocks or tasks, and gets the time as an argument. IO code talks to the outside.

mod battery;
pub mod bno055;
pub mod bus_servos;
pub mod camera;
pub mod ceiling;
pub mod cli;
mod clock;
pub mod clock_file;
pub mod control;
pub mod create2;
mod device;
pub mod diffdrive;
pub mod dynamixel;
pub mod feetech;
pub mod firmata;
mod first;
mod folder;
pub mod gamepad;
pub mod gps;
pub mod hokuyo;
pub mod i2c;
mod i2c_port;
pub mod icm20948;
pub mod ina2xx;
pub mod ldrobot;
pub mod lsm6dsox;
pub mod maestro;
pub mod motion_sensor;
pub mod mpu;
pub mod ninedof;
pub mod odrive;
pub mod pca9685;
pub mod pty;
mod ptys;
mod reset_line;
pub mod roboclaw;
pub mod robot;
pub mod rplidar;
mod scanner;
pub mod simulator;
pub mod stargazer;
pub mod tcp;
pub mod twin;
mod unix_server;
pub mod vesc;
pub mod wheels;
pub mod world;
pub mod ydlidar;

// The devices of the robot, in the order of lists: see `device`.
device::devices! {
    roboclaw: roboclaw::Options,
    diffdrive: diffdrive::Options,
    create2: create2::Options,
    vesc: vesc::Options,
    odrive: odrive::Options,
    hokuyo: hokuyo::Options,
    ldrobot: ldrobot::Options,
    rplidar: rplidar::Options,
    ydlidar: ydlidar::Options,
    ninedof: ninedof::Options,
    mpu: mpu::Options,
    ina2xx: ina2xx::Options,
    firmata: firmata::Options,
    feetech: feetech::Options,
    dynamixel: dynamixel::Options,
    lsm6dsox: lsm6dsox::Options,
    icm20948: icm20948::Options,
    bno055: bno055::Options,
    gps: gps::Options,
    gamepad: gamepad::Options,
    stargazer: stargazer::Options,
    maestro: maestro::Config,
    pca9685: pca9685::Options,
    camera: camera::Options,
}
