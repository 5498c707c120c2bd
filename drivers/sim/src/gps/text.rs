//! The texts of sentences. PURE.

use std::time::Duration;

/// A sentence with its sum, from what is between `$` and `*`.
#[must_use]
pub fn sentence(body: &str) -> Vec<u8> {
    let sum = body.bytes().fold(0, |sum, byte| sum ^ byte);
    format!("${body}*{sum:02X}\r\n").into_bytes()
}

/// Degrees and minutes, and the letter of the side: `5003.98230,N`.
pub(super) fn angle(
    degrees: f64,
    width: usize,
    digits: usize,
    [positive, negative]: [&str; 2],
) -> String {
    let parts = 10_u64.pow(u32::try_from(digits).unwrap_or_default());
    // Rounded before it is divided, so that the minutes are never 60.
    let all = (degrees.abs() * 60.0 * parts as f64).round() as u64;
    let (minutes, fraction) = (all / parts, all % parts);
    let side = if degrees < 0.0 { negative } else { positive };
    format!(
        "{:0width$}{:02}.{fraction:0digits$},{side}",
        minutes / 60,
        minutes % 60
    )
}

/// `hhmmss.ss` of a time since 1970.
pub(super) fn time(unix: Duration, digits: usize) -> String {
    let second = unix.as_secs() % 86_400;
    let fraction = unix.subsec_millis() / 10_u32.pow(3 - u32::try_from(digits).unwrap_or(3));
    format!(
        "{:02}{:02}{:02}.{fraction:0digits$}",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

/// `ddmmyy` of a time since 1970, until 2099.
pub(super) fn date(unix: Duration) -> String {
    let is_leap = |year: u64| year.is_multiple_of(4);
    let (mut year, mut day) = (1_970, unix.as_secs() / 86_400);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
    ] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{:02}{month:02}{:02}", day + 1, year % 100)
}

/// The direction of a velocity, clockwise from north.
pub(super) fn course(north: f64, east: f64) -> String {
    let degrees = east.atan2(north).to_degrees();
    // Rounded first, so that it is never 360.
    let hundredths = ((degrees * 100.0).round() as i64).rem_euclid(36_000);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
