//! The known errors of the chips: how they are measured and stored. PURE.
//!
//! A gyroscope reports a turn rate even at rest: its *bias*, a few degrees per second, which
//! depends on the chip and the temperature. A magnetometer also senses the robot's own magnets and
//! iron, which turn with the robot: the *hard iron*.

use serde::{Deserialize, Serialize};

use super::units::{Axes, Measured};

/// The known errors of the chips.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Calibration {
    gyro: Option<Gyro>,
    magnet: Option<Magnet>,
    bno055: Option<Bno055>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gyro {
    bias_deg_s: Axes,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Magnet {
    hard_iron_mgauss: Axes,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bno055 {
    profile: Profile,
}

/// What a BNO055 has learned of its errors, as its registers have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Profile([u8; 22]);

impl Profile {
    pub(crate) fn new(bytes: [u8; 22]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(self) -> [u8; 22] {
        self.0
    }
}

impl From<Profile> for String {
    fn from(profile: Profile) -> Self {
        profile.0.map(|byte| format!("{byte:02x}")).concat()
    }
}

impl TryFrom<String> for Profile {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digits: Option<Vec<_>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let bytes = digits.unwrap_or_default();
        let bytes: Vec<_> = bytes
            .chunks_exact(2)
            .map(|it| (it[0] << 4 | it[1]) as u8)
            .collect();
        match (text.len(), bytes.try_into()) {
            (44, Ok(bytes)) => Ok(Self(bytes)),
            _ => Err("the profile must have 44 hexadecimal digits"),
        }
    }
}

const HEAD: &str = "\
# Written by a driver of motion sensors; remove a section to forget it.
# Numbers are for x to the right, y ahead, z up.

";

impl Calibration {
    /// Creates a calibration with this gyroscope bias and this hard iron.
    pub fn new(bias_deg_s: Option<Axes>, hard_iron_mgauss: Option<Axes>) -> Self {
        Self {
            gyro: bias_deg_s.map(|bias_deg_s| Gyro { bias_deg_s }),
            magnet: hard_iron_mgauss.map(|hard_iron_mgauss| Magnet { hard_iron_mgauss }),
            bno055: None,
        }
    }

    /// What a BNO055 has learned.
    pub fn profile(&self) -> Option<Profile> {
        self.bno055.map(|bno055| bno055.profile)
    }

    /// Returns the calibration with another profile.
    #[must_use]
    pub fn with_profile(mut self, profile: Profile) -> Self {
        self.bno055 = Some(Bno055 { profile });
        self
    }

    /// The gyroscope bias in degrees per second; 0 if unknown.
    pub fn gyro_deg_s(&self) -> Axes {
        self.gyro.map(|gyro| gyro.bias_deg_s).unwrap_or_default()
    }

    /// The robot's own field in milligauss; 0 if unknown.
    pub fn magnet_mgauss(&self) -> Axes {
        (self.magnet)
            .map(|magnet| magnet.hard_iron_mgauss)
            .unwrap_or_default()
    }

    /// Whether the bias is known.
    pub fn knows_gyro(&self) -> bool {
        self.gyro.is_some()
    }

    /// Whether the hard iron is known.
    pub fn knows_magnet(&self) -> bool {
        self.magnet.is_some()
    }

    /// Returns the calibration with another bias, rounded to significant digits.
    #[must_use]
    pub fn with_gyro(mut self, bias_deg_s: Axes) -> Self {
        let bias_deg_s = rounded(bias_deg_s, 1000.0);
        self.gyro = Some(Gyro { bias_deg_s });
        self
    }

    /// Returns the calibration with another hard iron, rounded to significant digits.
    #[must_use]
    pub fn with_magnet(mut self, hard_iron_mgauss: Axes) -> Self {
        let hard_iron_mgauss = rounded(hard_iron_mgauss, 10.0);
        self.magnet = Some(Magnet { hard_iron_mgauss });
        self
    }

    /// The contents for a calibration file.
    pub fn to_toml(&self) -> String {
        // Numbers in named sections can always be written as TOML.
        let sections = toml::to_string(self).unwrap_or_default();
        format!("{HEAD}{sections}")
    }

    /// Parses a calibration file.
    ///
    /// # Errors
    /// Describes the error, with its line, if the text does not have the form written by
    /// [`Calibration::to_toml`].
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let calibration: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let numbers = [calibration.gyro_deg_s(), calibration.magnet_mgauss()];
        match numbers
            .as_flattened()
            .iter()
            .all(|number| number.is_finite())
        {
            true => Ok(calibration),
            false => Err("not all numbers are finite".into()),
        }
    }
}

fn rounded(axes: Axes, per_unit: f64) -> Axes {
    axes.map(|axis| (axis * per_unit).round() / per_unit)
}

/// Readings over some time, uncalibrated.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    accel_mg: Vec<Axes>,
    gyro_deg_s: Vec<Axes>,
    magnet_mgauss: Vec<Axes>,
}

