//! Tests of the receivers through their sentences, without a world.

use super::*;

const SECOND: Duration = Duration::from_secs(1);
/// The place and the time of the hardware sheet.
const ORIGIN: Origin = Origin {
    latitude_deg: 50.066_371_667,
    longitude_deg: 19.917_368_333,
    bearing_deg: 90.0,
};
const AT_10_15_30: u64 = 1_795_601_730;

struct Bench {
    receiver: Receiver,
    now: Duration,
    motion: Motion,
}

impl Bench {
    fn with(model: Model, origin: Origin) -> Self {
        let mut receiver = Receiver::new(model, origin, 1, Duration::ZERO);
        receiver.set_noise(false);
        receiver.set_start(AT_10_15_30 - 4);
        Self {
            receiver,
            now: Duration::ZERO,
            motion: Motion::default(),
        }
    }

    /// The sentences of a time, without `$`, sums and line ends.
    fn wait(&mut self, time: Duration) -> Vec<String> {
        let end = self.now + time;
        let mut said = Vec::new();
        while self.receiver.next_epoch() <= end {
            self.now = self.receiver.next_epoch();
            while let Some(time) = self.receiver.poll_epoch(self.now) {
                self.receiver.measure(time, &self.motion);
            }
            while let Some(bytes) = self.receiver.poll_output() {
                let text = String::from_utf8(bytes).unwrap();
                let body = text.strip_prefix('$').unwrap().split_once('*').unwrap().0;
                assert_eq!(sentence(body), text.as_bytes());
                said.push(body.to_owned());
            }
        }
        self.now = end;
        said
    }
}

/// The field of the last sentence of a kind.
fn field(said: &[String], kind: &str, index: usize) -> String {
    let mut last = said.iter().rev();
    let last = last.find(|body| body[2..].starts_with(kind)).expect(kind);
    last.split(',').nth(index).unwrap().to_owned()
}

#[test]
fn the_sentences_are_those_of_the_hardware_sheet() {
    let mut bench = Bench::with(Model::NeoM8, ORIGIN);
    // 0.3 m/s, nearly to the west.
    bench.motion.velocity_m_s = [-0.299_84, 0.007_33];
    bench.wait(3 * SECOND);
    let said = bench.wait(SECOND);
    assert_eq!(
        said[..4],
        [
            "GNRMC,101530.00,A,5003.98230,N,01955.04210,E,0.583,271.40,251126,,,A",
            "GNVTG,271.40,T,,M,0.583,N,1.080,K,A",
            "GNGGA,101530.00,5003.98230,N,01955.04210,E,1,11,0.92,223.4,M,39.6,M,,",
            "GNGSA,A,3,02,05,12,15,20,25,29,,,,,,1.61,0.92,1.32",
        ]
    );
    let gga = "GNGGA,101530.00,5003.98230,N,01955.04210,E,1,11,0.92,223.4,M,39.6,M,,";
    assert!(sentence(gga).ends_with(b"*4D\r\n"));
    assert_eq!(said.len(), 7);
}

#[test]
fn at_first_it_has_neither_time_nor_position() {
    let mut bench = Bench::with(Model::ZedF9p, ORIGIN);
    let said = bench.wait(Duration::from_millis(300));
    assert_eq!(said[0], "GNRMC,,V,,,,,,,,,,N,V");
    assert_eq!(sentence(&said[0]), b"$GNRMC,,V,,,,,,,,,,N,V*37\r\n");
    let said = bench.wait(Duration::from_millis(1_700));
    assert_eq!(said[said.len() - 6], "GNRMC,101528.00,V,,,,,,,251126,,,N,V");
    assert_eq!(field(&said, "GGA", 2), "");
    assert_eq!(field(&said, "GGA", 6), "0");
    assert_eq!(field(&said, "GSA", 2), "1");
    assert_eq!(field(&said, "GSA", 15), "99.99");
    let said = bench.wait(2 * SECOND);
    assert_eq!(field(&said, "GGA", 6), "4");
    assert_eq!(field(&said, "GSA", 18), "2", "the system");
    assert_eq!(field(&said, "GST", 6), "0.010");
    bench.receiver.restart(bench.now);
    let said = bench.wait(SECOND);
    assert_eq!(field(&said, "GGA", 6), "0");
}

#[test]
fn all_quarters_of_the_earth_have_their_letters() {
    for (latitude_deg, longitude_deg, place) in [
        (
            -33.856_083_333,
            -151.215_183_333,
            "3351.36500,S,15112.91100,W",
        ),
        (-0.000_01, 0.5, "0000.00060,S,00030.00000,E"),
        // Nearly a whole degree.
        (49.999_999_99, -179.999_999_99, "5000.00000,N,18000.00000,W"),
    ] {
        let origin = Origin {
            latitude_deg,
            longitude_deg,
            bearing_deg: 0.0,
        };
        let said = Bench::with(Model::NeoM8, origin).wait(4 * SECOND);
        let expected = format!("GNGLL,{place},101530.00,A,A");
        assert_eq!(said.last(), Some(&expected));
    }
}

