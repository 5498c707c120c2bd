//! What `amber init` tells. PURE, except for printing.

use std::fmt::Write as _;
use std::path::PathBuf;

use amber_proto::printable_line;
use amber_terminal::{Failure, has_colours, print, print_text};
use serde::Serialize;

use super::look::{Finding, Looked, State};
use super::reading::Reading;

/// Everything that it tells; with `--json`, one object.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    serial_ports: usize,
    i2c_buses: usize,
    found: Vec<Finding>,
    left_alone: Vec<LeftAlone>,
    dry_run: bool,
    files: Vec<File>,
    pub(super) readings: Vec<Reading>,
    pub(super) service_started: bool,
    /// The address of the dashboard, once it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dashboard: Option<String>,
    /// Its QR code, for terminals.
    #[serde(skip)]
    pub(super) code: Option<String>,
    next: Vec<Step>,
}

#[derive(Clone, Debug, Serialize)]
struct LeftAlone {
    place: String,
    reason: &'static str,
}

/// A file that was written, or would be.
#[derive(Clone, Debug, Serialize)]
struct File {
    path: String,
    text: String,
}

/// A command to type next.
#[derive(Clone, Debug, Serialize)]
struct Step {
    command: String,
    what: &'static str,
}

impl Report {
    pub(super) fn new(looked: &Looked, dry_run: bool) -> Self {
        let left_alone = looked.left_alone.iter();
        let left_alone = left_alone.map(|(place, reason)| LeftAlone {
            place: place.clone(),
            reason,
        });
        Self {
            serial_ports: looked.ports,
            i2c_buses: looked.buses,
            found: looked.findings.clone(),
            left_alone: left_alone.collect(),
            dry_run,
            files: Vec::new(),
            readings: Vec::new(),
            service_started: false,
            dashboard: None,
            code: None,
            next: Vec::new(),
        }
    }

    /// The files, with their texts.
    pub(super) fn files(&mut self, files: [(PathBuf, &str); 2]) {
        let all = files.map(|(path, text)| File {
            path: path.display().to_string(),
            text: text.to_owned(),
        });
        self.files = all.into();
    }

    /// Adds a command to type next.
    pub(super) fn add(&mut self, command: &str, what: &'static str) {
        self.next.push(Step {
            command: command.to_owned(),
            what,
        });
    }

    /// What was looked at, and what was found.
    pub(super) fn findings_text(&self) -> String {
        let many = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        };
        let mut out = format!(
            "Looked at {}, {} and the USB devices.\n\n",
            many(self.serial_ports, "serial port", "serial ports"),
            many(self.i2c_buses, "I2C bus", "I2C buses"),
        );
        for finding in &self.found {
            let name = match (&finding.device, finding.state) {
                (Some(device), _) => device.as_str(),
                (None, State::NoDriver) => "no driver",
                (None, State::Unknown) => "unknown",
                (None, _) => "not usable",
            };
            let _ = writeln!(out, "{name:13} {}", printable_line(&finding.what));
            let _ = writeln!(out, "{:13} at {}", "", printable_line(&finding.place));
            if let Some(note) = &finding.note {
                let _ = writeln!(out, "{:13} note: {}", "", printable_line(note));
            }
        }
        for LeftAlone { place, reason } in &self.left_alone {
            let _ = writeln!(out, "{:13} {place}: {reason}", "left alone");
        }
        if self.found.is_empty() && self.left_alone.is_empty() {
            out.push_str("Nothing was found.\n");
        }
        out
    }

    /// The files: their names, or also their texts if they are not written.
    pub(super) fn files_text(&self) -> String {
        let mut out = "\n".to_owned();
        for File { path, text } in &self.files {
            let _ = match self.dry_run {
                true => writeln!(out, "--- {path} would be:\n\n{text}"),
                false => writeln!(out, "wrote {path}"),
            };
        }
        out
    }

    /// The first reading of each device.
    pub(super) fn readings_text(&self) -> String {
        let mut out = "\n".to_owned();
        for one in &self.readings {
            let reading = printable_line(&one.reading);
            let _ = match one.works {
                true => writeln!(out, "works         {}: {reading}", one.device),
                false => writeln!(out, "DOES NOT WORK {}: {reading}", one.device),
            };
        }
        out
    }

    /// Prints what comes next, and the address of the dashboard with its code.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn print_next(&self) -> Result<(), Failure> {
        let mut out = "\n".to_owned();
        if self.service_started {
            out.push_str("The service amber runs.\n\n");
        }
        out.push_str("Next:\n");
        for Step { command, what } in &self.next {
            let _ = writeln!(out, "  {command}\n      {what}");
        }
        if let Some(address) = &self.dashboard {
            let _ = writeln!(out, "\nWhile both run, open {address}");
        }
        print_text(&out)?;
        match &self.code {
            Some(code) if has_colours() => print(format!("\n{code}").as_bytes()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(state: State, device: Option<&str>) -> Finding {
        Finding {
            place: "/dev/ttyACM0".into(),
            state,
            what: "Hokuyo laser scanner".into(),
            device: device.map(str::to_owned),
            note: None,
            kind: None,
            options: Vec::new(),
        }
    }

    fn report(findings: Vec<Finding>) -> Report {
        let looked = Looked {
            ports: 1,
            buses: 0,
            findings,
            left_alone: vec![("/dev/i2c-10".into(), "a bus of a display or the mainboard")],
        };
        Report::new(&looked, false)
    }

    #[test]
    fn people_see_what_was_looked_at_and_what_is_not_used() {
        let text = report(vec![
            finding(State::Ready, Some("hokuyo:0")),
            finding(State::NoDriver, None),
        ])
        .findings_text();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "Looked at 1 serial port, 0 I2C buses and the USB devices.",
                "",
                "hokuyo:0      Hokuyo laser scanner",
                "              at /dev/ttyACM0",
                "no driver     Hokuyo laser scanner",
                "              at /dev/ttyACM0",
                "left alone    /dev/i2c-10: a bus of a display or the mainboard",
            ]
        );
    }

    #[test]
    fn programs_get_stable_words() {
        let shown = serde_json::to_value(report(vec![finding(State::NoDriver, None)])).unwrap();
        assert_eq!(shown["found"][0]["state"], "no-driver");
        assert_eq!(shown["left_alone"][0]["place"], "/dev/i2c-10");
        assert_eq!(shown["dry_run"], false);
    }
}
