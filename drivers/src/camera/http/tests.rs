//! Answers of cameras and programs, with their known faults.

use jpeg_encoder::{ColorType, Encoder};

use super::*;

fn picture(width: u16) -> Vec<u8> {
    let mut file = Vec::new();
    let pixels: Vec<u8> = (0..usize::from(width) * 32)
        .map(|at| (at * 37) as u8)
        .collect();
    let encoder = Encoder::new(&mut file, 80);
    encoder.encode(&pixels, width, 32, ColorType::Luma).unwrap();
    file
}

/// The widths of the pictures in an answer, however it is cut.
#[track_caller]
fn widths(answer: &[u8]) -> Vec<u32> {
    let mut all = [1, 7, 1_000, usize::MAX].map(|length| {
        let mut reader = Answer::default();
        let mut widths = Vec::new();
        for piece in answer.chunks(length) {
            reader.push(piece).unwrap();
            while let Some(jpeg) = reader.poll() {
                assert!(!jpeg.is_damaged);
                widths.push(jpeg.width);
            }
        }
        widths
    });
    let [first, others @ ..] = &mut all;
    assert!(others.iter().all(|other| other == first), "{others:?}");
    std::mem::take(first)
}

fn error(answer: &str) -> String {
    Answer::default().push(answer.as_bytes()).unwrap_err()
}

/// An answer with three pictures. The texts before the first and between pictures; `{}` stands for the
/// length, to which `off` is added.
fn multipart(head: &str, first: &str, between: &str, off: usize) -> Vec<u8> {
    let mut answer = head.as_bytes().to_vec();
    for (number, width) in [32, 48, 64].into_iter().enumerate() {
        let file = picture(width);
        let before = if number == 0 { first } else { between };
        let length = (file.len() + off).to_string();
        answer.extend(before.replace("{}", &length).bytes());
        answer.extend(file);
    }
    answer.extend(between.bytes());
    answer
}

fn chunked(head: &str, body: &[&[u8]]) -> Vec<u8> {
    let mut answer = head.as_bytes().to_vec();
    for piece in body {
        answer.extend(format!("{:x}\r\n", piece.len()).bytes());
        answer.extend_from_slice(piece);
        answer.extend(b"\r\n");
    }
    answer
}

#[test]
fn all_known_forms_are_read() {
    let all = [32, 48, 64];
    let part = "Content-Type: image/jpeg\r\nContent-Length: {}\r\n\r\n";
    let of_type = |kind: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
    let mixed = |boundary: &str| of_type(&format!("multipart/x-mixed-replace;boundary={boundary}"));
    let next = |boundary: &str| format!("\r\n--{boundary}\r\n{part}");
    for (about, answer) in [
        (
            "mjpg-streamer",
            multipart(
                &mixed("boundarydonotcross"),
                &format!("--boundarydonotcross\r\n{part}"),
                &next("boundarydonotcross"),
                0,
            ),
        ),
        (
            "ustreamer with headers in advance: no length",
            multipart(
                &mixed("x"),
                "--x\r\nContent-Type: image/jpeg\r\n\r\n",
                "\r\n--x\r\nContent-Type: image/jpeg\r\n\r\n",
                0,
            ),
        ),
        (
            "an ESP32 before 2020: no first boundary",
            multipart(
                &mixed("123456789000000000000987654321"),
                part,
                &next("123456789000000000000987654321"),
                0,
            ),
        ),
        (
            "motion: blanks before the length, lower case",
            multipart(
                &mixed("BoundaryString"),
                "--BoundaryString\r\nContent-type: image/jpeg\r\nContent-Length:     {}\r\n\r\n",
                "\r\n--BoundaryString\r\ncontent-type: image/jpeg\r\ncontent-length:     {}\r\n\r\n",
                0,
            ),
        ),
        (
            "dashes in the header",
            multipart(
                &mixed("--myboundary"),
                &next("myboundary"),
                &next("myboundary"),
                0,
            ),
        ),
        (
            "quoted",
            multipart(&mixed("\"q q\""), &next("q q"), &next("q q"), 0),
        ),
        (
            "lines end with LF",
            multipart(
                &mixed("f").replace('\r', ""),
                &next("f").replace('\r', ""),
                &next("f").replace('\r', ""),
                0,
            ),
        ),
        (
            "no line end behind pictures",
            multipart(&mixed("f"), &next("f"), next("f").trim_start(), 0),
        ),
        (
            "wrong lengths",
            multipart(&mixed("f"), &next("f"), &next("f"), 7),
        ),
        (
            "webcamXP: neither boundary nor headers",
            multipart(
                &mixed("--myboundary"),
                "mjpeg 0001200012",
                "mjpeg 0001200012",
                0,
            ),
        ),
        ("back to back", multipart(&of_type("image/jpeg"), "", "", 0)),
        (
            "without a type, by HTTP/1.0",
            multipart("HTTP/1.0 200 OK\r\n\r\n", "", "", 0),
        ),
    ] {
        assert_eq!(widths(&answer), all, "{about}");
    }
}

