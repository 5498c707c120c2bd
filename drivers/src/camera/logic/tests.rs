//! The camera with a clock of its own.

use amber_proto::camera::{Choice, Format};
use jpeg_encoder::{ColorType, Encoder};

use super::*;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn settings() -> Settings {
    Settings {
        idle: Some(10 * SECOND),
        timeout: 5 * SECOND,
        settle: 300 * MS,
        calibration: None,
    }
}

/// A picture; different for each number.
fn jpeg(number: u8) -> Jpeg {
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 80);
    encoder
        .encode(&[number; 64 * 48], 64, 48, ColorType::Luma)
        .unwrap();
    Jpeg::read(&file).unwrap()
}

struct Bench {
    logic: CameraLogic<u32>,
    now: Instant,
    start: Instant,
    /// Whether the source can be started.
    is_there: bool,
    /// Whether the source runs.
    is_running: bool,
    answers: Vec<(u32, Result<Picture, String>)>,
    published: Vec<(Vec<i32>, Picture)>,
    notes: Vec<String>,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let mut bench = Self {
            logic: CameraLogic::new(settings, "the bench".into(), now),
            now,
            start: now,
            is_there: true,
            is_running: false,
            answers: Vec::new(),
            published: Vec::new(),
            notes: Vec::new(),
        };
        bench.drain();
        bench
    }

    /// The same when somebody has just used the camera: it stays on for a while.
    fn used(settings: Settings) -> Self {
        let mut bench = Self::new(settings);
        bench.stream(9, 100, None);
        bench.stream(9, 0, None);
        bench
    }

    fn drain(&mut self) {
        while let Some(output) = self.logic.poll_output() {
            match output {
                Output::Open => {
                    assert!(!self.is_running, "it was not closed");
                    self.is_running = self.is_there;
                    match self.is_there {
                        true => self.logic.opened(self.now, Facts::default()),
                        false => self.logic.failed(self.now, "/dev/video0 does not exist"),
                    }
                }
                Output::Close => self.is_running = false,
                Output::Answer(asker, picture) => self.answers.push((asker, Ok(picture))),
                Output::Refuse(asker, why) => self.answers.push((asker, Err(why))),
                Output::Publish(origin, picture) => {
                    let clients = origin.clients.iter().map(|client| client.0).collect();
                    self.published.push((clients, picture));
                }
                Output::Say(note) => self.notes.push(note.to_string()),
                Output::End => {}
            }
        }
    }

    /// Nothing happens for a time but timers.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.logic.wake_at().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.logic.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    /// So many pictures, 100 ms apart, if the source runs.
    fn pictures(&mut self, count: u8) {
        for number in 0..count {
            self.wait(100 * MS);
            if self.is_running {
                self.frame(jpeg(number));
            }
        }
    }

    fn frame(&mut self, jpeg: Jpeg) {
        let captured_us = (self.now - self.start).as_micros() as i64;
        self.logic.frame(self.now, Frame { jpeg, captured_us });
        self.drain();
    }

    fn ask(&mut self, asker: u32, request: PictureRequest) {
        self.logic.ask(self.now, &request, asker);
        self.drain();
    }

    fn stream(&mut self, client: i32, period: u32, max_width: Option<u32>) {
        let stream = PictureStream {
            period: Some(period),
            max_width,
            ..PictureStream::default()
        };
        let request = match period {
            0 => StreamRequest::Stop(stream),
            _ => StreamRequest::Start(stream),
        };
        let origin = Origin::of(ClientId(client));
        self.logic.stream(self.now, &origin, &request).unwrap();
        self.drain();
    }
}

#[test]
fn a_camera_that_nobody_uses_is_off() {
    let mut bench = Bench::new(settings());
    assert!(bench.is_running, "at the start it shows that it works");
    bench.pictures(1);
    assert!(!bench.is_running, "one picture shows it");
    assert_eq!(bench.notes, ["ready: pictures of 64 x 48"]);
    assert_eq!((bench.logic.wake_at(), bench.logic.trouble()), (None, None));
    assert!(!bench.logic.info().is_on());
    // For as long as somebody watches, and ten seconds more.
    bench.stream(1, 100, None);
    bench.pictures(250);
    bench.stream(1, 0, None);
    bench.pictures(90);
    assert!(bench.is_running && bench.published.len() >= 240);
    bench.pictures(15);
    assert!(!bench.is_running);
    // A client that dies counts as one that stops.
    bench.stream(1, 100, None);
    bench.pictures(10);
    bench.logic.client_gone(ClientId(1));
    bench.pictures(110);
    assert!(!bench.is_running);
}

#[test]
fn a_camera_may_be_on_for_ever() {
    let mut bench = Bench::new(Settings {
        idle: None,
        ..settings()
    });
    bench.pictures(255);
    assert!(bench.is_running);
}

