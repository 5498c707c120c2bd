//! A program that writes JPEG files to its stdout, one behind the other: `rpicam-vid`, ffmpeg,
//! gstreamer. IO.

use std::io;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Event, Events, Running, Source, seconds};
use crate::camera::jpeg::Splitter;
use crate::camera::logic::Facts;

/// The most that is read at once, in bytes.
const READ: usize = 64 * 1024;
/// The longest line of its log that is told, in characters.
const MAX_LINE: usize = 120;
/// How long its last words may take when it has closed its stdout.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// At least one word.
    words: Vec<String>,
    /// The longest time without a picture.
    timeout: Duration,
}

impl Program {
    /// `words` are the program and its arguments; `None` without a word.
    #[must_use]
    pub fn new(words: Vec<String>, timeout: Duration) -> Option<Self> {
        (!words.is_empty()).then_some(Self { words, timeout })
    }

    /// `rpicam-vid` for the camera of a Raspberry Pi. Without `--flush`, it would keep the end of each
    /// picture until the next one.
    #[must_use]
    pub fn of_raspberry_pi(
        camera: u32,
        (width, height): (u32, u32),
        rate: f64,
        quality: u8,
        timeout: Duration,
    ) -> Self {
        let line = format!(
            "rpicam-vid -n -t 0 --codec mjpeg --quality {quality} --width {width} --height {height} \
             --framerate {rate} --camera {camera} --flush -v 0 -o -"
        );
        Self {
            words: line.split_whitespace().map(str::to_owned).collect(),
            timeout,
        }
    }

    fn name(&self) -> &str {
        let path = self.words.first().map_or("", String::as_str);
        path.rsplit('/').next().unwrap_or(path)
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // It would go on with the camera, and nobody else could use it.
            .kill_on_drop(true);
        command.spawn()
    }

    /// Runs it; returns why there are no more pictures.
    async fn run(self, events: Events) -> String {
        let name = self.name().to_owned();
        let mut child = match self.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return format!("there is no program {name}: install it, or correct --command");
            }
            Err(error) => return format!("cannot start {name}: {error}"),
        };
        let (Some(mut stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return format!("cannot read what {name} writes");
        };
        let log: JoinHandle<String> = tokio::spawn(last_line(BufReader::new(stderr)));
        if !events.tell(Event::Opened(Facts::default())).await {
            return String::new();
        }
        let mut splitter = Splitter::default();
        let mut buffer = vec![0; READ];
        let mut pictures = 0_u64;
        loop {
            let read = timeout(
                self.timeout,
                read_picture(&mut stdout, &mut buffer, &mut splitter),
            );
            match read.await {
                Err(_) => {
                    let time = seconds(self.timeout);
                    return match pictures {
                        0 => format!(
                            "{name} has written no JPEG picture within {time}: it must write them to its \
                             stdout, one behind the other"
                        ),
                        _ => format!("{name} has written no picture for {time}"),
                    };
                }
                Ok(Ok(jpeg)) => {
                    pictures += 1;
                    events.frame(jpeg, SystemTime::now());
                }
                Ok(Err(_)) => break,
            }
        }
        let status = timeout(LAST_WORDS, child.wait()).await;
        let status = match status {
            Ok(Ok(status)) if status.success() => "has ended".to_owned(),
            Ok(Ok(status)) => format!("has failed ({status})"),
            Ok(Err(_)) | Err(_) => "has closed its stdout".to_owned(),
        };
        let line = timeout(LAST_WORDS, log).await;
        match line {
            Ok(Ok(line)) if !line.is_empty() => format!("{name} {status}: {line}"),
            _ => format!("{name} {status}"),
        }
    }
}

/// Reads until a picture is whole. Dropping the future loses nothing.
pub(super) async fn read_picture(
    stream: &mut (impl AsyncReadExt + Unpin),
    buffer: &mut [u8],
    splitter: &mut Splitter,
) -> io::Result<crate::camera::jpeg::Jpeg> {
    loop {
        if let Some(jpeg) = splitter.poll() {
            return Ok(jpeg);
        }
        match stream.read(buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => splitter.push(&buffer[..length]),
        }
    }
}

/// The last line that says something.
async fn last_line(mut log: impl AsyncBufReadExt + Unpin) -> String {
    let mut last = String::new();
    let mut line = Vec::new();
    while let Ok(1..) = (&mut log)
        .take(READ as u64)
        .read_until(b'\n', &mut line)
        .await
    {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if !text.is_empty() {
            tracing::debug!("{text}");
            last = text.chars().take(MAX_LINE).collect();
        }
        line.clear();
    }
    last
}

impl Source for Program {
    fn start(&mut self, events: Events) -> Running {
        let run = self.clone().run(events.clone());
        Running::task(events, run)
    }

    fn place(&self) -> String {
        self.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use jpeg_encoder::{ColorType, Encoder};

    use super::*;
    use crate::camera::source::channel;

    /// What happens with a program, until it has failed.
    async fn run(words: &[&str], timeout_ms: u64) -> (Vec<u32>, String) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let timeout = Duration::from_millis(timeout_ms);
        let mut program = Program::new(words, timeout).unwrap();
        let (events, mut received) = channel();
        let running = program.start(events);
        let mut widths = Vec::new();
        loop {
            match received.recv().await.unwrap() {
                Event::Opened(facts) => assert_eq!(facts, Facts::default()),
                Event::Frame(frame) => widths.push(frame.jpeg.width),
                Event::Failed(why) => {
                    drop(running);
                    return (widths, why);
                }
                Event::ControlSet(_) => panic!("it has no controls"),
            }
        }
    }

    #[tokio::test]
    async fn the_files_of_a_program_are_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pictures");
        let mut file = Vec::new();
        let encoder = Encoder::new(&mut file, 80);
        encoder
            .encode(&[90; 64 * 48], 64, 48, ColorType::Luma)
            .unwrap();
        std::fs::write(&path, [&b"noise"[..], &file].concat()).unwrap();
        let path = path.to_str().unwrap();
        let (widths, why) = run(&["cat", path], 5_000).await;
        assert_eq!((widths, &*why), (vec![64], "cat has ended"));
    }

    #[tokio::test]
    async fn the_last_line_of_the_log_says_why_it_ended() {
        let script = "echo starting >&2; echo '*** no cameras available ***' >&2; exit 255";
        let (_, why) = run(&["/bin/sh", "-c", script], 5_000).await;
        let expected = "sh has failed (exit status: 255): *** no cameras available ***";
        assert_eq!(why, expected);
    }

    #[tokio::test]
    async fn a_program_without_pictures_is_trouble() {
        let (_, why) = run(&["/nowhere/rpicam-vid"], 5_000).await;
        assert!(why.starts_with("there is no program rpicam-vid"), "{why}");
        let (_, why) = run(&["sleep", "60"], 50).await;
        assert!(
            why.starts_with("sleep has written no JPEG picture within 0.1 s"),
            "{why}"
        );
    }

    #[test]
    fn the_command_for_a_raspberry_pi_flushes_each_picture() {
        let timeout = Duration::from_secs(5);
        let program = Program::of_raspberry_pi(1, (640, 480), 15.0, 70, timeout);
        let line = program.words.join(" ");
        assert!(line.starts_with("rpicam-vid -n -t 0 --codec mjpeg --quality 70 --width 640"));
        assert!(
            line.ends_with("--framerate 15 --camera 1 --flush -v 0 -o -"),
            "{line}"
        );
        assert_eq!(program.place(), "rpicam-vid");
    }
}
