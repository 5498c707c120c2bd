//! Tests of the rules with a simulated clock and a minimal scanner.

use amber_driver::Origin;
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_proto::hokuyo::DriverMsg;
use prost::Message;

use super::settings::angles;
use super::*;
use crate::hokuyo::Options;

mod truth;

/// The logic, a scanner and a clock.
struct Bench {
    logic: ScannerLogic,
    now: Instant,
    plugged: bool,
    silent: bool,
    /// One character of each scan is wrong.
    garbled: bool,
    is_lit: bool,
    /// It rejects `GD`.
    lacks_gd: bool,
    streams: Option<String>,
    next_scan: Instant,
    geometry: Geometry,
    requests: Vec<String>,
    answers: Vec<(u32, Measured)>,
    published: Vec<Measured>,
    notes: Vec<Note>,
    ended: bool,
}

impl Bench {
    fn new(geometry: Geometry) -> Self {
        let (settings, _) = Options::default().settings().unwrap();
        let now = Instant::now();
        let mut bench = Self {
            logic: ScannerLogic::new(settings, now),
            now,
            plugged: true,
            silent: false,
            garbled: false,
            is_lit: false,
            lacks_gd: false,
            streams: None,
            next_scan: now,
            geometry,
            requests: Vec::new(),
            answers: Vec::new(),
            published: Vec::new(),
            notes: Vec::new(),
            ended: false,
        };
        bench.advance(Duration::from_secs(1));
        assert!(bench.logic.is_ready());
        bench
    }

    fn settle(&mut self) {
        while let Some(output) = self.logic.poll_output() {
            match output {
                Output::Open if self.plugged => self.logic.opened(self.now),
                Output::Open => self.logic.failed(self.now, "no such file"),
                Output::Close => self.streams = None,
                Output::Write(bytes) => {
                    let text = String::from_utf8(bytes).unwrap();
                    for request in text.split_terminator('\n') {
                        self.requests.push(request.into());
                        let reply = self.reply(request);
                        self.say(&reply);
                    }
                }
                Output::Answer(origin, measured) => {
                    self.answers.push((origin.syn.unwrap().0, measured));
                }
                Output::Publish(measured) => self.published.push(measured),
                Output::Say(note) => self.notes.push(note),
                Output::End => self.ended = true,
            }
        }
    }

