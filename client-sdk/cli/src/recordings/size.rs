//! Sizes on the command line. PURE.

const UNITS: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];

/// Reads a size such as `500MB`, `1.5G` or `20000`, in bytes.
///
/// # Errors
/// The text is not a size.
#[cfg(any(target_os = "linux", test))]
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let number = upper.strip_suffix('B').unwrap_or(&upper);
    let unit = UNITS.iter().find_map(|(name, bytes)| {
        let letter = name[..1].to_ascii_uppercase();
        Some((number.strip_suffix(&letter)?, *bytes))
    });
    let (number, bytes) = unit.unwrap_or((number, 1.0));
    let number: f64 = number.parse().unwrap_or(f64::NAN);
    let bytes = (number * bytes).round();
    // Up to the largest file of any system.
    match (1.0..=1e18).contains(&bytes) {
        true => Ok(bytes as u64),
        false => Err("not a size such as 500MB or 2GB".to_owned()),
    }
}

/// `1.2 MB`.
pub(crate) fn shown(bytes: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| bytes as f64 >= *unit);
    match unit {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes) in [
            ("500MB", 500_000_000),
            ("500m", 500_000_000),
            ("1.5G", 1_500_000_000),
            ("20kB", 20_000),
            ("7", 7),
            ("7B", 7),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "B", "MB", "-1MB", "0", "nan", "1e30", "5 MiB", "5TB"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(shown(999), "999 B");
        assert_eq!(shown(1_250_000), "1.2 MB");
        assert_eq!(shown(3_000_000_000), "3.0 GB");
    }
}
