//! The changes between two lists of devices. PURE.

use std::collections::BTreeMap;

use amber_proto::printable_line;
use amber_terminal::{Human, local_time, utc_time};
use serde::Serialize;

use super::Row;

/// A change of one device.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Change {
    #[serde(serialize_with = "as_utc")]
    time: u64,
    device: String,
    /// The states before and after; absent if the device is new or is gone.
    before: Option<&'static str>,
    state: Option<&'static str>,
    restarts: u32,
    pid: Option<u32>,
    /// The reason why it is not up, or its last exit if it has restarted in between.
    reason: Option<String>,
    /// The problem of the device while its driver is up.
    trouble: Option<String>,
}

fn as_utc<S: serde::Serializer>(ms: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&utc_time(*ms))
}

/// The changes since the last list, in the order of the devices.
pub(super) fn between(before: &[Row], after: &[Row], time_ms: u64) -> Vec<Change> {
    let known: BTreeMap<_, _> = before.iter().map(|row| (&row.device, row)).collect();
    let changed = after.iter().filter_map(|row| {
        let before = known.get(&row.device).copied();
        let changed = before.is_none_or(|before| fingerprint(before) != fingerprint(row));
        changed.then(|| Change::new(before, row, time_ms))
    });
    let is_gone = |row: &&Row| !after.iter().any(|after| after.device == row.device);
    let gone = before.iter().filter(is_gone).map(|row| Change {
        before: Some(row.state),
        state: None,
        restarts: row.restarts,
        ..Change::empty(&row.device, time_ms)
    });
    changed.chain(gone).collect()
}

/// The values whose changes are reported; times are not among them.
fn fingerprint(row: &Row) -> (&str, Option<u32>, u32, Option<&str>, Option<&str>) {
    let Row {
        state,
        pid,
        restarts,
        ..
    } = row;
    let (reason, trouble) = (row.reason.as_deref(), row.trouble.as_deref());
    (state, *pid, *restarts, reason, trouble)
}

impl Change {
    fn empty(device: &str, time: u64) -> Self {
        Self {
            time,
            device: device.to_owned(),
            before: None,
            state: None,
            restarts: 0,
            pid: None,
            reason: None,
            trouble: None,
        }
    }

    fn new(before: Option<&Row>, row: &Row, time: u64) -> Self {
        let has_restarted = before.is_some_and(|before| before.restarts != row.restarts);
        let last_exit = row.last_exit.clone().filter(|_| has_restarted);
        Self {
            before: before.map(|before| before.state),
            state: Some(row.state),
            restarts: row.restarts,
            pid: row.pid,
            reason: row.reason.clone().or(last_exit),
            trouble: row.trouble.clone(),
            ..Self::empty(&row.device, time)
        }
    }
}

impl Human for Change {
    fn human(&self) -> String {
        let (time, device) = (local_time(self.time), &self.device);
        let mut line = match (self.before, self.state) {
            (_, None) => format!("{time} {device} is no longer configured"),
            (Some(before), Some(state)) if before != state => {
                format!("{time} {device} {state}, was {before}")
            }
            (_, Some(state)) => format!("{time} {device} {state}"),
        };
        if let Some(pid) = self.pid {
            line.push_str(&format!(", process {pid}"));
        }
        if self.restarts > 0 {
            line.push_str(&format!(", restarts {}", self.restarts));
        }
        if let Some(trouble) = &self.trouble {
            line.push_str(&format!(", but: {}", printable_line(trouble)));
        }
        if let Some(reason) = &self.reason {
            line.push_str(&format!(": {}", printable_line(reason)));
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: &'static str, pid: u32, restarts: u32) -> Row {
        Row {
            device: "dummy:0".into(),
            state,
            pid: Some(pid).filter(|pid| *pid > 0),
            restarts,
            state_ms: 0,
            next_start_ms: None,
            last_exit: None,
            reason: None,
            trouble: None,
            trouble_ms: None,
            driven_by: None,
            halted_by: None,
        }
    }

    /// Without the time, which depends on the time zone.
    fn shown(before: &[Row], after: &[Row]) -> Vec<String> {
        let changes = between(before, after, 1_700_000_581_042);
        let lines = changes.iter().map(Human::human);
        lines
            .map(|line| line["2023-11-14 22:23:01.042 ".len()..].to_owned())
            .collect()
    }

    #[test]
    fn each_device_is_shown_once_and_then_only_its_changes() {
        let up = [row("up", 7, 0)];
        assert_eq!(shown(&[], &up), ["dummy:0 up, process 7\n"]);
        let mut later = row("up", 7, 0);
        later.state_ms = 9000;
        assert!(shown(&up, &[later]).is_empty(), "only time has passed");
        let down = Row {
            reason: Some("exited with code 1".into()),
            ..row("backoff", 0, 0)
        };
        let expected = ["dummy:0 backoff, was up: exited with code 1\n"];
        assert_eq!(shown(&up, &[down]), expected);
        assert_eq!(shown(&up, &[]), ["dummy:0 is no longer configured\n"]);
    }

    #[test]
    fn a_restart_between_two_looks_is_a_change() {
        let back = Row {
            last_exit: Some("killed by signal 9 (SIGKILL)".into()),
            ..row("up", 8, 1)
        };
        let expected = ["dummy:0 up, process 8, restarts 1: killed by signal 9 (SIGKILL)\n"];
        assert_eq!(shown(&[row("up", 7, 0)], &[back]), expected);
    }

    #[test]
    fn trouble_is_a_change_and_foreign_text_stays_on_its_line() {
        let trouble = Row {
            trouble: Some("it is\nhot".into()),
            ..row("up", 7, 0)
        };
        let expected = ["dummy:0 up, process 7, but: it is\\nhot\n"];
        assert_eq!(shown(&[row("up", 7, 0)], &[trouble]), expected);
    }

    #[test]
    fn programs_get_an_object_per_change_in_utc() {
        let changes = between(&[], &[row("up", 7, 0)], 1_700_000_581_042);
        let json = serde_json::to_value(&changes[0]).unwrap();
        assert_eq!(json["time"], "2023-11-14T22:23:01.042Z");
        assert_eq!(
            (&json["device"], &json["state"]),
            (&"dummy:0".into(), &"up".into())
        );
        assert_eq!(json["before"], serde_json::Value::Null);
    }
}
