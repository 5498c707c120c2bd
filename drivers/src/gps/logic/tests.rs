//! The receiver through its bytes, with a clock of its own.

use super::*;
use crate::gps::Options;

const RMC: &str = "GNRMC,101530.00,A,5003.98230,N,01955.04210,E,1.583,271.4,251126,,,A";
const GGA: &str = "GNGGA,101530.00,5003.98230,N,01955.04210,E,1,11,0.92,223.4,M,39.6,M,,";
const LOST_RMC: &str = "GNRMC,101530.00,V,,,,,,,251126,,,N";
const LOST_GGA: &str = "GNGGA,101530.00,,,,,0,00,99.99,,,,,,";

const MS: Duration = Duration::from_millis(1);

struct Bench {
    logic: GpsLogic,
    now: Instant,
    /// The seconds of the receiver's clock.
    second: u32,
    published: Vec<Fix>,
    notes: Vec<String>,
    opens: usize,
}

impl Bench {
    fn new() -> Self {
        let (settings, _) = Options::default().settings().unwrap();
        let now = Instant::now();
        let mut bench = Self {
            logic: GpsLogic::new(settings, now),
            now,
            second: 0,
            published: Vec::new(),
            notes: Vec::new(),
            opens: 0,
        };
        bench.drain();
        bench
    }

    fn drain(&mut self) {
        while let Some(output) = self.logic.poll_output() {
            match output {
                Output::Open => {
                    self.opens += 1;
                    self.logic.opened(self.now);
                }
                Output::Publish(fix) => self.published.push(fix),
                Output::Say(note) => self.notes.push(note.to_string()),
                Output::Close | Output::End => {}
            }
        }
    }

    /// Nothing happens for a time.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.logic.wake_at().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.logic.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.logic.handle_bytes(self.now, bytes);
        self.drain();
    }

    /// An epoch of the receiver, a second after the one before.
    fn epoch(&mut self, bodies: &[&str]) {
        self.second += 1;
        let time = format!("10{:02}{:02}.00", self.second / 60 % 60, self.second % 60);
        for body in bodies {
            let body = body.replace("101530.00", &time);
            self.hear(&amber_sim::gps::sentence(&body));
        }
        self.wait(1_000 * MS);
    }

    fn kind(&self) -> Result<Kind, &str> {
        self.logic.fix(self.now).map(|fix| fix.kind())
    }
}

