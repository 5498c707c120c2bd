//! What the driver of a camera costs with one subscriber that gets every picture as it is, and how much
//! a phone beside it adds: small pictures have to be made for it. IO.
//!
//! ```text
//!   subscribers (this program) -- UDP -- mediator -- pipes -- `amber driver camera` -- pipe -- film
//! ```
//!
//! The film is this program, too. It shows two pictures of the simulated camera in turn, so that
//! nothing is drawn while the driver is measured.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_bench::process::{CpuMeter, Programs, Setting};
use amber_bench::results::Candidate;
use amber_bench::samples::median;
use amber_client::{Client, Subscription};
use amber_harness::Program;
use amber_proto::DeviceType;
use amber_proto::camera::{Picture, PictureStream};
use anyhow::{Context, ensure};
use serde::Serialize;
use tokio::time::timeout;

pub(crate) const NAME: &str = "a phone beside a subscriber";
const SIZE: (u32, u32) = (640, 480);
const RATE_HZ: u32 = 30;
const PHONE_WIDTH_PX: u32 = 320;
const PHONE_PERIOD: Duration = Duration::from_millis(200);
/// CPU time of the driver for the phone, at most, in percent of a core.
const MORE_PERCENT: f64 = 3.0;
/// The shortest time with a figure of CPU time.
const SHORTEST: Duration = Duration::from_secs(2);
/// The pictures of a busy computer are late, but not so late.
const SILENT: Duration = Duration::from_secs(15);

pub(crate) const HEAD: &str = "\
| case | size | Hz | bytes | camera driver, % | with the phone, % | more | worst | pictures of the phone | |
|---|---|---:|---:|---:|---:|---:|---:|---|---|";

/// The medians of all rounds, and the worst one.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    case: &'static str,
    size: (u32, u32),
    hertz: u32,
    rounds: usize,
    /// Of a picture as the camera sends it.
    bytes: usize,
    /// CPU time of the driver in percent of a core.
    alone_percent: f64,
    with_phone_percent: f64,
    more_percent: f64,
    worst_more_percent: f64,
    phone_size: (u32, u32),
    phone_hertz: f64,
    phone_bytes: usize,
    /// The demands that are not met.
    pub(crate) unmet: Vec<String>,
}

impl Row {
    fn of(rounds: &[Round]) -> anyhow::Result<Self> {
        let each = |of: fn(&Round) -> f64| rounds.iter().map(of).collect::<Vec<_>>();
        let medians = |of| median(&each(of));
        let last = rounds.last().context("no rounds")?;
        let more = |round: &Round| round.with_phone_percent - round.alone_percent;
        let mut row = Self {
            case: NAME,
            size: SIZE,
            hertz: RATE_HZ,
            rounds: rounds.len(),
            bytes: last.full.bytes,
            alone_percent: medians(|it| it.alone_percent),
            with_phone_percent: medians(|it| it.with_phone_percent),
            more_percent: medians(more),
            worst_more_percent: each(more).into_iter().fold(f64::MIN, f64::max),
            phone_size: last.phone.size,
            phone_hertz: medians(|it| it.phone.hertz),
            phone_bytes: last.phone.bytes,
            unmet: Vec::new(),
        };
        if row.more_percent > MORE_PERCENT {
            row.unmet.push(format!("more, %: above {MORE_PERCENT}"));
        }
        Ok(row)
    }

    /// A line of the table.
    pub(crate) fn line(&self) -> String {
        let ((width, height), (phone_width, phone_height)) = (self.size, self.phone_size);
        format!(
            "| {} | {width} x {height} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {phone_width} x {phone_height}, {:.1} Hz, {} bytes | {} |",
            self.case,
            self.hertz,
            self.bytes,
            self.alone_percent,
            self.with_phone_percent,
            self.more_percent,
            self.worst_more_percent,
            self.phone_hertz,
            self.phone_bytes,
            self.unmet.join("; "),
        )
    }
}

struct Round {
    alone_percent: f64,
    with_phone_percent: f64,
    full: Watched,
    phone: Watched,
}

/// What a subscriber got.
struct Watched {
    hertz: f64,
    /// Of the last picture.
    size: (u32, u32),
    bytes: usize,
}

/// Measures the driver for so long without the phone, and as long with it, in each round.
pub(crate) fn measure(programs: &Programs, seconds: f64, rounds: u32) -> anyhow::Result<Row> {
    let folder = tempfile::tempdir()?;
    let files = taken(programs, folder.path())?;
    let time = Duration::from_secs_f64(seconds).max(SHORTEST);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let rounds = (0..rounds).map(|_| runtime.block_on(round(programs, &files, time)));
    Row::of(&rounds.collect::<anyhow::Result<Vec<_>>>()?)
}

