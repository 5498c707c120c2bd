//! The status line, and lines about events. PURE.

use crate::control::{Gap, Status};

/// The status line: it fits into a terminal of 80 columns.
pub(crate) fn status(status: &Status) -> String {
    let state = if status.paused { "paused" } else { "playing" };
    let part = match status.length_s > 0.0 {
        true => (status.position_s / status.length_s * 100.0).clamp(0.0, 100.0),
        false => 100.0,
    };
    format!(
        "{state:7} {} of {} ({part:.0} %)  rate {}  {} UTC",
        clock(status.position_s),
        clock(status.length_s),
        rate(status.rate),
        time_of_day(status.time_ns),
    )
}

pub(crate) fn gap(gap: &Gap) -> String {
    let seconds = gap.last_ns.saturating_sub(gap.first_ns) as f64 / 1e9;
    let messages = match gap.messages {
        0 => "an unknown number of".to_owned(),
        messages => messages.to_string(),
    };
    format!(
        "{} gap: {messages} messages ({} bytes) of {seconds:.3} s are missing in the recording",
        time_of_day(gap.first_ns),
        gap.bytes,
    )
}

/// A part of the file that is damaged.
pub(crate) fn damaged(what: &str, gap: &Gap) -> String {
    let seconds = gap.last_ns.saturating_sub(gap.first_ns) as f64 / 1e9;
    format!(
        "{} damaged: {what}; its messages of {seconds:.3} s are left out: `amber recover` repairs \
         the recording",
        time_of_day(gap.first_ns),
    )
}

/// `1:02.5`: minutes and seconds.
fn clock(seconds: f64) -> String {
    // Tenths that were reached, so that 59.99 is not shown as 60.0.
    let tenths = (seconds.max(0.0) * 10.0 + 1e-6) as u64;
    let (minutes, rest) = (tenths / 600, tenths % 600);
    match minutes / 60 {
        0 => format!("{minutes}:{:02}.{}", rest / 10, rest % 10),
        hours => format!("{hours}:{:02}:{:02}.{}", minutes % 60, rest / 10, rest % 10),
    }
}

/// `2`, `0.25`: without zeros at the end.
fn rate(rate: f64) -> String {
    let text = format!("{rate:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn time_of_day(time_ns: u64) -> String {
    let seconds = time_ns / 1_000_000_000;
    let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    format!("{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_is_one_line() {
        let now = Status {
            time_ns: 1_700_000_581_250_000_000,
            position_s: 62.3,
            length_s: 3661.0,
            rate: 0.25,
            ..Status::default()
        };
        let line = status(&now);
        let expected = "playing 1:02.3 of 1:01:01.0 (2 %)  rate 0.25  22:23:01 UTC";
        assert_eq!(line, expected);
        let paused = Status {
            paused: true,
            rate: 1000.0,
            ..Status::default()
        };
        let line = status(&paused);
        assert_eq!(
            line,
            "paused  0:00.0 of 0:00.0 (100 %)  rate 1000  00:00:00 UTC"
        );
        assert!(line.len() < 80);
    }

    #[test]
    fn a_gap_says_what_is_missing() {
        let missing = Gap {
            first_ns: 1_700_000_581_250_000_000,
            last_ns: 1_700_000_583_000_000_000,
            messages: 12,
            bytes: 3456,
        };
        let expected = "22:23:01 gap: 12 messages (3456 bytes) of 1.750 s are missing in the \
                        recording";
        assert_eq!(gap(&missing), expected);
    }
}
