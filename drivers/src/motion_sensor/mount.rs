//! How a board is mounted on the robot. PURE.

use std::str::FromStr;

use super::units::{Axes, Measured};

/// Which axes of the board point to the right, ahead and up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mount([(usize, f64); 3]);

impl Default for Mount {
    /// x to the right, y ahead, z up.
    fn default() -> Self {
        Self([(0, 1.0), (1, 1.0), (2, 1.0)])
    }
}

impl Mount {
    /// A reading on the axes of the board, on those of the robot.
    #[must_use]
    pub fn turned(&self, measured: Measured) -> Measured {
        let turn = |axes: Axes| self.0.map(|(axis, sign)| sign * axes[axis]);
        Measured {
            accel_mg: measured.accel_mg.map(turn),
            gyro_deg_s: measured.gyro_deg_s.map(turn),
            magnet_mgauss: measured.magnet_mgauss.map(turn),
        }
    }
}

/// Three of x, y, z, -x, -y and -z, with commas or spaces between them.
impl FromStr for Mount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = text.split([',', ' ']).filter(|word| !word.is_empty());
        let axis = |word: &str| {
            let (name, sign) = match word.strip_prefix('-') {
                Some(name) => (name, -1.0),
                None => (word, 1.0),
            };
            let axis = ["x", "y", "z"].iter().position(|axis| *axis == name)?;
            Some((axis, sign))
        };
        let axes: Option<Vec<_>> = words.map(axis).collect();
        let axes = axes.and_then(|axes| <[(usize, f64); 3]>::try_from(axes).ok());
        let [right, ahead, up] = axes.ok_or_else(|| {
            format!("{text:?} does not say which axes point right, ahead and up, as x,y,z does")
        })?;
        let (a, b, c) = (right.0, ahead.0, up.0);
        if a == b || b == c || a == c {
            return Err(format!("{text:?} has an axis twice"));
        }
        // Of a right-handed board, which a mirror would make left-handed.
        let is_cyclic = (a + 1) % 3 == b;
        let handed = right.1 * ahead.1 * up.1 * if is_cyclic { 1.0 } else { -1.0 };
        match handed > 0.0 {
            true => Ok(Self([right, ahead, up])),
            false => Err(format!(
                "no board can be mounted as {text:?}: one of the signs is wrong"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axes_of_the_board_become_those_of_the_robot() {
        let measured = Measured {
            accel_mg: Some([1.0, 2.0, 3.0]),
            gyro_deg_s: Some([4.0, 5.0, 6.0]),
            magnet_mgauss: None,
        };
        for (text, accel, gyro) in [
            ("x,y,z", [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
            ("-y,x,z", [-2.0, 1.0, 3.0], [-5.0, 4.0, 6.0]),
            ("y z x", [2.0, 3.0, 1.0], [5.0, 6.0, 4.0]),
            ("x, -y, -z", [1.0, -2.0, -3.0], [4.0, -5.0, -6.0]),
            ("-z,y,x", [-3.0, 2.0, 1.0], [-6.0, 5.0, 4.0]),
        ] {
            let turned = text.parse::<Mount>().unwrap().turned(measured);
            assert_eq!(turned.accel_mg, Some(accel), "{text}");
            assert_eq!(turned.gyro_deg_s, Some(gyro), "{text}");
            assert_eq!(turned.magnet_mgauss, None);
        }
        assert_eq!("x,y,z".parse(), Ok(Mount::default()));
    }

    #[test]
    fn half_of_all_signs_are_those_of_a_mirror() {
        let signs = ["", "-"];
        let mut possible = 0;
        for order in ["xyz", "xzy", "yxz", "yzx", "zxy", "zyx"] {
            for bits in 0..8 {
                let axes = order.chars().enumerate();
                let axes = axes.map(|(k, axis)| format!("{}{axis}", signs[bits >> k & 1]));
                let text = axes.collect::<Vec<_>>().join(",");
                possible += usize::from(text.parse::<Mount>().is_ok());
            }
        }
        assert_eq!(possible, 24, "all turns of a cube");
        for (text, why) in [
            ("x,y,-z", "one of the signs is wrong"),
            ("x,y,y", "has an axis twice"),
            ("x,y", "does not say which axes"),
            ("x,y,z,z", "does not say which axes"),
            ("right", "does not say which axes"),
            ("", "does not say which axes"),
        ] {
            let error = text.parse::<Mount>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
