//! What the shared logic needs to know of a model of motion sensors. PURE.

use amber_proto::ninedof::SensorData;

use super::calibration::Calibration;
use super::chip::{Chip, Digits};
use super::sensors::Sensors;
use super::units::Measured;

/// The settings of the driver of one model.
pub trait Model: Send + 'static {
    /// What its chips measure.
    type Raw: Digits;

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

    /// Whether messages have a time, which those of the original lack.
    fn has_time(&self) -> bool {
        true
    }
}
