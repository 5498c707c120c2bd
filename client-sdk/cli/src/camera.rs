//! `amber camera`: pictures in the terminal, in a file, and for other programs. IO.
//!
//! `pixels` decodes pictures and `plot` draws them; they are pure. `watch` shows one after the other,
//! and `mjpeg` serves them over HTTP.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_client::{Client, Error};
use amber_proto::camera::{Format, Picture, PictureRequest, PictureStream};
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, Human, duration, note, print, show};
use serde::Serialize;

use self::pixels::Pixels;
use self::plot::Colours;
use super::session::Session;
use super::{file, reason, screen, until_interrupt};

#[cfg(feature = "web")]
mod mjpeg;
mod pixels;
mod plot;
mod watch;

pub(super) const HELP: &str = "\
Without an option, it draws one picture in the terminal. With --watch, press q or Ctrl-C to quit.
With --mjpeg, it prints the addresses for OpenCV, ffmpeg, a browser and others. By default, only
programs on this machine can connect; at other addresses, they need the token in the printed
addresses. The camera is on only while somebody reads.

Examples:
  amber camera
  amber camera --watch
  amber camera -o picture.jpg
  amber camera -o - --max-width 320 --quality 60 > small.jpg
  amber camera --mjpeg";

/// Options of `amber camera`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Camera, e.g. camera, camera:1 or 17:0
    #[arg(default_value = "camera:0")]
    device: Device,
    /// Save one picture to this JPEG file, or write it to stdout for `-`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show pictures one after the other
    #[arg(long, conflicts_with = "output")]
    watch: bool,
    /// Serve the pictures over HTTP at this address (MJPEG), until Ctrl-C [default: 127.0.0.1:8027]
    #[cfg(feature = "web")]
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:8027",
        value_parser = address,
        conflicts_with_all = ["output", "watch"]
    )]
    mjpeg: Option<std::net::SocketAddr>,
    /// Make wider pictures smaller: to a half, a third and so on [default: as the camera takes them]
    #[arg(long, alias = "width", value_name = "PX", value_parser = clap::value_parser!(u32).range(16..=8192))]
    max_width: Option<u32>,
    /// Quality of JPEG [default: as the camera encodes them]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    quality: Option<u32>,
    /// Pictures per second, for --watch and --mjpeg [default: 5 with --watch, else all]
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,
    /// Number of pictures to show
    #[arg(short = 'n', long, requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// An address to serve at, but not the camera: a device behind `--mjpeg` looks like its value.
#[cfg(feature = "web")]
fn address(text: &str) -> Result<std::net::SocketAddr, String> {
    text.parse().map_err(
        |error: std::net::AddrParseError| match amber_terminal::device(text) {
            Ok(device) if device.device_type == DeviceType::CAMERA => {
                format!("the camera comes before the option: `amber camera {device} --mjpeg`")
            }
            _ => error.to_string(),
        },
    )
}

/// Whether a file has the name of another kind of picture than cameras send.
fn is_other_kind(path: &Path) -> bool {
    const OTHERS: [&str; 7] = ["bmp", "gif", "pgm", "png", "ppm", "tiff", "webp"];
    let extension = path.extension().and_then(|it| it.to_str());
    extension.is_some_and(|it| OTHERS.contains(&&*it.to_ascii_lowercase()))
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text
        .parse()
        .ok()
        .filter(|rate| (0.1..=100.0).contains(rate));
    rate.ok_or_else(|| "not a number from 0.1 to 100".to_owned())
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self, json: bool) -> Result<Self, Failure> {
        if self.device.device_type != DeviceType::CAMERA {
            return Err(Failure::wrong(format!("{} is not a camera", self.device))
                .hint("try `amber camera camera:0`; `amber devices` lists all devices"));
        }
        if let Some(path) = &self.output {
            file::check("-o", path)?;
            if is_other_kind(path) {
                let jpg = path.with_extension("jpg");
                let text = format!("-o {}: cameras send JPEG files", path.display());
                let hint = format!("save it as {}; other programs convert it", jpg.display());
                return Err(Failure::wrong(text).hint(hint));
            }
            if file::is_stdout(path) && json {
                return Err(Failure::wrong("-o - and --json both write to stdout")
                    .hint("leave out --json, or name a file"));
            }
        }
        if self.watch && !json && !io::stdout().is_terminal() {
            return Err(Failure::wrong(
                "--watch draws in a terminal, but stdout is not a terminal",
            )
            .hint("use -o FILE for one picture, `--watch --json`, or --mjpeg"));
        }
        if json && self.is_served() {
            return Err(Failure::wrong("--mjpeg and --json cannot be combined")
                .hint("leave out --json; /status of the server has its counters as JSON"));
        }
        if self.rate.is_some() && !self.watch && !self.is_served() {
            return Err(Failure::wrong("--rate is for many pictures")
                .hint("add --watch or --mjpeg, or leave out --rate"));
        }
        Ok(self)
    }

    fn is_served(&self) -> bool {
        #[cfg(feature = "web")]
        return self.mjpeg.is_some();
        #[cfg(not(feature = "web"))]
        false
    }

    /// The period of a stream.
    fn period(&self, usual_hz: f64) -> Duration {
        Duration::from_secs_f64(1.0 / self.rate.unwrap_or(usual_hz))
    }

    fn request(&self) -> PictureRequest {
        PictureRequest {
            max_width: self.max_width,
            quality: self.quality,
            ..PictureRequest::default()
        }
    }

    fn stream(&self) -> PictureStream {
        PictureStream {
            max_width: self.max_width,
            quality: self.quality,
            ..PictureStream::default()
        }
    }
}

