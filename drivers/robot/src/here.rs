//! The pose of the robot as a program of ROS says it, for example a click in rviz. PURE.

use amber_proto::location::KnownPose;
use amber_values::MapPose;

/// A program that says a place more exactly than this does not mean it.
const LEAST_M: f64 = 0.01;
const LEAST_RAD: f64 = 0.01;
/// A robot whose place is less certain could be anywhere.
const MOST_M: f64 = 20.0;
const MOST_RAD: f64 = std::f64::consts::PI;
/// The elements of a covariance of six values, row by row: x, y, and the turn.
const XX: usize = 0;
const YY: usize = 7;
const TURN: usize = 35;

/// The reason why a pose says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pose is not a number: check position, orientation and covariance")]
pub struct NotANumber;

/// The pose for the location driver. `covariance` is that of ROS; 0 means that the program does not
/// know it, and the driver takes its own.
///
/// # Errors
/// A number is NaN or infinite, or a variance is below 0.
pub fn known_pose(pose: MapPose, covariance: &[f64; 36]) -> Result<KnownPose, NotANumber> {
    let variances = [(covariance[XX] + covariance[YY]) / 2.0, covariance[TURN]];
    let numbers = [pose.x_m, pose.y_m, pose.heading_rad].into_iter();
    let is_number = numbers.chain(variances).all(f64::is_finite);
    if !is_number || variances.iter().any(|variance| *variance < 0.0) {
        return Err(NotANumber);
    }
    let deviation = |variance: f64, least: f64, most: f64| {
        (variance > 0.0).then(|| variance.sqrt().clamp(least, most))
    };
    Ok(KnownPose {
        x: pose.x_m,
        y: pose.y_m,
        alfa: pose.heading_rad,
        sigma: deviation(variances[0], LEAST_M, MOST_M),
        sigma_alfa: deviation(variances[1], LEAST_RAD, MOST_RAD),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_covariance_of_a_click_becomes_deviations() {
        let pose = MapPose::new(1.0, -2.0, 0.5);
        let mut covariance = [0.0; 36];
        let unknown = known_pose(pose, &covariance).unwrap();
        assert_eq!((unknown.x, unknown.y, unknown.alfa), (1.0, -2.0, 0.5));
        assert_eq!((unknown.sigma, unknown.sigma_alfa), (None, None));
        // As rviz sends it.
        (covariance[0], covariance[7], covariance[35]) = (0.25, 0.25, 0.0685);
        let clicked = known_pose(pose, &covariance).unwrap();
        assert_eq!(clicked.sigma, Some(0.5));
        assert!((clicked.sigma_alfa.unwrap().to_degrees() - 15.0).abs() < 0.1);
        (covariance[0], covariance[7], covariance[35]) = (1e-9, 1e-9, 1e9);
        let bounded = known_pose(pose, &covariance).unwrap();
        assert_eq!(bounded.sigma, Some(LEAST_M));
        assert_eq!(bounded.sigma_alfa, Some(MOST_RAD));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let pose = MapPose::new(f64::NAN, 0.0, 0.0);
        assert_eq!(known_pose(pose, &[0.0; 36]), Err(NotANumber));
        for (index, value) in [(0, f64::INFINITY), (35, -1.0), (7, -1.0)] {
            let mut covariance = [0.0; 36];
            covariance[index] = value;
            let refused = known_pose(MapPose::new(0.0, 0.0, 0.0), &covariance);
            assert_eq!(refused, Err(NotANumber), "{index}");
        }
    }
}
