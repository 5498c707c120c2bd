use std::time::Duration;

use super::*;
use crate::limits::LIST_BYTES;

const BEGIN_MS: u64 = 1_700_000_000_000;

fn hokuyo() -> Device {
    "hokuyo:0".parse().unwrap()
}

fn dummy() -> Device {
    "dummy:0".parse().unwrap()
}

struct Bench {
    log: Log,
    begin: Instant,
    counters: Counters,
}

impl Bench {
    fn new() -> Self {
        Self {
            log: Log::default(),
            begin: Instant::now(),
            counters: Counters::default(),
        }
    }

    fn moment(&self, ms: u64) -> Moment {
        Moment {
            at: self.begin + Duration::from_millis(ms),
            time_ms: BEGIN_MS + ms,
        }
    }

    fn say(&mut self, ms: u64, driver: Device, text: &str) {
        let moment = self.moment(ms);
        let counters = &mut self.counters;
        (self.log).add(moment, driver, Source::Driver, None, text, counters);
    }

    /// The numbers and texts of all pages.
    fn read(&self, mut wanted: Wanted) -> Vec<(u64, String)> {
        let mut read = Vec::new();
        loop {
            let page = self.log.page(wanted, BEGIN_MS, LIST_BYTES);
            assert!(page.encoded_len() <= LIST_BYTES + 100);
            assert!(!page.more || !page.lines.is_empty(), "a page has progress");
            read.extend(page.lines.into_iter().map(|line| (line.number, line.text)));
            if !page.more {
                return read;
            }
            // As a client does for the second page.
            wanted.after = read.last().unwrap().0;
            wanted.last = None;
        }
    }

    fn forgotten(&self) -> u64 {
        self.counters.counted(Count::LogLinesForgotten)
    }
}

fn of(driver: Device) -> Wanted {
    Wanted {
        driver: Some(driver),
        ..Wanted::default()
    }
}

fn last(last: usize) -> Wanted {
    Wanted {
        last: Some(last),
        ..Wanted::default()
    }
}

fn line(number: u64, text: &str) -> (u64, String) {
    (number, text.to_owned())
}

#[test]
fn lines_of_all_drivers_are_in_order_and_those_of_one_have_numbers_of_their_own() {
    let mut bench = Bench::new();
    bench.say(0, hokuyo(), "a");
    bench.say(1, dummy(), "b");
    bench.say(2, hokuyo(), "c");
    let all = [line(1, "a"), line(2, "b"), line(3, "c")];
    assert_eq!(bench.read(Wanted::default()), all);
    assert_eq!(bench.read(of(hokuyo())), [line(1, "a"), line(2, "c")]);
    assert_eq!(bench.read(of(dummy())), [line(1, "b")]);
    let page = bench.log.page(of(hokuyo()), BEGIN_MS, LIST_BYTES);
    assert_eq!((page.newest, page.started_ms), (2, BEGIN_MS));
    assert_eq!(page.lines[1].time_ms, BEGIN_MS + 2);
    assert_eq!(bench.log.page(Wanted::default(), 0, LIST_BYTES).newest, 3);
    let nothing = bench.log.page(of("77:3".parse().unwrap()), 0, LIST_BYTES);
    assert_eq!(nothing.lines, []);
    assert_eq!((nothing.newest, nothing.more), (0, false));
}

#[test]
fn the_lines_can_be_limited_by_number_time_and_count() {
    let mut bench = Bench::new();
    for i in 1..=10_u64 {
        let is_even = i.is_multiple_of(2);
        let driver = if is_even { dummy() } else { hokuyo() };
        bench.say(i * 100, driver, &i.to_string());
    }
    let texts = |wanted| {
        let lines = bench.read(wanted).into_iter();
        lines
            .map(|(_, text)| text.parse().unwrap())
            .collect::<Vec<u64>>()
    };
    let after = Wanted {
        after: 8,
        ..Wanted::default()
    };
    assert_eq!(texts(after), [9, 10]);
    assert_eq!(texts(last(3)), [8, 9, 10]);
    assert_eq!(texts(last(10)).len(), 10);
    assert_eq!(texts(last(1000)).len(), 10);
    assert_eq!(texts(last(0)), [0; 0]);
    let since = Wanted {
        since: Some(bench.moment(700).at),
        ..Wanted::default()
    };
    assert_eq!(texts(since), [7, 8, 9, 10]);
    let both = Wanted {
        last: Some(2),
        ..of(dummy())
    };
    assert_eq!(texts(both), [8, 10]);
    let newer = Wanted {
        after: 4,
        last: Some(2),
        ..of(dummy())
    };
    assert_eq!(texts(newer), [10]);
}