pub(super) async fn run(
    session: &mut Session<'_>,
    options: &Options,
    json: bool,
) -> Result<(), Failure> {
    #[cfg(feature = "web")]
    if let Some(address) = options.mjpeg {
        let client = session.client_when_network_is_there().await?;
        return mjpeg::serve(client, options, address).await;
    }
    let client = session.client().await?;
    match options.watch {
        true => watch::run(client, options, json).await,
        false => until_interrupt(one(client, options, json)).await,
    }
}

async fn one(client: &Client, options: &Options, json: bool) -> Result<(), Failure> {
    let camera = client.camera(options.device.id.0);
    let Some(path) = &options.output else {
        return look(client, options, json).await;
    };
    let picture = camera.picture(options.request()).await;
    let picture = picture.map_err(|error| failure(options.device, error))?;
    file::write(path, picture.data())?;
    let saved = Taken {
        file: Some(path.display().to_string()),
        ..Taken::of(options.device, &picture)
    };
    match file::is_stdout(path) {
        true => note(saved.line()),
        false => show(&saved, json)?,
    }
    Ok(())
}

/// Draws one picture.
async fn look(client: &Client, options: &Options, json: bool) -> Result<(), Failure> {
    let drawing = Drawing::new();
    let request = match json {
        true => options.request(),
        false => PictureRequest {
            max_width: Some(drawing.max_width(options)),
            format: Some(drawing.format().into()),
            ..options.request()
        },
    };
    let camera = client.camera(options.device.id.0);
    let picture = camera.picture(request).await;
    let picture = picture.map_err(|error| failure(options.device, error))?;
    let taken = Taken::of(options.device, &picture);
    if json {
        return show(&taken, true);
    }
    let pixels = pixels(options.device, &picture)?;
    let (columns, rows) = screen::size();
    // One row is for the line below and one for the prompt.
    let drawn = drawing.draw(&pixels, (columns, rows.saturating_sub(2)));
    print(format!("{drawn}{}", taken.human()).as_bytes())
}

/// The driver refuses with what is wrong, and the mediator knows since when.
fn failure(device: Device, error: Error) -> Failure {
    let is_hinted = error.hint().is_some();
    let failure = Failure::from(error);
    match is_hinted {
        true => failure,
        false => failure.hint(reason::hint(device)),
    }
}

/// Why no picture comes, as far as that is known.
async fn why_silent(client: &Client, device: Device) -> String {
    if let Some(why) = reason::of(client, device).await {
        return why;
    }
    match client.camera(device.id.0).info().await {
        Err(error) => error.to_string(),
        Ok(_) => "no picture has come".to_owned(),
    }
}

fn pixels(device: Device, picture: &Picture) -> Result<Pixels, Failure> {
    Pixels::of(picture).map_err(|why| {
        Failure::new(format!("{device}: {why}"))
            .hint("`amber camera -o FILE` saves a picture as it is")
    })
}

/// How this terminal shows pictures.
#[derive(Clone, Copy, Debug)]
struct Drawing(Colours);

impl Drawing {
    fn new() -> Self {
        let says = std::env::var("COLORTERM").unwrap_or_default();
        // The console of Windows has all colours, and does not say it.
        let says = if cfg!(windows) { "truecolor" } else { &says };
        Self(Colours::of(amber_terminal::has_colours(), says))
    }

