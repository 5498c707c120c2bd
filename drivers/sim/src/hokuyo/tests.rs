//! Recorded and computed exchanges, statuses, and continuous scans.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

struct Bench {
    device: Hokuyo,
    now: Duration,
    /// The measurement of step k.
    values: fn(u32) -> u32,
    sweeps: Vec<Sweep>,
}

impl Bench {
    fn new(model: Model) -> Self {
        Self {
            device: Hokuyo::new(model, Transport::Serial, Duration::ZERO),
            now: MS * 2000,
            values: |step| 1_000 + step,
            sweeps: Vec::new(),
        }
    }

    fn urg() -> Self {
        Self::new(Model::Urg04Lx)
    }

    fn send(&mut self, bytes: &[u8]) -> String {
        self.device.handle_bytes(self.now, bytes);
        self.settle()
    }

    /// Sends a request that needs no scan.
    fn ask(&mut self, request: &str) -> String {
        self.send(format!("{request}\n").as_bytes())
    }

    /// Sends a request for a scan, and returns the reply once a turn is finished.
    fn scan(&mut self, request: &str) -> String {
        let reply = self.ask(request);
        if reply.is_empty() { self.next() } else { reply }
    }

    fn wait_until(&mut self, now: Duration) -> String {
        self.now = now;
        self.settle()
    }

    /// Advances the time until something was sent.
    fn next(&mut self) -> String {
        let due = self.device.next_timeout().expect("output is expected");
        self.wait_until(due.max(self.now))
    }

    fn settle(&mut self) -> String {
        while let Some(sweep) = self.device.poll_sweep(self.now) {
            self.sweeps.push(sweep);
            let steps = 0..=self.device.model().last_step();
            let scan = Scan {
                distances: steps.clone().map(self.values).collect(),
                intensities: steps.collect(),
            };
            self.device.handle_scan(self.now, sweep, scan);
        }
        let sent = std::iter::from_fn(|| self.device.poll_output()).flatten();
        String::from_utf8(sent.collect()).unwrap()
    }
}

/// Sends requests one after the other, and checks the status of the last one.
fn check(model: Model, requests: &[&str], status: &str) {
    let mut bench = Bench::new(model);
    let mut reply = String::new();
    for request in requests {
        reply = bench.ask(request);
    }
    let request = requests.last().unwrap();
    let sum = char::from(sum(status.as_bytes()));
    assert_eq!(
        reply,
        format!("{request}\n{status}{sum}\n\n"),
        "{requests:?}"
    );
}

use Model::{Urg04Lx, Utm30Lx};

#[test]
fn h1_h2_laser_and_speed_that_are_already_set() {
    let mut bench = Bench::urg();
    bench.ask("BM");
    assert_eq!(bench.ask("BM"), "BM\n02R\n\n");
    assert_eq!(bench.ask("CR00"), "CR00\n03S\n\n");
}

#[test]
fn h3_the_start_of_a_recorded_scan() {
    let mut bench = Bench::urg();
    bench.values = |step| match step {
        44 | 45 => 392,
        46 => 391,
        _ => 385,
    };
    bench.ask("BM");
    // The turn that starts 6968830 ms after the timer was zero.
    let start = MS * 6_968_830;
    bench.device.turns = Turns::new(bench.device.model, start - MS * 100_000);
    bench.wait_until(start + MS * 99);
    let reply = bench.ask("GD0044072501");
    assert!(
        reply.starts_with("GD0044072501\n00P\nJUGnD\n068068067061"),
        "{reply}"
    );
    assert_eq!(reply.len(), 2134);
}

#[test]
fn h4_a_few_values_at_a_time() {
    let mut bench = Bench::urg();
    bench.values = |step| [1000, 1001, 1002, 20, 5600, 0][(step.max(380) - 380).min(5) as usize];
    bench.ask("BM");
    bench.device.turns = Turns::new(bench.device.model, MS * 123_456);
    bench.device.ready_at = MS * 123_456;
    bench.device.laser_on = Some(MS * 123_456);
    bench.wait_until(MS * 123_550);
    assert_eq!(
        bench.ask("GD0380038501"),
        "GD0380038501\n00P\n0N90W\n0?X0?Y0?Z00D1GP000D\n\n"
    );
}

