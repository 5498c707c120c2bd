//! What the robot feels as a message of ROS 2. PURE.

use amber_proto::bumper::Contacts;
use amber_ros2::messages::{HazardDetection, HazardDetectionVector, Header};
use amber_values::Hazard;

use super::convert::Frames;

/// All that the robot feels now: nothing if no contact is pressed.
#[must_use]
pub fn hazards(contacts: &Contacts, frames: &Frames, stamp_ns: u64) -> HazardDetectionVector {
    // The frames of a robot share its prefix.
    let prefix = frames.base.strip_suffix("base_link").unwrap_or_default();
    let detection = |hazard: Hazard| HazardDetection {
        header: Header::new(stamp_ns, format!("{prefix}{}", hazard.frame)),
        r#type: hazard.kind,
    };
    HazardDetectionVector {
        header: Header::new(stamp_ns, &frames.base),
        detections: Hazard::all(contacts).into_iter().map(detection).collect(),
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::bumper::Contact;
    use amber_proto::bumper::contact::Kind;

    use super::*;

    #[test]
    fn what_is_pressed_has_the_frame_of_its_sensor() {
        let contact = |angle, pressed| Contact {
            kind: Some(Kind::Bumper.into()),
            angle: Some(angle),
            arc: Some(90.0),
            pressed: Some(pressed),
        };
        let contacts = Contacts {
            contacts: vec![contact(45.0, true), contact(-45.0, false)],
            time: None,
        };
        let message = hazards(&contacts, &Frames::with_prefix("r1/"), 1_000_000_002);
        assert_eq!(message.header.frame_id, "r1/base_link");
        assert_eq!(message.header.stamp.nanosec, 2);
        let found = message.detections.iter();
        let found: Vec<_> = found
            .map(|it| (it.r#type, it.header.frame_id.as_str()))
            .collect();
        assert_eq!(found, [(1, "r1/bump_front_left")]);
    }
}
