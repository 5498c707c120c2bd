//! Files with the optics of a camera, as `camera_calibration` of ROS writes them. PURE.

use std::fmt::Write;

use amber_proto::camera::Calibration;
use serde::Deserialize;

/// Distortion models, with the numbers of coefficients that each may have.
const MODELS: [(&str, &[usize]); 3] = [
    ("plumb_bob", &[0, 4, 5]),
    ("rational_polynomial", &[8]),
    ("equidistant", &[4]),
];

#[derive(Deserialize)]
struct File {
    image_width: u32,
    image_height: u32,
    camera_matrix: Matrix,
    distortion_model: Option<String>,
    distortion_coefficients: Option<Matrix>,
    rectification_matrix: Option<Matrix>,
    projection_matrix: Option<Matrix>,
}

#[derive(Deserialize)]
struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Matrix {
    /// The numbers, if there are as many as there should be.
    fn of(self, name: &str, rows: usize, cols: usize) -> Result<Vec<f64>, String> {
        let is_right = (self.rows, self.cols, self.data.len()) == (rows, cols, rows * cols);
        match is_right && self.data.iter().all(|it| it.is_finite()) {
            true => Ok(self.data),
            false => Err(format!("{name} must have {rows} x {cols} finite numbers")),
        }
    }
}

/// Reads a file.
///
/// # Errors
/// It is none, or a value is missing or invalid.
pub fn parse(yaml: &str) -> Result<Calibration, String> {
    let file: File = serde_saphyr::from_str(yaml).map_err(|error| {
        // The text goes on with an excerpt of the file.
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    })?;
    let camera = file.camera_matrix.of("camera_matrix", 3, 3)?;
    let [fx, _, cx, _, fy, cy, ..] = camera[..] else {
        return Err("camera_matrix is incomplete".into());
    };
    if !(fx > 0.0 && fy > 0.0) {
        return Err(
            "camera_matrix: a focal length of 0 means that the camera is not calibrated".into(),
        );
    }
    if file.image_width == 0 || file.image_height == 0 {
        return Err("image_width and image_height must not be 0".into());
    }
    let model = file
        .distortion_model
        .unwrap_or_else(|| MODELS[0].0.to_owned());
    let distortion = match file.distortion_coefficients {
        Some(matrix) => {
            let count = matrix.data.len();
            matrix.of("distortion_coefficients", 1, count)?
        }
        None => Vec::new(),
    };
    let Some((_, counts)) = MODELS.iter().find(|(name, _)| *name == model) else {
        return Err(format!("distortion_model {model:?} is not known"));
    };
    if !counts.contains(&distortion.len()) {
        return Err(format!(
            "{model} does not have {} coefficients",
            distortion.len()
        ));
    }
    let rectification = file.rectification_matrix;
    let rectification = rectification
        .map(|it| it.of("rectification_matrix", 3, 3))
        .transpose()?;
    let projection = file.projection_matrix;
    let projection = projection
        .map(|it| it.of("projection_matrix", 3, 4))
        .transpose()?;
    Ok(Calibration {
        width: Some(file.image_width),
        height: Some(file.image_height),
        fx: Some(fx),
        fy: Some(fy),
        cx: Some(cx),
        cy: Some(cy),
        distortion_model: Some(model),
        distortion,
        rectification: rectification.unwrap_or_default(),
        projection: projection.unwrap_or_default(),
    })
}

/// Writes a file that ROS reads.
#[must_use]
pub fn to_yaml(calibration: &Calibration, name: &str) -> String {
    let Calibration { distortion, .. } = calibration;
    let (fx, fy) = (calibration.fx(), calibration.fy());
    let (cx, cy) = (calibration.cx(), calibration.cy());
    let or = |given: &[f64], else_: &[f64]| match given {
        [] => else_.to_vec(),
        given => given.to_vec(),
    };
    let none = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let same = [fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0];
    let mut yaml = format!(
        "image_width: {}\nimage_height: {}\ncamera_name: {name}\n",
        calibration.width(),
        calibration.height()
    );
    let mut matrix = |name: &str, rows: usize, data: &[f64]| {
        let numbers: Vec<_> = data.iter().map(|value| number(*value)).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            yaml,
            "{name}:\n  rows: {rows}\n  cols: {}\n  data: [{}]\n",
            data.len() / rows,
            numbers.join(", ")
        );
    };
    matrix(
        "camera_matrix",
        3,
        &[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0],
    );
    matrix("distortion_coefficients", 1, distortion);
    matrix(
        "rectification_matrix",
        3,
        &or(&calibration.rectification, &none),
    );
    matrix("projection_matrix", 3, &or(&calibration.projection, &same));
    let _ = writeln!(yaml, "distortion_model: {}", calibration.distortion_model());
    yaml
}

