//! `amber scan`: the scan of a laser scanner. IO.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use amber_client::picture;
use amber_client::picture::view::{MAX_RANGE_M, MIN_RANGE_M, View};
use amber_client::{Client, Hokuyo, Point, Scan};
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, Human, fields, note, print, table};
use serde::Serialize;

use super::file;
use super::message;

mod plot;

pub(super) const HELP: &str = "\
Examples:
  amber scan
  amber scan --plot --follow
  amber scan --png scan.png --range 5
  amber scan --json";

/// Options of `amber scan`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Laser scanner, e.g. hokuyo, hokuyo:0 or 4:0
    #[arg(default_value = "hokuyo:0")]
    device: Device,
    /// Draw the scan in the terminal; straight ahead is up
    #[arg(long)]
    plot: bool,
    /// Write the scan to a PNG picture, or to stdout for `-`; straight ahead is up
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Range of the picture [default: large enough for nearly all points]
    #[arg(long, value_name = "METRES", value_parser = metres_from)]
    range: Option<f64>,
    /// Show every published scan, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Number of scans to show
    #[arg(short = 'n', long, requires = "follow", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// A laser that was off, or a slow serial line, needs this much time.
const PATIENCE: Duration = Duration::from_secs(3);

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self, json: bool) -> Result<Self, Failure> {
        if self.device.device_type != DeviceType::HOKUYO {
            return Err(
                Failure::wrong(format!("{} is not a laser scanner", self.device))
                    .hint("try `amber scan hokuyo:0`; `amber devices` lists all devices"),
            );
        }
        if self.plot && json {
            return Err(Failure::wrong("--plot and --json cannot be combined")
                .hint("leave out one of them: --plot is for people, --json for programs"));
        }
        if let Some(path) = &self.png {
            file::check("--png", path)?;
            if file::is_stdout(path) && (json || self.plot || self.follow) {
                return Err(Failure::wrong("--png - writes only one picture to stdout")
                    .hint("leave out --json, --plot and --follow, or name a file"));
            }
        }
        Ok(self)
    }
}

/// A laser scanner with a long enough deadline.
pub(super) fn scanner(client: &Client, device: Device) -> Hokuyo {
    client.hokuyo(device.id.0).with_deadline(PATIENCE)
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let scanner = scanner(client, options.device);
    if !options.follow {
        let scan = scanner.scan().await?;
        show(&scan, &options, Frame::Only, json)?;
        if let Some(file) = &options.png {
            file::wrote(file);
        }
        return Ok(());
    }
    let mut scans = scanner.scans().await?;
    let mut shown = 0;
    while options.count.is_none_or(|count| shown < count) {
        let update = message::next(&mut scans, options.device).await?;
        if update.undecodable > 0 {
            let (device, bad) = (options.device, update.undecodable);
            note(format!("{device}: {bad} invalid messages"));
        }
        let frame = match shown {
            0 => Frame::First,
            _ => Frame::Next,
        };
        show(&update.message, &options, frame, json)?;
        shown += 1;
    }
    Ok(())
}

/// The position of a scan in the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Only,
    First,
    Next,
}

fn show(scan: &Scan, options: &Options, frame: Frame, json: bool) -> Result<(), Failure> {
    if let Some(file) = &options.png {
        let picture = picture::png(scan, options.range)
            .map_err(|error| Failure::new(format!("cannot make the picture: {error}")))?;
        file::write(file, &picture)?;
    }
    match (options.plot, frame) {
        (true, _) => {
            let view = View::of(scan, options.range);
            print(drawing(scan, view, frame).as_bytes())
        }
        // The picture is the output.
        (false, _) if options.png.is_some() && !json => Ok(()),
        (false, Frame::Only) => amber_terminal::show(&ScanShown::from(scan), json),
        (false, _) if json => amber_terminal::show(&ScanShown::from(scan), json),
        (false, _) => print(line(scan).as_bytes()),
    }
}