#[test]
fn the_axes_of_the_map_have_a_direction_on_earth() {
    // To the north, to the east, and to the south-west: the course is that of x.
    for (bearing_deg, velocity_m_s, course) in [
        (0.0, [1.0, 0.0], "0.00"),
        (90.0, [1.0, 0.0], "90.00"),
        (90.0, [0.0, 1.0], "0.00"),
        (225.0, [2.0, 0.0], "225.00"),
        (0.0, [0.0, 1.0], "270.00"),
    ] {
        let origin = Origin {
            bearing_deg,
            ..ORIGIN
        };
        let mut bench = Bench::with(Model::L76, origin);
        bench.motion.velocity_m_s = velocity_m_s;
        let said = bench.wait(4 * SECOND);
        assert_eq!(field(&said, "RMC", 8), course, "{bearing_deg}");
        assert_eq!(field(&said, "RMC", 1), "101530.000");
    }
    let [latitude_deg, longitude_deg] = Bench::with(Model::L76, ORIGIN)
        .receiver
        .truth([100.0, 10.0]);
    assert!((latitude_deg - ORIGIN.latitude_deg - 10.0 / 111_320.0).abs() < 1e-12);
    let degree_m = 111_320.0 * ORIGIN.latitude_deg.to_radians().cos();
    assert!((longitude_deg - ORIGIN.longitude_deg - 100.0 / degree_m).abs() < 1e-12);
}

#[test]
fn a_robot_at_rest_has_no_course() {
    let said = Bench::with(Model::NeoM8, ORIGIN).wait(4 * SECOND);
    assert_eq!(field(&said, "RMC", 7), "0.000");
    assert_eq!(field(&said, "RMC", 8), "");
}

#[test]
fn a_tunnel_hides_the_satellites_but_not_the_time() {
    let mut bench = Bench::with(Model::NeoM8, ORIGIN);
    bench.wait(4 * SECOND);
    bench.receiver.set_covered(true);
    let said = bench.wait(SECOND);
    assert_eq!(said[0], "GNRMC,101531.00,V,,,,,,,251126,,,N");
    assert_eq!(field(&said, "GGA", 2), "");
    bench.receiver.set_covered(false);
    assert_eq!(field(&bench.wait(SECOND), "GGA", 6), "1");
}

#[test]
fn days_end_at_midnight() {
    for (unix_s, expected) in [
        (1_767_225_599, "235959.00 311225"),
        (1_767_225_600, "000000.00 010126"),
        (1_772_323_199, "235959.00 280226"),
        (1_835_395_200, "000000.00 290228"),
        (1_835_481_600, "000000.00 010328"),
    ] {
        let unix = Duration::from_secs(unix_s);
        assert_eq!(format!("{} {}", time(unix, 2), date(unix)), expected);
    }
}

#[test]
fn positions_wander_by_metres_or_by_centimetres() {
    for (model, sigma_m) in [(Model::NeoM8, 1.53), (Model::ZedF9p, 0.0112)] {
        let mut receiver = Receiver::new(model, ORIGIN, 3, Duration::ZERO);
        let errors: Vec<_> = (0..20_000).map(|_| receiver.errors_m()[0]).collect();
        let square = errors.iter().map(|it| it * it).sum::<f64>() / errors.len() as f64;
        let ratio = square.sqrt() / sigma_m;
        assert!((0.7..1.3).contains(&ratio), "{model:?}: {ratio}");
        let steps = errors.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        assert!(steps.sum::<f64>() / 20_000.0 < 0.7 * sigma_m, "{model:?}");
    }
}

#[test]
fn origins_are_read() {
    let bearing_deg = 90.0;
    let expected = Origin {
        latitude_deg: -33.5,
        longitude_deg: -70.25,
        bearing_deg,
    };
    assert_eq!("-33.5,-70.25".parse(), Ok(expected));
    assert_eq!(
        "50,20,-45".parse::<Origin>().map(|it| it.bearing_deg),
        Ok(-45.0)
    );
    for (text, error) in [
        ("50", "two or three numbers are needed"),
        ("50,x", "two or three numbers are needed"),
        ("nan,20", "the latitude NaN is not from -89 to 89"),
        ("50,181", "the longitude 181 is not from -180 to 180"),
        ("50,20,400", "the bearing 400 is not from -360 to 360"),
    ] {
        let found = text.parse::<Origin>().unwrap_err();
        assert!(found.starts_with(error), "{found}");
    }
}
