//! What a robot feels, as other robot systems have it. PURE.

use amber_proto::bumper::Contacts;
use amber_proto::bumper::contact::Kind;

/// Something that a robot feels in the terms of `irobot_create_msgs/HazardDetection` of ROS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// 1 the robot has bumped, 2 there is a cliff, 4 a wheel hangs in the air.
    pub kind: u8,
    /// The name of the frame of the sensor, which says where it is.
    pub frame: &'static str,
}

impl Hazard {
    /// All that the robot feels now.
    #[must_use]
    pub fn all(contacts: &Contacts) -> Vec<Self> {
        let pressed = contacts.contacts.iter().filter(|contact| contact.pressed());
        let hazards = pressed.map(|contact| {
            let angle_deg = contact.angle();
            let is_left = angle_deg >= 0.0;
            let sided = |left, right| if is_left { left } else { right };
            let (kind, frame) = match (contact.kind(), angle_deg.abs()) {
                (Kind::Bumper, ..=10.0) => (BUMP, "bump_front_center"),
                (Kind::Bumper, ..=60.0) => (BUMP, sided("bump_front_left", "bump_front_right")),
                (Kind::Bumper, ..=120.0) => (BUMP, sided("bump_left", "bump_right")),
                (Kind::Bumper, _) => (BUMP, "bump_rear"),
                (Kind::Cliff, ..=30.0) => (CLIFF, sided("cliff_front_left", "cliff_front_right")),
                (Kind::Cliff, ..=120.0) => (CLIFF, sided("cliff_side_left", "cliff_side_right")),
                (Kind::Cliff, _) => (CLIFF, "cliff_rear"),
                (Kind::WheelDrop, _) => (DROP, sided("wheel_drop_left", "wheel_drop_right")),
            };
            Self { kind, frame }
        });
        hazards.collect()
    }
}

const BUMP: u8 = 1;
const CLIFF: u8 = 2;
const DROP: u8 = 4;

#[cfg(test)]
mod tests {
    use amber_proto::bumper::Contact;

    use super::*;

    #[test]
    fn only_what_is_pressed_is_a_hazard_and_its_frame_says_where() {
        let contact = |kind: Kind, angle: f64, pressed| Contact {
            kind: Some(kind.into()),
            angle: Some(angle),
            arc: Some(30.0),
            pressed: Some(pressed),
        };
        for (kind, angle, expected) in [
            (Kind::Bumper, 0.0, (1, "bump_front_center")),
            (Kind::Bumper, 45.0, (1, "bump_front_left")),
            (Kind::Bumper, -45.0, (1, "bump_front_right")),
            (Kind::Bumper, -90.0, (1, "bump_right")),
            (Kind::Bumper, 180.0, (1, "bump_rear")),
            (Kind::Cliff, 15.0, (2, "cliff_front_left")),
            (Kind::Cliff, -60.0, (2, "cliff_side_right")),
            (Kind::Cliff, 170.0, (2, "cliff_rear")),
            (Kind::WheelDrop, 90.0, (4, "wheel_drop_left")),
            (Kind::WheelDrop, -90.0, (4, "wheel_drop_right")),
        ] {
            let contacts = Contacts {
                contacts: vec![
                    contact(Kind::Bumper, 0.0, false),
                    contact(kind, angle, true),
                ],
                time: None,
            };
            let found = Hazard::all(&contacts);
            let found: Vec<_> = found.iter().map(|it| (it.kind, it.frame)).collect();
            assert_eq!(found, [expected]);
        }
    }
}