#[test]
fn chunks_are_joined() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=b\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    let (first, second) = (picture(32), picture(48));
    let part = "Content-Type: image/jpeg\r\n\r\n".as_bytes();
    let pieces = [
        &b"\r\n--b\r\n"[..],
        part,
        &first,
        b"\r\n--b\r\n",
        part,
        &second[..100],
        &second[100..],
    ];
    let mut answer = chunked(head, &pieces);
    assert_eq!(widths(&answer), [32, 48]);
    let mut reader = Answer::default();
    reader.push(&answer).unwrap();
    assert!(!reader.is_over());
    reader.push(b"0\r\n\r\nmore").unwrap();
    assert!(reader.is_over());
    answer.extend(b"ffffffffffffffffff\r\n");
    assert!(Answer::default().push(&answer).is_err());
}

#[test]
fn a_picture_without_end_stops_at_the_boundary() {
    let file = picture(32);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=\"f\"\r\n\r\n";
    let between = "\r\n--f\r\nContent-Type: image/jpeg\r\n\r\n";
    let half = &file[..file.len() - 100];
    let answer = [head.as_bytes(), half, between.as_bytes(), &file].concat();
    let mut reader = Answer::default();
    reader.push(&answer).unwrap();
    let damaged = reader.poll().unwrap();
    assert!(damaged.is_damaged && damaged.bytes.len() <= half.len() + 2);
    assert_eq!(reader.poll().unwrap().bytes, file);
}

#[test]
fn an_answer_without_pictures_says_what_to_check() {
    for (answer, words) in [
        ("SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
        ("HTTP/1.1 401 Unauthorized\r\n\r\n", "USER:PASSWORD"),
        ("HTTP/1.1 404 Not Found\r\n\r\n", "check the address"),
        ("HTTP/1.0 503 Busy\r\n\r\n", "busy"),
        ("HTTP/1.0 500 Oh\r\n\r\n", "error 500"),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://b/c\r\n\r\n",
            "at http://b/c: use",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n",
            "web page",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n",
            "video/mp4 is at",
        ),
    ] {
        let error = error(answer);
        assert!(error.contains(words), "{error}");
    }
    assert!(error(&"x".repeat(MAX_HEAD + 1)).contains("HTTP"));
}

#[test]
fn parts_that_are_no_pictures_are_named() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=b\r\n\r\n";
    let mut reader = Answer::default();
    reader.push(head.as_bytes()).unwrap();
    assert!(reader.poll().is_none());
    assert_eq!(reader.other_type(), None);
    let part = b"--b\r\nContent-Type: video/x-h264\r\n\r\n\0\0\0\x01gxyz";
    reader.push(part).unwrap();
    assert!(reader.poll().is_none());
    assert_eq!(reader.other_type().as_deref(), Some("video/x-h264"));
}

#[test]
fn addresses_are_read() {
    let read = |text: &str| Address::from_str(text);
    let plain = read("http://camera.local/?action=stream").unwrap();
    assert_eq!(plain.server, "camera.local:80");
    let request = String::from_utf8(plain.request()).unwrap();
    assert!(request.starts_with("GET /?action=stream HTTP/1.1\r\nHost: camera.local\r\n"));
    assert!(request.ends_with("\r\n\r\n") && !request.contains("Authorization"));
    let secret = read("HTTP://me:p@ss@[fd00::1]:8080").unwrap();
    assert_eq!(secret.server, "[fd00::1]:8080");
    let request = String::from_utf8(secret.request()).unwrap();
    assert!(
        request.contains("Authorization: Basic bWU6cEBzcw==\r\n"),
        "{request}"
    );
    assert!(request.starts_with("GET / HTTP/1.1\r\n"));
    assert_eq!(format!("{secret} {secret:?}").matches("p@ss").count(), 0);
    assert_eq!(read("http://[fd00::1]/v").unwrap().server, "[fd00::1]:80");
    for (text, words) in [
        ("https://a/b", "https is not supported"),
        ("rtsp://a/b", "--command"),
        ("camera.local/stream", "begin with http://"),
        ("http:///stream", "needs a host"),
        ("http://:80/", "needs a host"),
        ("http://a:0/", "not a port"),
        ("http://a:b/", "not a port"),
        ("http://a/b c", "no spaces"),
        ("http://a/b\r\nHost: c", "no spaces"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
}
