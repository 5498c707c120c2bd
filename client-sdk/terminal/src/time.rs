//! Times on the command line. PURE, except for the time zone of this machine.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

/// Reads a time such as `0.2`, `2s` or `100ms`; a number without a unit is in seconds.
///
/// This is our own code: humantime and jiff need a unit, and read `--for 1m`, which may mean a
/// metre, as a minute.
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

/// Reads an age such as `30s`, `5m`, `2h` or `1d`; the unit is required.
///
/// # Errors
/// The text is not a time above 0.
fn age(text: &str) -> Result<Duration, String> {
    const UNITS_S: [(char, f64); 4] = [('s', 1.0), ('m', 60.0), ('h', 3600.0), ('d', 86_400.0)];
    let invalid = || "not a time such as 30s, 5m, 2h or 1d".to_owned();
    let with_unit = |(unit, seconds): (char, f64)| Some((text.strip_suffix(unit)?, seconds));
    let (number, unit_s) = UNITS_S
        .into_iter()
        .find_map(with_unit)
        .ok_or_else(invalid)?;
    let number: f64 = number.parse().map_err(|_| invalid())?;
    Duration::try_from_secs_f64(number * unit_s)
        .ok()
        .filter(|duration| !duration.is_zero())
        .ok_or_else(invalid)
}

/// Reads since when: an age such as `5m`, or a local time: `today`, `yesterday`, `2026-11-23` or
/// `2026-11-23 14:03`. Returns the age.
///
/// # Errors
/// The text is neither, or the time is not in the past.
pub fn since(text: &str) -> Result<Duration, String> {
    since_at(text, &ZonedDateTime::now())
}

fn since_at(text: &str, now: &ZonedDateTime) -> Result<Duration, String> {
    if let Ok(age) = age(text) {
        return Ok(age);
    }
    let invalid =
        |_| "not a time such as 30s, 5m, 2h, 1d, today, yesterday or '2026-11-23 14:03'".to_owned();
    let start = match text {
        "today" => Ok(now.date().into()),
        "yesterday" => now.date().yesterday().map(DateTime::from),
        _ => text.parse::<DateTime>(),
    };
    let start = start.and_then(|start| start.to_zoned_datetime(now.time_zone().clone()));
    let age = now
        .timestamp()
        .duration_since(start.map_err(invalid)?.timestamp());
    Duration::try_from(age).map_err(|_| "this time is in the future".to_owned())
}

/// The time of this machine's time zone, from milliseconds since 1970: `2026-11-23 14:03:12.345`.
pub fn local_time(ms: u64) -> String {
    time_in(ms, TimeZone::system())
}

fn time_in(ms: u64, zone: TimeZone) -> String {
    let time = timestamp(ms).to_zoned_datetime(zone);
    time.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// The time for programs, from milliseconds since 1970: `2026-11-23T13:03:12.345Z`.
pub fn utc_time(ms: u64) -> String {
    format!("{:.3}", timestamp(ms))
}

/// Times that are too large for a calendar become the last one.
fn timestamp(ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
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
    fn ages_need_a_unit() {
        for (text, s) in [
            ("30s", 30.0),
            ("5m", 300.0),
            ("1.5h", 5400.0),
            ("2d", 172_800.0),
        ] {
            assert_eq!(age(text).unwrap().as_secs_f64(), s, "{text}");
        }
        for text in [
            "", "5", "m", "0m", "-1m", "nanm", "infd", "1e99d", "5 m", "100ms", "5min",
        ] {
            assert!(age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_start_is_an_age_or_a_local_time() {
        let warsaw = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let now = "2026-11-23T14:03:20".parse::<DateTime>().unwrap();
        let now = now.to_zoned_datetime(warsaw).unwrap();
        for (text, s) in [
            ("5m", 300),
            ("today", 14 * 3600 + 200),
            ("yesterday", 38 * 3600 + 200),
            ("2026-11-23 14:03", 20),
            ("2026-11-23T14:03:10", 10),
            ("2026-11-23", 14 * 3600 + 200),
            // Summer time ended in between.
            ("2026-10-24", (30 * 24 + 15) * 3600 + 200),
        ] {
            let age = since_at(text, &now).unwrap();
            assert_eq!(age.as_secs(), s, "{text}");
        }
        for text in ["", "5", "tomorrow", "2026-11-24", "2026-13-01", "14:03"] {
            assert!(since_at(text, &now).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_shown_for_people_and_for_programs() {
        let warsaw = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let (winter, summer) = (1_700_000_581_042, 1_720_000_000_000);
        assert_eq!(time_in(winter, warsaw.clone()), "2023-11-14 23:23:01.042");
        assert_eq!(time_in(summer, warsaw), "2024-07-03 11:46:40.000");
        assert_eq!(utc_time(winter), "2023-11-14T22:23:01.042Z");
        assert_eq!(utc_time(summer), "2024-07-03T09:46:40.000Z");
        assert!(utc_time(u64::MAX).starts_with("9999-12-"));
        assert!(local_time(u64::MAX).starts_with("9999-12-"));
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
