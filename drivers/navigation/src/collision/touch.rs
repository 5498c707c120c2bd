//! What the robot feels: bumpers that are pressed, cliffs, and wheels that hang in the air. PURE.
//!
//! A bumper stops each motion that presses it further: the part of the outline that it covers may not
//! move outwards. So the robot can always drive away from what it touches, with wheels of any kind, and
//! turn where no covered part swings outwards. The same holds for a cliff. A wheel in the air stops
//! everything.
//!
//! A bumper that says nothing is unknown. It may be pressed, so the wheels stop.

use std::f64::consts::PI;
use std::time::Duration;

use amber_map::{Outline, Point};

use super::Reason;
use crate::kinematics::Twist;

/// A bumper bounces: it counts as pressed for so long after it was.
const LASTS: Duration = Duration::from_millis(300);
/// Bumpers that were not heard for so long are unknown. They say four times per second what they feel.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The outline within the arc of a sensor is checked at points that are at most so far apart.
const STEP_RAD: f64 = PI / 18.0;
/// The outline moves outwards if it does so faster than this part of the fastest motion of the robot,
/// which drives neither exactly straight nor exactly along a wall.
const OUTWARDS: f64 = 0.1;

/// What a sensor feels. The last one matters most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Felt {
    /// Something presses against the robot.
    Bumper,
    /// There is no floor.
    Cliff,
    /// A wheel hangs in the air.
    WheelDrop,
}

/// A sensor that feels something now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touch {
    /// What it feels.
    pub felt: Felt,
    /// The direction in the frame of the robot, counter-clockwise from ahead.
    pub angle_rad: f64,
    /// The width of what the sensor covers, half of it on either side.
    pub arc_rad: f64,
}

/// What the robot feels, and has felt a moment ago.
#[derive(Clone, Debug, Default)]
pub(super) struct Touches {
    heard: Option<Duration>,
    felt: Vec<(Duration, Touch)>,
}

impl Touches {
    /// Takes all that the robot feels at this time.
    pub(super) fn handle(&mut self, time: Duration, touches: &[Touch]) {
        self.heard = Some(time);
        let is_over = |since: Duration, touch: &Touch| {
            touches.contains(touch) || time.saturating_sub(since) >= LASTS
        };
        self.felt.retain(|(since, touch)| !is_over(*since, touch));
        self.felt.extend(touches.iter().map(|touch| (time, *touch)));
    }

    /// Whether the robot does not know what it feels.
    pub(super) fn is_unknown(&self, now: Duration) -> bool {
        let is_old = |heard| now.saturating_sub(heard) > TIMEOUT;
        self.heard.is_none_or(is_old)
    }

    /// Whether the robot feels something.
    pub(super) fn any(&self) -> bool {
        !self.felt.is_empty()
    }

    /// Why the robot must not move so.
    pub(super) fn against(&self, outline: Outline, twist: Twist) -> Option<Reason> {
        let forbids =
            |touch: &Touch| touch.felt == Felt::WheelDrop || touch.forbids(outline, twist);
        let felt = self.felt.iter().map(|(_, touch)| touch);
        let first = felt
            .filter(|touch| forbids(touch))
            .map(|touch| touch.felt)
            .max();
        first.map(|felt| match felt {
            Felt::Bumper => Reason::Touched,
            Felt::Cliff => Reason::Cliff,
            Felt::WheelDrop => Reason::Lifted,
        })
    }
}

impl Touch {
    /// Whether a part of the outline that the sensor covers moves outwards. If it is unknown what it
    /// covers, no motion is good.
    fn forbids(&self, outline: Outline, twist: Twist) -> bool {
        let fastest_m_s = twist.forward_m_s.abs() + twist.turn_rad_s.abs() * outline.radius_m();
        let outwards_m_s = |angle_rad| outwards_m_s(outline, angle_rad, twist);
        let mut speeds_m_s = self.angles_rad().map(outwards_m_s);
        speeds_m_s.any(|speed_m_s| speed_m_s.is_nan() || speed_m_s > OUTWARDS * fastest_m_s)
    }

    /// Places at the edge of the robot where it may touch something.
    pub(crate) fn places(self, outline: Outline) -> impl Iterator<Item = Point> {
        let edges = self
            .angles_rad()
            .map(move |angle_rad| edge(outline, angle_rad));
        let places = edges.map(|(place, _)| place);
        places.filter(|place| place.length().is_finite())
    }

    /// Directions that are spread over the arc.
    fn angles_rad(self) -> impl Iterator<Item = f64> {
        let steps = (self.arc_rad / STEP_RAD).ceil().clamp(1.0, 36.0);
        (0..=steps as u32).map(move |step| {
            let part = f64::from(step) / steps - 0.5;
            self.angle_rad + part * self.arc_rad
        })
    }
}

/// The edge of the robot in a direction, and the direction of this edge outwards.
fn edge(outline: Outline, angle_rad: f64) -> (Point, Point) {
    let (sin, cos) = angle_rad.sin_cos();
    let (along_m, beside_m) = (
        outline.half_length_m / cos.abs(),
        outline.half_width_m / sin.abs(),
    );
    let place = Point::new(cos, sin).times(along_m.min(beside_m));
    match along_m <= beside_m {
        true => (place, Point::new(cos.signum(), 0.0)),
        false => (place, Point::new(0.0, sin.signum())),
    }
}

