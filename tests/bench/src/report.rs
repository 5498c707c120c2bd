//! Results as tables, charts and the page about performance. PURE.

use std::fmt::Write;

use crate::chart::{Bar, bars, number};
use crate::goals::{Cores, FLOODS, Limit, ROUND_TRIPS, Verdict, flood_name, verdicts};
use crate::results::{Candidate, Results, is_loss};

/// The text of the page, with placeholders for the measurements.
const TEMPLATE: &str = include_str!("performance.md");

/// The most important results: a description with its unit, the load and the quantity.
const HEADLINES: [(&str, &str, &str); 11] = [
    (
        "Round trip of 64 B on one core, median, us",
        "rtt on one core, 64 B",
        "p50_us",
    ),
    (
        "Round trip of 64 B, the client apart, median, us",
        "rtt apart, 64 B",
        "p50_us",
    ),
    (
        "Round trip of 64 B, the client apart, 99th percentile, us",
        "rtt apart, 64 B",
        "p99_us",
    ),
    (
        "Replies per second, one client apart with 64 requests of 64 B in flight",
        "1 client x 64, 64 B, apart",
        "per_s",
    ),
    (
        "Replies per second, one client apart with 64 requests of 6.8 kB in flight",
        "1 client x 64, 6.8 kB, apart",
        "per_s",
    ),
    (
        "Replies per second, 16 clients apart with one request of 64 B in flight",
        "16 clients x 1, 64 B, apart",
        "per_s",
    ),
    (
        "CPU time per delivery, 100 subscribers apart at 50 Hz, us",
        "100 subscribers apart, 50 Hz, 64 B",
        "cpu_us",
    ),
    (
        "Memory with 4 drivers and 10 clients, MB",
        "4 drivers, 10 clients",
        "resident_mb",
    ),
    (
        "Memory per known client, bytes",
        "20 000 clients",
        "bytes_per_client",
    ),
    (
        "Time from start to the first reply, ms",
        "start to first answer, bench-echo",
        "ms",
    ),
    (
        "CPU load with 10 idle drivers, percent",
        "10 idle drivers",
        "cpu_percent",
    ),
];

/// The machine and the conditions of the measurements.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Processor, cores, system.
    pub machine: String,
    /// The measured version.
    pub version: String,
    /// The table of `scripts/bench neighbours`.
    pub neighbours: String,
}

/// The table at the top of the page; results without a measurement are skipped.
fn headlines(results: &Results) -> String {
    let mut out = String::from(
        "| | Amber | `floor -b` | ratio | worst round | lost |\n|---|---:|---:|---:|---:|---:|\n",
    );
    let (amber, floor) = (Candidate::Amber, Candidate::FloorBatched);
    let text = |value: Option<f64>| value.map_or(String::new(), number);
    for (name, load, quantity) in HEADLINES {
        let Some(ours) = results.shown(load, quantity, amber) else {
            continue;
        };
        let lost = results.shown(load, "lost", amber);
        let cells = [
            name,
            &number(ours),
            &text(results.shown(load, quantity, floor)),
            &ratio_text(results.ratio(load, quantity, amber, floor)),
            &ratio_text(results.worst_ratio(load, quantity, amber, floor)),
            &lost.map_or(String::new(), |lost| format!("{lost:.0}")),
        ];
        line(&mut out, &cells);
    }
    out
}

/// Everything as a table for both terminal and Markdown. Includes the build to compare with if it
/// was measured.
pub fn table(results: &Results) -> String {
    let before = (results.series.iter()).any(|series| series.candidate == Candidate::Before);
    let mut head = vec![
        "load",
        "quantity",
        "floor",
        "floor -b",
        "amber",
        "amber / floor -b",
        "worst round",
    ];
    let mut rule = vec!["---", "---", "---:", "---:", "---:", "---:", "---:"];
    if before {
        head.extend(["before", "amber / before"]);
        rule.extend(["---:"; 2]);
    }
    let mut out = String::new();
    line(&mut out, &head);
    let _ = writeln!(out, "|{}|", rule.join("|"));
    for load in results.loads() {
        let mut quantities: Vec<&str> = Vec::new();
        for series in results.series.iter().filter(|series| series.load == load) {
            if !quantities.contains(&series.quantity.as_str()) {
                quantities.push(&series.quantity);
            }
        }
        for quantity in quantities {
            let of = |candidate| results.shown(load, quantity, candidate);
            let shown = |value: Option<f64>| match value {
                Some(lost) if is_loss(quantity) => format!("{lost:.0}"),
                value => value.map_or(String::new(), number),
            };
            let compares = !is_loss(quantity);
            let ratio = |other| {
                let ratio = results.ratio(load, quantity, Candidate::Amber, other);
                ratio_text(ratio.filter(|_| compares))
            };
            let reference = Candidate::FloorBatched;
            let worst = results.worst_ratio(load, quantity, Candidate::Amber, reference);
            let mut cells = vec![
                load.to_owned(),
                quantity.to_owned(),
                shown(of(Candidate::Floor)),
                shown(of(Candidate::FloorBatched)),
                shown(of(Candidate::Amber)),
                ratio(Candidate::FloorBatched),
                ratio_text(worst.filter(|_| compares)),
            ];
            if before {
                cells.extend([shown(of(Candidate::Before)), ratio(Candidate::Before)]);
            }
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            line(&mut out, &cells);
        }
    }
    out
}

