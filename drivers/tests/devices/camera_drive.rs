//! Reads the pictures of the simulated camera with what the driver uses, in all forms and with all
//! faults.

use std::time::Duration;

use amber_drivers::camera::http::Answer;
use amber_drivers::camera::jpeg::Jpeg;
use amber_drivers::camera::pixels::{Recipe, make};
use amber_map::Map;
use amber_proto::camera::Format;
use amber_sim::Devices;
use amber_sim::camera::{self, DEVICE, Form, PictureFault, Size};
use amber_sim::ceiling::Ceiling;
use amber_sim::robot::{Config, Fault, RobotTwin};
use amber_sim::world::find_start;

const MS: Duration = Duration::from_millis(1);
const RATE_HZ: f64 = 20.0;
const WIDTH: u16 = 320;

/// A robot with a camera, and a program that looks.
struct Watch {
    robot: RobotTwin,
    answer: Answer,
    now: Duration,
}

impl Watch {
    fn new(path: &str) -> Self {
        let map = Map::flat();
        let robot = RobotTwin::new(Config {
            start: find_start(&map.walls, &map.robots).unwrap(),
            walls: map.walls,
            seed: 1,
            speed: 1.0,
            ceiling: Ceiling::default(),
            devices: Devices {
                camera: camera::Options {
                    address: Some(([127, 0, 0, 1], 0).into()),
                    size: Some(Size {
                        width: WIDTH,
                        height: 240,
                    }),
                    rate_hz: Some(RATE_HZ),
                },
                ..Devices::default()
            },
        });
        let mut watch = Self {
            robot: robot.unwrap(),
            answer: Answer::default(),
            now: Duration::ZERO,
        };
        let request = format!("GET {path} HTTP/1.1\r\nHost: robot\r\n\r\n");
        watch.robot.advance(watch.now);
        watch
            .robot
            .handle_bytes(watch.now, DEVICE, request.as_bytes());
        watch
    }

    /// The pictures in a time.
    fn pictures(&mut self, time: Duration) -> Vec<Jpeg> {
        let end = self.now + time;
        let mut pictures = Vec::new();
        while self.now < end {
            self.now += 5 * MS;
            self.robot.advance(self.now);
            while let Some(bytes) = self.robot.poll_output(self.now, DEVICE) {
                for piece in bytes.chunks(1_460) {
                    self.answer.push(piece).unwrap();
                }
            }
            pictures.extend(std::iter::from_fn(|| self.answer.poll()));
        }
        pictures
    }

    fn begin(&mut self, fault: Fault) {
        self.robot.begin(self.now, fault, None);
    }
}

/// The brightness of each pixel.
fn grey(jpeg: &Jpeg) -> Vec<u8> {
    let recipe = Recipe {
        divisor: 1,
        quality: None,
        format: Format::Gray8,
    };
    make(jpeg, recipe).unwrap().data.to_vec()
}

/// The time in milliseconds and the number that are written into a picture.
fn code(jpeg: &Jpeg) -> (u32, u32) {
    let grey = grey(jpeg);
    let bits = (0..32).map(|bit| {
        let place = 4 * usize::from(WIDTH) + bit * 8 + 4;
        u32::from(grey[place] > 128)
    });
    let code = bits.fold(0, |code, bit| (code << 1) | bit);
    (code >> 8, code & 0xFF)
}

#[test]
fn pictures_are_read_in_each_form() {
    for (form, path) in Form::ALL {
        let mut watch = Watch::new(path);
        let pictures = watch.pictures(1_000 * MS);
        let codes: Vec<_> = pictures.iter().map(code).collect();
        let expected: Vec<_> = match form {
            Form::Snapshot => vec![(0, 0)],
            _ => (0..=20).map(|number| (number * 50, number)).collect(),
        };
        assert_eq!(codes, expected, "{path}");
        assert!(pictures.iter().all(|jpeg| !jpeg.is_damaged), "{path}");
    }
}

#[test]
fn real_pictures_are_not_smooth() {
    let pictures = Watch::new("/stream").pictures(100 * MS);
    let length = pictures[0].bytes.len();
    assert!((8_000..40_000).contains(&length), "{length}");
}

#[test]
fn faults_of_pictures_are_noticed_or_repaired() {
    let mut watch = Watch::new("/stream");
    let well = watch.pictures(200 * MS).pop().unwrap();
    watch.begin(Fault::Picture(PictureFault::NoTables));
    let bare = watch.pictures(200 * MS);
    assert!(bare.len() >= 3 && bare.iter().all(|jpeg| !jpeg.is_damaged));
    let differ = |one: &[u8], other: &[u8]| {
        let pairs = one.iter().zip(other);
        pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>() / one.len() as u64
    };
    // The robot stands: but for noise, time and number, they are the same.
    assert!(differ(&grey(&bare[2]), &grey(&well)) < 12);

    watch.robot.clear();
    watch.pictures(100 * MS);
    watch.begin(Fault::Picture(PictureFault::Half));
    let half = watch.pictures(300 * MS).pop().unwrap();
    assert!(half.is_damaged);
    let upper = usize::from(WIDTH) * 60;
    assert!(differ(&grey(&half)[..upper], &grey(&well)[..upper]) < 12);

    watch.robot.clear();
    watch.begin(Fault::Picture(PictureFault::Dark));
    let dark = watch.pictures(300 * MS).pop().unwrap();
    let mean = |jpeg: &Jpeg| {
        let grey = grey(jpeg);
        grey.iter().map(|it| u64::from(*it)).sum::<u64>() / grey.len() as u64
    };
    assert!(mean(&dark) * 5 < mean(&well));

    watch.robot.clear();
    watch.begin(Fault::Picture(PictureFault::Frozen));
    let frozen = watch.pictures(300 * MS);
    assert!(frozen.windows(2).all(|two| two[0].bytes == two[1].bytes));
}

#[test]
fn wrong_bits_do_not_stop_the_pictures() {
    let mut watch = Watch::new("/stream");
    watch.begin(Fault::Corrupt(DEVICE));
    let pictures = watch.pictures(5_000 * MS);
    assert!(pictures.len() > 80, "{}", pictures.len());
}
