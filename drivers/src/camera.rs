//! Driver for cameras: those at USB, those of a network, and any program that writes JPEG files. IO.
//!
//! ```text
//! source     a USB camera (v4l2), a network camera, a program      IO
//! jpeg       finds and repairs the files in what they send         logic    on and off, trouble
//! http       answers of network cameras                            audience rates, sizes
//! pixels     smaller pictures, grey ones, those of raw pixels      calibration
//! ```
//!
//! All but `source` and `driver` is pure. A picture of the camera is passed on as it is; only for clients
//! that want a smaller one it is decoded.
//!
//! Guarantees for clients:
//!
//! - A picture is a whole JPEG file with all its tables. If the camera sent only a part, `damaged` says
//!   so.
//! - Each client has its own rate, width, quality and format. A slow client costs the others nothing: the
//!   newest picture is sent, and none waits.
//! - A camera that nobody uses is off, unless `idle_s` is 0.
//! - A camera that is gone, busy, silent or frozen is trouble of the driver: `amber status camera` says
//!   what to check.

use std::path::{Path, PathBuf};
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::camera;
use amber_proto::camera::Calibration;
use serde::Deserialize;

use self::driver::CameraOf;
use self::http::Address;
use self::logic::Settings;
use self::source::AnySource;
use self::source::network::NetworkCamera;
use self::source::program::Program;
use crate::options::{OptionsError, check, layered, read};

pub mod audience;
pub mod calibration;
pub mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod http;
pub mod jpeg;
pub mod logic;
mod note;
pub mod pixels;
pub mod source;

/// How long a camera adjusts its exposure.
const SETTLE: Duration = Duration::from_millis(300);

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `device = "/dev/video2"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// USB camera, such as /dev/v4l/by-id/... [default: the first that takes pictures]
    #[arg(long, value_name = "FILE")]
    pub device: Option<PathBuf>,
    /// Network camera: the address of its pictures, `http://[USER:PASSWORD@]HOST[:PORT]/PATH`
    #[arg(long, value_name = "URL", conflicts_with = "device")]
    pub url: Option<String>,
    /// Program that writes JPEG files to its stdout, such as ffmpeg with -f mjpeg
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["device", "url"])]
    pub command: Option<String>,
    /// Camera with this number at a Raspberry Pi, by rpicam-vid
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, default_missing_value = "0", conflicts_with_all = ["device", "url", "command"])]
    pub pi: Option<u32>,
    /// Width of the pictures in pixels; the camera takes the nearest size that it has [default: 640]
    #[arg(long, value_name = "PX")]
    pub width: Option<u32>,
    /// Height of the pictures in pixels [default: 480]
    #[arg(long, value_name = "PX")]
    pub height: Option<u32>,
    /// Pictures per second that the camera takes [default: 15]
    #[arg(long, value_name = "HZ")]
    pub rate: Option<f64>,
    /// Quality of JPEG from 1 to 100, for cameras that do not encode themselves [default: 80]
    #[arg(long)]
    pub quality: Option<u8>,
    /// Calibration: a YAML file of ROS
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    /// How long the camera stays on when nobody uses it; 0: for ever [default: 10]
    #[arg(long, value_name = "S")]
    pub idle_s: Option<u64>,
    /// Longest time without a picture; then the camera is started again [default: 5000]
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, source) = self.complete()?.settings()?;
        Ok(camera::driver(CameraOf::new(settings, source)))
    }

    /// These options over those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    /// The settings for these options. Ignores `config`. Reads the calibration.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Settings, AnySource), OptionsError> {
        let idle_s = check("idle_s", self.idle_s.unwrap_or(10), 0..=86_400)?;
        let timeout_ms = check("timeout_ms", self.timeout_ms.unwrap_or(5_000), 500..=60_000)?;
        let calibration = self
            .calibration
            .as_deref()
            .map(read_calibration)
            .transpose()?;
        let timeout = Duration::from_millis(timeout_ms);
        let is_network = self.url.is_some();
        let settings = Settings {
            idle: (idle_s > 0).then(|| Duration::from_secs(idle_s)),
            timeout,
            // A network camera is always on.
            settle: if is_network { Duration::ZERO } else { SETTLE },
            calibration,
        };
        Ok((settings, self.source(timeout)?))
    }

    fn source(self, timeout: Duration) -> Result<AnySource, OptionsError> {
        let width = check("width", self.width.unwrap_or(640), 16..=8_192)?;
        let height = check("height", self.height.unwrap_or(480), 16..=8_192)?;
        let rate = check("rate", self.rate.unwrap_or(15.0), 0.1..=240.0)?;
        let quality = check("quality", self.quality.unwrap_or(80), 1..=100)?;
        let given = [
            self.device.is_some(),
            self.url.is_some(),
            self.command.is_some(),
            self.pi.is_some(),
        ];
        if given.into_iter().filter(|given| *given).count() > 1 {
            return Err(OptionsError::Value {
                name: "device",
                problem: "only one of device, url, command and pi can be given".into(),
            });
        }
        if let Some(url) = self.url {
            let address: Address = url.parse().map_err(|problem| OptionsError::Value {
                name: "url",
                problem,
            })?;
            let period = Duration::from_secs_f64(1.0 / rate);
            let camera = NetworkCamera::new(address, timeout, period);
            return Ok(AnySource::Network(camera));
        }
        if let Some(command) = self.command {
            let words = shell_words::split(&command).unwrap_or_default();
            let program = Program::new(words, timeout).ok_or_else(|| OptionsError::Value {
                name: "command",
                problem: "it has no words, or a quote that does not end".into(),
            })?;
            return Ok(AnySource::Program(program));
        }
        if let Some(camera) = self.pi {
            let size = (width, height);
            let program = Program::of_raspberry_pi(camera, size, rate, quality, timeout);
            return Ok(AnySource::Program(program));
        }
        #[cfg(target_os = "linux")]
        {
            let wanted = source::v4l2::Wanted {
                size: (width, height),
                rate,
                quality,
                timeout,
            };
            let camera = source::v4l2::UsbCamera::new(self.device, wanted);
            Ok(AnySource::Device(camera))
        }
        #[cfg(not(target_os = "linux"))]
        {
            Err(OptionsError::Missing {
                name: "--url or --command",
                hint: "USB cameras are read on Linux only",
            })
        }
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: device url command pi width height rate quality calibration idle_s timeout_ms)
    }
}