/// The minimum number of readings for a result.
pub(super) const MIN_SAMPLES: usize = 20;

/// The largest plausible bias of these gyroscopes, in degrees per second.
const MAX_BIAS_DEG_S: f64 = 25.0;
/// Sensor noise is a fifth of this.
const MAX_SHAKE_DEG_S: f64 = 1.0;
/// At rest the direction of the field changes only by noise.
const MAX_FIELD_SHIFT_MGAUSS: f64 = 8.0;

/// A turn for the compass must cover all of these sectors.
const SIDES: usize = 12;
/// The horizontal field on Earth, allowing for some iron nearby.
const FIELD_MGAUSS: std::ops::RangeInclusive<f64> = 50.0..=600.0;
/// The maximum deviation of the readings from the circle, as a fraction of its radius.
const MAX_OUT_OF_ROUND: f64 = 0.15;

impl Samples {
    /// Adds a reading.
    pub fn push(&mut self, measured: Measured) {
        self.accel_mg.extend(measured.accel_mg);
        self.gyro_deg_s.extend(measured.gyro_deg_s);
        self.magnet_mgauss.extend(measured.magnet_mgauss);
    }

    /// The bias of a gyroscope at rest.
    ///
    /// # Errors
    /// Describes why these readings give no bias.
    pub fn gyro_bias(&self) -> Result<Axes, String> {
        let (mean, deviation) = spread(&self.gyro_deg_s)?;
        let moves = deviation.iter().any(|axis| *axis > MAX_SHAKE_DEG_S)
            || mean.iter().any(|axis| axis.abs() > MAX_BIAS_DEG_S)
            || self.field_has_turned();
        match moves {
            true => Err("the robot is moving; it must stand still".into()),
            false => Ok(mean),
        }
    }

    /// Whether the field changed direction between the first and the second half. A steady turn
    /// looks like a bias to the gyroscope.
    fn field_has_turned(&self) -> bool {
        let (first, second) = self.magnet_mgauss.split_at(self.magnet_mgauss.len() / 2);
        match (spread(first), spread(second)) {
            (Ok((first, _)), Ok((second, _))) => {
                (first.iter().zip(second)).any(|(a, b)| (a - b).abs() > MAX_FIELD_SHIFT_MGAUSS)
            }
            _ => false,
        }
    }

    /// The field of a robot that has turned round on level ground. The vertical part cannot be
    /// separated from the Earth's field and is assumed to be 0.
    ///
    /// # Errors
    /// Describes why these readings give no result (yet).
    pub fn hard_iron(&self) -> Result<Axes, String> {
        spread(&self.magnet_mgauss)?;
        let circle = Circle::through(&self.magnet_mgauss)
            .filter(|circle| FIELD_MGAUSS.contains(&circle.radius))
            .ok_or("the robot has not turned")?;
        let mut seen = [false; SIDES];
        let mut off = 0.0;
        for [x, y, _] in &self.magnet_mgauss {
            let (x, y) = (x - circle.x, y - circle.y);
            let side = y.atan2(x) / std::f64::consts::TAU + 0.5;
            seen[((side * SIDES as f64) as usize).min(SIDES - 1)] = true;
            off += (x.hypot(y) - circle.radius).powi(2);
        }
        if seen.contains(&false) {
            return Err("the robot has not turned all the way round".into());
        }
        let off = (off / self.magnet_mgauss.len() as f64).sqrt();
        if off > MAX_OUT_OF_ROUND * circle.radius {
            return Err(
                "the field is uneven: a magnetic object is near, or the robot tilted".into(),
            );
        }
        Ok([circle.x, circle.y, 0.0])
    }

