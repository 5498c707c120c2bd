//! What happens with each answer of a camera.

use jpeg_encoder::{ColorType, Encoder};
use tokio::sync::mpsc;

use super::fake::Fake;
use super::*;
use crate::camera::source::channel;

fn jpeg() -> Vec<u8> {
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 80);
    encoder
        .encode(&[90; 64 * 48], 64, 48, ColorType::Luma)
        .unwrap();
    file
}

fn shot(bytes: &[u8]) -> Result<video::Shot, Errno> {
    Ok(video::Shot {
        bytes: bytes.to_vec(),
        ..video::Shot::default()
    })
}

/// What the driver is told in one run, until its end. `Facts` are those of the start, if there was one.
#[derive(Debug, Default)]
struct Told {
    facts: Option<Facts>,
    sizes: Vec<(u32, u32)>,
    set: Vec<Result<(Control, Vec<Control>), String>>,
}

fn run(fake: &mut Fake, orders: &[(u32, i64)]) -> (Told, String) {
    let (events, received) = channel();
    let (sender, ours) = std::sync::mpsc::channel();
    for order in orders {
        sender.send(*order).unwrap();
    }
    let listener = std::thread::spawn(move || listen(received));
    let wanted = Wanted {
        size: (640, 480),
        rate: 15.0,
        quality: 80,
        timeout: Duration::from_millis(50),
    };
    let why = Run {
        video: fake,
        path: "/dev/video7",
        wanted,
        events: &events,
    }
    .until_failure(&ours);
    drop(events);
    (listener.join().unwrap(), why.unwrap())
}

fn listen(mut received: mpsc::Receiver<Event>) -> Told {
    let mut told = Told::default();
    while let Some(event) = received.blocking_recv() {
        match event {
            Event::Opened(facts) => told.facts = Some(facts),
            Event::Frame(frame) => told.sizes.push((frame.jpeg.width, frame.jpeg.height)),
            Event::ControlSet(done) => told.set.push(done),
            Event::Failed(why) => panic!("the caller tells it: {why}"),
        }
    }
    told
}

#[test]
fn files_are_passed_through_and_pixels_are_encoded() {
    let pixels = [128; 64 * 48 * 2];
    for (formats, bytes) in [
        (vec![YUYV, MJPG], jpeg()),
        (vec![JPEG], jpeg()),
        (vec![FourCc(*b"H264"), YUYV], pixels.to_vec()),
    ] {
        let mut fake = Fake {
            formats,
            shots: [shot(&bytes)].into(),
            ..Fake::default()
        };
        let (told, _) = run(&mut fake, &[]);
        assert_eq!(told.sizes, [(64, 48)], "{:?}", fake.formats);
        assert_eq!(fake.calls, ["start", "stop"]);
    }
}

#[test]
fn what_the_camera_offers_is_told() {
    let mut fake = Fake {
        formats: vec![MJPG, FourCc(*b"H264")],
        ..Fake::default()
    };
    let (told, _) = run(&mut fake, &[]);
    let modes = told.facts.unwrap().modes;
    let modes: Vec<_> = modes
        .iter()
        .map(|it| (it.format(), it.width(), it.max_rate))
        .collect();
    assert_eq!(modes, [("MJPG", 640, Some(25.0)), ("MJPG", 64, None)]);
}

#[test]
fn damaged_pictures_are_dropped_and_the_next_one_counts() {
    let file = jpeg();
    let bad = video::Shot {
        bytes: file.clone(),
        is_bad: true,
        age: None,
    };
    let mut fake = Fake {
        shots: [
            shot(&[]),
            shot(b"\0\0\0"),
            Ok(bad),
            shot(&file[..30]),
            shot(&file),
        ]
        .into(),
        ..Fake::default()
    };
    let (told, why) = run(&mut fake, &[]);
    assert_eq!(told.sizes.len(), 1);
    assert_eq!(
        why,
        "/dev/video7 has sent no picture for 0.1 s: check its cable"
    );
    // None but damaged ones.
    let mut fake = Fake {
        shots: (0..MAX_BAD).map(|_| shot(b"\0\0\0")).collect(),
        ..Fake::default()
    };
    let (_, why) = run(&mut fake, &[]);
    assert!(
        why.contains("sends damaged pictures only: it does not begin"),
        "{why}"
    );
}