fn read_calibration(path: &Path) -> Result<Calibration, OptionsError> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let read = text.and_then(|text| calibration::parse(&text));
    read.map_err(|problem| OptionsError::Unusable {
        problem: format!("cannot use the calibration {}: {problem}", path.display()),
        hint: "camera_calibration of ROS writes such files; without one, leave the option out"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::source::Source;
    use super::*;

    fn options(toml: &str) -> Options {
        toml::from_str(toml).unwrap()
    }

    fn place(toml: &str) -> String {
        options(toml).settings().unwrap().1.place()
    }

    #[test]
    fn the_options_choose_the_source() {
        for (toml, expected) in [
            ("", "the first USB camera"),
            ("device = \"/dev/video2\"", "/dev/video2"),
            (
                "url = \"http://me:secret@cam:81/stream\"",
                "http://cam:81/stream",
            ),
            (
                "command = \"/usr/bin/ffmpeg -i 'a b' -f mjpeg -\"",
                "ffmpeg",
            ),
            ("pi = 0", "rpicam-vid"),
        ] {
            assert_eq!(place(toml), expected);
        }
        let flags = Options {
            url: Some("http://a/b".into()),
            ..Options::default()
        };
        let merged = flags.or(options("timeout_ms = 900\nrate = 5.0"));
        let (settings, _) = merged.settings().unwrap();
        assert_eq!(settings.timeout, Duration::from_millis(900));
        assert_eq!(
            (settings.settle, settings.idle),
            (Duration::ZERO, Some(Duration::from_secs(10)))
        );
        let (settings, _) = options("idle_s = 0").settings().unwrap();
        assert_eq!((settings.settle, settings.idle), (SETTLE, None));
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (toml, error) in [
            ("width = 1", "width: 1 is not within 16 to 8192"),
            ("rate = 0.0", "rate: 0 is not within 0.1 to 240"),
            ("quality = 0", "quality: 0 is not within 1 to 100"),
            ("timeout_ms = 1", "timeout_ms: 1 is not within 500 to 60000"),
            ("url = \"cam/stream\"", "url: it must begin with http://"),
            ("command = \" \"", "command: it has no words"),
            ("command = \"cat 'a\"", "command: it has no words"),
            (
                "url = \"http://a/\"\npi = 1",
                "device: only one of device, url",
            ),
            (
                "calibration = \"/nowhere/c.yaml\"",
                "cannot use the calibration /nowhere/c.yaml",
            ),
        ] {
            let found = options(toml).settings().err().unwrap().to_string();
            assert!(found.starts_with(error), "{found}");
        }
    }

    #[test]
    fn a_calibration_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("camera.yaml");
        let calibration = Calibration {
            width: Some(640),
            height: Some(480),
            fx: Some(500.0),
            fy: Some(501.0),
            cx: Some(319.5),
            cy: Some(239.5),
            distortion_model: Some("plumb_bob".into()),
            ..Calibration::default()
        };
        std::fs::write(&path, calibration::to_yaml(&calibration, "test")).unwrap();
        let (settings, _) = options(&format!("calibration = {path:?}"))
            .settings()
            .unwrap();
        let read = settings.calibration.unwrap();
        assert_eq!((read.fy, read.cx), (Some(501.0), Some(319.5)));
    }
}
