//! The table of all probes: what each one sends, and why that is safe. PURE.

/// A device that has a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A laser scanner.
    Hokuyo,
    /// Motor controllers.
    Roboclaw,
    /// A servo controller.
    Maestro,
    /// A sensor for markers on the ceiling.
    Stargazer,
    /// Motion sensors of three chips.
    Ninedof,
    /// A laser scanner that turns all the time.
    Ldrobot,
    /// A motion sensor of one chip.
    Mpu,
    /// A base with two wheels and an Arduino.
    Diffdrive,
    /// A laser scanner that says which one it is.
    Rplidar,
    /// A servo controller of one chip.
    Pca9685,
    /// A laser scanner that may say which one it is.
    Ydlidar,
    /// A sensor for the voltage and the current of the battery.
    Ina2xx,
    /// A motion sensor, with a magnetometer beside it.
    Lsm6dsox,
    /// A motion sensor with a magnetometer behind it.
    Icm20948,
    /// A motion sensor that computes its attitude.
    Bno055,
    /// An Arduino whose pins programs use.
    Firmata,
    /// A GPS receiver.
    Gps,
    /// A base that is a robot for cleaning, or was one.
    Create2,
    /// Motor controllers of two wheels.
    Vesc,
    /// A motor controller of two wheels.
    Odrive,
    /// A USB camera.
    Camera,
    /// Servos on a bus.
    Feetech,
    /// The same of another maker.
    Dynamixel,
}

/// How a device is recognized.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// The device.
    pub kind: Kind,
    /// The name of its driver.
    pub driver: &'static str,
    /// The name of its device type.
    pub device: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// What the probe sends, for people.
    pub sends: &'static str,
    /// Why that is safe.
    pub is_safe: &'static str,
    /// What to check if it does not answer.
    pub if_silent: &'static str,
}