    /// Advances the clock from timer to timer.
    fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        self.settle();
        loop {
            let scan = self.streams.is_some().then_some(self.next_scan);
            let due = [self.logic.wake_at(), scan].into_iter().flatten().min();
            let Some(due) = due.filter(|due| *due <= end) else {
                break;
            };
            self.now = self.now.max(due);
            if scan.is_some_and(|scan| scan <= self.now) {
                self.next_scan = self.now + Duration::from_millis(100);
                let block = format!("{}\n99b\n", self.streams.clone().unwrap());
                let block = [block.as_bytes(), &self.data()].concat();
                self.say(&block);
            }
            self.logic.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    fn say(&mut self, bytes: &[u8]) {
        if self.silent || !self.plugged || bytes.is_empty() {
            return;
        }
        let (first, second) = bytes.split_at(bytes.len() / 2);
        for part in [first, second] {
            self.logic.handle_bytes(self.now, 1_448_000_000_123, part);
        }
    }

    fn reply(&mut self, request: &str) -> Vec<u8> {
        let geometry = self.geometry;
        let status = match &request[..2] {
            "QT" | "RS" => {
                self.is_lit = false;
                self.streams = None;
                "00P"
            }
            "BM" if self.is_lit => "02R",
            "BM" => {
                self.is_lit = true;
                "00P"
            }
            "MD" => {
                self.is_lit = true;
                self.streams = Some(request.into());
                self.next_scan = self.now + Duration::from_millis(100);
                "00P"
            }
            "GD" if self.lacks_gd => "0Ee",
            "GD" if !self.is_lit => "10Q",
            "CR" => "03S",
            // The reply of firmware 3.1.04, which does not know this request.
            "HS" => "0Cc",
            _ => "00P",
        };
        let mut reply = format!("{request}\n{status}\n").into_bytes();
        match &request[..2] {
            "GD" if self.is_lit && !self.lacks_gd => {
                reply.extend(self.data());
                return reply;
            }
            "PP" => {
                for (key, value) in [
                    ("ARES", geometry.steps_per_turn),
                    ("AMIN", geometry.first),
                    ("AMAX", geometry.last),
                    ("AFRT", geometry.front),
                    ("SCAN", geometry.rpm),
                ] {
                    let line = format!("{key}:{value}");
                    let sum = char::from(sum(line.as_bytes()));
                    reply.extend(format!("{line};{sum}\n").bytes());
                }
            }
            _ => {}
        }
        reply.push(b'\n');
        reply
    }

    /// Time and data; each distance is 1000 mm plus the index of the point.
    fn data(&self) -> Vec<u8> {
        let mut data = b"0N90W\n".to_vec();
        let points = 1000..1000 + self.geometry.points();
        let characters: Vec<u8> = points
            .flat_map(|value| [12, 6, 0].map(|shift| (value >> shift & 0x3F) as u8 + 0x30))
            .collect();
        for line in characters.chunks(64) {
            data.extend(line);
            data.extend([sum(line), b'\n']);
        }
        data.push(b'\n');
        if self.garbled {
            data[100] ^= 1;
        }
        data
    }

    fn ask(&mut self, syn: u32) {
        let origin = Origin {
            syn: Some(SynNum(syn)),
            ..Origin::default()
        };
        self.logic.ask(self.now, origin);
        self.settle();
    }

    fn listen(&mut self, listeners: usize) {
        self.logic.handle_listeners(self.now, listeners);
        self.settle();
    }

    fn warnings(&self) -> Vec<String> {
        let warnings = self.notes.iter().filter(|note| note.is_warning());
        warnings.map(Note::to_string).collect()
    }
}

fn sum(line: &[u8]) -> u8 {
    let sum: u32 = line.iter().map(|byte| u32::from(*byte)).sum();
    (sum & 0x3F) as u8 + 0x30
}

const UTM: Geometry = Geometry {
    steps_per_turn: 1440,
    first: 0,
    last: 1080,
    front: 540,
    rpm: 2400,
};

#[test]
fn at_the_start_it_stops_the_scanner_and_reads_its_geometry() {
    let bench = Bench::new(Geometry::URG_04LX);
    assert_eq!(
        bench.requests,
        ["QT", "RS", "QT", "VV", "PP", "HS1", "CR00", "II"]
    );
    assert!(!bench.is_lit, "no client has requested a scan");
    assert_eq!(bench.warnings(), [""; 0]);
}

#[test]
fn each_request_gets_its_own_scan_from_left_to_right() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.requests.clear();
    bench.ask(7);
    bench.ask(8);
    assert_eq!(bench.requests, ["BM", "GD0044072501", "GD0044072501"]);
    let [(7, measured), (8, _)] = &bench.answers[..] else {
        panic!("{:?}", bench.answers);
    };
    let Scan { angles, distances } = &measured.scan;
    assert_eq!((angles.len(), distances.len()), (682, 682));
    assert_eq!((angles[0], angles[681]), (-119.885, 119.885));
    // The first step is at the right end.
    assert_eq!((distances[0], distances[681]), (1681, 1000));
    assert!(angles.is_sorted());
    assert_eq!(measured.timestamp_ms, 1_448_000_000_123);
}

#[test]
fn a_reply_is_encoded_as_by_the_original() {
    let all = angles(Geometry::URG_04LX, Angles::Compatible);
    let mut message = DriverMsg {
        scan: Some(Scan {
            angles: vec![all[0], all[725 - 384]],
            distances: vec![392, 1000],
        }),
        timestamp: Some(1_448_000_000_123),
        ..DriverMsg::data()
    };
    message.set_ack(Some(SynNum(100)));
    let expected = "10 01 20 64 CA 02 18 0A 10 71 3D 0A D7 A3 F8 5D C0 00 D2 6C 3B 90 88 C6 3F \
        12 04 88 03 E8 07 88 03 FB A0 9A 9C 92 2A";
    let bytes: Vec<String> = (message.encode_to_vec().iter())
        .map(|byte| format!("{byte:02X}"))
        .collect();
    assert_eq!(bytes.join(" "), expected);
}

#[test]
fn angles_depend_on_the_scanner() {
    let exact = angles(Geometry::URG_04LX, Angles::Exact);
    assert_eq!(exact[725 - 384].to_bits(), 0.0_f64.to_bits());
    assert_eq!((exact[0], exact[681]), (-119.882_812_5, 119.531_25));
    for kind in [Angles::Exact, Angles::Compatible] {
        let utm = angles(UTM, kind);
        assert_eq!((utm[0], utm[540], utm[1080]), (-135.0, 0.0, 135.0));
    }
}

