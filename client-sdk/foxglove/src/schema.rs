//! The schemas and their descriptors. PURE.

/// A message that Foxglove knows by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Schema {
    /// The optics of a camera.
    CameraCalibration,
    /// A picture as a file.
    CompressedImage,
    /// Transforms between frames.
    FrameTransforms,
    /// A map of cells.
    Grid,
    LaserScan,
    /// A position on Earth.
    LocationFix,
    /// A line of a log.
    Log,
    PoseInFrame,
    /// Several poses.
    PosesInFrame,
    /// Shapes.
    SceneUpdate,
}

impl Schema {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::CameraCalibration,
        Self::CompressedImage,
        Self::FrameTransforms,
        Self::Grid,
        Self::LaserScan,
        Self::LocationFix,
        Self::Log,
        Self::PoseInFrame,
        Self::PosesInFrame,
        Self::SceneUpdate,
    ];

    /// The full name of the message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CameraCalibration => "foxglove.CameraCalibration",
            Self::CompressedImage => "foxglove.CompressedImage",
            Self::FrameTransforms => "foxglove.FrameTransforms",
            Self::Grid => "foxglove.Grid",
            Self::LaserScan => "foxglove.LaserScan",
            Self::LocationFix => "foxglove.LocationFix",
            Self::Log => "foxglove.Log",
            Self::PoseInFrame => "foxglove.PoseInFrame",
            Self::PosesInFrame => "foxglove.PosesInFrame",
            Self::SceneUpdate => "foxglove.SceneUpdate",
        }
    }

    /// A `google.protobuf.FileDescriptorSet` with the message and everything that it uses.
    #[must_use]
    pub const fn descriptors(self) -> &'static [u8] {
        include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"))
    }
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::*;

    #[test]
    fn every_schema_has_its_descriptor() {
        for schema in Schema::ALL {
            let pool = DescriptorPool::decode(schema.descriptors()).unwrap();
            assert!(
                pool.get_message_by_name(schema.name()).is_some(),
                "{schema:?}"
            );
        }
    }
}
