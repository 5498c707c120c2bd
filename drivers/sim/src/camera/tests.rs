//! The camera by its bytes.

use super::*;

const MS: Duration = Duration::from_millis(1);
const SIZE: Size = Size {
    width: 64,
    height: 48,
};

fn camera() -> Camera {
    Camera::new(SIZE, 10.0)
}

fn view(brightness: u8) -> Picture {
    Picture {
        size: SIZE,
        pixels: [brightness, 128, 128].repeat(64 * 48),
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: sim\r\n\r\n").into_bytes()
}

/// What the camera sends until a time, with a picture of another brightness each time.
fn run(camera: &mut Camera, until: Duration) -> Vec<u8> {
    while let Some(time) = camera.poll_shot(until) {
        let brightness = 20 * (camera.sequence % 10);
        camera.expose(time, view(brightness));
    }
    std::iter::from_fn(|| camera.poll_output())
        .flatten()
        .collect()
}

fn count(bytes: &[u8], text: &[u8]) -> usize {
    bytes.windows(text.len()).filter(|it| *it == text).count()
}

const BEGIN: &[u8] = &[0xFF, 0xD8, 0xFF];

#[test]
fn it_draws_only_while_somebody_looks() {
    let mut camera = camera();
    assert_eq!(
        (camera.poll_shot(5_000 * MS), camera.next_shot()),
        (None, None)
    );
    for piece in get("/stream").chunks(5) {
        assert_eq!(camera.next_shot(), None);
        camera.handle_bytes(5_000 * MS, piece);
    }
    assert_eq!(camera.next_shot(), Some(5_000 * MS));
    let sent = run(&mut camera, 5_450 * MS);
    assert_eq!(count(&sent, BEGIN), 5);
    assert!(sent.starts_with(b"HTTP/1.0 200 OK\r\n"));
    camera.handle_hang_up();
    assert_eq!(camera.next_shot(), None);
    // The next program begins anew.
    camera.handle_bytes(6_000 * MS, &get("/stream"));
    assert_eq!(count(&run(&mut camera, 6_000 * MS), BEGIN), 1);
}

#[test]
fn each_path_has_its_form() {
    for (form, path) in Form::ALL {
        let mut camera = camera();
        camera.handle_bytes(Duration::ZERO, &get(path));
        let sent = run(&mut camera, 200 * MS);
        let pictures = if form == Form::Snapshot { 1 } else { 3 };
        assert_eq!(count(&sent, BEGIN), pictures, "{path}");
        assert_eq!(camera.poll_hang_up(), form == Form::Snapshot, "{path}");
    }
    for (path, status) in [("/", "200"), ("/nothing", "404")] {
        let mut camera = camera();
        camera.handle_bytes(Duration::ZERO, &get(path));
        let sent = String::from_utf8(run(&mut camera, MS)).unwrap();
        assert!(sent.starts_with(&format!("HTTP/1.0 {status}")) && camera.poll_hang_up());
    }
    let mut camera = camera();
    camera.handle_bytes(Duration::ZERO, b"POST /stream HTTP/1.1\r\n\r\n");
    assert!(run(&mut camera, MS).starts_with(b"HTTP/1.0 405") && camera.poll_hang_up());
    camera.handle_bytes(Duration::ZERO, &[b'x'; MAX_REQUEST + 1]);
    assert!(camera.poll_hang_up());
}

#[test]
fn a_busy_machine_leaves_pictures_out() {
    let mut camera = camera();
    camera.handle_bytes(Duration::ZERO, &get("/stream"));
    run(&mut camera, Duration::ZERO);
    let late = run(&mut camera, 60_000 * MS);
    assert_eq!(count(&late, BEGIN), 1);
}

/// The brightness codes of pictures are hidden in JPEG, so their bytes are compared.
#[test]
fn faults_change_the_pictures() {
    let mut camera = camera();
    camera.handle_bytes(Duration::ZERO, &get("/back-to-back"));
    run(&mut camera, Duration::ZERO);
    let mut now = Duration::ZERO;
    let mut shoot = |camera: &mut Camera| {
        now += 100 * MS;
        run(camera, now)
    };
    let whole = shoot(&mut camera);
    assert_ne!(shoot(&mut camera), whole);

    camera.set_fault(PictureFault::Frozen, true);
    let frozen = shoot(&mut camera);
    assert_eq!(shoot(&mut camera), frozen);
    camera.set_fault(PictureFault::Frozen, false);
    assert_ne!(shoot(&mut camera), frozen);

    camera.set_fault(PictureFault::NoTables, true);
    let bare = shoot(&mut camera);
    assert_eq!(
        (count(&bare, &[0xFF, 0xC4]), count(&whole, &[0xFF, 0xC4])),
        (0, 4)
    );
    camera.set_fault(PictureFault::NoTables, false);

    camera.set_fault(PictureFault::Half, true);
    assert!(!shoot(&mut camera).ends_with(&[0xFF, 0xD9]));
    camera.set_fault(PictureFault::Half, false);
    assert!(shoot(&mut camera).ends_with(&[0xFF, 0xD9]));

    camera.set_fault(PictureFault::Slow, true);
    let slow = (0..10).filter(|_| !shoot(&mut camera).is_empty()).count();
    assert!((2..=3).contains(&slow), "{slow}");
}

#[test]
fn the_code_has_the_time_and_the_number() {
    let mut camera = camera();
    assert_eq!(camera.code(1_234 * MS), 1_234 << 8);
    camera.handle_bytes(Duration::ZERO, &get("/stream"));
    run(&mut camera, Duration::ZERO);
    assert_eq!(
        camera.code(Duration::from_millis(0x0100_0005)),
        (5 << 8) | 1
    );
}

#[test]
fn sizes_are_read() {
    let size = "320x240".parse::<Size>().unwrap();
    assert_eq!((size.width, size.height), (320, 240));
    for text in ["", "320", "x", "32x24", "320x2400", "-3x5"] {
        assert!(text.parse::<Size>().is_err(), "{text}");
    }
}
