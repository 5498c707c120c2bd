//! Finds measurements that belong to nothing: single points in the air, as cheap scanners have some
//! in each turn. PURE.

use super::turns::{Echo, Sample};

/// Farther points are kept: neighbours on the same object may be far apart.
const NEAR_MM: u16 = 5_000;
/// A strong echo is no error.
const STRONG: u8 = 220;
/// Points of one object differ by at most this part.
const SAME: f64 = 0.03;
/// Points of a wall that is seen at a small angle: each is between its neighbours, and differs from
/// them by at most this part.
const SLANTED: f64 = 0.15;

/// Marks lonely points as invalid. The samples are those of a turn, in order.
///
/// A point with a neighbour within two steps at the same distance stays: a thin leg has only two. So
/// does a point between two others on a slanted wall.
pub fn mark_lonely(samples: &mut [Sample]) {
    let count = samples.len();
    if count < 5 {
        return;
    }
    let lonely: Vec<usize> = (0..count)
        .filter(|&index| {
            // The turn is closed.
            let at = |offset: usize| match samples[(index + count + offset - 2) % count].echo {
                Echo::At(mm) => Some(f64::from(mm)),
                Echo::Nothing | Echo::Invalid => None,
            };
            let sample = samples[index];
            let Echo::At(mm) = sample.echo else {
                return false;
            };
            let own_mm = f64::from(mm);
            let is_within = |other: Option<f64>, part: f64| {
                other.is_some_and(|it| (it - own_mm).abs() <= part * own_mm)
            };
            let has_company = [at(0), at(1), at(3), at(4)]
                .into_iter()
                .any(|other| is_within(other, SAME));
            let is_between = at(1)
                .zip(at(3))
                .is_some_and(|(before, after)| (before - own_mm) * (own_mm - after) > 0.0);
            let is_slanted = is_between && is_within(at(1), SLANTED) && is_within(at(3), SLANTED);
            mm < NEAR_MM && sample.intensity < STRONG && !has_company && !is_slanted
        })
        .collect();
    for index in lonely {
        samples[index].echo = Echo::Invalid;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Which points of a turn are marked.
    fn marked(distances: &[u16], intensity: u8) -> Vec<usize> {
        let sample = |mm: &u16| Sample {
            head_deg: 0.0,
            angle_deg: 0.0,
            echo: if *mm == 0 {
                Echo::Nothing
            } else {
                Echo::At(*mm)
            },
            intensity,
            time: Duration::ZERO,
        };
        let mut samples: Vec<_> = distances.iter().map(sample).collect();
        mark_lonely(&mut samples);
        let is_marked = |index: &usize| samples[*index].echo == Echo::Invalid;
        (0..samples.len()).filter(is_marked).collect()
    }

    #[test]
    fn single_points_in_the_air_are_marked() {
        assert_eq!(marked(&[2000, 2000, 2010, 40, 2000, 2000, 2000], 60), [3]);
        assert_eq!(marked(&[2000, 2000, 0, 1000, 0, 2000, 2000], 60), [3]);
        // Echoes that are strong, or far away.
        assert_eq!(marked(&[2000, 2000, 0, 1000, 0, 2000, 2000], 230), [0; 0]);
        assert_eq!(marked(&[9000, 9000, 0, 7000, 0, 9000, 9000], 60), [0; 0]);
    }

    #[test]
    fn legs_and_slanted_walls_stay() {
        assert_eq!(
            marked(&[3000, 3000, 500, 505, 3000, 3000, 3000], 60),
            [0; 0]
        );
        // The first and the last point are neighbours.
        assert_eq!(
            marked(&[500, 3000, 3000, 3000, 3000, 3000, 505], 60),
            [0; 0]
        );
        assert_eq!(
            marked(
                &[1000, 1005, 1010, 1100, 1210, 1330, 1470, 1610, 1611, 1612],
                60
            ),
            [0; 0]
        );
        // Between an object and the wall behind it.
        assert_eq!(marked(&[1000, 1000, 1000, 2000, 3000, 3000, 3000], 60), [3]);
        assert_eq!(marked(&[0, 0, 500, 0], 60), [0; 0], "too few to judge");
    }
}