#[test]
fn h5_values_that_span_lines() {
    let mut bench = Bench::urg();
    bench.values = |step| 1000 + step.max(100) - 100;
    bench.ask("BM");
    let reply = bench.scan("GD0100012901");
    let lines: Vec<_> = reply.split('\n').collect();
    assert_eq!(
        lines[3],
        "0?X0?Y0?Z0?[0?\\0?]0?^0?_0?`0?a0?b0?c0?d0?e0?f0?g0?h0?i0?j0?k0?l0E"
    );
    assert_eq!(lines[4], "?m0?n0?o0@00@10@20@30@40@5f");
}

#[test]
fn h6_no_scan_while_the_laser_is_off() {
    assert_eq!(Bench::urg().ask("GD0044072501"), "GD0044072501\n10Q\n\n");
}

#[test]
fn h7_continuous_scans() {
    let mut bench = Bench::urg();
    assert_eq!(bench.ask("MD0044072501000"), "MD0044072501000\n00P\n\n");
    for _ in 0..3 {
        let block = bench.next();
        assert!(block.starts_with("MD0044072501000\n99b\n"), "{block}");
        assert_eq!(block.len(), 2134 - 12 + 15);
        assert!(block.ends_with("\n\n"));
    }
    let starts: Vec<_> = bench.sweeps.iter().map(|sweep| sweep.start).collect();
    assert_eq!(starts, [MS * 2000, MS * 2100, MS * 2200]);
    assert_eq!(bench.ask("QT"), "QT\n00P\n\n");
    assert_eq!(bench.device.next_timeout(), None);
}

#[test]
fn lengths_of_replies() {
    for (model, request, length) in [
        (Urg04Lx, "GD0044072501", 2134),
        (Urg04Lx, "GS0044072501", 1432),
        (Utm30Lx, "GD0000108001", 3369),
        (Utm30Lx, "ME0000108001001", 6717),
    ] {
        let mut bench = Bench::new(model);
        bench.ask("BM");
        let mut reply = bench.scan(request);
        if request.starts_with('M') {
            reply = bench.next();
        }
        assert_eq!(reply.len(), length, "{request}");
    }
}

#[test]
fn a_limited_number_of_scans_is_counted_down_and_the_laser_turns_off() {
    let mut bench = Bench::urg();
    bench.ask("MD0380038101003;id 1");
    for remaining in ["02", "01", "00"] {
        let block = bench.next();
        let echo = format!("MD03800381010{remaining};id 1\n99b\n");
        assert!(block.starts_with(&echo), "{block}");
    }
    assert!(!bench.device.is_laser_on());
    assert_eq!(bench.device.next_timeout(), None);
}

#[test]
fn turns_can_be_skipped() {
    let mut bench = Bench::urg();
    bench.ask("MS0380038101200");
    bench.next();
    bench.next();
    assert_eq!(bench.sweeps[1].start - bench.sweeps[0].start, MS * 300);
}

#[test]
fn a_late_call_gives_no_old_scans() {
    let mut bench = Bench::urg();
    bench.ask("MD0380038101000");
    let blocks = bench.wait_until(MS * 60_000);
    assert!(blocks.matches("99b").count() <= 4, "{blocks}");
    assert!(bench.sweeps.iter().all(|sweep| sweep.start > MS * 59_000));
}

#[test]
fn a_request_waits_for_the_first_scan_after_the_laser_was_turned_on() {
    let mut bench = Bench::urg();
    bench.now = MS * 2030;
    bench.ask("BM");
    assert_eq!(bench.ask("GD0380038101"), "");
    assert!(bench.next().starts_with("GD0380038101\n00P\n"));
    assert_eq!(bench.sweeps[0].start, MS * 2100);
}

#[test]
fn each_request_gets_its_own_scan_once_per_turn() {
    for (model, request, turn) in [
        (Urg04Lx, "GD0380038101", MS * 100),
        (Utm30Lx, "GE0380038101", MS * 25),
    ] {
        let mut bench = Bench::new(model);
        bench.ask("BM");
        let begin = bench.now;
        for _ in 0..121 {
            bench.scan(request);
        }
        let starts: Vec<_> = bench.sweeps.iter().map(|sweep| sweep.start).collect();
        assert_eq!(starts.len(), 121);
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == turn));
        assert!(bench.now - begin >= turn * 120);
        // Requests that arrive together are also answered in sequence.
        let sent = bench.ask(request) + &bench.ask(request) + &bench.ask(request);
        assert_eq!(sent, "");
        let now = bench.now;
        let replies = [bench.next(), bench.next(), bench.next()];
        assert!(
            replies
                .iter()
                .all(|reply| reply.matches("00P").count() == 1)
        );
        assert!(bench.now - now > turn * 2);
        // After a pause the latest scan is available at once.
        bench.wait_until(bench.now + MS * 1000);
        assert!(!bench.ask(request).is_empty());
    }
}

