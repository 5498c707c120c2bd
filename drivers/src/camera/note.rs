//! Log messages about the camera. PURE.

use std::time::Duration;

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The camera works, with pictures of this width and height.
    Ready((u32, u32)),
    /// It works again after an outage of this length.
    Back(Duration),
    /// It does not work.
    Trouble(String),
    /// The same picture comes again and again.
    Frozen(&'static str),
    /// The calibration is that of another size.
    OtherCalibration {
        /// Width and height in the file.
        theirs: (u32, u32),
        /// Width and height of the pictures.
        ours: (u32, u32),
    },
    /// A picture could not be made smaller: why.
    Unmade(String),
}

impl Note {
    /// Whether to log it as a warning.
    pub fn is_warning(&self) -> bool {
        !matches!(self, Self::Ready(_) | Self::Back(_))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready((width, height)) => write!(f, "ready: pictures of {width} x {height}"),
            Self::Back(after) => write!(f, "works again after {:.1} s", after.as_secs_f64()),
            Self::Trouble(text) => write!(f, "{text}; retrying"),
            Self::Frozen(text) => f.write_str(text),
            Self::OtherCalibration {
                theirs: (width, height),
                ours: (w, h),
            } => write!(
                f,
                "the calibration is for pictures of {width} x {height}, but those of the camera have {w} x {h}: \
                 calibrate it with this size"
            ),
            Self::Unmade(why) => write!(f, "{why} (logged once)"),
        }
    }
}
