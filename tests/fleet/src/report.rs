//! The report of a run, as Markdown. PURE.

use std::fmt::Write as _;

use amber_terminal::Human;

use crate::figures::{Outlook, Report};
use crate::samples::Times;
use crate::ways::Way;

impl Human for Report {
    fn human(&self) -> String {
        let mut out = String::new();
        for part in [
            self.head(),
            self.latencies(),
            self.usage(),
            self.faults(),
            self.outlooks(),
            self.goals(),
        ] {
            out.push_str(&part);
            out.push('\n');
        }
        out
    }
}

impl Report {
    fn head(&self) -> String {
        let presence = &self.presence;
        let commands = &self.commands;
        let mut out = String::from("| | |\n|---|---:|\n");
        let mut row = |what: &str, value: String| {
            let _ = writeln!(out, "| {what} | {value} |");
        };
        row("robots", self.robots.to_string());
        row("cores of the machine", self.cores.to_string());
        row(
            "each path was measured for",
            format!("{:.0} s", self.measured_s),
        );
        row(
            "all robots and devices listed, after the start of all processes",
            format!("{:.1} s", presence.start_s),
        );
        row(
            "the same for a program that has just started",
            format!("{:.0} ms", presence.newcomer_ms),
        );
        row("tokens", presence.tokens.to_string());
        row(
            "robots that were commanded, and whose wheels then turned as commanded",
            format!("{} of {}", commands.confirmed, self.robots),
        );
        row(
            "the time for all these commands",
            format!("{:.0} ms", commands.all_ms),
        );
        row(
            "wheels stand after the one command",
            format!(
                "{:.0} to {:.0} ms",
                commands.stop_ms[0], commands.stop_ms[1]
            ),
        );
        let router = &self.router;
        row(
            "CPU of the router per scan, fleet / raw",
            format!("{:.0} / {:.0} µs", router.fleet_us, router.raw_us),
        );
        row(
            "the same with raw scans ten times as fast",
            format!(
                "{:.0} µs at {:.0} scans/s, {} lost",
                router.fast_us, router.fast_per_s, router.fast_lost
            ),
        );
        let dropped = self
            .dropped
            .iter()
            .map(|(name, count)| format!("{name} {count}"));
        let dropped: Vec<_> = dropped.collect();
        row(
            "loss counters of the robots, in total",
            match dropped.is_empty() {
                true => "none".to_owned(),
                false => dropped.join(", "),
            },
        );
        out
    }

    fn latencies(&self) -> String {
        let mut out = String::from(
            "| path | scans/s | slowest stream | lost | scan p50 | p99 | max | call p50 | p99 \
             | failed |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for way in &self.ways {
            let streams = &way.streams;
            let _ = writeln!(
                out,
                "| {} | {:.1} | {:.2} Hz | {} of {} | {} | {} | {} |",
                name(way.way),
                streams.messages_per_s,
                streams.slowest_hz,
                streams.lost,
                streams.got + streams.lost,
                micros(&streams.total),
                pair(&way.calls),
                way.calls_failed,
            );
        }
        for way in self.ways.iter().filter(|it| it.way != Way::Direct) {
            let streams = &way.streams;
            let before = match way.way {
                Way::Fleet => "driver to `amber-zenoh`",
                _ => "making the message",
            };
            for (part, times) in [(before, &streams.in_robot), ("in Zenoh", &streams.in_zenoh)] {
                let _ = writeln!(
                    out,
                    "| {}: {part} | | | | {} | | | |",
                    name(way.way),
                    micros(times)
                );
            }
        }
        let ratios = &self.ratios;
        let _ = write!(
            out,
            "\n| fleet compared with | scan p50 | scan p99 | call p50 | call p99 |\n\
             |---|---:|---:|---:|---:|\n\
             | raw Zenoh, from the robot's process to the watcher | {:.2} | {:.2} | | |\n\
             | raw Zenoh, from the driver to the watcher | {:.2} | {:.2} | {:.2} | {:.2} |\n\
             | raw Zenoh plus mediator | {:.2} | | {:.2} | |\n",
            ratios.scan_in_zenoh[0],
            ratios.scan_in_zenoh[1],
            ratios.scan_total[0],
            ratios.scan_total[1],
            ratios.call_total[0],
            ratios.call_total[1],
            ratios.scan_sum,
            ratios.call_sum,
        );
        out
    }