/// A number as all readers of YAML know it: older ones want a dot, and the sign of an exponent.
fn number(value: f64) -> String {
    let text = format!("{value:?}");
    let Some((digits, exponent)) = text.split_once('e') else {
        return text;
    };
    let dot = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    format!("{digits}{dot}e{sign}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
image_width: 640
image_height: 480
camera_name: narrow_stereo
camera_matrix:
  rows: 3
  cols: 3
  data: [438.783367, 0.000000, 305.593336, 0.000000, 437.302876, 243.738352, 0.000000, 0.000000, 1.000000]
distortion_model: plumb_bob
distortion_coefficients:
  rows: 1
  cols: 5
  data: [-0.361976, 0.110510, 0.001014, 0.000505, 0.000000]
rectification_matrix:
  rows: 3
  cols: 3
  data: [0.999978, 0.002789, -0.006046, -0.002816, 0.999986, -0.004401, 0.006034, 0.004417, 0.999972]
projection_matrix:
  rows: 3
  cols: 4
  data: [393.653800, 0, 322.797939, 0, 0, 393.6538, 241.090902, 0, 0, 0, 1, 0]
";

    #[test]
    fn a_file_of_ros_is_read() {
        let calibration = parse(FILE).unwrap();
        assert_eq!((calibration.width(), calibration.height()), (640, 480));
        assert_eq!(
            (calibration.fx(), calibration.fy()),
            (438.783_367, 437.302_876)
        );
        assert_eq!(
            (calibration.cx(), calibration.cy()),
            (305.593_336, 243.738_352)
        );
        assert_eq!(calibration.distortion_model(), "plumb_bob");
        assert_eq!(calibration.distortion[3], 0.000_505);
        assert_eq!(calibration.rectification[2], -0.006_046);
        assert_eq!(
            (calibration.projection.len(), calibration.projection[6]),
            (12, 241.090_902)
        );
    }

    #[test]
    fn what_was_written_is_read_again() {
        let calibration = parse(FILE).unwrap();
        let yaml = to_yaml(&calibration, "narrow_stereo");
        assert_eq!(parse(&yaml).unwrap(), calibration, "{yaml}");
        // ROS wants the matrices that Amber leaves out.
        let plain = Calibration {
            rectification: Vec::new(),
            projection: Vec::new(),
            distortion: Vec::new(),
            ..calibration
        };
        let again = parse(&to_yaml(&plain, "plain")).unwrap();
        assert_eq!(again.rectification[..5], [1.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(again.projection[..3], [438.783_367, 0.0, 305.593_336]);
        assert_eq!(
            Calibration {
                rectification: Vec::new(),
                projection: Vec::new(),
                ..again
            },
            plain
        );
    }

    #[test]
    fn numbers_have_a_dot_and_a_sign() {
        for (value, text) in [
            (0.0, "0.0"),
            (-1.5e-7, "-1.5e-7"),
            (1e-7, "1.0e-7"),
            (1e20, "1.0e+20"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn invalid_files_are_refused() {
        for (from, to, words) in [
            ("image_width: 640", "image_width: wide", ""),
            ("image_width: 640", "image_width: 0", "must not be 0"),
            ("image_height: 480\n", "", "image_height"),
            ("[438.783367", "[0.0", "not calibrated"),
            ("[438.783367", "[.nan", "3 x 3 finite numbers"),
            ("[438.783367, ", "[", "camera_matrix must have 3 x 3"),
            ("plumb_bob", "fisheye", "\"fisheye\" is not known"),
            ("plumb_bob", "equidistant", "equidistant does not have 5"),
            ("cols: 4", "cols: 3", "projection_matrix must have 3 x 4"),
        ] {
            let yaml = FILE.replacen(from, to, 1);
            assert_ne!(yaml, FILE);
            let error = parse(&yaml).unwrap_err();
            assert!(error.contains(words), "{to}: {error}");
        }
        assert!(parse("").is_err());
        assert!(parse("- 1").is_err());
    }
}