/// All probes. docs/init.md has the same table.
pub static PROBES: [Probe; 23] = [
    Probe {
        kind: Kind::Hokuyo,
        driver: "hokuyo",
        device: "hokuyo",
        about: "Hokuyo laser scanner",
        sends: "`VV`: the question for its version",
        is_safe: "it only reads; the laser and its motor stay as they are",
        if_silent: "it needs some seconds after it was switched on",
    },
    Probe {
        kind: Kind::Roboclaw,
        driver: "roboclaw",
        device: "roboclaw",
        about: "RoboClaw motor controller",
        sends: "command 21, the question for the firmware, to the addresses 128 to 135",
        is_safe: "it only reads, and a RoboClaw answers it without a change of its motors; a port is \
                  asked only if USB says that it is a RoboClaw, or you do",
        if_silent: "a controller needs its main battery, and in Motion Studio: Packet Serial, 38400 \
                    baud, and the address 128; with two, 129 for the one of the front wheels",
    },
    Probe {
        kind: Kind::Maestro,
        driver: "maestro",
        device: "maestro",
        about: "Pololu Maestro servo controller",
        sends: "command 90 00, the question for the position of servo 0",
        is_safe: "it only reads; no servo gets a target",
        if_silent: "its serial mode must be USB Dual Port, in the Maestro Control Center",
    },
    Probe {
        kind: Kind::Stargazer,
        driver: "stargazer",
        device: "stargazer",
        about: "Hagisonic StarGazer",
        sends: "nothing: it listens for two seconds",
        is_safe: "the device reports by itself; a port is opened only if you say that it is a StarGazer",
        if_silent: "it must be switched on and send at 115200 baud",
    },
    Probe {
        kind: Kind::Ninedof,
        driver: "ninedof",
        device: "ninedof",
        about: "motion sensors LSM303DLHC and L3GD20",
        sends: "I2C reads of the identity registers at the addresses 1e, 19, 6b and 6a (and 69 and 68 \
                beside a chip at 1e)",
        is_safe: "a read of a register changes no setting of these chips; other addresses are not used, \
                  nor the buses of graphics cards and mainboards",
        if_silent: "the sensors need power, and the wires SDA and SCL",
    },
    Probe {
        kind: Kind::Ldrobot,
        driver: "ldrobot",
        device: "hokuyo",
        about: "LDROBOT laser scanner",
        sends: "nothing: it listens for a second, at 230400 baud",
        is_safe: "the scanner reports by itself; a port is opened only if you say that it is such a scanner",
        if_silent: "it must turn, and send at 230400 baud: check its 5 V, and the wire to TX. An STL-27L \
                    sends at 921600 baud: configure it by hand, with --model",
    },
    Probe {
        kind: Kind::Mpu,
        driver: "mpu",
        device: "ninedof",
        about: "motion sensor MPU",
        sends: "I2C reads of the registers 75 and 6b at the addresses 68 and 69",
        is_safe: "a read of these registers changes no setting of the sensors, nor of the clocks that \
                  have the same address",
        if_silent: "the sensor needs power, and the wires SDA and SCL",
    },
    Probe {
        kind: Kind::Diffdrive,
        driver: "diffdrive",
        device: "roboclaw",
        about: "Arduino base with two wheels",
        sends: "an empty line, at 57600 baud, after 2.5 seconds",
        is_safe: "the firmware of ros_arduino_bridge and that of Andino answer it with an error; opening \
                  the port restarts the Arduino, which stops its motors; a port is opened only if you \
                  say that it is such a base",
        if_silent: "the Arduino needs the firmware of ros_arduino_bridge or of Andino, at 57600 baud. If \
                    yours has another speed, configure it by hand, with --baud",
    },
    Probe {
        kind: Kind::Rplidar,
        driver: "rplidar",
        device: "hokuyo",
        about: "RPLIDAR laser scanner",
        sends: "A5 25 to end a scan, and A5 50, the question for its model, at 115200, 256000, 460800 \
                and 1000000 baud until it answers",
        is_safe: "it only reads; the motor of some models turns while a program has the port open; a \
                  port is opened only if you say that it is such a scanner",
        if_silent: "check its 5 V, which must give 1.5 A, and whether TX and RX are exchanged",
    },
    Probe {
        kind: Kind::Pca9685,
        driver: "pca9685",
        device: "maestro",
        about: "servo controller PCA9685",
        sends: "I2C reads of the registers 02 to 05 at the addresses 40 to 47 and 60",
        is_safe: "a read of a register changes no setting of this chip, nor of the sensors of current and \
                  of temperature that have the same addresses",
        if_silent: "the board needs 3.3 V or 5 V at VCC beside the supply of the servos, and the wires SDA \
                    and SCL; its address is 40 without solder",
    },
    Probe {
        kind: Kind::Ydlidar,
        driver: "ydlidar",
        device: "hokuyo",
        about: "YDLIDAR laser scanner",
        sends: "A5 00 and A5 65 to end a scan, and A5 90, the question for its model, at 115200, 128000 \
                and 230400 baud until it answers or sends packets by itself",
        is_safe: "it only reads; the motor of some models turns while a program has the port open; a \
                  port is opened only if you say that it is such a scanner",
        if_silent: "check its 5 V, which must give 1 A, and its wires. One that takes no commands must \
                    turn",
    },
    Probe {
        kind: Kind::Ina2xx,
        driver: "ina2xx",
        device: "battery",
        about: "battery sensor",
        sends: "I2C reads of the register 00 at the addresses 40 to 4f, and, where a chip answers, of fe, \
                ff and 01 to 05",
        is_safe: "a read of these registers changes no setting of the chips that have these addresses: \
                  servo controllers, thermometers, converters",
        if_silent: "the sensor needs 3.3 V, even if the battery is connected to it, and the wires SDA and \
                    SCL",
    },
    Probe {
        kind: Kind::Lsm6dsox,
        driver: "lsm6dsox",
        device: "ninedof",
        about: "motion sensor LSM6DSOX or a relative",
        sends: "I2C reads of the register 0f at the addresses 6a and 6b",
        is_safe: "a read of this register changes no setting of the sensors, nor of the gyroscopes that \
                  have the same address",
        if_silent: "the sensor needs power, and the wires SDA and SCL",
    },
    Probe {
        kind: Kind::Icm20948,
        driver: "icm20948",
        device: "ninedof",
        about: "motion sensor ICM-20948",
        sends: "I2C reads of the registers 00 and 06 at the addresses 69 and 68",
        is_safe: "a read of these registers changes no setting of the sensor, nor of the sensors and clocks \
                  that have the same address",
        if_silent: "the sensor needs power, and the wires SDA and SCL; if another program has used it, \
                    switch its power off and on",
    },
    Probe {
        kind: Kind::Bno055,
        driver: "bno055",
        device: "ninedof",
        about: "motion sensor BNO055",
        sends: "I2C reads of the registers 00 to 05 at the addresses 28 and 29",
        is_safe: "a read of these registers changes no setting of the sensor, nor of the range finders that \
                  have the same address",
        if_silent: "the sensor needs power, and a second to start; check the wires SDA and SCL",
    },
    Probe {
        kind: Kind::Firmata,
        driver: "firmata",
        device: "board",
        about: "Arduino with Firmata",
        sends: "F9, the question for the version, at 57600 baud, after 2.5 seconds, and F0 79 F7, that for \
                the program, if it answers",
        is_safe: "it only reads; opening the port restarts the Arduino, whose program then makes most \
                  pins outputs that are low; a port is opened only if you say that it is such a board",
        if_silent: "the Arduino needs a program such as StandardFirmata, at 57600 baud. If yours has another \
                    speed, configure it by hand, with --baud",
    },
    Probe {
        kind: Kind::Gps,
        driver: "gps",
        device: "gps",
        about: "GPS receiver",
        sends: "nothing: it listens for a second, at 9600, 38400 and 115200 baud until a sentence arrives",
        is_safe: "the receiver reports by itself; a port is opened only if USB says that it is a receiver of \
                  u-blox, or you say that it is one",
        if_silent: "it needs its supply, and a wire from its TX; some send at another speed, or UBX instead \
                    of NMEA: configure it by hand, with --baud",
    },
    Probe {
        kind: Kind::Create2,
        driver: "create2",
        device: "roboclaw",
        about: "iRobot Create 2 or Roomba",
        sends: "80 to start its interface and 96 00 to end a stream, twice, and 8E 23, the question for its \
                mode, at 115200 baud",
        is_safe: "no motor starts, and a robot that cleans stops; a port is opened only if you say that it \
                  is such a robot",
        if_silent: "it sleeps after five minutes: press its CLEAN button. Check its battery and its cable",
    },
    Probe {
        kind: Kind::Vesc,
        driver: "vesc",
        device: "roboclaw",
        about: "VESC motor controller",
        sends: "command 0, the question for the firmware, at 115200 baud",
        is_safe: "it only reads, and a VESC answers it without a change of its motor; a port is opened only \
                  if you say that it is a VESC",
        if_silent: "a VESC needs its battery. At a UART, choose it in VESC Tool: App Settings, General, App \
                    to Use; its speed there must be 115200 baud",
    },
    Probe {
        kind: Kind::Odrive,
        driver: "odrive",
        device: "roboclaw",
        about: "ODrive motor controller",
        sends: "an empty line, and `i`, the question for its firmware, at 115200 baud",
        is_safe: "it only reads, and an ODrive answers it without a change of its motors; a port is asked \
                  only if USB says that it is an ODrive, or you do",
        if_silent: "an ODrive needs its supply, and firmware 0.5. At a UART, its speed must be 115200 baud",
    },
    Probe {
        kind: Kind::Camera,
        driver: "camera",
        device: "camera",
        about: "USB camera",
        sends: "nothing: it asks the system which pictures the camera offers",
        is_safe: "the camera stays off",
        if_silent: "unplug it for a moment",
    },
    Probe {
        kind: Kind::Feetech,
        driver: "feetech",
        device: "bus-servos",
        about: "Feetech servos on a bus",
        sends: "reads of the registers 3 to 33 and, where a servo answers, of those for its state, to the \
                ids 1 to 12, at 1000000 baud",
        is_safe: "a read changes no setting of a servo, and nothing moves; a port is opened only if you say \
                  that it is such a bus",
        if_silent: "the servos need their own supply. `amber servo scan --all-speeds` looks for others",
    },
    Probe {
        kind: Kind::Dynamixel,
        driver: "dynamixel",
        device: "bus-servos",
        about: "Dynamixel servos on a bus",
        sends: "reads of the registers 0 to 146 and, where a servo answers, of those for its state, to the \
                ids 1 to 12, at 57600 and 1000000 baud until one answers",
        is_safe: "a read changes no setting of a servo, and nothing moves; a port is opened only if you say \
                  that it is such a bus",
        if_silent: "the servos need their own supply. `amber servo scan --maker dynamixel --all-speeds` \
                    looks for others",
    },
];