#[test]
fn a_request_gets_the_next_picture_after_the_exposure_has_settled() {
    let mut bench = Bench::new(settings());
    bench.ask(1, PictureRequest::default());
    bench.pictures(3);
    assert!(bench.answers.is_empty());
    bench.pictures(1);
    let (asker, picture) = bench.answers.remove(0);
    let picture = picture.unwrap();
    assert_eq!(
        (asker, picture.sequence(), picture.captured()),
        (1, 4, 400_000)
    );
    assert_eq!((picture.width(), picture.height()), (64, 48));
    assert_eq!(picture.data(), jpeg(0).bytes);
    // Then at once.
    bench.ask(
        2,
        PictureRequest {
            max_width: Some(40),
            ..PictureRequest::default()
        },
    );
    bench.pictures(1);
    let (_, smaller) = bench.answers.remove(0);
    assert_eq!(smaller.unwrap().width(), 32);
}

#[test]
fn a_young_picture_will_do_if_the_client_says_so() {
    let mut bench = Bench::used(settings());
    bench.pictures(5);
    bench.wait(50 * MS);
    let young = |max_age| PictureRequest {
        max_age: Some(max_age),
        ..PictureRequest::default()
    };
    bench.ask(1, young(40));
    assert_eq!(bench.answers.len(), 0);
    bench.ask(2, young(60));
    assert_eq!(bench.answers[0].0, 2);
    assert_eq!(bench.answers[0].1.as_ref().unwrap().sequence(), 5);
    bench.pictures(1);
    assert_eq!(bench.answers[1].1.as_ref().unwrap().sequence(), 6);
}

