//! A target on the map. PURE.

use amber_proto::drive_to_point::Targets;

use crate::row::{Row, UnequalColumns};

/// A target, in the frame of the map: x to the right, **y down**.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Target {
    /// To the right, in metres.
    pub x_m: f64,
    /// Down, in metres.
    pub y_m: f64,
    /// The robot has reached the target when it is closer than this, in metres.
    pub radius_m: f64,
}

impl Target {
    /// The usual radius, in metres.
    pub const RADIUS_M: f64 = 0.2;

    /// A target with the usual radius, from metres.
    #[must_use]
    pub const fn new(x_m: f64, y_m: f64) -> Self {
        let radius_m = Self::RADIUS_M;
        Self { x_m, y_m, radius_m }
    }
}

/// In this message longitude is x and latitude is y.
impl Row<Targets> for Target {
    fn rows(table: &Targets) -> Result<Vec<Self>, UnequalColumns> {
        let (xs, ys, radiuses) = (&table.longitudes, &table.latitudes, &table.radiuses);
        UnequalColumns::check(&[xs.len(), ys.len(), radiuses.len()])?;
        let rows = xs.iter().zip(ys).zip(radiuses);
        Ok(rows
            .map(|((&x_m, &y_m), &radius_m)| Self { x_m, y_m, radius_m })
            .collect())
    }

    fn table(rows: &[Self]) -> Targets {
        Targets {
            longitudes: rows.iter().map(|target| target.x_m).collect(),
            latitudes: rows.iter().map(|target| target.y_m).collect(),
            radiuses: rows.iter().map(|target| target.radius_m).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longitude_is_x_and_latitude_is_y() {
        let targets = [
            Target::new(1.0, 2.0),
            Target {
                radius_m: 0.5,
                ..Target::new(-3.0, 4.0)
            },
        ];
        let table = Target::table(&targets);
        assert_eq!(table.longitudes, [1.0, -3.0]);
        assert_eq!(table.latitudes, [2.0, 4.0]);
        assert_eq!(table.radiuses, [0.2, 0.5]);
        assert_eq!(Target::rows(&table).unwrap(), targets);
    }

    #[test]
    fn columns_that_do_not_fit_are_an_error() {
        let table = Targets {
            longitudes: vec![1.0],
            ..Targets::default()
        };
        assert!(Target::rows(&table).is_err());
    }
}
