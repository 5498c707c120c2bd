//! The gamepad through its bytes, with a clock of its own.

use amber_gamepad::{ABS, Description, KEY, Range};
use amber_proto::gamepad::gamepad_state::Button;

use super::*;
use crate::gamepad::Options;

const MS: Duration = Duration::from_millis(1);
const Y: u16 = 1;
const SOUTH: u16 = 0x130;

struct Bench {
    logic: GamepadLogic,
    now: Instant,
    published: Vec<(Instant, GamepadState)>,
    notes: Vec<String>,
    opens: usize,
}

impl Bench {
    /// A driver that opens its gamepad.
    fn new() -> Self {
        let (settings, _) = Options::default().settings().unwrap();
        let now = Instant::now();
        let mut bench = Self {
            logic: GamepadLogic::new(settings, now),
            now,
            published: Vec::new(),
            notes: Vec::new(),
            opens: 0,
        };
        bench.drain();
        bench
    }

    /// The same, with a gamepad that has said what it is, and is at rest.
    fn ready() -> Self {
        let mut bench = Self::new();
        bench.describe();
        bench.wait(30 * MS);
        bench.says(&[(ABS, Y, 128)]);
        bench.wait(30 * MS);
        bench
    }

    fn describe(&mut self) {
        let range = Range {
            min: 0,
            max: 255,
            flat: 0,
        };
        let description = Description {
            name: "a pad".to_owned(),
            vendor: 0,
            axes: [(0, range), (Y, range)].into(),
            held: Vec::new(),
        };
        self.logic.handle_bytes(self.now, &description.line());
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.logic.poll_output() {
            match output {
                Output::Open => {
                    self.opens += 1;
                    self.logic.opened(self.now);
                }
                Output::Publish(state) => self.published.push((self.now, state)),
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

    /// The events of one moment.
    fn says(&mut self, events: &[(u16, u16, i32)]) {
        for &(kind, code, value) in events.iter().chain(&[(SYN, REPORT, 0)]) {
            let event = Event { kind, code, value };
            self.logic.handle_bytes(self.now, &event.bytes());
        }
        self.drain();
    }

    fn state(&self) -> GamepadState {
        self.logic.state(self.now)
    }

    fn last(&self) -> &GamepadState {
        &self.published.last().unwrap().1
    }
}

#[test]
fn clients_are_told_what_a_person_does_and_how_long_ago() {
    let mut bench = Bench::ready();
    assert_eq!(bench.notes, ["ready: a pad"]);
    assert!(bench.state().buttons.is_empty());
    bench.says(&[(ABS, Y, 0), (KEY, SOUTH, 1)]);
    let state = bench.state();
    assert_eq!((state.connected(), state.name()), (true, "a pad"));
    assert_eq!((state.left_y, state.age), (Some(1.0), Some(0)));
    assert_eq!(state.buttons().collect::<Vec<_>>(), [Button::South]);
    bench.wait(700 * MS);
    assert_eq!(bench.state().age, Some(700));
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn each_change_is_published_at_a_limited_rate() {
    let mut bench = Bench::ready();
    bench.published.clear();
    let begin = bench.now;
    // A stick that reports each millisecond.
    for value in 0..100 {
        bench.says(&[(ABS, Y, value)]);
        bench.wait(MS);
    }
    let times: Vec<_> = bench.published.iter().map(|(at, _)| *at - begin).collect();
    assert!((4..=6).contains(&times.len()), "{times:?}");
    let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.clone().all(|gap| gap >= SHORTEST), "{times:?}");
    // The last change is not lost.
    bench.wait(SHORTEST);
    assert_eq!(bench.last().left_y, bench.state().left_y);
    // What is as before is not published, except after half a second.
    bench.published.clear();
    bench.says(&[(ABS, Y, 99)]);
    bench.wait(LONGEST - SHORTEST - MS);
    assert_eq!(bench.published, []);
    bench.wait(5 * LONGEST);
    assert_eq!(bench.published.len(), 5);
    assert!(bench.last().age() >= 400);
}

#[test]
fn a_report_counts_as_a_whole() {
    let mut bench = Bench::ready();
    bench.published.clear();
    let half = Event {
        kind: KEY,
        code: SOUTH,
        value: 1,
    };
    bench.logic.handle_bytes(bench.now, &half.bytes());
    bench.wait(50 * MS);
    assert_eq!(bench.published, []);
    bench.says(&[(ABS, Y, 0)]);
    assert_eq!(bench.published.len(), 1);
    assert_eq!(
        (bench.last().left_y, bench.last().buttons.len()),
        (Some(1.0), 1)
    );
}

#[test]
fn without_a_gamepad_all_is_at_rest() {
    let mut bench = Bench::ready();
    bench.says(&[(ABS, Y, 0), (KEY, SOUTH, 1)]);
    bench.wait(30 * MS);
    let unplugged = bench.now;
    bench
        .logic
        .failed(bench.now, "/dev/input/event5 does not exist");
    bench.drain();
    let expected = GamepadState {
        connected: Some(false),
        trouble: Some("/dev/input/event5 does not exist".to_owned()),
        ..GamepadState::default()
    };
    assert_eq!(bench.state(), expected);
    bench.wait(SHORTEST);
    let (at, last) = bench.published.last().unwrap();
    assert_eq!(last, &expected);
    assert!(*at - unplugged <= SHORTEST);
    // It is opened again, and nothing of before counts.
    bench.wait(Duration::from_secs(1));
    bench.describe();
    let state = bench.state();
    assert_eq!((state.left_y, state.buttons.len()), (Some(0.0), 0));
    let [.., back, ready] = &bench.notes[..] else {
        panic!("{:?}", bench.notes);
    };
    assert!(back.starts_with("works again after 1."), "{back}");
    assert_eq!(ready, "ready: a pad");
}

#[test]
fn what_is_no_gamepad_is_a_trouble() {
    for (bytes, trouble) in [
        (&b"$GPRMC,,V,,*53\r\n"[..], GARBAGE),
        (b"", MUTE),
        (b"{\"name\": \"half", MUTE),
    ] {
        let mut bench = Bench::new();
        bench.logic.handle_bytes(bench.now, bytes);
        bench.drain();
        bench.wait(PATIENCE);
        assert_eq!(bench.logic.trouble(), Some(trouble));
        assert_eq!(bench.state().trouble(), trouble);
        assert_eq!(bench.notes, [format!("{trouble}; retrying")]);
        // It goes on trying, and logs each problem once.
        bench.wait(10 * PATIENCE);
        assert!(bench.opens > 3, "{}", bench.opens);
        assert!(bench.notes.len() <= 2, "{:?}", bench.notes);
    }
    // In the middle.
    let mut bench = Bench::ready();
    bench.logic.handle_bytes(bench.now, &[0xFF; Event::LENGTH]);
    bench.drain();
    assert_eq!(bench.logic.trouble(), Some(GARBAGE));
    assert!(!bench.state().connected());
    bench.wait(Duration::from_secs(1));
    bench.describe();
    assert!(bench.state().connected());
}

#[test]
fn after_the_end_nothing_is_published() {
    let mut bench = Bench::ready();
    bench.published.clear();
    bench.logic.shut_down();
    assert_eq!(bench.logic.poll_output(), Some(Output::End));
    bench.logic.failed(bench.now + 2 * LONGEST, "gone");
    bench.logic.handle_timeout(bench.now + 4 * LONGEST);
    assert_eq!(bench.logic.poll_output(), None);
    assert_eq!(bench.logic.wake_at(), None);
}
