//! A number for each axis. PURE.

use amber_proto::ninedof::AxisData;

/// A number for each axis: x to the right, y ahead, z up, if the board is mounted so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vector {
    /// To the right.
    pub x: f64,
    /// Ahead.
    pub y: f64,
    /// Up.
    pub z: f64,
}

impl Vector {
    /// The numbers of the axes ahead, to the left and up, as most other systems order them.
    pub(crate) fn ahead_left_up(self) -> [f64; 3] {
        // Not -x: the negative zero would be shown.
        [self.y, 0.0 - self.x, self.z]
    }

    /// The same direction, divided by a number.
    pub(crate) fn divided_by(self, divisor: f64) -> Self {
        Self {
            x: self.x / divisor,
            y: self.y / divisor,
            z: self.z / divisor,
        }
    }
}

impl From<AxisData> for Vector {
    fn from(axes: AxisData) -> Self {
        Self {
            x: axes.x_axis.into(),
            y: axes.y_axis.into(),
            z: axes.z_axis.into(),
        }
    }
}

/// Rounds to whole numbers; values out of range become the nearest valid number.
impl From<Vector> for AxisData {
    fn from(vector: Vector) -> Self {
        // Casts from floating point saturate.
        #[allow(clippy::cast_possible_truncation)]
        let whole = |number: f64| number.round() as i32;
        Self {
            x_axis: whole(vector.x),
            y_axis: whole(vector.y),
            z_axis: whole(vector.z),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_whole_numbers() {
        let vector = Vector {
            x: 1.6,
            y: -1.6,
            z: 1e12,
        };
        let axes = AxisData::from(vector);
        assert_eq!((axes.x_axis, axes.y_axis, axes.z_axis), (2, -2, i32::MAX));
        assert_eq!(Vector::from(axes).y, -2.0);
    }
}