    /// Means and deviations of each sensor for a robot at rest.
    pub fn findings(&self, calibration: &Calibration) -> [Result<String, String>; 3] {
        [
            self.accel_finding(),
            self.gyro_finding(calibration),
            self.magnet_finding(calibration),
        ]
    }

    fn accel_finding(&self) -> Result<String, String> {
        let (mean, deviation) = spread(&self.accel_mg)?;
        let (length, shake) = (length(mean), length(deviation));
        let text = format!("{length:.0} mg in total, {shake:.0} mg of noise");
        verdict((900.0..=1100.0).contains(&length) && shake < 100.0, text)
    }

    fn gyro_finding(&self, calibration: &Calibration) -> Result<String, String> {
        let (mean, deviation) = spread(&self.gyro_deg_s)?;
        let bias = calibration.gyro_deg_s();
        let rate = length([mean[0] - bias[0], mean[1] - bias[1], mean[2] - bias[2]]);
        let shake = length(deviation);
        let text = format!("{rate:.2} deg/s at rest, {shake:.2} deg/s of noise");
        let is_known = calibration.knows_gyro();
        let most = if is_known { 1.0 } else { MAX_BIAS_DEG_S };
        verdict(rate < most && shake < 2.0, text)
    }

    fn magnet_finding(&self, calibration: &Calibration) -> Result<String, String> {
        let (mean, deviation) = spread(&self.magnet_mgauss)?;
        let own = calibration.magnet_mgauss();
        let field = length([mean[0] - own[0], mean[1] - own[1], mean[2] - own[2]]);
        let shake = length(deviation);
        let text = format!("{field:.0} milligauss in total, {shake:.0} of noise");
        verdict((200.0..=900.0).contains(&field) && shake < 50.0, text)
    }
}

fn verdict(good: bool, text: String) -> Result<String, String> {
    match good {
        true => Ok(text),
        false => Err(format!("{text}: implausible for a robot at rest")),
    }
}

/// Mean and standard deviation of each axis.
fn spread(readings: &[Axes]) -> Result<(Axes, Axes), String> {
    if readings.len() < MIN_SAMPLES {
        return Err(format!(
            "{} readings, but {MIN_SAMPLES} are needed",
            readings.len()
        ));
    }
    let count = readings.len() as f64;
    let mean = [0, 1, 2].map(|k| readings.iter().map(|axes| axes[k]).sum::<f64>() / count);
    let deviation = [0, 1, 2].map(|k| {
        let squares = readings.iter().map(|axes| (axes[k] - mean[k]).powi(2));
        (squares.sum::<f64>() / count).sqrt()
    });
    Ok((mean, deviation))
}

fn length(axes: Axes) -> f64 {
    axes.iter().map(|axis| axis * axis).sum::<f64>().sqrt()
}

/// A circle in the plane of x and y.
#[derive(Clone, Copy, Debug)]
struct Circle {
    x: f64,
    y: f64,
    radius: f64,
}

impl Circle {
    /// The circle with the least squared error of the radius; `None` if the points are on a line.
    fn through(points: &[Axes]) -> Option<Self> {
        // Relative to the mean, the equations for the centre are independent of the one for the
        // radius.
        let count = points.len() as f64;
        let mean = |k: usize| points.iter().map(|axes| axes[k]).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(0), mean(1));
        let (mut xx, mut xy, mut yy, mut xr, mut yr) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for [x, y, _] in points {
            let (x, y) = (x - mean_x, y - mean_y);
            let square = x * x + y * y;
            xx += x * x;
            xy += x * y;
            yy += y * y;
            xr += x * square;
            yr += y * square;
        }
        let determinant = xx * yy - xy * xy;
        if determinant <= 1e-6 * xx * yy {
            return None;
        }
        let x = (xr * yy - yr * xy) / (2.0 * determinant);
        let y = (yr * xx - xr * xy) / (2.0 * determinant);
        let radius = (x * x + y * y + (xx + yy) / count).sqrt();
        Some(Self {
            x: x + mean_x,
            y: y + mean_y,
            radius,
        })
    }
}

#[cfg(test)]
mod tests;
