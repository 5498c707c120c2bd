//! A point of a trajectory. PURE.

use amber_proto::pid_follow_trajectory::Targets;

use crate::row::{Row, UnequalColumns};

/// A point of a trajectory, in the frame of the map: x to the right, **y down**.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrajectoryPoint {
    /// To the right, in metres.
    pub x_m: f64,
    /// Down, in metres.
    pub y_m: f64,
    /// The planned time at this point, in milliseconds from the start.
    pub time_ms: i64,
}

/// In this message latitude is x and longitude is y.
impl Row<Targets> for TrajectoryPoint {
    fn rows(table: &Targets) -> Result<Vec<Self>, UnequalColumns> {
        let (xs, ys, times) = (&table.latitudes, &table.longitudes, &table.times);
        UnequalColumns::check(&[xs.len(), ys.len(), times.len()])?;
        let rows = xs.iter().zip(ys).zip(times);
        Ok(rows
            .map(|((&x_m, &y_m), &time_ms)| Self { x_m, y_m, time_ms })
            .collect())
    }

    fn table(rows: &[Self]) -> Targets {
        Targets {
            longitudes: rows.iter().map(|point| point.y_m).collect(),
            latitudes: rows.iter().map(|point| point.x_m).collect(),
            times: rows.iter().map(|point| point.time_ms).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latitude_is_x_and_longitude_is_y() {
        let point = |x_m, y_m, time_ms| TrajectoryPoint { x_m, y_m, time_ms };
        let points = [point(1.0, 2.0, 0), point(-3.0, 4.0, 1500)];
        let table = TrajectoryPoint::table(&points);
        assert_eq!(table.latitudes, [1.0, -3.0]);
        assert_eq!(table.longitudes, [2.0, 4.0]);
        assert_eq!(table.times, [0, 1500]);
        assert_eq!(TrajectoryPoint::rows(&table).unwrap(), points);
    }

    #[test]
    fn columns_that_do_not_fit_are_an_error() {
        let table = Targets {
            times: vec![1],
            ..Targets::default()
        };
        assert!(TrajectoryPoint::rows(&table).is_err());
    }
}
