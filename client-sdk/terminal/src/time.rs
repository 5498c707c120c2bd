//! Times on the command line. PURE.

use std::time::Duration;

/// Reads a time such as `0.2`, `2s` or `100ms`; a number without a unit is in seconds.
///
/// Own code: humantime and jiff need a unit, and read `--for 1m`, perhaps meant as a metre, as
/// a minute.
///
/// # Errors
/// The text is not a time above 0.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let (number, unit_s) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 0.001),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "not a time such as 0.5, 2s or 100ms".to_owned())?;
    Duration::try_from_secs_f64(number * unit_s)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "not a time above 0".to_owned())
}

/// `3m 12s`: the two largest units.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds) {
        (1.., ..) => format!("{days}d {hours}h"),
        (0, 1.., ..) => format!("{hours}h {minutes}m"),
        (0, 0, 1.., _) => format!("{minutes}m {}s", seconds % 60),
        (0, 0, 0, 10..) => format!("{seconds}s"),
        (0, 0, 0, _) => format!("{:.1}s", duration.as_secs_f64()),
    }
}

/// The same, from milliseconds.
pub fn millis(ms: u64) -> String {
    duration(Duration::from_millis(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_unit() {
        for (text, ms) in [
            ("0.2", 200),
            ("2", 2000),
            ("2s", 2000),
            ("1.5s", 1500),
            ("100ms", 100),
            ("0.5ms", 0),
        ] {
            let time = seconds(text).unwrap();
            assert_eq!(time.as_millis(), ms, "{text}");
        }
        for text in [
            "", "s", "ms", "0", "0ms", "-1s", "nan", "inf", "1e99", "1m", "1h", "1 s",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_readable() {
        for (ms, text) in [
            (0, "0.0s"),
            (1_234, "1.2s"),
            (59_999, "59s"),
            (192_000, "3m 12s"),
            (3_720_000, "1h 2m"),
            (90_000_000, "1d 1h"),
        ] {
            assert_eq!(millis(ms), text);
        }
    }
}