impl Kind {
    /// Its row in the table.
    #[must_use]
    pub fn probe(self) -> &'static Probe {
        // In the same order: a test compares them.
        &PROBES[self as usize]
    }

    /// The types of the devices that its driver serves besides, in the same process.
    #[must_use]
    pub fn besides(self) -> &'static [&'static str] {
        match self {
            Self::Create2 => &["bumper"],
            _ => &[],
        }
    }

    /// The option of its driver that says where it is.
    #[must_use]
    pub fn place_option(self) -> &'static str {
        match self {
            Self::Camera => "--device",
            _ if self.is_on_i2c() => "--bus",
            _ => "--port",
        }
    }

    /// Whether it is at a serial port, where nothing may say what is connected.
    #[must_use]
    pub fn is_serial(self) -> bool {
        self.place_option() == "--port"
    }

    /// Whether it is on an I2C bus.
    #[must_use]
    pub fn is_on_i2c(self) -> bool {
        matches!(
            self,
            Self::Ninedof
                | Self::Mpu
                | Self::Pca9685
                | Self::Ina2xx
                | Self::Lsm6dsox
                | Self::Icm20948
                | Self::Bno055
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_row() {
        for probe in &PROBES {
            assert_eq!(
                probe.kind.probe().driver,
                probe.driver,
                "the order of the kinds"
            );
            assert!(!probe.is_safe.is_empty() && !probe.sends.is_empty());
        }
    }
}
