//! Fuzz targets: pictures, and files of known markers. PURE.

use amber_proto::camera::{self, CameraInfo, Format};

use super::Options;
use super::file::MarkerFile;
use crate::fuzz::{Input, Target};

/// All of them.
pub const TARGETS: &[Target] = &[("markers_picture", picture), ("markers_file", file)];

/// A picture of any size, with any view.
fn picture(data: &[u8]) {
    let mut input = Input(data);
    let options = Options {
        fov_deg: Some(10.0 + f64::from(input.byte() % 140)),
        side_mm: Some(100.0),
        ..Options::default()
    };
    let Ok((_, mut eye)) = options.settings(MarkerFile::default()) else {
        panic!("the options are valid");
    };
    let (width, zoom) = (
        u32::from(input.byte()) + 1,
        usize::from(input.byte() % 8) + 1,
    );
    let row = width as usize / zoom + 1;
    let height = (input.0.len() / row * zoom).min(255);
    // Each byte is a square of pixels, so that there are edges.
    let pixels: Vec<u8> = (0..width as usize * height)
        .map(|index| {
            let (x, y) = (index % width as usize, index / width as usize);
            input
                .0
                .get(y / zoom * row + x / zoom)
                .copied()
                .unwrap_or_default()
        })
        .collect();
    let picture = camera::Picture {
        data: Some(pixels.into()),
        format: Some(Format::Gray8.into()),
        width: Some(width),
        height: Some(height as u32),
        ..camera::Picture::default()
    };
    if let Ok(seen) = eye.look(&CameraInfo::default(), &picture) {
        for sighting in seen.found {
            let corners = sighting.corners.iter();
            assert!(corners.flat_map(|it| [it.x(), it.y()]).all(f64::is_finite));
            assert!(sighting.distance().is_finite() && sighting.error().is_finite());
        }
    }
}

/// The text of a file.
fn file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(file) = toml::from_str::<MarkerFile>(&text) {
        let _ = file.places();
    }
}
