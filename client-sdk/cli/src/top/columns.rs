//! The columns of `amber top`: those that fit into a width, most important first. PURE.

use amber_terminal::millis;

use super::sample::{ClientRow, DeviceRow, DropRow};

/// A column of a table with rows of type `T`.
pub(super) struct Column<T> {
    pub(super) heading: &'static str,
    pub(super) width: u16,
    /// Columns with higher numbers are left out first.
    rank: u8,
    pub(super) is_number: bool,
    pub(super) cell: fn(&T) -> String,
}

const fn text<T>(heading: &'static str, width: u16, rank: u8, cell: fn(&T) -> String) -> Column<T> {
    Column {
        heading,
        width,
        rank,
        is_number: false,
        cell,
    }
}

const fn number<T>(
    heading: &'static str,
    width: u16,
    rank: u8,
    cell: fn(&T) -> String,
) -> Column<T> {
    Column {
        is_number: true,
        ..text(heading, width, rank, cell)
    }
}

/// Columns of devices; the problem of the device follows them.
pub(super) const DEVICES: &[Column<DeviceRow>] = &[
    text("DEVICE", 23, 0, |it| match it.others {
        0 => it.device.clone(),
        others => format!("{} +{others}", it.device),
    }),
    text("STATE", 8, 1, |it| it.state.to_owned()),
    number("FOR", 7, 7, |it| millis(it.state_ms)),
    number("IN/s", 6, 2, |it| rate(it.in_per_s)),
    number("OUT/s", 6, 3, |it| rate(it.out_per_s)),
    number("OUT B/s", 8, 9, |it| rate(it.out_bytes_per_s)),
    number("CPU %", 6, 4, |it| percent(it.cpu_percent)),
    number("MEMORY", 8, 5, |it| memory(it.memory_bytes)),
    number("RTT ms", 7, 6, |it| milliseconds(it.round_trip_ms)),
    number("DROPS", 6, 8, |it| it.dropped.to_string()),
    number("WAIT", 5, 11, |it| it.waiting.to_string()),
    number("STARTS", 6, 10, |it| it.restarts.to_string()),
];

/// Columns of clients; the devices that they use follow.
pub(super) const CLIENTS: &[Column<ClientRow>] = &[
    number("CLIENT", 6, 0, |it| it.id.to_string()),
    text("ADDRESS", 21, 1, |it| it.address.clone()),
    number("SENDS/s", 7, 2, |it| rate(it.sends_per_s)),
    number("GETS/s", 7, 3, |it| rate(it.gets_per_s)),
    number("SILENT", 7, 4, |it| millis(it.silent_ms)),
];

/// Columns of drops.
pub(super) const DROPS: &[Column<DropRow>] = &[
    text("DROPPED BECAUSE", 34, 0, |it| it.reason.replace('_', " ")),
    number("PER s", 6, 1, |it| rate(it.per_s)),
    number("TOTAL", 8, 2, |it| it.total.to_string()),
];

/// The columns that fit, in their order, and the remaining width. At least one column is shown.
pub(super) fn fitting<T>(columns: &[Column<T>], width: u16) -> (Vec<&Column<T>>, u16) {
    let mut by_rank: Vec<_> = columns.iter().collect();
    by_rank.sort_by_key(|column| column.rank);
    let mut left = width;
    let mut last = 0;
    for (index, column) in by_rank.iter().enumerate() {
        let needed = column.width + u16::from(index > 0);
        if index > 0 && needed > left {
            break;
        }
        left = left.saturating_sub(needed);
        last = column.rank;
    }
    let fitting = columns.iter().filter(|column| column.rank <= last);
    (fitting.collect(), left)
}

/// A rate in at most six characters.
pub(super) fn rate(per_s: f64) -> String {
    match per_s {
        0.0 => "0".into(),
        ..9.95 => format!("{per_s:.1}"),
        ..9_999.5 => format!("{per_s:.0}"),
        ..999_950.0 => format!("{:.1}k", per_s / 1e3),
        ..999_950_000.0 => format!("{:.1}M", per_s / 1e6),
        _ => format!("{:.1}G", per_s / 1e9),
    }
}

/// A share of one core.
pub(super) fn percent(percent: Option<f64>) -> String {
    percent.map_or_else(|| "-".into(), |percent| format!("{percent:.1}"))
}

/// An amount of memory.
pub(super) fn memory(bytes: Option<u64>) -> String {
    match bytes {
        None => "-".into(),
        Some(bytes @ ..1_000_000) => format!("{} kB", bytes / 1000),
        Some(bytes) => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A round-trip time.
pub(super) fn milliseconds(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".into(), |ms| format!("{ms:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (per_s, text) in [
            (0.0, "0"),
            (0.04, "0.0"),
            (9.94, "9.9"),
            (9.96, "10"),
            (9_999.0, "9999"),
            (10_000.0, "10.0k"),
            (999_900.0, "999.9k"),
            (999_960.0, "1.0M"),
            (12_345_678_901.0, "12.3G"),
        ] {
            assert_eq!(rate(per_s), text);
            assert!(text.len() <= 6);
        }
        assert_eq!(memory(Some(999_999)), "999 kB");
        assert_eq!(memory(Some(12_345_678)), "12.3 MB");
        assert_eq!(percent(None), "-");
    }

    #[test]
    fn narrow_tables_keep_the_important_columns() {
        let headings = |width| {
            let (columns, left) = fitting(DEVICES, width);
            let used: u16 = columns.iter().map(|it| it.width + 1).sum();
            assert!(columns.len() == 1 || used - 1 + left == width, "{width}");
            columns.iter().map(|it| it.heading).collect::<Vec<_>>()
        };
        assert_eq!(headings(0), ["DEVICE"]);
        assert_eq!(headings(31), ["DEVICE"]);
        assert_eq!(headings(32), ["DEVICE", "STATE"]);
        assert_eq!(
            headings(64),
            ["DEVICE", "STATE", "IN/s", "OUT/s", "CPU %", "MEMORY"]
        );
        assert_eq!(headings(200).len(), DEVICES.len());
    }
}