/// The scan as large as the terminal allows, with a summary line.
fn drawing(scan: &Scan, view: View, frame: Frame) -> String {
    let (columns, rows) = match terminal_size::terminal_size() {
        Some((width, height)) => (width.0, height.0),
        None => (80, 41),
    };
    // One row is for the line below and one for the prompt.
    let text = plot::draw(
        scan,
        view,
        columns.into(),
        usize::from(rows).saturating_sub(2),
    );
    let text = format!("{text}{}", line(scan));
    if frame == Frame::Only || !io::stdout().is_terminal() {
        return text;
    }
    // Drawn in place: each line clears its rest, the end clears the rows below.
    let clear = match frame {
        Frame::First => "\x1b[2J",
        _ => "",
    };
    format!("{clear}\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// Reads metres such as `5` or `0.5`.
fn metres_from(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(metres) if (MIN_RANGE_M..=MAX_RANGE_M).contains(&metres) => Ok(metres),
        _ => Err(format!(
            "not a number of metres from {MIN_RANGE_M} to {MAX_RANGE_M}"
        )),
    }
}

/// The width of the sectors in the summary.
const SECTOR_DEG: f64 = 30.0;

/// A scan for people and programs.
#[derive(Debug, Serialize)]
pub(super) struct ScanShown {
    /// Milliseconds since the Unix epoch.
    timestamp_ms: Option<i64>,
    angles_deg: Vec<f64>,
    distances_mm: Vec<i32>,
    #[serde(skip)]
    summary: String,
}

impl From<&Scan> for ScanShown {
    fn from(scan: &Scan) -> Self {
        let points = scan.points();
        Self {
            timestamp_ms: scan.timestamp_ms(),
            angles_deg: points.iter().map(|point| point.angle_deg).collect(),
            distances_mm: points.iter().map(|point| point.distance_mm).collect(),
            summary: summary(scan),
        }
    }
}

impl Human for ScanShown {
    fn human(&self) -> String {
        self.summary.clone()
    }
}

/// The scan in numbers, and the nearest point of each sector.
fn summary(scan: &Scan) -> String {
    let points = scan.points();
    let count = scan.valid_points().count();
    let nearest = scan.nearest(f64::NEG_INFINITY..=f64::INFINITY);
    let farthest = scan.valid_points().max_by_key(|point| point.distance_mm);
    let span = match (points.first(), points.last()) {
        (Some(first), Some(last)) => {
            format!(", {:.1} to {:.1} degrees", first.angle_deg, last.angle_deg)
        }
        _ => String::new(),
    };
    let mut out = fields(&[
        ("points", Some(format!("{}{span}", points.len()))),
        ("with distance", Some(count.to_string())),
        ("nearest", nearest.map(in_words)),
        ("farthest", farthest.map(in_words)),
    ]);
    let sectors = sectors(scan);
    if !sectors.is_empty() {
        out.push('\n');
        out.push_str(&table(["DEGREES", "NEAREST"], &sectors));
    }
    out
}

/// The scan in one line.
fn line(scan: &Scan) -> String {
    let nearest = scan.nearest(f64::NEG_INFINITY..=f64::INFINITY);
    let nearest = nearest.map_or("nothing".to_owned(), in_words);
    let (count, all) = (scan.valid_points().count(), scan.points().len());
    format!("nearest: {nearest}; {count} of {all} points\n")
}

/// `0.39 m at -119.9 (left)`.
fn in_words(point: Point) -> String {
    let side = match point.angle_deg {
        angle if angle.abs() <= SECTOR_DEG / 2.0 => "ahead",
        angle if angle < 0.0 => "left",
        _ => "right",
    };
    format!(
        "{:.2} m at {:.1} degrees, {side}",
        metres(point),
        point.angle_deg
    )
}

fn metres(point: Point) -> f64 {
    f64::from(point.distance_mm) / 1000.0
}

/// Sectors from left to right, as far as the scan reaches; the middle one is
/// straight ahead.
fn sectors(scan: &Scan) -> Vec<[String; 2]> {
    let sector = |angle: f64| (angle / SECTOR_DEG).round();
    let mut middles: Vec<_> = scan
        .points()
        .iter()
        .map(|point| sector(point.angle_deg) * SECTOR_DEG)
        .collect();
    middles.sort_by(f64::total_cmp);
    // -0 and 0 are the same direction.
    middles.dedup_by(|a, b| a == b);
    let nearest = |middle: f64| {
        let half = SECTOR_DEG / 2.0;
        let nearest = scan.nearest(middle - half..=middle + half);
        nearest.map_or("-".to_owned(), |point| format!("{:.2} m", metres(point)))
    };
    let row = |middle: f64| {
        let half = SECTOR_DEG / 2.0;
        let range = format!("{:>4} to {:>4}", middle - half, middle + half);
        [range, nearest(middle)]
    };
    // A faulty driver must not fill the screen.
    middles.into_iter().take(24).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_numbers_and_sectors() {
        let angles = [-90.0, -10.0, -0.1, 0.1, 90.0];
        let scan = Scan::new(&angles, &[2500, 0, 800, 900, 19], Some(5)).unwrap();
        assert_eq!(
            ScanShown::from(&scan).human(),
            "points:        5, -90.0 to 90.0 degrees\n\
             with distance: 3\n\
             nearest:       0.80 m at -0.1 degrees, ahead\n\
             farthest:      2.50 m at -90.0 degrees, left\n\
             \n\
             DEGREES       NEAREST\n\
             -105 to  -75  2.50 m\n \
             -15 to   15  0.80 m\n  \
             75 to  105  -\n"
        );
        let empty = Scan::new(&[], &[], None).unwrap();
        assert_eq!(
            ScanShown::from(&empty).human(),
            "points:        0\nwith distance: 0\n"
        );
    }

    #[test]
    fn programs_get_all_points() {
        let scan = Scan::new(&[-1.5, 2.0], &[0, 400], Some(1_448_000_000_123)).unwrap();
        assert_eq!(
            serde_json::to_string(&ScanShown::from(&scan)).unwrap(),
            r#"{"timestamp_ms":1448000000123,"angles_deg":[-1.5,2.0],"distances_mm":[0,400]}"#
        );
    }
}