/// How fast the edge of the robot in a direction moves outwards.
fn outwards_m_s(outline: Outline, angle_rad: f64, twist: Twist) -> f64 {
    let (place, outwards) = edge(outline, angle_rad);
    let velocity = Point::new(
        twist.forward_m_s - twist.turn_rad_s * place.y,
        twist.turn_rad_s * place.x,
    );
    velocity.dot(outwards)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTLINE: Outline = Outline {
        half_length_m: 0.2,
        half_width_m: 0.15,
    };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn twist(forward_m_s: f64, turn_rad_s: f64) -> Twist {
        Twist {
            forward_m_s,
            turn_rad_s,
        }
    }

    fn touch(felt: Felt, angle_deg: f64, arc_deg: f64) -> Touch {
        Touch {
            felt,
            angle_rad: angle_deg.to_radians(),
            arc_rad: arc_deg.to_radians(),
        }
    }

    /// Ahead, back, curves ahead to the left and to the right, back with a turn to the left and to the
    /// right, and turns to the left and to the right on the spot.
    fn passes(felt: Felt, angle_deg: f64, arc_deg: f64) -> [bool; 8] {
        let mut touches = Touches::default();
        touches.handle(ms(0), &[touch(felt, angle_deg, arc_deg)]);
        [
            (0.3, 0.0),
            (-0.1, 0.0),
            (0.3, 0.3),
            (0.3, -0.3),
            (-0.1, 0.5),
            (-0.1, -0.5),
            (0.0, 1.0),
            (0.0, -1.0),
        ]
        .map(|(forward, turn)| touches.against(OUTLINE, twist(forward, turn)).is_none())
    }

    #[test]
    fn a_bumper_stops_what_presses_it_and_lets_the_robot_drive_away() {
        const YES: bool = true;
        const NO: bool = false;
        for (angle_deg, arc_deg, expected) in [
            // The front is all in the way. Back, with any turn; on the spot, a corner swings out.
            (0.0, 60.0, [NO, YES, NO, NO, YES, YES, NO, NO]),
            // One point in the middle: turns pass.
            (0.0, 0.0, [NO, YES, NO, NO, YES, YES, YES, YES]),
            // The left half of the bumper of a round base: back, straight or with the nose to the right.
            (45.0, 90.0, [NO, YES, NO, NO, NO, YES, NO, NO]),
            (-45.0, 90.0, [NO, YES, NO, NO, YES, NO, NO, NO]),
            // A point of the left side ahead of the centre: only sharp turns to the left press it.
            (60.0, 0.0, [YES, YES, YES, YES, NO, YES, NO, YES]),
            // The rear: ahead, with any turn.
            (180.0, 60.0, [YES, NO, YES, YES, NO, NO, NO, NO]),
            (-180.0, 0.0, [YES, NO, YES, YES, NO, NO, YES, YES]),
        ] {
            for felt in [Felt::Bumper, Felt::Cliff] {
                let found = passes(felt, angle_deg, arc_deg);
                assert_eq!(found, expected, "{felt:?} {angle_deg} {arc_deg}");
            }
        }
        assert_eq!(passes(Felt::WheelDrop, 90.0, 20.0), [NO; 8]);
        for (angle_deg, arc_deg) in [(f64::NAN, 0.0), (0.0, f64::NAN), (f64::INFINITY, 9.0)] {
            assert_eq!(passes(Felt::Bumper, angle_deg, arc_deg), [NO; 8]);
        }
    }

    #[test]
    fn the_most_important_reason_is_told() {
        let all = [
            touch(Felt::Bumper, 0.0, 60.0),
            touch(Felt::WheelDrop, 90.0, 20.0),
            touch(Felt::Cliff, 20.0, 20.0),
        ];
        let ahead = twist(0.1, 0.0);
        for (felt, reason) in [
            (&all[..], Some(Reason::Lifted)),
            (&all[..1], Some(Reason::Touched)),
            (&all[2..], Some(Reason::Cliff)),
            (&[], None),
        ] {
            let mut touches = Touches::default();
            touches.handle(ms(0), felt);
            assert_eq!(touches.against(OUTLINE, ahead), reason);
        }
    }

    #[test]
    fn a_bumper_that_bounces_is_pressed_and_a_silent_one_is_unknown() {
        let front = touch(Felt::Bumper, 0.0, 60.0);
        let mut touches = Touches::default();
        assert!(touches.is_unknown(ms(5_000)));
        for (at, felt, any) in [
            (5_000, &[front][..], true),
            (5_100, &[], true),
            (5_200, &[front], true),
            (5_499, &[], true),
            (5_500, &[], false),
        ] {
            touches.handle(ms(at), felt);
            assert_eq!(touches.any(), any, "{at}");
            assert!(!touches.is_unknown(ms(at)));
        }
        assert!(!touches.is_unknown(ms(6_500)));
        assert!(touches.is_unknown(ms(6_501)));
    }
}
