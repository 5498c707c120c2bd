//! Square markers in grey pictures: which ones, where they are, and where the robot is. PURE.
//!
//! The markers are those of the dictionary `DICT_4X4_50` of ArUco in OpenCV.
//!
//! ```text
//! picture -> outlines of dark areas -> quads -> edges -> code      find
//!                                     4 corners, sharpened, read
//! corners, optics                                                  pose, of each marker
//! corners, optics, known places                                    place, of the robot
//! ```

mod code;
mod edges;
mod fit;
mod outlines;
mod picture;
mod place;
mod pose;
mod projection;
mod quads;
#[cfg(test)]
mod tests;

pub use self::code::{COUNT, is_white};
pub use self::picture::{Picture, Px};
pub use self::place::{ALONE_M, Fix, Known, Mount, NoFix, Places};
pub use self::pose::{MarkerPose, Poses, poses, side_px};
pub use self::projection::{Lens, Optics, Rotation, Vector};

/// A marker in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Its number, from 0 to 49.
    pub id: u32,
    /// Its corners in pixels, clockwise from the upper left one of the marker. The centre of the first
    /// pixel of the picture is at (0, 0).
    pub corners: [Px; 4],
}

impl Found {
    fn centre(&self) -> Px {
        [0, 1].map(|axis| self.corners.iter().map(|corner| corner[axis]).sum::<f64>() / 4.0)
    }
}

/// The markers in a picture, by their numbers.
///
/// A side must have at least about 15 pixels, and the white edge must be in the picture.
#[must_use]
pub fn find(picture: Picture<'_>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for reach in outlines::REACHES {
        outlines::outlines(picture, reach, |outline| {
            let marker = quads::quad(outline).and_then(|coarse| marker(picture, coarse));
            if let Some(marker) = marker.filter(|it| !found.iter().any(|other| is_same(it, other)))
            {
                found.push(marker);
            }
        });
    }
    found.sort_by_key(|marker| marker.id);
    found
}

fn marker(picture: Picture<'_>, coarse: [Px; 4]) -> Option<Found> {
    let mut corners = edges::sharpen(picture, coarse)?;
    let read = code::read(picture, corners)?;
    corners.rotate_left(read.first);
    Some(Found {
        id: read.id,
        corners,
    })
}

/// Whether both are one marker that was found twice.
fn is_same(one: &Found, other: &Found) -> bool {
    let way = picture::minus(one.centre(), other.centre());
    one.id == other.id && picture::length(way) < side_px(&other.corners) / 2.0
}