    fn usage(&self) -> String {
        let mut out = String::from(
            "| processes | number | CPU idle | CPU busy | RSS | PSS |\n|---|---:|---:|---:|---:|---:|\n",
        );
        for usage in &self.usage {
            let _ = writeln!(
                out,
                "| {} | {} | {:.1} % | {:.1} % | {:.0} MB | {:.0} MB |",
                usage.what,
                usage.processes,
                usage.idle_percent,
                usage.busy_percent,
                usage.rss_mb,
                usage.pss_mb,
            );
        }
        out
    }

    fn faults(&self) -> String {
        let mut out = String::from("| fault | detected after | recovered after |\n|---|---|---|\n");
        for fault in &self.faults {
            let list = |times: &[(&str, f64)]| {
                let all = times.iter().map(|(what, s)| format!("{what} {}", age(*s)));
                all.collect::<Vec<_>>().join(", ")
            };
            let _ = writeln!(
                out,
                "| {} | {} | {} |",
                fault.what,
                list(&fault.noticed),
                list(&fault.back)
            );
        }
        out
    }

    fn outlooks(&self) -> String {
        let all = [1_000.0, 100_000.0].map(|robots| self.outlook(robots));
        let mut out = String::new();
        type Cell<'a> = &'a dyn Fn(&Outlook) -> String;
        let mut row = |what: &str, value: Cell<'_>| {
            let cells: Vec<_> = all.iter().map(value).collect();
            let _ = writeln!(out, "| {what} | {} |", cells.join(" | "));
        };
        row("calculated, not measured", &|it| {
            format!("{} robots", thousands(it.robots))
        });
        row("---", &|_| "---:".to_owned());
        row("tokens", &|it| thousands(it.tokens));
        row("a complete list for a new program", &|it| age(it.list_s));
        row("cores of routers, no subscribers", &|it| {
            format!("{:.2}", it.idle_cores)
        });
        row("cores of routers, one robot of a hundred watched", &|it| {
            format!("{:.2}", it.busy_cores[0])
        });
        row("cores of routers, all robots watched", &|it| {
            format!("{:.1}", it.busy_cores[1])
        });
        row(
            "scans of all robots, into the routers and out again",
            &|it| format!("{:.2} Gbit/s each", it.traffic_gbit_s),
        );
        out
    }

    fn goals(&self) -> String {
        let missed: Vec<_> = self.goals.iter().filter(|it| !it.is_met).collect();
        if missed.is_empty() {
            return format!("All {} goals are met.\n", self.goals.len());
        }
        let mut out =
            String::from("| goal that was missed | at most | measured |\n|---|---:|---:|\n");
        for goal in missed {
            let _ = writeln!(
                out,
                "| {} | {} | {:.2} |",
                goal.what, goal.at_most, goal.got
            );
        }
        out
    }
}

fn name(way: Way) -> &'static str {
    match way {
        Way::Direct => "mediator alone",
        Way::Raw | Way::FastRaw => "raw Zenoh",
        Way::Fleet => "fleet",
    }
}

/// A number from 1000 on, with a space before its last three digits.
fn thousands(number: f64) -> String {
    let number = number.round() as u64;
    format!("{} {:03}", number / 1000, number % 1000)
}

fn age(seconds: f64) -> String {
    match seconds < 1.0 {
        true => format!("{:.0} ms", seconds * 1e3),
        false => format!("{seconds:.1} s"),
    }
}

fn micros(times: &Times) -> String {
    format!("{} | {}", pair(times), micro(times.max_us))
}

fn pair(times: &Times) -> String {
    format!("{} | {}", micro(times.p50_us), micro(times.p99_us))
}

fn micro(us: f64) -> String {
    match us < 10_000.0 {
        true => format!("{us:.0} µs"),
        false => format!("{:.0} ms", us / 1e3),
    }
}
