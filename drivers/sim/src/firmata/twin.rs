//! The board in the robot, and what is connected to its pins. PURE.
//!
//! A switch between pin 2 and ground is closed while the robot touches a wall. A0 has a quarter of the
//! voltage of the main battery, and A1 one volt for each metre to the nearest wall.

use std::time::Duration;

use super::{Firmata, Model, OUTPUT, PWM, Pin, SERVO};
use crate::ceiling::Ceiling;
use crate::control::{self, SimulationState};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::wheels::Reading;
use crate::world::World;

/// The pin with the switch.
const BUMPER: u8 = 2;
/// The channel with the voltage of the battery, and how it is divided.
const BATTERY: u8 = 0;
const DIVIDER: f64 = 4.0;
/// The channel with the distance to the nearest wall.
const WALL: u8 = 1;

/// The board.
pub const DEVICE: Device = Device {
    name: "firmata",
    connection: Connection::Serial,
    is_extra: true,
    driver: "firmata",
    options: &[
        "--pin",
        "bumper=2:input-pull-up",
        "--pin",
        "battery=A0:analog",
        "--pin",
        "wall=A1:analog",
        "--pin",
        "led=13:output",
        "--pin",
        "motor=5:pwm",
        "--pin",
        "pan=9:servo",
    ],
    files: &[],
    model_option: None,
    demonstrations: &[("call board set-digital led true", "switch a light on")],
};

/// The variants of the board.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Add an Arduino with StandardFirmata, with a bumper, two analog inputs and outputs
    #[arg(id = "firmata", long, value_name = "MODEL", value_enum)]
    pub model: Option<Model>,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |model| Box::new(Firmata::new(model, Duration::ZERO)) as Box<dyn Twin>;
        let twins = self.model.map(twin).into_iter();
        twins.map(|twin| (DEVICE, twin)).collect()
    }
}

impl Twin for Firmata {
    fn advance(&mut self, now: Duration, around: &mut Surroundings<'_>) {
        let touches = around.world.is_touching();
        self.connect(BUMPER, touches.then_some(false));
        self.set_volts(BATTERY, self.battery.volts() / DIVIDER);
        self.set_volts(WALL, around.world.clearance_m());
        Firmata::advance(self, now);
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Firmata::handle_bytes(self, now, bytes);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Firmata::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Firmata::next_timeout(self)
    }

    /// It gets its power by USB.
    fn handle_plug_in(&mut self, now: Duration) {
        *self = self.restarted(now);
    }

    fn set_battery_v(&mut self, volts: Option<f64>) {
        self.battery.force_v(volts);
    }

    fn set_battery_sag(&mut self, sags: bool) {
        self.battery.set_sag(sags);
    }

    fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        self.battery.handle_readings(now, readings);
    }

    fn show(&self, _world: &World, _ceiling: &Ceiling, state: &mut SimulationState) {
        let shown = |(number, pin): (u8, &Pin)| {
            let (mode, value) = match pin.mode {
                OUTPUT => ("output", pin.state),
                PWM => ("pwm", pin.state),
                SERVO => ("servo", pin.pulse_us),
                _ => return None,
            };
            let mode = mode.to_owned();
            Some(control::BoardPin {
                number,
                mode,
                value,
            })
        };
        state.board = (0..).zip(self.pins()).filter_map(shown).collect();
    }
}