#[test]
fn long_logs_come_in_pages_without_a_loss() {
    let mut bench = Bench::new();
    for i in 0..500 {
        let driver = if i % 3 == 0 { dummy() } else { hokuyo() };
        bench.say(i, driver, &format!("{i} {}", "x".repeat(i as usize % 90)));
    }
    let read = bench.read(Wanted::default());
    assert_eq!(read.len(), 500);
    for (index, (number, text)) in read.iter().enumerate() {
        assert_eq!(*number, index as u64 + 1);
        assert!(text.starts_with(&format!("{index} ")));
    }
    assert_eq!(bench.read(last(400)), read[100..]);
}

#[test]
fn a_driver_keeps_its_newest_lines_and_the_numbers_show_the_rest() {
    let mut bench = Bench::new();
    bench.say(0, dummy(), "quiet");
    for i in 0..2 * KEPT_LOG_LINES as u64 {
        bench.say(i, hokuyo(), "noise");
    }
    let noise = bench.read(of(hokuyo()));
    assert_eq!(noise.len(), KEPT_LOG_LINES);
    assert_eq!(noise[0].0, KEPT_LOG_LINES as u64 + 1);
    assert_eq!(bench.read(of(dummy())), [line(1, "quiet")]);
    let all = bench.read(Wanted::default());
    assert_eq!(all[1].0, KEPT_LOG_LINES as u64 + 2);
    assert_eq!(bench.forgotten(), KEPT_LOG_LINES as u64);
}

#[test]
fn the_memory_is_bounded_per_driver_and_in_all() {
    let mut bench = Bench::new();
    let text = "ä".repeat(KEPT_LOG_TEXT_BYTES);
    bench.say(0, dummy(), "quiet");
    let mut said = 1;
    for device in 0..40 {
        let driver: Device = format!("77:{device}").parse().unwrap();
        for i in 0..200 {
            bench.say(i, driver, &text);
            said += 1;
            let log = &bench.log;
            assert!(log.bytes <= KEPT_LOG_TOTAL_BYTES);
            assert!(log.drivers[&driver].bytes <= KEPT_LOG_BYTES);
        }
    }
    let log = &bench.log;
    assert!(log.bytes > KEPT_LOG_TOTAL_BYTES - 2 * KEPT_LOG_TEXT_BYTES);
    let kept: usize = log.drivers.values().map(|lines| lines.bytes).sum();
    assert_eq!(kept, log.bytes);
    assert_eq!(bench.read(of(dummy())), [line(1, "quiet")]);
    let kept = bench.read(Wanted::default()).len() as u64;
    assert_eq!(kept + bench.forgotten(), said);
}

#[test]
fn a_long_line_is_cut_and_says_so() {
    let mut bench = Bench::new();
    let text = format!("a{}", "ä".repeat(KEPT_LOG_TEXT_BYTES));
    bench.say(0, dummy(), &text);
    bench.say(0, dummy(), "short");
    let lines = bench.log.page(of(dummy()), 0, LIST_BYTES).lines;
    let kept = KEPT_LOG_TEXT_BYTES - 1;
    assert_eq!(lines[0].text.len(), kept, "whole characters");
    assert_eq!(lines[0].cut_bytes() as usize, text.len() - kept);
    assert_eq!(lines[1].cut_bytes, None);
}

#[test]
fn the_last_words_are_those_of_the_driver_itself() {
    let mut bench = Bench::new();
    bench.say(0, dummy(), "one");
    bench.say(0, dummy(), "two");
    let moment = bench.moment(0);
    let (source, counters) = (Source::Mediator, &mut bench.counters);
    (bench.log).add(moment, dummy(), source, None, "up", counters);
    let last = |count| bench.log.last_words(dummy(), count).collect::<Vec<_>>();
    assert_eq!(last(1), ["two"]);
    assert_eq!(last(5), ["one", "two"]);
    assert_eq!(bench.log.last_words(hokuyo(), 5).count(), 0);
}
