//! Tests of the device through its bytes, without a world.

use amber_map::Pose;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// The device, a clock, and the visible markers.
struct Bench {
    device: Stargazer,
    now: Duration,
    view: Vec<Seen>,
}

fn seen(id: u32, x_m: f64, y_m: f64, heading_deg: f64) -> Seen {
    Seen {
        id,
        pose: Pose::new(x_m, y_m, heading_deg.to_radians()),
    }
}

impl Bench {
    fn new() -> Self {
        Self::with(Guide::Newer)
    }

    fn with(guide: Guide) -> Self {
        Self {
            device: Stargazer::new(1, guide, MarkType::Hld1S, Duration::ZERO),
            now: Duration::ZERO,
            view: vec![seen(4, 0.5, -0.25, 90.0)],
        }
    }

    /// All messages within a time.
    fn wait(&mut self, time: Duration) -> Vec<String> {
        let end = self.now + time;
        let mut said = self.said();
        while let Some(due) = self.device.next_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            said.extend(self.said());
        }
        self.now = end;
        said
    }

    fn said(&mut self) -> Vec<String> {
        while self.device.poll_look(self.now).is_some() {
            self.device.handle_view(&self.view);
        }
        std::iter::from_fn(|| self.device.poll_output())
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .collect()
    }

    /// Sends a command and returns the messages of the next 20 ms.
    fn tell(&mut self, command: &str) -> Vec<String> {
        self.device.handle_bytes(self.now, command.as_bytes());
        self.wait(20 * MS)
    }
}

