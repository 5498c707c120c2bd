//! `amber camera` with the simulated camera.

use std::fs;
use std::io::Write;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::Robot;
use crate::common::{Mediator, signal, wait_for};
use crate::terminal::Terminal;

/// A robot with such a camera, and a mediator with its driver.
fn started(options: &[&str]) -> (Robot, Mediator) {
    let robot = Robot::with(options);
    let driver = format!(
        "camera:0=amber driver camera --idle-s 1 --url http://{}/stream",
        robot.place
    );
    let mediator = Mediator::start(&[&driver]);
    mediator.wait_for_line("INFO ready: pictures of 320 x 240");
    (robot, mediator)
}

fn camera(mediator: &Mediator, args: &[&str]) -> Output {
    let mut command = mediator.amber(&["camera"]);
    command.args(args).output().unwrap()
}

#[track_caller]
fn succeeded(output: Output) -> (Vec<u8>, String) {
    assert!(output.status.success(), "{output:?}");
    (output.stdout, String::from_utf8(output.stderr).unwrap())
}

fn is_jpeg(file: &[u8]) -> bool {
    file.starts_with(&[0xFF, 0xD8, 0xFF]) && file.ends_with(&[0xFF, 0xD9])
}

#[test]
fn a_picture_is_saved_and_drawn() {
    let (robot, mediator) = started(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("picture.jpg");
    let name = file.to_str().unwrap();
    let (said, _) = succeeded(camera(&mediator, &["-o", name]));
    let said = String::from_utf8(said).unwrap();
    let expected = format!("{name}: picture of camera:0: 320 x 240 pixels, ");
    assert!(said.starts_with(&expected), "{said}");
    assert!(is_jpeg(&fs::read(&file).unwrap()));

    let args = [
        "-o",
        name,
        "--max-width",
        "100",
        "--quality",
        "30",
        "--json",
    ];
    let (told, _) = succeeded(camera(&mediator, &args));
    let told: Value = serde_json::from_slice(&told).unwrap();
    let small = fs::read(&file).unwrap();
    assert!(is_jpeg(&small), "{told}");
    assert_eq!(
        (&told["width"], &told["bytes"], &told["damaged"]),
        (&80.into(), &small.len().into(), &false.into()),
        "{told}"
    );

    let (piped, note) = succeeded(camera(&mediator, &["-o", "-"]));
    assert!(is_jpeg(&piped) && note.contains("camera:0: 320 x 240 pixels"));

    // Without a terminal, the drawing has no colours.
    let (drawn, _) = succeeded(camera(&mediator, &[]));
    let drawn = String::from_utf8(drawn).unwrap();
    let is_braille = |char| ('\u{2800}'..='\u{28FF}').contains(&char);
    assert!(drawn.chars().filter(|it| is_braille(*it)).count() > 200);
    assert!(
        drawn.ends_with(" old\n") && !drawn.contains('\x1b'),
        "{drawn}"
    );

    let (lines, _) = succeeded(camera(&mediator, &["--watch", "--json", "-n", "2"]));
    let lines = String::from_utf8(lines).unwrap();
    let numbers = lines.lines().map(|line| {
        let picture: Value = serde_json::from_str(line).unwrap();
        picture["sequence"].as_u64().unwrap()
    });
    let numbers: Vec<_> = numbers.collect();
    assert!(numbers.len() == 2 && numbers[0] < numbers[1], "{lines}");

    let nowhere = folder.path().join("none").join("picture.jpg");
    let output = camera(&mediator, &["-o", nowhere.to_str().unwrap()]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("hint: create the folder first"), "{error}");

    let png = folder.path().join("picture.png");
    let output = camera(&mediator, &["-o", png.to_str().unwrap()]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("cameras send JPEG files") && error.contains("hint: save it as "),
        "{error}"
    );
    assert!(!png.exists());

    robot.fault(&["unplug", "camera"]);
    let error = wait_for("the trouble of the driver", || {
        let output = camera(&mediator, &["-o", name]);
        (output.status.code() == Some(1)).then_some(output.stderr)
    });
    let error = String::from_utf8(error).unwrap();
    assert!(
        error.contains("camera:0 refused the request: ")
            && error.contains("hint: `amber status camera:0` shows more"),
        "{error}"
    );
    assert_eq!(fs::read(&file).unwrap(), small, "the file is as it was");
}

#[test]
fn pictures_are_shown_in_a_terminal_until_a_key() {
    let (robot, mediator) = started(&[]);
    let mut command = mediator.amber(&["camera", "--watch", "--rate", "20"]);
    command.env("COLORTERM", "truecolor");
    let mut terminal = Terminal::of(command);
    wait_for("pictures with their rate", || {
        let shown = terminal.shown();
        (shown.contains("\x1b[38;2;") && shown.contains('▀') && shown.contains(" Hz, 0 lost, "))
            .then_some(())
    });
    robot.fault(&["unplug", "camera"]);
    wait_for("the reason why there are no more", || {
        terminal
            .shown()
            .contains("closed the connection")
            .then_some(())
    });
    terminal.keys.write_all(b"q").unwrap();
    let status = wait_for("its end", || terminal.process.try_wait().unwrap());
    assert!(status.success(), "{status}");
}

#[cfg(feature = "web")]
mod mjpeg {
    use std::io::Read;
    use std::net::TcpStream;

    use super::*;
    use crate::common::Running;

    /// Ten pictures that are whole and new: the squares in their upper left corner tell their numbers.
    const READER: &str = "\
import sys, cv2
video = cv2.VideoCapture(sys.argv[1], cv2.CAP_FFMPEG)
numbers = set()
for _ in range(10):
    is_read, picture = video.read()
    assert is_read, 'no picture'
    assert picture.shape == (240, 320, 3), picture.shape
    bits = [picture[4, 8 * bit + 4].mean() > 128 for bit in range(32)]
    numbers.add(sum(1 << (31 - bit) for bit in range(32) if bits[bit]))
assert len(numbers) == 10, numbers
";

    /// The server, and the address of a path.
    fn serve(mediator: &Mediator) -> (Running, String) {
        let mut server = Running::start(mediator, &["camera", "--mjpeg", "127.0.0.1:0"]);
        let line = server.line();
        let address = line.strip_prefix("stream:   http://").unwrap();
        let place = address.strip_suffix("/stream").unwrap().to_owned();
        (server, place)
    }

    fn request(place: &str, path: &str) -> TcpStream {
        let mut peer = TcpStream::connect(place).unwrap();
        let head = format!("GET {path} HTTP/1.0\r\nHost: {place}\r\n\r\n");
        peer.write_all(head.as_bytes()).unwrap();
        peer
    }

    /// The head and the body of an answer.
    fn get(place: &str, path: &str) -> (String, Vec<u8>) {
        let mut answer = Vec::new();
        request(place, path).read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
        let body = answer.split_off(end + 4);
        (String::from_utf8(answer).unwrap(), body)
    }

    fn status(place: &str) -> Value {
        serde_json::from_slice(&get(place, "/status").1).unwrap()
    }

    #[test]
    fn other_programs_read_the_pictures() {
        let (robot, mediator) = started(&[]);
        let (server, place) = serve(&mediator);
        let (head, picture) = get(&place, "/snapshot");
        assert!(head.contains("content-type: image/jpeg"), "{head}");
        assert!(is_jpeg(&picture));
        let (_, page) = get(&place, "/");
        assert!(
            String::from_utf8(page)
                .unwrap()
                .contains("<img src=\"stream\"")
        );
        assert!(get(&place, "/other").0.starts_with("HTTP/1.0 404 "));

        let mut python = Command::new("python3");
        let has_opencv = python.args(["-c", "import cv2"]).output();
        if has_opencv.is_ok_and(|output| output.status.success()) {
            let url = format!("http://{place}/stream");
            let mut python = Command::new("python3");
            let output = python.args(["-c", READER, &url]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let status = status(&place);
            assert!(status["sent"].as_u64() >= Some(10), "{status}");
        } else {
            let text = "SKIP pictures over HTTP read by OpenCV: no python3 with cv2";
            let _ = writeln!(std::io::stderr(), "{text}");
        }

        // Nobody reads any more.
        wait_for("the end of the subscription", || {
            (status(&place)["readers"] == 0).then_some(())
        });
        wait_for("the camera is off", || {
            let output = mediator
                .amber(&["call", "camera", "info", "--json"])
                .output();
            let info: Value = serde_json::from_slice(&output.unwrap().stdout).ok()?;
            (info["is_on"] == false).then_some(())
        });

        robot.fault(&["unplug", "camera"]);
        let refused = wait_for("the trouble of the driver", || {
            let (head, text) = get(&place, "/snapshot");
            head.starts_with("HTTP/1.0 503 ").then_some(text)
        });
        let refused = String::from_utf8(refused).unwrap();
        assert!(refused.contains("camera:0"), "{refused}");
        server.interrupt();
    }

    #[test]
    fn a_slow_reader_gets_fewer_pictures_and_holds_up_nobody() {
        let (_robot, mediator) = started(&["--camera-rate", "30"]);
        let (mut server, place) = serve(&mediator);
        // It does not read for now.
        let mut slow = request(&place, "/stream");
        let mut quick = request(&place, "/stream");
        let mut buffer = [0; 64 * 1024];
        let skipped = wait_for("pictures that the slow reader skips", || {
            assert!(quick.read(&mut buffer).unwrap() > 0);
            // They count although it reads nothing.
            let skipped = status(&place)["skipped"].as_u64().unwrap();
            (skipped > 20).then_some(skipped)
        });
        assert_eq!(status(&place)["readers"], 2, "{skipped} are skipped");
        // Once it reads again, it goes on with whole pictures.
        let boundary = b"\r\n--picture\r\nContent-Type: image/jpeg\r\n\r\n";
        let mut read = Vec::new();
        let ends = wait_for("many pictures", || {
            let length = slow.read(&mut buffer).unwrap();
            read.extend_from_slice(&buffer[..length]);
            let starts = read.windows(boundary.len()).enumerate();
            let ends = starts.filter(|(_, it)| it == boundary).map(|(at, _)| at);
            let ends: Vec<_> = ends.collect();
            (ends.len() > 100).then_some(ends)
        });
        for pair in ends.windows(2) {
            let picture = &read[pair[0] + boundary.len()..pair[1]];
            assert!(is_jpeg(picture), "{} bytes", picture.len());
        }
        drop((slow, quick));
        signal(server.pid(), Signal::SIGINT);
        let last = server.note();
        assert!(last.contains(" skipped for slow readers"), "{last}");
    }
}