    fn max_width(self, options: &Options) -> u32 {
        let (columns, _) = screen::size();
        let needed = u32::try_from(self.0.width_px(columns)).unwrap_or(u32::MAX);
        let needed = needed.clamp(16, 8_192);
        options.max_width.map_or(needed, |given| given.min(needed))
    }

    fn format(self) -> Format {
        match self.0 {
            Colours::Dots => Format::Gray8,
            Colours::Palette | Colours::All => Format::Jpeg,
        }
    }

    fn draw(self, pixels: &Pixels, size: (usize, usize)) -> String {
        plot::draw(pixels, size, self.0)
    }
}

/// What is known of a picture, for people and programs.
#[derive(Clone, Debug, Serialize)]
struct Taken {
    device: String,
    /// The file into which it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    width: u32,
    height: u32,
    bytes: usize,
    /// Microseconds since 1970.
    captured_us: i64,
    /// Negative if the clock of the camera is ahead.
    age_ms: i64,
    sequence: u32,
    damaged: bool,
}

impl Taken {
    fn of(device: Device, picture: &Picture) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_us = now.map_or(0, |now| i64::try_from(now.as_micros()).unwrap_or(i64::MAX));
        Self {
            device: device.to_string(),
            file: None,
            width: picture.width(),
            height: picture.height(),
            bytes: picture.data().len(),
            captured_us: picture.captured(),
            age_ms: now_us.saturating_sub(picture.captured()) / 1_000,
            sequence: picture.sequence(),
            damaged: picture.damaged(),
        }
    }

    fn line(&self) -> String {
        let Self { width, height, .. } = self;
        let what = match self.file.as_deref() {
            None => self.device.clone(),
            Some(path) if file::is_stdout(Path::new(path)) => self.device.clone(),
            Some(path) => format!("{path}: picture of {}", self.device),
        };
        let kilobytes = self.bytes as f64 / 1_000.0;
        let age = age(self.age_ms);
        let damaged = match self.damaged {
            true => ", damaged: its lower part is missing",
            false => "",
        };
        format!("{what}: {width} x {height} pixels, {kilobytes:.1} kB, {age}{damaged}")
    }
}

/// How old something is by the clock of this machine.
fn age(age_ms: i64) -> String {
    match u64::try_from(age_ms) {
        Err(_) => "taken in the future: the clocks differ".to_owned(),
        Ok(ms @ ..1_000) => format!("{ms} ms old"),
        Ok(ms) => format!("{} old", duration(Duration::from_millis(ms))),
    }
}

impl Human for Taken {
    fn human(&self) -> String {
        format!("{}\n", self.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken() -> Taken {
        Taken {
            device: "camera:0".into(),
            file: None,
            width: 640,
            height: 480,
            bytes: 38_240,
            captured_us: 0,
            age_ms: 35,
            sequence: 7,
            damaged: false,
        }
    }

    #[cfg(feature = "web")]
    #[test]
    fn a_camera_behind_the_option_is_no_address() {
        assert_eq!(address("127.0.0.1:8027").unwrap().port(), 8027);
        let swapped = "the camera comes before the option: `amber camera camera:1 --mjpeg`";
        assert_eq!(address("camera:1").unwrap_err(), swapped);
        assert_eq!(
            address("9999").unwrap_err(),
            "invalid socket address syntax"
        );
    }

    #[test]
    fn a_line_says_what_was_taken() {
        let with_file = |file: &str| Taken {
            file: Some(file.into()),
            ..taken()
        };
        for (shown, expected) in [
            (taken(), "camera:0: 640 x 480 pixels, 38.2 kB, 35 ms old"),
            (
                with_file("a.jpg"),
                "a.jpg: picture of camera:0: 640 x 480 pixels, 38.2 kB, 35 ms old",
            ),
            (
                with_file("-"),
                "camera:0: 640 x 480 pixels, 38.2 kB, 35 ms old",
            ),
            (
                Taken {
                    age_ms: 2_500,
                    damaged: true,
                    ..taken()
                },
                "camera:0: 640 x 480 pixels, 38.2 kB, 2.5s old, damaged: its lower part is missing",
            ),
            (
                Taken {
                    age_ms: -3,
                    ..taken()
                },
                "camera:0: 640 x 480 pixels, 38.2 kB, taken in the future: the clocks differ",
            ),
        ] {
            assert_eq!(shown.line(), expected);
        }
    }
}