/// The numbers of a fix of this form: heading, x and y first.
fn fix(text: &str, begin: &str) -> [f64; 4] {
    let rest = text.strip_prefix(begin).expect(text).strip_suffix('`');
    let numbers = rest.unwrap().split('|').skip(1);
    let numbers: Vec<f64> = numbers.map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn ten_fixes_per_second_look_like_those_of_a_real_device() {
    let mut bench = Bench::new();
    bench.device.set_noise(false);
    let said = bench.wait(1000 * MS);
    assert_eq!(said.len(), 10);
    for text in said {
        let [heading, x, y, height] = fix(&text, "~^I4");
        // A quarter turn to the left is -90: the device counts clockwise.
        assert!((heading + 90.0).abs() < 1.0, "{text}");
        assert!((x - 50.0).abs() < 2.0 && (y + 25.0).abs() < 2.0, "{text}");
        assert!((height - 240.0).abs() < 5.0, "{text}");
        let fields: Vec<_> = text.split('|').collect();
        assert!(fields[1].starts_with('-') && fields[2].starts_with('+'));
        assert!(fields[3].starts_with('-') && fields[4].starts_with('2'));
    }
}

#[test]
fn fixes_have_noise_of_2_cm_and_1_degree() {
    let mut bench = Bench::new();
    let said = bench.wait(Duration::from_secs(100));
    let fixes: Vec<_> = said.iter().map(|text| fix(text, "~^I4")).collect();
    for (field, truth, sigma) in [(0, -90.0, 1.0), (1, 50.0, 2.0), (2, -25.0, 2.0)] {
        let errors: Vec<f64> = fixes.iter().map(|fix| fix[field] - truth).collect();
        let count = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / count;
        let square = errors.iter().map(|error| error * error).sum::<f64>() / count;
        assert!(mean.abs() < sigma / 8.0, "{field}: {mean}");
        assert!(
            (square.sqrt() / sigma - 1.0).abs() < 0.1,
            "{field}: {square}"
        );
    }
}

#[test]
fn without_a_marker_it_reports_a_dead_zone() {
    let mut bench = Bench::new();
    bench.view.clear();
    assert_eq!(bench.wait(200 * MS), ["~*DeadZone`", "~*DeadZone`"]);
}

#[test]
fn parameters_are_read_and_written_while_it_is_stopped() {
    let mut bench = Bench::new();
    assert!(bench.tell("~@RefID`").is_empty(), "it runs");
    assert_eq!(bench.tell("~#CalcStop`"), ["~!CalcStop`"]);
    assert!(bench.wait(1000 * MS).is_empty());
    assert_eq!(bench.tell("~@RefID`"), ["~!RefID`", "~$RefID|2`"]);
    assert_eq!(bench.tell("~#RefID|24`"), ["~!RefID|24`"]);
    assert_eq!(bench.tell("~@RefID`"), ["~!RefID`", "~$RefID|24`"]);
    for nonsense in [
        "~@Nothing`",
        "~#Nothing|1`",
        "~#Version|1`",
        "~#IDNum|0`",
        "~#IDNum|32`",
        "~#IDNum|x`",
        "~#IDNum|+4`",
        "~#IDNum|`",
        "~#RefID|1`",
        "~#RefID|627`",
        "~#HeightFix|Maybe`",
        "~#MarkHeight|1099`",
        "~#MarkHeight|6001`",
        "~#MarkType|HLD4S`",
        "~#MarkMode|Lonely`",
        "~#ThrVal|256`",
        "~#BaudRate|1200`",
        "~`",
        "~é`",
        "x`",
    ] {
        assert!(bench.tell(nonsense).is_empty(), "{nonsense}");
    }
    assert_eq!(
        bench.tell("~@RefID`")[1],
        "~$RefID|24`",
        "it has not changed"
    );
    // Marks of 4 x 4 dots have more ids.
    assert_eq!(bench.tell("~#MarkType|HLD1L`"), ["~!MarkType|HLD1L`"]);
    assert_eq!(bench.tell("~#RefID|28662`"), ["~!RefID|28662`"]);
    assert_eq!(bench.tell("~#IDNum|4095`"), ["~!IDNum|4095`"]);
    assert!(bench.tell("~#IDNum|4096`").is_empty());
    assert_eq!(bench.tell("~#SetEnd`"), ["~!SetEnd`"]);
    assert!(bench.tell("~@RefID`").is_empty(), "it is busy");
    assert_eq!(bench.wait(1000 * MS), ["~!ParameterUpdate`"]);
    assert_eq!(bench.tell("~#CalcStart`"), ["~!CalcStart`"]);
    assert_eq!(bench.wait(1000 * MS).len(), 10);
}

#[test]
fn only_stored_parameters_survive_a_power_cycle() {
    let mut bench = Bench::new();
    bench.tell("~#CalcStop`");
    bench.tell("~#RefID|24`");
    bench.tell("~#SetEnd`");
    bench.wait(1000 * MS);
    bench.tell("~#IDNum|9`");
    bench.device.restart(bench.now);
    assert!(bench.device.is_running());
    assert_eq!(bench.device.parameter("RefID"), Some("24"));
    assert_eq!(bench.device.parameter("IDNum"), Some("4"));
    assert!(bench.wait(900 * MS).is_empty());
    assert_eq!(bench.wait(1000 * MS).len(), 10);
}

#[test]
fn a_reset_restores_factory_values_for_good() {
    let mut bench = Bench::new();
    bench.tell("~#CalcStop`");
    bench.tell("~#RefID|24`");
    bench.tell("~#SetEnd`");
    bench.wait(1000 * MS);
    assert_eq!(bench.tell("~#Reset`"), ["~!Reset`"]);
    assert_eq!(bench.device.parameter("RefID"), Some("2"));
    bench.device.restart(bench.now);
    assert_eq!(bench.device.parameter("RefID"), Some("2"));
    assert!(bench.device.is_running());
}

#[test]
fn characters_that_arrive_too_fast_are_lost() {
    let mut bench = Bench::new();
    bench.device.set_min_pause(10 * MS);
    bench.tell("~#CalcStop`");
    assert!(bench.device.is_running());
    for byte in b"~#CalcStop`" {
        bench.now += 10 * MS;
        bench.device.handle_bytes(bench.now, &[*byte]);
    }
    assert!(!bench.device.is_running());
}

#[test]
fn it_builds_a_map_and_then_reports_positions_relative_to_the_reference() {
    for (guide, end) in [
        (Guide::Older, "~!MapDataSave`"),
        (Guide::Newer, "~!ParameterUpdate`"),
    ] {
        let mut bench = Bench::with(guide);
        bench.tell("~#CalcStop`");
        bench.tell("~#IDNum|2`");
        assert_eq!(bench.device.reference(), None);
        assert_eq!(bench.tell("~#MapMode|Start`"), ["~!MapMode|Start`"]);
        if guide == Guide::Newer {
            assert!(bench.wait(1000 * MS).is_empty(), "it waits for CalcStart");
        }
        // The older guide does not require this command, but accepts it.
        assert_eq!(bench.tell("~#CalcStart`"), ["~!CalcStart`"]);
        let said = bench.wait(100 * MS);
        assert_eq!(said[0], "~*MAPID|4`", "the id of the mark");
        fix(&said[1], "~^F4");
        bench.view = vec![seen(16, 0.0, 0.0, 0.0)];
        assert_eq!(bench.wait(100 * MS), ["~*MAPID|16`"]);
        assert_eq!(bench.wait(1000 * MS), [end]);
        assert_eq!(bench.device.reference(), Some(2));
        fix(&bench.wait(100 * MS)[0], "~^I16");
        bench.device.restart(bench.now);
        assert_eq!(bench.device.parameter("MarkMode"), Some("Map"));
    }
}

#[test]
fn it_measures_the_height_and_reports_completion() {
    let mut bench = Bench::new();
    bench.tell("~#CalcStop`");
    bench.tell("~#MarkHeight|1100`");
    assert_eq!(bench.tell("~#HeightCalc`"), ["~!HeightCalc`"]);
    let said = bench.wait(2100 * MS);
    for text in &said[..10] {
        fix(text, "~^Z4");
    }
    assert_eq!(said[10], "~!ParameterUpdate`");
    fix(&said[11], "~^I4");
    assert_eq!(bench.device.parameter("MarkHeight"), Some("2400"));
    bench.device.restart(bench.now);
    assert_eq!(bench.device.parameter("MarkHeight"), Some("2400"));
}

#[test]
fn the_same_seed_gives_the_same_output() {
    let said = |seed| {
        let mut bench = Bench::new();
        bench.device = Stargazer::new(seed, Guide::Newer, MarkType::Hld1S, Duration::ZERO);
        bench.wait(1000 * MS)
    };
    assert_eq!(said(1), said(1));
    assert_ne!(said(1), said(2));
}