/// Files with two pictures of the simulated camera.
fn taken(programs: &Programs, folder: &Path) -> anyhow::Result<[PathBuf; 2]> {
    let mut command = Command::new(programs.path("amber"));
    let (width, height) = SIZE;
    command.args(["sim", "--until-eof", "--camera", "--camera-size"]);
    command.arg(format!("{width}x{height}"));
    command.arg("--dir").arg(folder.join("sim"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let sim = Program::of(command.spawn()?);
    let place = sim.after("camera ")?;
    let files = ["first.jpg", "second.jpg"].map(|name| folder.join(name));
    for file in &files {
        std::fs::write(file, snapshot(&place)?)?;
    }
    Ok(files)
}

fn snapshot(place: &str) -> anyhow::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(place)?;
    stream.set_read_timeout(Some(SILENT))?;
    stream.write_all(b"GET /snapshot HTTP/1.0\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n");
    let picture = answer.split_off(end.context("the camera does not answer")? + 4);
    ensure!(
        picture.starts_with(b"\xff\xd8\xff"),
        "the camera sends no picture"
    );
    Ok(picture)
}

/// Writes files to stdout in turn, until nobody reads them.
pub(crate) fn show_film(hertz: f64, files: &[PathBuf]) -> anyhow::Result<()> {
    let pictures = files.iter().map(std::fs::read);
    let pictures = pictures.collect::<Result<Vec<_>, _>>()?;
    let period = Duration::from_secs(1).div_f64(hertz);
    let mut due = Instant::now();
    for picture in pictures.iter().cycle() {
        let mut stdout = std::io::stdout().lock();
        if stdout
            .write_all(picture)
            .and_then(|()| stdout.flush())
            .is_err()
        {
            break;
        }
        due += period;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

async fn round(programs: &Programs, files: &[PathBuf; 2], time: Duration) -> anyhow::Result<Round> {
    let [first, second] = files;
    let this = std::env::current_exe()?;
    let [this, first, second] = [&this, first, second].map(|path| path.display());
    let film = format!("{this} film {RATE_HZ} {first} {second}");
    let amber = programs.path("amber");
    let driver = format!(
        "17:0='{}' driver camera --command '{film}'",
        amber.display()
    );
    let setting = Setting {
        driver: Some(&driver),
        ..Setting::default()
    };
    let mediator = programs.start(Candidate::Amber, &setting)?;
    let client = Client::connect(mediator.address).await?;
    let phone = Client::connect(mediator.address).await?;
    let each = Duration::from_millis(1);
    let small = PictureStream {
        max_width: Some(PHONE_WIDTH_PX),
        ..PictureStream::default()
    };
    let mut pictures = client
        .camera(0)
        .pictures(each, PictureStream::default())
        .await?;
    // The camera is on, and its first pictures are over.
    watch(&mut pictures, Duration::from_secs(1)).await?;
    let driver = pid_of_camera(&client).await?;

    let cpu = CpuMeter::start(driver);
    let (_, alone) = watch(&mut pictures, time).await?;
    let alone_percent = percent(&cpu, alone);
    let mut few = phone.camera(0).pictures(PHONE_PERIOD, small).await?;
    timeout(SILENT, few.next())
        .await?
        .context("no small picture")?;
    let cpu = CpuMeter::start(driver);
    let (full, small) = tokio::join!(watch(&mut pictures, time), watch(&mut few, time));
    let ((full, both), (phone_saw, _)) = (full?, small?);
    let with_phone_percent = percent(&cpu, both);
    ensure!(
        full.size == SIZE && phone_saw.size.0 == PHONE_WIDTH_PX,
        "pictures of {:?} and {:?} pixels",
        full.size,
        phone_saw.size
    );
    client.close().await;
    phone.close().await;
    Ok(Round {
        alone_percent,
        with_phone_percent,
        full,
        phone: phone_saw,
    })
}

fn percent(cpu: &CpuMeter, time: Duration) -> f64 {
    100.0 * cpu.elapsed().as_secs_f64() / time.as_secs_f64()
}

/// Takes pictures for so long; also returns how long it was.
async fn watch(
    pictures: &mut Subscription<Picture>,
    time: Duration,
) -> anyhow::Result<(Watched, Duration)> {
    let (began, mut count) = (Instant::now(), 0_u32);
    loop {
        let next = timeout(SILENT, pictures.next()).await;
        let next = next.context("no picture comes")?;
        let picture: Picture = next.context("the client has ended")?.message;
        count += 1;
        let lasted = began.elapsed();
        if lasted >= time {
            let watched = Watched {
                hertz: f64::from(count) / lasted.as_secs_f64(),
                size: (picture.width(), picture.height()),
                bytes: picture.data().len(),
            };
            return Ok((watched, lasted));
        }
    }
}

async fn pid_of_camera(client: &Client) -> anyhow::Result<u32> {
    let drivers = client.mediator().drivers().await?;
    let camera = drivers.iter().find(|driver| {
        let mut devices = driver.devices.iter();
        devices.any(|it| it.r#type == DeviceType::CAMERA.0)
    });
    camera.and_then(|it| it.pid).context("no camera runs")
}
