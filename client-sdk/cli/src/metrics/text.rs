//! The counters of a mediator in the text format of OpenMetrics 1.0. PURE.
//!
//! Source: the OpenMetrics specification 1.0 (prometheus/OpenMetrics, "Text Format"): a `# TYPE` and
//! a `# HELP` line for each metric, `_total` after the names of counters, backslash, quotation mark
//! and line feed escaped in labels, `# EOF` at the end.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use amber_proto::mediator::{Driver, DriverCounters, DriverState};

use crate::devices::{name, state_name};
use crate::overview::Overview;

/// A format of metrics.
#[cfg(feature = "web")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// That of [`text`].
    OpenMetrics,
    /// The older one of Prometheus, version 0.0.4: that of [`prometheus`].
    Prometheus,
}

#[cfg(feature = "web")]
impl Format {
    /// The format for a request with this header `Accept`. The older one only if it is preferred.
    pub(crate) fn wanted(accept: Option<&str>) -> Self {
        let weight = |wanted: &str| {
            let ranges = accept.unwrap_or_default().split(',');
            let of = |range: &str| {
                let mut parts = range.split(';').map(str::trim);
                let is_wanted = parts.next()?.eq_ignore_ascii_case(wanted);
                let weight = parts.find_map(|part| part.strip_prefix("q="));
                let weight = weight.map_or(Some(1.0), |it| it.parse::<f64>().ok());
                weight.filter(|_| is_wanted)
            };
            ranges.filter_map(of).fold(0.0, f64::max)
        };
        let newer = weight("application/openmetrics-text").max(weight("*/*"));
        match weight("text/plain") > newer {
            true => Self::Prometheus,
            false => Self::OpenMetrics,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The same in the format 0.0.4 of Prometheus. In it, a metric has the name of its samples, and there
/// are no units and no types `info` and `stateset`.
#[cfg(feature = "web")]
pub(crate) fn prometheus(open_metrics: &str) -> String {
    let mut suffix = "";
    let mut out = String::new();
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        let shown = match [words.next(), words.next(), words.next(), words.next()] {
            [Some("#"), Some("TYPE"), Some(name), Some(kind)] => {
                let kind = match kind {
                    "info" | "stateset" => "gauge",
                    kind => kind,
                };
                suffix = match (kind, line.ends_with(" info")) {
                    ("counter", _) => "_total",
                    (_, true) => "_info",
                    _ => "",
                };
                format!("# TYPE {name}{suffix} {kind}")
            }
            [Some("#"), Some("HELP"), Some(name), Some(help)] => {
                let help = help.replace("\\\"", "\"");
                format!("# HELP {name}{suffix} {help}")
            }
            [Some("#"), ..] => continue,
            _ => line.to_owned(),
        };
        out.push_str(&shown);
        out.push('\n');
    }
    out
}

/// The explanation of each counter of the mediator, by name.
pub(crate) type Help = BTreeMap<String, String>;

const STATES: [DriverState; 6] = [
    DriverState::Down,
    DriverState::Starting,
    DriverState::Up,
    DriverState::Stopping,
    DriverState::Backoff,
    DriverState::Failed,
];

/// All metrics.
pub(crate) fn text(overview: &Overview, help: &Help) -> String {
    let mut page = Page::default();
    let statistics = &overview.statistics;
    page.metric("amber_mediator", "info", "", "The version of the mediator.");
    page.sample("_info", &[("version", statistics.version())], 1);
    page.metric(
        "amber_mediator_uptime_seconds",
        "gauge",
        "seconds",
        "Time since the mediator started.",
    );
    page.sample("", &[], seconds(statistics.uptime_ms()));
    page.metric("amber_mediator_clients", "gauge", "", "Known clients.");
    page.sample("", &[], statistics.clients());
    page.metric("amber_mediator_drivers", "gauge", "", "Configured drivers.");
    page.sample("", &[], statistics.drivers());
    for (prefix, counters) in [
        ("amber_mediator", &statistics.counters),
        ("amber_mediator_dropped", &statistics.dropped),
    ] {
        for counter in counters {
            let name = format!("{prefix}_{}", counter.name);
            let unexplained = "A counter without an explanation from this mediator.";
            let help = help.get(&counter.name).map_or(unexplained, |help| help);
            page.metric(&name, "counter", "", help);
            page.sample("_total", &[], counter.value);
        }
    }
    let help = "Total number of drops, for any reason.";
    page.metric("amber_mediator_drops", "counter", "", help);
    let drops: u64 = statistics.dropped.iter().map(|drop| drop.value).sum();
    page.sample("_total", &[], drops);
    drivers(&mut page, &overview.drivers);
    processes(&mut page, overview);
    page.text.push_str("# EOF\n");
    page.text
}

fn drivers(page: &mut Page, drivers: &[Driver]) {
    if drivers.is_empty() {
        return;
    }
    page.metric(
        "amber_driver_state",
        "stateset",
        "",
        "The state of a driver.",
    );
    for (driver, device) in named(drivers) {
        for state in STATES {
            let labels = [
                ("device", &*device),
                ("amber_driver_state", state_name(state)),
            ];
            page.sample("", &labels, u8::from(driver.state() == state));
        }
    }
    let help = "Whether the driver runs but reports that its device does not work.";
    page.metric("amber_device_trouble", "gauge", "", help);
    for driver in drivers {
        for device in &driver.devices {
            let is_in_trouble = driver.troubles.iter().any(|it| it.device == *device);
            page.sample("", &[("device", &name(device))], u8::from(is_in_trouble));
        }
    }
    page.metric(
        "amber_driver_restarts",
        "counter",
        "",
        "Restarts since the mediator started.",
    );
    for (driver, device) in named(drivers) {
        page.sample("_total", &[("device", &device)], driver.restarts());
    }
    for of_driver in OF_DRIVERS {
        let kind = if of_driver.is_gauge {
            "gauge"
        } else {
            "counter"
        };
        page.metric(of_driver.name, kind, of_driver.unit, of_driver.help);
        let suffix = if of_driver.is_gauge { "" } else { "_total" };
        for (driver, device) in named(drivers) {
            let counters = driver.counters.unwrap_or_default();
            page.sample(suffix, &[("device", &device)], (of_driver.value)(&counters));
        }
    }
}

struct OfDriver {
    name: &'static str,
    unit: &'static str,
    is_gauge: bool,
    help: &'static str,
    value: fn(&DriverCounters) -> u64,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&DriverCounters) -> u64,
) -> OfDriver {
    OfDriver {
        name,
        unit: "",
        is_gauge: false,
        help,
        value,
    }
}

/// The counters of each driver. `amber status DEVICE` shows the same.
const OF_DRIVERS: &[OfDriver] = &[
    counter(
        "amber_driver_frames_in",
        "Frames queued for the driver.",
        DriverCounters::frames_in,
    ),
    OfDriver {
        unit: "bytes",
        ..counter(
            "amber_driver_in_bytes",
            "Bytes queued for the driver.",
            DriverCounters::bytes_in,
        )
    },
    counter(
        "amber_driver_frames_written",
        "Frames written to the pipe of the driver.",
        DriverCounters::frames_written,
    ),
    counter(
        "amber_driver_frames_out",
        "Frames that the driver wrote.",
        DriverCounters::frames_out,
    ),
    OfDriver {
        unit: "bytes",
        ..counter(
            "amber_driver_out_bytes",
            "Bytes that the driver wrote.",
            DriverCounters::bytes_out,
        )
    },
    OfDriver {
        is_gauge: true,
        ..counter(
            "amber_driver_frames_waiting",
            "Frames waiting for the driver.",
            DriverCounters::queued,
        )
    },
    counter(
        "amber_driver_dropped_full",
        "Frames for the driver dropped because its queue was full.",
        DriverCounters::dropped_full,
    ),
    counter(
        "amber_driver_dropped_down",
        "Frames dropped because the driver was not running.",
        DriverCounters::dropped_down,
    ),
    counter(
        "amber_driver_dropped_client_gone",
        "Waiting frames dropped because their client died.",
        DriverCounters::dropped_client_gone,
    ),
    counter(
        "amber_driver_dropped_ended",
        "Waiting frames dropped because the driver ended.",
        DriverCounters::dropped_ended,
    ),
    counter(
        "amber_driver_dropped_stopping",
        "Frames of the driver dropped because it was being stopped.",
        DriverCounters::dropped_stopping,
    ),
    counter(
        "amber_driver_stderr_lines",
        "Lines that the driver wrote to stderr.",
        DriverCounters::stderr_lines,
    ),
    counter(
        "amber_driver_stderr_dropped_lines",
        "Lines of stderr not logged because there were too many.",
        DriverCounters::stderr_dropped,
    ),
];

fn processes(page: &mut Page, overview: &Overview) {
    let of_drivers = named(&overview.drivers)
        .filter_map(|(driver, device)| Some((device, overview.process_of(driver)?)));
    let own = overview.own_process().map(|it| ("mediator".to_owned(), it));
    let processes: Vec<_> = own.into_iter().chain(of_drivers).collect();
    if processes.is_empty() {
        return;
    }
    let help = "CPU time of the mediator and its drivers.";
    page.metric("amber_process_cpu_seconds", "counter", "seconds", help);
    for (device, process) in &processes {
        let cpu_ms = process.cpu_ms.map(seconds);
        page.maybe("_total", &[("device", device)], cpu_ms);
    }
    let help = "Resident memory of the mediator and its drivers.";
    page.metric(
        "amber_process_resident_memory_bytes",
        "gauge",
        "bytes",
        help,
    );
    for (device, process) in &processes {
        page.maybe("", &[("device", device)], process.memory_bytes);
    }
}

/// Each driver with its first device.
fn named(drivers: &[Driver]) -> impl Iterator<Item = (&Driver, String)> {
    let first = |driver: &Driver| driver.devices.first().map(name);
    drivers
        .iter()
        .filter_map(move |driver| Some((driver, first(driver)?)))
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// The text so far, and the metric whose samples come next.
#[derive(Default)]
struct Page {
    text: String,
    metric: String,
}

impl Page {
    fn metric(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        name.clone_into(&mut self.metric);
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {}", escaped(help));
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{}{suffix}", self.metric);
        for (index, (label, text)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(text));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }

    /// A sample, unless the system does not report its value.
    fn maybe(&mut self, suffix: &str, labels: &[(&str, &str)], value: Option<impl Display>) {
        if let Some(value) = value {
            self.sample(suffix, labels, value);
        }
    }
}

fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    escaped.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use amber_proto::mediator::{Counter, Device, ProcessUsage, Statistics, Trouble};

    use super::*;

    #[test]
    fn every_kind_of_metric() {
        let counter = |name: &str, value| Counter {
            name: name.into(),
            value,
        };
        let device = Device { r#type: 4, id: 0 };
        let overview = Overview {
            statistics: Statistics {
                version: Some("0.1.0 \"x\"".into()),
                uptime_ms: Some(61_005),
                clients: Some(3),
                drivers: Some(1),
                counters: vec![counter("datagrams_received", 7)],
                dropped: vec![counter("unknown_device", 2), counter("access_denied", 3)],
                ..Statistics::default()
            },
            drivers: vec![Driver {
                devices: vec![device],
                state: DriverState::Up.into(),
                pid: Some(42),
                restarts: Some(1),
                counters: Some(DriverCounters {
                    frames_in: Some(5),
                    queued: Some(4),
                    ..DriverCounters::default()
                }),
                troubles: vec![Trouble {
                    device,
                    text: "it is gone".into(),
                    since_ms: 1,
                }],
                ..Driver::default()
            }],
            processes: vec![
                ProcessUsage {
                    pid: 41,
                    cpu_ms: Some(1_500),
                    memory_bytes: Some(1_000_000),
                    ..ProcessUsage::default()
                },
                ProcessUsage {
                    pid: 42,
                    device: Some(device),
                    ..ProcessUsage::default()
                },
            ],
        };
        let help = [(
            "unknown_device",
            "A message for a device that no driver serves.",
        )];
        let help = help.map(|(name, help)| (name.into(), help.into())).into();
        let text = text(&overview, &help);
        for expected in [
            "# TYPE amber_mediator info\n# HELP amber_mediator The version of the mediator.\n\
             amber_mediator_info{version=\"0.1.0 \\\"x\\\"\"} 1\n",
            "# UNIT amber_mediator_uptime_seconds seconds\n",
            "\namber_mediator_uptime_seconds 61.005\n",
            "# TYPE amber_mediator_dropped_unknown_device counter\n\
             # HELP amber_mediator_dropped_unknown_device A message for a device that no driver serves.\n\
             amber_mediator_dropped_unknown_device_total 2\n",
            "\namber_mediator_drops_total 5\n",
            "amber_driver_state{device=\"hokuyo:0\",amber_driver_state=\"up\"} 1\n\
             amber_driver_state{device=\"hokuyo:0\",amber_driver_state=\"stopping\"} 0\n",
            "amber_device_trouble{device=\"hokuyo:0\"} 1\n",
            "amber_driver_restarts_total{device=\"hokuyo:0\"} 1\n",
            "amber_driver_frames_in_total{device=\"hokuyo:0\"} 5\n",
            "amber_driver_frames_waiting{device=\"hokuyo:0\"} 4\n",
            "amber_process_cpu_seconds_total{device=\"mediator\"} 1.500\n",
            "amber_process_resident_memory_bytes{device=\"mediator\"} 1000000\n# EOF\n",
        ] {
            assert!(text.contains(expected), "{expected}\nin\n{text}");
        }
    }

    #[cfg(feature = "web")]
    #[test]
    fn the_older_format_has_the_same_numbers() {
        let newer = "# TYPE amber_mediator info\n# HELP amber_mediator The \\\"version\\\".\n\
                     amber_mediator_info{version=\"0.1\"} 1\n\
                     # TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds Some time.\n\
                     a_seconds 1.5\n\
                     # TYPE drops counter\n# HELP drops All drops.\ndrops_total 5\n\
                     # TYPE state stateset\n# HELP state A state.\nstate{state=\"up\"} 1\n# EOF\n";
        let older = "# TYPE amber_mediator_info gauge\n# HELP amber_mediator_info The \"version\".\n\
                     amber_mediator_info{version=\"0.1\"} 1\n\
                     # TYPE a_seconds gauge\n# HELP a_seconds Some time.\na_seconds 1.5\n\
                     # TYPE drops_total counter\n# HELP drops_total All drops.\ndrops_total 5\n\
                     # TYPE state gauge\n# HELP state A state.\nstate{state=\"up\"} 1\n";
        assert_eq!(prometheus(newer), older);
    }

    #[cfg(feature = "web")]
    #[test]
    fn a_scraper_gets_the_format_that_it_prefers() {
        // What Prometheus sends.
        const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0;q=0.5,\
                                  application/openmetrics-text;version=0.0.1;q=0.4,\
                                  text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, format) in [
            (None, Format::OpenMetrics),
            (Some("*/*"), Format::OpenMetrics),
            (Some(PROMETHEUS), Format::OpenMetrics),
            (Some("text/html, */*;q=0.8"), Format::OpenMetrics),
            (Some("text/plain"), Format::Prometheus),
            (Some("text/plain;version=0.0.4"), Format::Prometheus),
            (
                Some("text/plain; version=0.0.4; q=1, */*;q=0.1"),
                Format::Prometheus,
            ),
        ] {
            assert_eq!(Format::wanted(accept), format, "{accept:?}");
        }
    }

    #[test]
    fn each_metric_is_declared_once() {
        let mut names: Vec<_> = OF_DRIVERS.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OF_DRIVERS.len());
    }
}
