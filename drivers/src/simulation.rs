//! Drivers whose devices are in the same process, for tests/simulation: with a clock that is paused,
//! they run faster than real time. IO.

use std::error::Error;

use amber_driver::devices::{board, gamepad, gps, hokuyo, maestro, roboclaw};
use amber_driver::serve_on;
use clap::{Command, FromArgMatches, Subcommand};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connection::Connect;
use crate::i2c::OpenBus;
use crate::scanner::driver::LaserDriver;
use crate::{
    BuiltIn, create2, diffdrive, firmata, gamepad as pad, gps as receiver, ina2xx, ldrobot,
    motion_sensor, odrive, pca9685, rplidar, vesc, wheels, ydlidar,
};

/// Serves a driver, given by its name and its options, until the reader ends. Its device is at
/// `connect`, or on a chip at `bus`, wherever the options say that it is.
///
/// # Errors
/// There is no such driver here, an option is wrong, or one of the streams fails.
pub async fn serve(
    words: &[&str],
    connect: impl Connect,
    bus: impl OpenBus,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> Result<(), Box<dyn Error>> {
    use BuiltIn::{
        Bno055, Create2, Diffdrive, Firmata, Gamepad, Gps, Icm20948, Ina2xx, Ldrobot, Lsm6dsox,
        Mpu, Odrive, Pca9685, Rplidar, Vesc, Ydlidar,
    };
    /// Serves a driver.
    macro_rules! serve {
        ($driver:expr) => {
            serve_on($driver, reader, writer).await?
        };
    }
    /// Serves the driver of wheels with this logic.
    macro_rules! wheels {
        ($logic:ty, $options:ident) => {{
            let settings = $options.settings()?.0;
            serve!(roboclaw::driver(wheels::stream::driver::<$logic, _>(
                settings, connect
            )))
        }};
    }
    /// Serves the driver of a motion sensor.
    macro_rules! motion_sensor {
        ($options:ident) => {
            serve!(motion_sensor::options::driver($options.setup()?.0, bus))
        };
    }
    match parse(words)? {
        Ldrobot(options) => {
            let driver =
                LaserDriver::<ldrobot::logic::LdrobotLogic, _>::new(options.settings()?.0, connect);
            serve!(hokuyo::driver(driver));
        }
        Rplidar(options) => {
            let driver = rplidar::Rplidar::new(options.settings()?.0, connect);
            serve!(hokuyo::driver(driver));
        }
        Ydlidar(options) => {
            let driver =
                LaserDriver::<ydlidar::logic::YdlidarLogic, _>::new(options.settings()?.0, connect);
            serve!(hokuyo::driver(driver));
        }
        Mpu(options) => motion_sensor!(options),
        Lsm6dsox(options) => motion_sensor!(options),
        Icm20948(options) => motion_sensor!(options),
        Bno055(options) => motion_sensor!(options),
        Create2(options) => wheels!(create2::logic::Create2Logic, options),
        Diffdrive(options) => wheels!(diffdrive::logic::DiffdriveLogic, options),
        Odrive(options) => wheels!(odrive::logic::OdriveLogic, options),
        Vesc(options) => {
            let settings = options.settings()?.0;
            serve!(roboclaw::driver(vesc::driver::driver(
                settings, connect, None
            )));
        }
        Pca9685(options) => {
            let (settings, servos, _) = options.settings()?;
            serve!(maestro::driver(pca9685::driver::driver(
                settings, servos, bus
            )));
        }
        Ina2xx(options) => {
            let (settings, pack, _) = options.settings()?;
            serve!(ina2xx::driver(settings, pack, bus));
        }
        Gps(options) => {
            let driver = receiver::driver::Gps::new(options.settings()?.0, connect);
            serve!(gps::driver(driver));
        }
        Gamepad(options) => {
            let driver = pad::driver::Gamepad::new(options.settings()?.0, connect);
            serve!(gamepad::driver(driver));
        }
        Firmata(options) => {
            let settings = options.settings()?.0;
            serve!(board::driver(firmata::driver::driver(settings, connect)));
        }
        _ => return Err(format!("{words:?} is not simulated here").into()),
    }
    Ok(())
}

fn parse(words: &[&str]) -> Result<BuiltIn, clap::Error> {
    let command = Command::new("driver").no_binary_name(true);
    let matches = BuiltIn::augment_subcommands(command).try_get_matches_from(words)?;
    BuiltIn::from_arg_matches(&matches)
}
