//! What the shared logic needs to know of a model of motion sensors. PURE.

use amber_proto::ninedof::{Attitude, SensorData};

use super::attitude::attitude;
use super::calibration::Calibration;
use super::chip::{Chip, Digits};
use super::sensors::Sensors;
use super::service::ServiceKind;
use super::units::Measured;

/// The settings of the driver of one model.
pub trait Model: Send + 'static {
    /// What its chips measure.
    type Raw: Digits;

    /// Takes what it needs of what was stored, before it makes its chips.
    fn recall(&mut self, _calibration: &Calibration) {}

    /// Its chips, in the order in which they are read.
    fn chips(&self) -> Vec<Box<dyn Chip<Self::Raw>>>;

    /// Whether to measure the gyroscope bias at the start if it is unknown.
    fn measures_bias(&self) -> bool;

    /// Converts digits to units, and subtracts the known errors.
    fn measured(&self, raw: Self::Raw, calibration: &Calibration) -> Measured;

    /// The requested groups that were measured, as messages have them.
    fn sensor_data(&self, sensors: Sensors, _raw: Self::Raw, measured: Measured) -> SensorData {
        measured.data(sensors)
    }

    /// Heading and tilt; `None` if they are not known.
    fn attitude(
        &self,
        _raw: Self::Raw,
        measured: Measured,
        calibration: &Calibration,
    ) -> Option<Attitude> {
        attitude(measured, calibration)
    }

    /// What is to be stored from now on, if a sensor that calibrates itself has told something new.
    fn learned(&self, _raw: Self::Raw, _calibration: &Calibration) -> Option<Calibration> {
        None
    }

    /// How far the calibration of a sensor is that calibrates itself: well, or what to do. `None` if the
    /// driver measures it.
    fn own_calibration(
        &self,
        _kind: ServiceKind,
        _raw: Self::Raw,
    ) -> Option<Result<String, String>> {
        None
    }

    /// Whether messages have a time, which those of the original lack.
    fn has_time(&self) -> bool {
        true
    }
}