#[test]
fn each_failure_says_what_to_check() {
    type Change = fn(&mut Fake);
    let with = |change: Change| {
        let mut fake = Fake::default();
        change(&mut fake);
        run(&mut fake, &[]).1
    };
    let cases: [(Change, &str); 8] = [
        (
            |fake| fake.formats = vec![FourCc(*b"H264")],
            "/dev/video7 sends H264, but this driver reads MJPG",
        ),
        (
            |fake| fake.set_format = Some(Errno::EBUSY),
            "another program uses /dev/video7",
        ),
        (
            |fake| fake.start = Some(Errno::EBUSY),
            "another program uses /dev/video7",
        ),
        (
            |fake| fake.start = Some(Errno::ENOSPC),
            "USB bus has no room",
        ),
        (|fake| fake.start = Some(Errno::EPIPE), "check its cable"),
        (
            |fake| fake.shots = [Err(Errno::EIO)].into(),
            "check its cable",
        ),
        (
            |fake| fake.shots = [Err(Errno::ENODEV)].into(),
            "plug the camera in",
        ),
        (|_| {}, "no picture within 0.1 s: unplug it"),
    ];
    for (change, words) in cases {
        let why = with(change);
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn controls_are_set_while_pictures_come() {
    let control = |id: u32| Control {
        id: Some(id),
        value: Some(1),
        ..Control::default()
    };
    let mut fake = Fake {
        controls: vec![control(5), control(6)],
        shots: (0..5).map(|_| shot(&jpeg())).collect(),
        ..Fake::default()
    };
    let (told, _) = run(&mut fake, &[(6, 9)]);
    let (changed, all) = told.set[0].clone().unwrap();
    assert_eq!((changed.id(), changed.value()), (6, 9));
    assert_eq!(all.iter().map(Control::value).collect::<Vec<_>>(), [1, 9]);
    for (errno, words) in [
        (Errno::ERANGE, "does not take 9"),
        (Errno::EBUSY, "automatic mode"),
        (Errno::EIO, "does not take it: "),
    ] {
        fake.set_control = Some(errno);
        let (told, _) = run(&mut fake, &[(6, 9)]);
        let why = told.set[0].clone().unwrap_err();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn nodes_that_take_no_pictures_are_refused() {
    let good = Capability {
        name: "HD Webcam".into(),
        takes_pictures: true,
        streams: true,
        ..Capability::default()
    };
    assert_eq!(check(&good, "/dev/video0"), Ok(()));
    let none = Capability {
        takes_pictures: false,
        ..good
    };
    let metadata = Capability {
        has_metadata: true,
        ..none.clone()
    };
    let board = Capability {
        is_multi_planar: true,
        ..none.clone()
    };
    for (capability, words) in [
        (none, "takes no pictures: \"HD Webcam\""),
        (metadata, "only the data of pictures"),
        (board, "use --pi"),
    ] {
        let why = check(&capability, "/dev/video1").unwrap_err();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn the_time_of_a_picture_is_plausible() {
    let ms = Duration::from_millis;
    for (said, interval_s, expected) in [
        (Some(ms(40)), Some(0.1), ms(40)),
        (Some(ms(0)), Some(0.1), ms(0)),
        (Some(ms(7_200_000)), Some(0.1), ms(100)),
        (None, Some(0.1), ms(100)),
        (None, Some(f64::MAX), ms(0)),
        (None, Some(60.0), ms(2_000)),
        (None, None, ms(0)),
    ] {
        assert_eq!(age(said, interval_s), expected);
    }
}

#[test]
fn what_is_not_there_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let why = first_camera(folder.path()).err().unwrap();
    assert!(why.starts_with("no camera is plugged in"), "{why}");
    std::fs::write(folder.path().join("video3"), "").unwrap();
    let why = first_camera(folder.path()).err().unwrap();
    assert!(why.ends_with("video3 is not a camera"), "{why}");
    let why = open(Some(Path::new("/dev/video_none"))).err().unwrap();
    assert_eq!(why, "/dev/video_none does not exist: plug the camera in");
}