pub fn goals(results: &Results) -> String {
    let mut out = String::from("| load | quantity | goal | measured | |\n|---|---|---|---:|---|\n");
    for Verdict {
        goal,
        value,
        reached,
    } in verdicts(results)
    {
        let limit = match goal.limit {
            Limit::TimesFloorAtMost(limit) => format!("at most {limit:.2} x floor -b"),
            Limit::TimesFloorAtLeast(limit) => format!("at least {limit:.2} x floor -b"),
            Limit::AtMost(limit) => format!("at most {limit}"),
            Limit::AtLeast(limit) => format!("at least {limit}"),
        };
        let verdict = if reached { "yes" } else { "**no**" };
        line(
            &mut out,
            &[&goal.load, goal.quantity, &limit, &number(value), verdict],
        );
    }
    out
}

/// The page, and its charts with their file names.
pub fn chapter(results: &Results, conditions: &Conditions) -> (String, Vec<(String, String)>) {
    let charts = charts(results);
    let mut pictures = String::new();
    for (name, _) in &charts {
        let _ = writeln!(pictures, "![{name}](performance/{name}.svg)\n");
    }
    let values = results.series.iter().map(|series| series.values.len());
    let rounds = match (values.clone().min(), values.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most}"),
        (least, _) => least.unwrap_or(0).to_string(),
    };
    let out = TEMPLATE
        .replace("{headlines}", headlines(results).trim_end())
        .replace("{machine}", &conditions.machine)
        .replace("{version}", &conditions.version)
        .replace("{rounds}", &rounds)
        .replace("{charts}", pictures.trim_end())
        .replace("{neighbours}", conditions.neighbours.trim_end())
        .replace("{goals}", goals(results).trim_end())
        .replace("{figures}", table(results).trim_end());
    (out, charts)
}

fn charts(results: &Results) -> Vec<(String, String)> {
    let flood = flood_name(FLOODS[0].0, Cores::One);
    let (rtt, flood) = (ROUND_TRIPS[0].0, flood.as_str());
    let kinds = [
        (
            "round-trip",
            "Round trip on one core, as multiple of floor -b (lower is better)",
            rtt,
            "p50_us",
        ),
        (
            "throughput",
            "Messages per second on one core, as multiple of floor -b (higher is better)",
            flood,
            "per_s",
        ),
        (
            "cpu",
            "CPU per message on one core, as multiple of floor -b (lower is better)",
            flood,
            "cpu_us",
        ),
    ];
    let mut charts = Vec::new();
    for (name, title, load, quantity) in kinds {
        let ours = |candidate| {
            let ratio = results.ratio(load, quantity, candidate, Candidate::FloorBatched)?;
            Some(Bar {
                label: candidate.to_string(),
                value: ratio,
                is_ours: candidate == Candidate::Amber,
            })
        };
        let all: Vec<Bar> = Candidate::ALL.into_iter().filter_map(ours).collect();
        if all.len() < Candidate::ALL.len() {
            continue;
        }
        charts.push((name.to_owned(), bars(title, &all, Some(1.0))));
    }
    charts
}

/// A ratio, if there is one.
fn ratio_text(ratio: Option<f64>) -> String {
    let ratio = ratio.filter(|ratio| ratio.is_finite());
    ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"))
}

fn line(out: &mut String, cells: &[&str]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_matches_the_template() {
        let page = include_str!("../../../docs/performance.md");
        for words in TEMPLATE.split(['{', '}']).step_by(2) {
            assert!(
                page.contains(words),
                "run scripts/bench --report; missing: {words}"
            );
        }
    }

    #[test]
    fn the_page_has_goals_figures_and_charts() {
        let mut results = Results::default();
        for candidate in Candidate::ALL {
            for (load, quantity) in [
                ("rtt on one core, 64 B", "p50_us"),
                ("1 client x 64, 64 B, on one core", "per_s"),
                ("1 client x 64, 64 B, on one core", "cpu_us"),
            ] {
                results.add(load, quantity, candidate, 20.0);
                results.add(load, quantity, candidate, 30.0);
            }
            results.add("rtt on one core, 64 B", "lost", candidate, 0.0);
        }
        let conditions = Conditions {
            machine: "two cores".into(),
            version: "1".into(),
            neighbours: "| NATS |".into(),
        };
        let (chapter, charts) = chapter(&results, &conditions);
        assert!(
            chapter
                .contains("| rtt on one core, 64 B | p50_us | 25.0 | 25.0 | 25.0 | 1.00 | 1.00 |"),
            "{chapter}"
        );
        assert!(chapter.contains("| rtt on one core, 64 B | lost | 0 | 0 | 0 |  |  |"));
        assert!(
            chapter.contains(
                "| rtt on one core, 64 B | p50_us | at most 1.10 x floor -b | 1.00 | yes |"
            )
        );
        assert!(
            chapter.contains(
                "| Round trip of 64 B on one core, median, us | 25.0 | 25.0 | 1.00 | 1.00 | 0 |"
            ),
            "{chapter}"
        );
        assert!(chapter.contains("| NATS |"));
        assert!(!chapter.contains("Memory per known client"), "not measured");
        assert!(
            !chapter.contains('{'),
            "every placeholder in the template is filled"
        );
        assert_eq!(charts.len(), 3);
    }
}
