//! A simulated scanner, its driver's logic and a clock, for tests.

use std::time::{Duration, Instant};

use amber_proto::hokuyo::Scan;

use super::{Measured, Model, Note, Output};

/// What a test needs of a simulated scanner.
pub(crate) trait Simulated {
    fn measure(
        &mut self,
        now: Duration,
        random: &mut fastrand::Rng,
        distance_m: impl FnMut(Duration, f64) -> Option<f64>,
    );
    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]);
    fn poll_output(&mut self) -> Option<Vec<u8>>;
}

macro_rules! simulated {
    ($($scanner:ty)*) => {$(
        impl Simulated for $scanner {
            fn measure(
                &mut self,
                now: Duration,
                random: &mut fastrand::Rng,
                distance_m: impl FnMut(Duration, f64) -> Option<f64>,
            ) {
                Self::measure(self, now, random, distance_m);
            }

            fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
                Self::handle_bytes(self, now, bytes);
            }

            fn poll_output(&mut self) -> Option<Vec<u8>> {
                Self::poll_output(self)
            }
        }
    )*};
}
simulated!(amber_sim::ldrobot::Ldrobot amber_sim::rplidar::Rplidar amber_sim::ydlidar::Ydlidar);

/// 1970 in the tests.
pub(crate) const BEGIN_MS: i64 = 1_448_000_000_000;

/// The logic, a scanner and a clock. Each distance tells the direction: in the scanner's world, what
/// is at `angle` degrees clockwise from its front mark is `1000 + 5 * angle` mm away.
pub(crate) struct Bench<L, S> {
    pub(crate) logic: L,
    pub(crate) scanner: S,
    random: fastrand::Rng,
    pub(crate) begin: Instant,
    pub(crate) time: Duration,
    /// How fast the scanner turns with its robot, clockwise as it sees it.
    pub(crate) turn_deg_s: f64,
    /// Changes what the scanner sends.
    pub(crate) spoil: fn(&mut Vec<u8>, &mut fastrand::Rng),
    /// Whether it hears these bytes.
    pub(crate) hears: fn(&[u8]) -> bool,
    pub(crate) written: Vec<Vec<u8>>,
    pub(crate) said: Vec<Note>,
    pub(crate) published: Vec<(Duration, Measured)>,
}

impl<L: Model, S: Simulated> Bench<L, S> {
    pub(crate) fn of(settings: L::Settings, scanner: S) -> Self {
        let begin = Instant::now();
        let mut logic = L::new(settings, begin);
        logic.handle_listeners(begin, 1);
        Self {
            logic,
            scanner,
            random: fastrand::Rng::with_seed(1),
            begin,
            time: Duration::ZERO,
            turn_deg_s: 0.0,
            spoil: |_, _| {},
            hears: |_| true,
            written: Vec::new(),
            said: Vec::new(),
            published: Vec::new(),
        }
    }

    /// Advances by this time, in which the scanner's bytes arrive once per `piece_ms`.
    pub(crate) fn advance(&mut self, seconds: u64, piece_ms: u64) {
        let end = self.time + Duration::from_secs(seconds);
        while self.time < end {
            self.time += Duration::from_millis(piece_ms);
            let (time, now, turn_deg_s) = (self.time, self.begin + self.time, self.turn_deg_s);
            (self.scanner).measure(time, &mut self.random, |time, angle_deg| {
                Some(truth_mm(angle_deg + turn_deg_s * time.as_secs_f64()) / 1_000.0)
            });
            let mut bytes = Vec::new();
            while let Some(packet) = self.scanner.poll_output() {
                bytes.extend(packet);
            }
            (self.spoil)(&mut bytes, &mut self.random);
            if !bytes.is_empty() {
                let timestamp_ms = BEGIN_MS + time.as_millis() as i64;
                self.logic.handle_bytes(now, timestamp_ms, &bytes);
            }
            self.logic.handle_timeout(now);
            while let Some(output) = self.logic.poll_output() {
                match output {
                    Output::Open => self.logic.opened(now),
                    Output::Write(bytes) => {
                        if (self.hears)(&bytes) {
                            self.scanner.handle_bytes(time, &bytes);
                        }
                        self.written.push(bytes);
                    }
                    Output::Publish(measured) => self.published.push((time, measured)),
                    Output::Say(note) => self.said.push(note),
                    Output::Close | Output::Answer(..) | Output::End => {}
                }
            }
        }
    }

    /// The problems that were logged.
    pub(crate) fn troubles(&self) -> Vec<&str> {
        let texts = self.said.iter().filter_map(|note| match note {
            Note::Trouble(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The last scans, which are at least so many.
    #[track_caller]
    pub(crate) fn last(&self, count: usize) -> &[(Duration, Measured)] {
        let from = self.published.len().checked_sub(count);
        &self.published[from.expect("enough scans")..]
    }

    /// Checks that the points of a scan show the world if each is turned by as much as the robot has
    /// turned meanwhile: as programs do it, from what the driver says of the scanner.
    #[track_caller]
    pub(crate) fn check_straightened(&self, measured: &Measured, within_mm: f64) {
        let scanner = self.logic.scanner().expect("it works");
        let turn_s = f64::from(scanner.turn_time()) / 1e6;
        let ended_s = (measured.timestamp_ms - BEGIN_MS) as f64 / 1_000.0;
        let scan = &measured.scan;
        let count = scan.angles.len();
        for (index, (angle_deg, mm)) in scan.angles.iter().zip(&scan.distances).enumerate() {
            let (scanner_deg, later) = match scanner.turns_right() {
                true => (*angle_deg, count - 1 - index),
                false => (-angle_deg, index),
            };
            let time_s = ended_s - turn_s * later as f64 / count as f64;
            // The sideways view differs a little between near and far, so at the rear a point may be of
            // the turn before.
            if *mm >= 20 && angle_deg.abs() < 179.0 {
                let world_deg = scanner_deg + self.turn_deg_s * time_s;
                assert_near(world_deg, *mm, within_mm);
            }
        }
    }
}

fn truth_mm(scanner_deg: f64) -> f64 {
    1_000.0 + 5.0 * scanner_deg.rem_euclid(360.0)
}

#[track_caller]
fn assert_near(scanner_deg: f64, mm: i32, within_mm: f64) {
    let off_mm = f64::from(mm) - truth_mm(scanner_deg);
    // Beside the front mark, the distance jumps from 2800 to 1000 mm.
    let off_mm = (off_mm + 900.0).rem_euclid(1800.0) - 900.0;
    assert!(
        off_mm.abs() <= within_mm,
        "{scanner_deg} deg: {mm} mm is {off_mm} mm off"
    );
}

/// Checks that each distance is the one of its angle, and returns how many there are.
#[track_caller]
pub(crate) fn check(scan: &Scan, mount_deg: f64, is_mirrored: bool, within_mm: f64) -> usize {
    assert!(scan.angles.is_sorted_by(|a, b| a < b));
    let points = scan.angles.iter().zip(&scan.distances);
    let mut measured = 0;
    for (angle_deg, mm) in points.filter(|(_, mm)| **mm >= 20) {
        let turned = angle_deg - mount_deg;
        assert_near(if is_mirrored { -turned } else { turned }, *mm, within_mm);
        measured += 1;
    }
    measured
}