#[test]
fn subscribers_get_the_continuous_scans() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.requests.clear();
    bench.listen(2);
    bench.advance(Duration::from_millis(1_050));
    assert_eq!(bench.requests, ["MD0044072501000"]);
    assert_eq!(bench.published.len(), 10);
    // A request gets the next of these scans.
    bench.ask(1);
    assert_eq!(bench.answers, []);
    bench.advance(Duration::from_millis(100));
    assert_eq!((bench.answers.len(), bench.requests.len()), (1, 1));

    bench.listen(0);
    bench.published.clear();
    bench.advance(Duration::from_secs(9));
    assert_eq!(bench.published, []);
    assert!(bench.is_lit);
    bench.advance(Duration::from_secs(2));
    assert!(!bench.is_lit && bench.streams.is_none());
    bench.ask(2);
    assert_eq!(bench.answers.len(), 2);
    bench.listen(1);
    bench.advance(Duration::from_millis(250));
    assert_eq!(bench.published.len(), 2);
}

#[test]
fn a_fast_scanner_skips_scans() {
    let mut bench = Bench::new(UTM);
    bench.listen(1);
    assert_eq!(bench.streams.as_deref(), Some("MD0000108001300"));
}

#[test]
fn the_laser_turns_off_when_idle() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.ask(1);
    assert!(bench.is_lit);
    bench.advance(Duration::from_secs(9));
    bench.ask(2);
    bench.advance(Duration::from_secs(9));
    assert!(bench.is_lit);
    bench.advance(Duration::from_secs(2));
    assert!(!bench.is_lit);
    bench.advance(Duration::from_secs(60));
    assert_eq!(bench.warnings(), [""; 0], "silence is not a problem");
}

#[test]
fn a_laser_that_went_off_by_itself_is_turned_on_again() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.ask(1);
    bench.is_lit = false;
    bench.ask(2);
    assert_eq!(bench.answers.len(), 2);
    assert_eq!(bench.warnings(), [""; 0]);
}

#[test]
fn after_a_wrong_checksum_the_request_is_repeated() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.ask(1);
    bench.garbled = true;
    bench.ask(2);
    assert_eq!(bench.answers.len(), 1);
    assert_eq!(bench.warnings().len(), 1, "{:?}", bench.warnings());
    bench.garbled = false;
    bench.advance(Duration::from_secs(2));
    bench.ask(3);
    assert_eq!(bench.answers.len(), 2);
    assert_eq!(bench.answers[1].0, 3, "the earlier request got no reply");
}

#[test]
fn invalid_scans_of_a_stream_are_dropped() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.listen(1);
    bench.advance(Duration::from_secs(1));
    let before = bench.published.len();
    bench.garbled = true;
    bench.advance(Duration::from_millis(500));
    bench.garbled = false;
    assert_eq!(bench.published.len(), before);
    bench.advance(Duration::from_secs(1));
    assert!(bench.published.len() >= before + 9);
    assert_eq!(bench.warnings(), [""; 0]);
    // Only invalid scans for too long.
    bench.garbled = true;
    bench.advance(Duration::from_secs(7));
    assert_eq!(
        bench.warnings()[0],
        "the scanner sends only invalid data; retrying"
    );
}

#[test]
fn an_outage_is_logged_once_and_publishing_resumes() {
    for unplugged in [true, false] {
        let mut bench = Bench::new(Geometry::URG_04LX);
        bench.listen(1);
        bench.advance(Duration::from_secs(6));
        if unplugged {
            bench.plugged = false;
            bench.logic.failed(bench.now, "the scanner was unplugged");
        } else {
            bench.silent = true;
        }
        bench.published.clear();
        for syn in 0..10 {
            bench.advance(Duration::from_secs(1));
            bench.ask(syn);
        }
        assert_eq!((bench.published.len(), bench.answers.len()), (0, 0));
        let expected = if unplugged { 2 } else { 1 };
        assert_eq!(bench.warnings().len(), expected, "{:?}", bench.warnings());
        bench.advance(Duration::from_secs(4));
        bench.plugged = true;
        bench.silent = false;
        bench.advance(Duration::from_secs(4));
        assert!(bench.published.len() >= 10);
        assert!(matches!(
            bench.notes[..],
            [.., Note::Back(_), Note::Laser(true)]
        ));
        assert_eq!(bench.answers, [], "a reply this late is never sent");
    }
}

