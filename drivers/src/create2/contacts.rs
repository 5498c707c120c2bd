//! What the robot feels, and where. PURE.

use amber_proto::bumper::Contact;
use amber_proto::bumper::contact::Kind;

use super::protocol::Sensors;

/// All contacts of the robot with this state: each half of the bumper, the four sensors for cliffs from
/// the left to the right, and both wheels.
pub fn contacts(sensors: &Sensors) -> Vec<Contact> {
    let [bumps, drops] = [sensors.bumps, sensors.drops];
    let [left, front_left, front_right, right] = sensors.cliffs;
    let contact = |(kind, angle_deg, arc_deg, pressed): (Kind, f64, f64, bool)| Contact {
        kind: Some(kind.into()),
        angle: Some(angle_deg),
        arc: Some(arc_deg),
        pressed: Some(pressed),
    };
    [
        (Kind::Bumper, 45.0, 90.0, bumps[0]),
        (Kind::Bumper, -45.0, 90.0, bumps[1]),
        (Kind::Cliff, 60.0, 30.0, left),
        (Kind::Cliff, 15.0, 30.0, front_left),
        (Kind::Cliff, -15.0, 30.0, front_right),
        (Kind::Cliff, -60.0, 30.0, right),
        (Kind::WheelDrop, 90.0, 20.0, drops[0]),
        (Kind::WheelDrop, -90.0, 20.0, drops[1]),
    ]
    .map(contact)
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sensor_is_a_contact_in_its_direction() {
        let pressed = |sensors: Sensors| -> Vec<(Kind, f64)> {
            let all = contacts(&sensors);
            assert_eq!(all.len(), 8);
            let pressed = all.iter().filter(|it| it.pressed());
            pressed.map(|it| (it.kind(), it.angle())).collect()
        };
        let free = Sensors::default();
        assert_eq!(pressed(free), []);
        for (index, sign) in [1.0, -1.0].into_iter().enumerate() {
            let (mut bumped, mut lifted) = (free, free);
            bumped.bumps[index] = true;
            lifted.drops[index] = true;
            assert_eq!(pressed(bumped), [(Kind::Bumper, sign * 45.0)]);
            assert_eq!(pressed(lifted), [(Kind::WheelDrop, sign * 90.0)]);
        }
        for (index, angle_deg) in [60.0, 15.0, -15.0, -60.0].into_iter().enumerate() {
            let mut at_cliff = free;
            at_cliff.cliffs[index] = true;
            assert_eq!(pressed(at_cliff), [(Kind::Cliff, angle_deg)]);
        }
    }
}