#[test]
fn an_old_unit_starts_in_scip_1() {
    let quirks = Quirks {
        starts_in_scip_1: true,
        ..Quirks::default()
    };
    let mut bench = Bench::urg();
    bench.device = Hokuyo::with_quirks(Urg04Lx, Transport::Serial, quirks, Duration::ZERO);
    assert_eq!(bench.send(b"QT\nRS\n"), "QT\nE\n\nRS\nE\n\n");
    assert_eq!(bench.ask("SCIP2.0"), "SCIP2.0\n0\n\n");
    assert_eq!(bench.ask("SCIP2.0"), "SCIP2.0\n0Ee\n\n");
    assert_eq!(bench.ask("RS"), "RS\n00P\n\n");
    assert_eq!(bench.ask("QT"), "QT\n00P\n\n");
    bench.device = bench.device.restarted(bench.now);
    assert_eq!(bench.ask("QT"), "QT\nE\n\n");
}

#[test]
fn some_units_do_not_support_single_scans() {
    let quirks = Quirks {
        lacks_gd: true,
        ..Quirks::default()
    };
    let mut bench = Bench::urg();
    bench.device = Hokuyo::with_quirks(Urg04Lx, Transport::Ethernet, quirks, Duration::ZERO);
    bench.ask("BM");
    assert_eq!(bench.ask("GD0380038101"), "GD0380038101\n0Ee\n\n");
    assert_eq!(bench.ask("MD0380038101001"), "MD0380038101001\n00P\n\n");
    assert!(bench.next().starts_with("MD0380038101000\n99b\n"));
}

#[test]
fn a_reboot_drops_a_connection_but_not_a_serial_line() {
    for (link, hangs_up) in [(Transport::Serial, false), (Transport::Ethernet, true)] {
        let mut bench = Bench::new(Utm30Lx);
        bench.device = Hokuyo::new(Utm30Lx, link, Duration::ZERO);
        assert_eq!(bench.ask("RB"), "RB\n01Q\n\n");
        assert!(!bench.device.poll_hang_up());
        assert_eq!(bench.ask("RB"), "RB\n00P\n\n");
        assert_eq!(bench.device.poll_hang_up(), hangs_up, "{link:?}");
        assert!(!bench.device.poll_hang_up(), "once");
    }
}

#[test]
fn unmeasured_steps_can_be_requested() {
    let mut random = fastrand::Rng::with_seed(1);
    let scan = Urg04Lx.measure(&[Some(1.0); 726], &mut random);
    assert_eq!(scan.distances.len(), 769);
    let (before, after) = (&scan.distances[..44], &scan.distances[726..]);
    assert!(before.iter().chain(after).all(|code| *code == 19));
}

#[test]
fn power_on_takes_a_second() {
    let mut bench = Bench::urg();
    bench.now = MS;
    bench.ask("BM");
    bench.ask("GD0380038101");
    bench.next();
    assert_eq!(bench.sweeps[0].start, MS * 1000);
}

#[test]
fn clusters_give_the_smallest_valid_value() {
    let mut bench = Bench::urg();
    bench.values = |step| [3, 900, 800, 0, 7, 5][(step % 6) as usize];
    bench.ask("BM");
    let reply = bench.scan("GD0048005303");
    // 800, then only codes: the reply holds the first of them.
    assert_eq!(reply.lines().nth(3), Some("0<P000<"));
}

#[test]
fn other_requests_are_served_between_scans() {
    let mut bench = Bench::urg();
    bench.ask("MD0044072501000");
    bench.next();
    assert!(bench.ask("VV").starts_with("VV\n00P\nVEND:Hokuyo"));
    assert!(bench.next().starts_with("MD0044072501000\n99b"));
    assert!(
        bench
            .ask("MD0380038101000")
            .starts_with("MD0380038101000\n00P")
    );
    assert!(bench.next().starts_with("MD0380038101000\n99b"));
}