#[test]
fn a_pause_of_the_stream_is_no_outage() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.listen(1);
    bench.advance(Duration::from_secs(6));
    let mut published = bench.published.len();
    for _ in 0..3 {
        bench.requests.clear();
        bench.silent = true;
        bench.advance(Duration::from_millis(700));
        bench.silent = false;
        bench.advance(Duration::from_secs(2));
        assert!(
            bench.requests.iter().all(|it| it == PROBE),
            "{:?}",
            bench.requests
        );
        assert!(!bench.requests.is_empty());
        assert!(bench.published.len() >= published + 19);
        published = bench.published.len();
    }
    assert!(bench.warnings().is_empty(), "{:?}", bench.warnings());
}

#[test]
fn a_scanner_that_answers_but_sends_no_scans_is_started_again() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.listen(1);
    bench.advance(Duration::from_secs(6));
    bench.streams = None;
    bench.advance(Duration::from_secs(1));
    let warnings = bench.warnings();
    assert!(
        matches!(&warnings[..], [one] if one.contains("sends no more scans")),
        "{warnings:?}"
    );
    let published = bench.published.len();
    bench.advance(Duration::from_secs(4));
    assert!(bench.published.len() >= published + 10);
}

#[test]
fn a_device_that_is_not_a_scanner_is_logged_once() {
    let (settings, _) = Options::default().settings().unwrap();
    let now = Instant::now();
    let mut logic = ScannerLogic::new(settings, now);
    let mut complaints = 0;
    for i in 0..1_000_u32 {
        let now = now + Duration::from_millis(100) * i;
        logic.handle_timeout(now);
        while let Some(output) = logic.poll_output() {
            match output {
                Output::Open => logic.opened(now),
                Output::Say(note) => complaints += u32::from(note.is_warning()),
                _ => {}
            }
        }
        logic.handle_bytes(now, 0, b"$GPGGA,123519,4807.038,N\r\n");
    }
    assert_eq!(complaints, 1);
    assert!(!logic.is_ready());
}

#[test]
fn an_old_scanner_is_switched_to_scip_2() {
    let (settings, _) = Options::default().settings().unwrap();
    let now = Instant::now();
    let mut logic = ScannerLogic::new(settings, now);
    logic.poll_output();
    logic.opened(now);
    logic.poll_output();
    logic.handle_bytes(now, 0, b"E\n\n");
    logic.handle_timeout(now + Duration::from_millis(300));
    assert_eq!(
        logic.poll_output(),
        Some(Output::Write("SCIP2.0\nQT\nRS\nQT\n".into()))
    );
}

#[test]
fn a_refusal_after_the_echo_is_recognized_wherever_reads_end() {
    let refused = b"QT\nE\n\nRS\nE\n\nQT\nE\n\n";
    for cut in 0..=refused.len() {
        let (settings, _) = Options::default().settings().unwrap();
        let now = Instant::now();
        let mut logic = ScannerLogic::new(settings, now);
        logic.poll_output();
        logic.opened(now);
        logic.poll_output();
        let (first, second) = refused.split_at(cut);
        for part in [first, second] {
            logic.handle_bytes(now, 0, part);
        }
        logic.handle_timeout(now + Duration::from_millis(300));
        let sent = logic.poll_output();
        let expected = Output::Write("SCIP2.0\nQT\nRS\nQT\n".into());
        assert_eq!(sent, Some(expected), "cut at {cut}");
    }
}

#[test]
fn requests_to_a_scanner_without_gd_use_the_stream() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.lacks_gd = true;
    bench.ask(1);
    bench.advance(Duration::from_millis(500));
    bench.ask(2);
    bench.advance(Duration::from_millis(500));
    let answered: Vec<u32> = bench.answers.iter().map(|(syn, _)| *syn).collect();
    assert_eq!(answered, [1, 2]);
    assert!(bench.warnings().is_empty());
    assert!(bench.published.is_empty());
    let asked = bench
        .requests
        .iter()
        .filter(|request| request.starts_with("GD"));
    assert_eq!(asked.count(), 1, "the request is not repeated");
    // The laser turns off as usual.
    bench.advance(Duration::from_secs(60));
    assert!(!bench.is_lit && bench.streams.is_none());
}

#[test]
fn shutdown_turns_the_laser_off() {
    let mut bench = Bench::new(Geometry::URG_04LX);
    bench.listen(1);
    bench.advance(Duration::from_secs(1));
    bench.logic.shut_down(bench.now);
    bench.advance(Duration::from_secs(1));
    assert!(bench.ended && !bench.is_lit);
}