#[test]
fn each_client_gets_its_size_and_its_rate() {
    let mut bench = Bench::new(settings());
    bench.stream(1, 1, None);
    bench.stream(2, 500, Some(32));
    bench.stream(3, 500, Some(32));
    bench.pictures(20);
    let of = |clients: &[i32]| {
        let own = bench
            .published
            .iter()
            .filter(|(others, _)| others == clients);
        own.map(|(_, picture)| (picture.width(), picture.sequence()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&[1]).len(), 20);
    assert_eq!(of(&[2, 3]), [(32, 1), (32, 6), (32, 11), (32, 16)]);
}

#[test]
fn a_camera_that_is_gone_is_tried_until_it_works() {
    let mut bench = Bench::used(settings());
    bench.pictures(5);
    bench.is_there = false;
    bench.is_running = false;
    bench.logic.failed(bench.now, "/dev/video0 was unplugged");
    bench.drain();
    // Nobody waits for pictures, but `amber status` shows the truth.
    bench.wait(60 * SECOND);
    assert_eq!(bench.logic.trouble(), Some("/dev/video0 does not exist"));
    bench.ask(1, PictureRequest::default());
    let refused = (1, Err("/dev/video0 does not exist".to_owned()));
    assert_eq!(bench.answers, [refused]);
    bench.wait(6 * SECOND);
    bench.is_there = true;
    bench.wait(2 * SECOND);
    bench.pictures(5);
    assert_eq!(bench.logic.trouble(), None);
    let back = bench.notes.pop().unwrap();
    assert!(back.starts_with("works again after 6"), "{back}");
    let notes = [
        "ready: pictures of 64 x 48",
        "/dev/video0 was unplugged; retrying",
        "/dev/video0 does not exist; retrying",
    ];
    assert_eq!(bench.notes, notes);
    bench.pictures(110);
    assert!(!bench.is_running);
}

#[test]
fn a_camera_that_hangs_is_started_again() {
    let mut bench = Bench::new(settings());
    bench.ask(1, PictureRequest::default());
    bench.wait(8 * SECOND);
    assert!(bench.is_running);
    assert_eq!(bench.answers, [(1, Err(NO_PICTURE.to_owned()))]);
    bench.ask(2, PictureRequest::default());
    bench.wait(3 * SECOND);
    assert_eq!(bench.logic.trouble(), Some(HANGS));
    assert_eq!(bench.answers[1], (2, Err(HANGS.to_owned())));
}

#[test]
fn a_picture_that_never_changes_is_trouble() {
    let mut bench = Bench::new(settings());
    bench.stream(1, 100, None);
    let frozen = |bench: &mut Bench, count| {
        for _ in 0..count {
            bench.wait(100 * MS);
            bench.frame(jpeg(7));
        }
    };
    frozen(&mut bench, 100);
    assert_eq!(bench.logic.trouble(), None);
    frozen(&mut bench, 3);
    assert_eq!(bench.logic.trouble(), Some(SAME));
    frozen(&mut bench, 50);
    assert_eq!(bench.notes[1..], [SAME]);
    bench.pictures(1);
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn damaged_pictures_say_so() {
    let mut bench = Bench::new(settings());
    bench.stream(1, 1, None);
    bench.wait(100 * MS);
    let damaged = Jpeg {
        is_damaged: true,
        ..jpeg(1)
    };
    bench.frame(damaged);
    bench.pictures(1);
    let told: Vec<_> = bench.published.iter().map(|(_, it)| it.damaged).collect();
    assert_eq!(told, [Some(true), None]);
    assert_eq!(bench.logic.counters().damaged, 1);
}

#[test]
fn a_calibration_of_another_size_is_told_once() {
    for (width, height, fits) in [
        (64, 48, true),
        (128, 96, true),
        (640, 360, false),
        (32, 24, false),
    ] {
        let calibration = Calibration {
            width: Some(width),
            height: Some(height),
            ..Calibration::default()
        };
        let mut bench = Bench::new(Settings {
            calibration: Some(calibration.clone()),
            ..settings()
        });
        bench.pictures(2);
        let told = bench
            .notes
            .iter()
            .any(|note| note.starts_with("the calibration is for"));
        assert_eq!(told, !fits, "{width}: {:?}", bench.notes);
        assert_eq!(bench.logic.info().calibration, Some(calibration));
    }
}

#[test]
fn the_info_tells_size_and_rate() {
    let mut bench = Bench::used(settings());
    let info = bench.logic.info();
    assert_eq!(
        (info.source(), info.is_on(), info.width),
        ("the bench", true, None)
    );
    bench.pictures(30);
    let info = bench.logic.info();
    assert_eq!((info.width(), info.height()), (64, 48));
    assert!((info.measured_rate() - 10.0).abs() < 0.1);
    bench.pictures(110);
    let info = bench.logic.info();
    assert_eq!((info.is_on(), info.measured_rate), (false, None));
}

#[test]
fn controls_are_checked() {
    let mut bench = Bench::new(settings());
    let control = |id: u32, name: &str| Control {
        id: Some(id),
        name: Some(name.to_owned()),
        value: Some(5),
        minimum: Some(-10),
        maximum: Some(10),
        default_value: Some(2),
        ..Control::default()
    };
    let line = Control {
        choices: [(0, "Disabled"), (2, "60 Hz")]
            .map(|(value, name)| Choice {
                value: Some(value),
                name: Some(name.to_owned()),
            })
            .to_vec(),
        ..control(3, "Power Line Frequency")
    };
    let exposure = Control {
        automatic: Some(true),
        ..control(2, "Exposure")
    };
    let none = bench.logic.control(&ControlValue::default()).unwrap_err();
    assert_eq!(none, "this camera has no controls");
    bench
        .logic
        .controls_changed(vec![control(1, "Brightness"), exposure, line]);
    let set = |id: Option<u32>, name: Option<&str>, value: Option<i64>| {
        let name = name.map(str::to_owned);
        bench.logic.control(&ControlValue { id, name, value })
    };
    assert_eq!(set(Some(1), None, Some(-10)), Ok((1, -10)));
    assert_eq!(set(None, Some("brightness"), None), Ok((1, 2)));
    assert_eq!(set(Some(3), None, Some(2)), Ok((3, 2)));
    for (id, name, value, words) in [
        (
            Some(9),
            None,
            Some(1),
            "there are Brightness, Exposure, Power",
        ),
        (None, Some("bright"), Some(1), "no such control"),
        (
            Some(1),
            None,
            Some(11),
            "Brightness goes from -10 to 10, not to 11",
        ),
        (Some(2), None, Some(1), "an automatic mode sets Exposure"),
        (
            Some(3),
            None,
            Some(1),
            "one of 0 (Disabled), 2 (60 Hz), not 1",
        ),
    ] {
        let error = set(id, name, value).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    bench.pictures(110);
    let off = ControlValue {
        id: Some(1),
        ..ControlValue::default()
    };
    assert_eq!(bench.logic.control(&off), Err(OFF.to_owned()));
}

#[test]
fn a_picture_that_cannot_be_made_is_refused_and_counted() {
    let mut bench = Bench::used(settings());
    bench.pictures(4);
    let broken = Jpeg {
        bytes: b"\xFF\xD8\xFF\xD9"[..].into(),
        ..jpeg(1)
    };
    let grey = PictureRequest {
        format: Some(Format::Gray8.into()),
        ..PictureRequest::default()
    };
    bench.ask(1, grey);
    bench.stream(1, 1, Some(20));
    bench.wait(100 * MS);
    bench.frame(broken);
    let why = bench.answers[0].1.as_ref().unwrap_err();
    assert!(why.starts_with("cannot decode a picture"), "{why}");
    assert_eq!(
        (bench.logic.counters().unmade, bench.published.len()),
        (2, 0)
    );
    let logged = bench
        .notes
        .iter()
        .filter(|note| note.ends_with("(logged once)"));
    assert_eq!(logged.count(), 1);
}

#[test]
fn requests_that_wait_are_limited() {
    let mut bench = Bench::new(settings());
    for asker in 0..70 {
        bench.ask(asker, PictureRequest::default());
    }
    assert_eq!(bench.answers.len(), 6);
    assert_eq!(bench.answers[0], (64, Err(TOO_MANY.to_owned())));
}