#[test]
fn devices_describe_themselves() {
    for (model, parameters) in [
        (
            Urg04Lx,
            "PP\n00P\nMODL:URG-04LX(Hokuyo Automatic Co.,Ltd.);N\nDMIN:20;4\nDMAX:5600;_\n\
             ARES:1024;\\\nAMIN:44;7\nAMAX:725;o\nAFRT:384;6\nSCAN:600;e\n\n",
        ),
        (
            Utm30Lx,
            "PP\n00P\nMODL:UTM-30LX(Hokuyo Automatic Co.,Ltd.);O\nDMIN:23;7\nDMAX:60000;J\n\
             ARES:1440;^\nAMIN:0;?\nAMAX:1080;Z\nAFRT:540;0\nSCAN:2400;U\n\n",
        ),
    ] {
        let mut bench = Bench::new(model);
        let reply = bench.ask("PP");
        // The recordings lack the checksum of the UTM's first line.
        let without_model = |text: &str| {
            let lines = text.lines().enumerate();
            lines
                .filter(|(index, _)| *index != 2)
                .map(|(_, line)| line.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(without_model(&reply), without_model(parameters));
        assert_eq!(bench.ask("VV").lines().count(), 8);
        assert_eq!(bench.ask("II").lines().count(), 10);
    }
    let mut bench = Bench::urg();
    bench.now = MS * 0x6A_5404;
    let reply = bench.ask("II");
    for line in [
        "LASR:OFF;7",
        "SCSP:Initial(600[rpm])<-Default setting by user;A",
        "MESM:IDLE;:",
        "SBPS:19200[bps]<-Default setting by user;A",
        "TIME:6A5404;]",
        "STAT:Sensor works well.;8",
    ] {
        assert!(reply.contains(line), "{line} in {reply}");
    }
    bench.ask("BM");
    let reply = bench.ask("II");
    assert!(
        reply.contains("LASR:ON;9") && reply.contains("MESM:CLASSIC;^"),
        "{reply}"
    );
}

#[test]
fn statuses() {
    for (model, requests, status) in [
        (Urg04Lx, &["BM"] as &[_], "00"),
        (Urg04Lx, &["RS"], "00"),
        (Urg04Lx, &["CR05"], "00"),
        (Urg04Lx, &["CR05", "CR05"], "03"),
        (Urg04Lx, &["CR05", "CR99"], "00"),
        (Urg04Lx, &["CR05", "RS", "CR00"], "03"),
        (Urg04Lx, &["CR05", "RT", "CR05"], "03"),
        (Urg04Lx, &["CRxx"], "01"),
        (Urg04Lx, &["CR11"], "02"),
        (Utm30Lx, &["CR00"], "04"),
        (Urg04Lx, &["HS1"], "0C"),
        (Urg04Lx, &["HS0"], "0C"),
        (Utm30Lx, &["HS1"], "03"),
        (Urg04Lx, &["SS115200"], "00"),
        (Urg04Lx, &["SS019200"], "03"),
        (Urg04Lx, &["SS123456"], "02"),
        (Urg04Lx, &["SSfast"], "01"),
        (Utm30Lx, &["SS115200"], "04"),
        (Urg04Lx, &["TM0"], "00"),
        (Urg04Lx, &["TM0", "TM0"], "02"),
        (Urg04Lx, &["TM1"], "04"),
        (Urg04Lx, &["TM2"], "03"),
        (Urg04Lx, &["TM7"], "01"),
        (Urg04Lx, &["TM0", "BM"], "0E"),
        (Urg04Lx, &["TM0", "TM2", "BM"], "00"),
        (Urg04Lx, &["TM0", "RS", "BM"], "00"),
        (Urg04Lx, &["BM", "TM0", "TM2", "BM"], "00"),
        (Urg04Lx, &["GDx044072501"], "01"),
        (Urg04Lx, &["GD0044x72501"], "02"),
        (Urg04Lx, &["GD00440725x1"], "03"),
        (Urg04Lx, &["GD0044076901"], "04"),
        (Utm30Lx, &["GD0000108101"], "04"),
        (Urg04Lx, &["GD0700069901"], "05"),
        (Urg04Lx, &["MD0044072501x00"], "06"),
        (Urg04Lx, &["MD00440725010xx"], "07"),
        (Urg04Lx, &["GD0044"], "0C"),
        (Urg04Lx, &["GD00440725010"], "0D"),
        (Urg04Lx, &["GE0044072501"], "0E"),
        (Urg04Lx, &["%ST"], "0E"),
        (Urg04Lx, &["QT", "XX"], "0E"),
        (Urg04Lx, &["SCIP2.0"], "0E"),
        (Urg04Lx, &["QT;a b.c_d+e@f"], "00"),
        (Urg04Lx, &["QT;12345678901234567"], "0G"),
        (Urg04Lx, &["QT;a/b"], "0H"),
        (Utm30Lx, &["RB"], "01"),
        (Utm30Lx, &["RB", "RB"], "00"),
        (Utm30Lx, &["RB", "QT", "RB"], "01"),
    ] {
        check(model, requests, status);
    }
}

#[test]
fn the_state_of_newer_models() {
    let mut bench = Bench::new(Utm30Lx);
    for (request, state) in [
        ("QT", "000"),
        ("BM", "003"),
        ("MD0000108001000", "004"),
        ("TM0", "002"),
        ("TM2", "000"),
        ("%SL", "005"),
        ("BM", "003"),
    ] {
        bench.ask(request);
        let sum = char::from(sum(state.as_bytes()));
        assert_eq!(
            bench.ask("%ST"),
            format!("%ST\n00P\n{state}{sum}\n\n"),
            "{request}"
        );
    }
}

#[test]
fn time_stamps_are_milliseconds_since_a_reset() {
    let mut bench = Bench::urg();
    bench.ask("TM0");
    assert_eq!(bench.ask("TM1"), "TM1\n00P\n00O@_\n\n");
    bench.ask("RS");
    bench.ask("TM0");
    assert_eq!(bench.ask("TM1"), "TM1\n00P\n00000\n\n");
    bench.now += MS * (1 << 24);
    assert_eq!(bench.ask("TM1"), "TM1\n00P\n00000\n\n", "24 bits");
}

#[test]
fn a_slower_motor_takes_longer() {
    let mut bench = Bench::urg();
    bench.ask("CR10");
    bench.ask("MD0380038101000");
    bench.next();
    bench.next();
    assert_eq!(bench.sweeps[0].turn, Duration::from_secs(60) / 540);
    assert_eq!(
        bench.sweeps[1].start - bench.sweeps[0].start,
        bench.sweeps[0].turn
    );
}

#[test]
fn lines_may_end_in_any_way_and_arrive_in_pieces() {
    let mut bench = Bench::urg();
    for (bytes, reply) in [
        ("QT\r", "QT\n00P\n\n"),
        ("QT\r\n", "QT\n00P\n\n"),
        ("Q", ""),
        ("T\nQT\n", "QT\n00P\n\nQT\n00P\n\n"),
        ("\n\n", ""),
    ] {
        assert_eq!(bench.send(bytes.as_bytes()), reply, "{bytes:?}");
    }
    assert!(bench.send(&[b'x'; 5000]).is_empty());
    assert!(bench.send(b"\n").ends_with("\n0Gg\n\n"));
}

#[test]
fn a_hang_up_ends_scans_but_not_the_laser() {
    let mut bench = Bench::urg();
    bench.ask("MD0044072501000");
    bench.device.handle_hang_up();
    assert_eq!(bench.device.next_timeout(), None);
    assert!(bench.device.is_laser_on());
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(
        chunks in prop::collection::vec(
            (prop::sample::select(vec![
                "MD", "GD", "0044", "0725", "01", "000", "\n", "BM\n", "QT\n", "TM0\n", ";", "é", "CR05\n", "ME", "\u{0}",
            ]), 0u64..500),
            0..60,
        ),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        model in prop::sample::select(vec![Urg04Lx, Utm30Lx]),
    ) {
        let mut bench = Bench::new(model);
        for (text, pause_ms) in chunks {
            bench.device.handle_bytes(bench.now, text.as_bytes());
            bench.wait_until(bench.now + MS * u32::try_from(pause_ms).unwrap());
        }
        bench.device.handle_bytes(bench.now, &noise);
        while bench.device.poll_output().is_some() {}
        bench.device.handle_bytes(bench.now, b"\nRS\n");
        let last = std::iter::from_fn(|| bench.device.poll_output()).last();
        prop_assert_eq!(last.as_deref(), Some(b"RS\n00P\n\n".as_slice()));
    }
}