#[test]
fn an_epoch_is_published_once_and_soon() {
    let mut bench = Bench::new();
    assert_eq!(bench.kind(), Err("the receiver has told nothing yet"));
    for body in [RMC, GGA] {
        bench.hear(&amber_sim::gps::sentence(body));
        // The line is slow: a sentence takes 80 ms.
        bench.wait(40 * MS);
        bench.hear(b"$GNGSV,1");
        bench.wait(40 * MS);
        bench.hear(b",1,00*00\r\n");
    }
    assert!(bench.published.is_empty());
    bench.wait(60 * MS);
    assert_eq!(bench.published.len(), 1);
    assert_eq!(
        bench.notes,
        ["ready: GPS receiver", "the receiver has a position"]
    );
    let fix = bench.published[0];
    assert_eq!(
        (fix.satellites, fix.course, fix.age),
        (Some(11), Some(271.4), None)
    );
    bench.wait(940 * MS);
    assert_eq!(bench.published.len(), 1);
    assert_eq!(bench.logic.fix(bench.now).unwrap().age, Some(950));
    // The next one begins at once, as at high rates.
    for body in [RMC, GGA, RMC, GGA, RMC, GGA] {
        let tenth = bench.second / 2;
        bench.second += 1;
        let body = body.replace("30.00", &format!("31.{tenth}0"));
        bench.hear(&amber_sim::gps::sentence(&body));
    }
    assert_eq!(bench.published.len(), 3);
    bench.wait(50 * MS);
    assert_eq!(bench.published.len(), 4);
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn no_position_is_a_problem_if_it_lasts() {
    let mut bench = Bench::new();
    bench.epoch(&["GNRMC,,V,,,,,,,,,,N", "GNGGA,,,,,,0,00,99.99,,,,,,"]);
    assert_eq!(bench.kind(), Ok(Kind::None));
    for _ in 0..4 {
        bench.epoch(&[LOST_RMC, LOST_GGA]);
    }
    assert_eq!(bench.logic.trouble(), None);
    bench.epoch(&[LOST_RMC, LOST_GGA]);
    assert_eq!(bench.logic.trouble(), Some(COVERED_SKY));
    let fix = bench.logic.fix(bench.now).unwrap();
    assert_eq!(
        (fix.latitude, fix.longitude, fix.satellites),
        (None, None, Some(0))
    );
    bench.epoch(&[RMC, GGA]);
    assert_eq!(
        (bench.logic.trouble(), bench.kind()),
        (None, Ok(Kind::ThreeD))
    );
    // A short tunnel.
    for _ in 0..4 {
        bench.epoch(&[LOST_RMC, LOST_GGA]);
        assert_eq!(
            (bench.logic.trouble(), bench.kind()),
            (None, Ok(Kind::None))
        );
    }
    bench.epoch(&[RMC, GGA]);
    assert_eq!(bench.kind(), Ok(Kind::ThreeD));
    let position = "the receiver has a position";
    assert_eq!(
        bench.notes,
        ["ready: GPS receiver", COVERED_SKY, position, position]
    );
    assert_eq!(bench.published.len(), 12);
}

#[test]
fn the_antenna_is_named_if_it_is_the_reason() {
    let mut bench = Bench::new();
    for (state, trouble) in [
        ("OPEN", OPEN_ANTENNA),
        ("SHORT", SHORT_ANTENNA),
        ("OK", COVERED_SKY),
    ] {
        let state = format!("GNTXT,01,01,02,ANTSTATUS={state}");
        for _ in 0..8 {
            bench.epoch(&[&state, LOST_RMC, LOST_GGA]);
        }
        assert_eq!(bench.logic.trouble(), Some(trouble));
        // With a position, the antenna is well enough.
        bench.epoch(&[&state, RMC, GGA]);
        assert_eq!(bench.logic.trouble(), None);
    }
}

#[test]
fn an_answer_is_never_old() {
    let mut bench = Bench::new();
    bench.epoch(&[RMC, GGA]);
    bench.epoch(&[RMC, GGA]);
    bench.wait(1_900 * MS);
    assert_eq!(bench.kind(), Ok(Kind::ThreeD));
    bench.wait(200 * MS);
    assert_eq!(bench.kind(), Err(SILENT));
    assert_eq!(bench.logic.trouble(), Some(SILENT));
    bench.wait(2_000 * MS);
    assert_eq!(bench.opens, 2, "it is opened again");
    bench.epoch(&[RMC, GGA]);
    assert_eq!(
        (bench.logic.trouble(), bench.kind()),
        (None, Ok(Kind::ThreeD))
    );
    let notes = &bench.notes[2..];
    assert_eq!(notes[0], format!("{SILENT}; retrying"));
    assert!(notes[1].starts_with("works again after "), "{notes:?}");
    assert_eq!(notes[2], "the receiver has a position");
    assert_eq!(notes.len(), 3);
}

#[test]
fn bytes_without_sentences_are_named() {
    let mut bench = Bench::new();
    bench.epoch(&[RMC, GGA]);
    for _ in 0..6 {
        // A wrong speed.
        bench.hear(&[0x80, 0x1C, 0xE0, 0xFC]);
        bench.wait(500 * MS);
    }
    assert_eq!(bench.logic.trouble(), Some(NO_SENTENCES));
    assert_eq!(bench.kind(), Err(NO_SENTENCES));
    bench.epoch(&[RMC, GGA]);
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn sentences_without_a_position_are_named() {
    let mut bench = Bench::new();
    for _ in 0..10 {
        bench.epoch(&["GPGSV,1,1,00", "PUBX,00"]);
    }
    assert_eq!(bench.logic.trouble(), Some(NO_POSITIONS));
    assert!(bench.published.is_empty());
}

#[test]
fn a_receiver_of_pairs_is_believed_only_in_pairs() {
    let mut bench = Bench::new();
    // One kind is enough from a receiver that sends no other.
    bench.epoch(&[GGA]);
    bench.epoch(&[GGA]);
    bench.epoch(&[RMC, GGA]);
    assert_eq!(bench.published.len(), 3);
    bench.epoch(&[GGA]);
    bench.epoch(&[RMC]);
    bench.epoch(&[&RMC.replace("5003.98", "5004.98"), GGA]);
    assert_eq!(bench.published.len(), 3);
    let expected = Counters {
        fixes: 3,
        incomplete: 2,
        contradictory: 1,
    };
    assert_eq!(bench.logic.counters(), expected);
    assert_eq!(bench.kind(), Err(NOTHING_NEW));
    bench.epoch(&[RMC, GGA]);
    assert_eq!(bench.kind(), Ok(Kind::ThreeD));
    // Another receiver is plugged in.
    bench.logic.failed(bench.now, "unplugged");
    bench.wait(3_000 * MS);
    bench.epoch(&[RMC]);
    assert_eq!(bench.kind(), Ok(Kind::TwoD));
}

#[test]
fn an_overflown_date_is_told_once() {
    let mut bench = Bench::new();
    let old = RMC.replace("251126", "120407");
    bench.epoch(&[&old, GGA]);
    bench.epoch(&[&old, GGA]);
    assert_eq!(bench.published.len(), 2);
    assert!(
        bench
            .published
            .iter()
            .all(|fix| fix.time.is_none() && fix.latitude.is_some())
    );
    let told = bench
        .notes
        .iter()
        .filter(|note| note.contains("the year 2007"));
    assert_eq!(told.count(), 1, "{:?}", bench.notes);
}

#[test]
fn damaged_bytes_make_no_wrong_position() {
    // One byte in a hundred has a wrong bit: the sums miss some of the sentences with two of them.
    let sentence = |bytes: &[u8]| {
        let mut parser = Parser::default();
        parser.push(bytes);
        parser.poll()
    };
    let mut random = fastrand::Rng::with_seed(7);
    let mut bench = Bench::new();
    bench.epoch(&[RMC, GGA]);
    let mut missed = 0;
    for _ in 0..20_000 {
        bench.second += 1;
        let time = format!("10{:02}{:02}.00", bench.second / 60 % 60, bench.second % 60);
        for body in [RMC, GGA] {
            let mut bytes = amber_sim::gps::sentence(&body.replace("101530.00", &time));
            let good = bytes.clone();
            for byte in &mut bytes {
                if random.u8(..100) == 0 {
                    *byte ^= 1 << random.u8(..8);
                }
            }
            let found = sentence(&bytes);
            missed += u32::from(found.is_some() && found != sentence(&good));
            bench.logic.handle_bytes(bench.now, &bytes);
        }
        bench.wait(1_000 * MS);
        for fix in bench.published.drain(..) {
            let Some((latitude, longitude)) = fix.latitude.zip(fix.longitude) else {
                continue;
            };
            assert!((latitude - 50.066_371_667).abs() < 4e-5, "{fix:?}");
            assert!((longitude - 19.917_368_333).abs() < 4e-5, "{fix:?}");
        }
    }
    assert!(missed > 50, "the sums notice everything: {missed}");
    let counters = bench.logic.counters();
    assert!(counters.fixes > 3_000, "{counters:?}");
}
