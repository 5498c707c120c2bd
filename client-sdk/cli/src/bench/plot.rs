//! Charts of times: their distribution as text, and their course as SVG. PURE.

use std::fmt::Write;

use super::series::{Series, ms, quantile, shown};

/// Rows of the distribution.
const ROWS: usize = 10;
/// Columns of its longest bar.
const BAR: usize = 40;

/// A histogram of the times, one row for each range; the ranges grow by a constant
/// factor. Empty if there are few times.
pub(super) fn distribution(series: &Series) -> String {
    let sorted = series.sorted();
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return String::new();
    };
    if sorted.len() < ROWS || first == last {
        return String::new();
    }
    let first = ms(*first).max(1e-6);
    let factor = (ms(*last) / first).powf(1.0 / ROWS as f64);
    let mut counts = [0; ROWS];
    for time in &sorted {
        let row = (ms(*time) / first).ln() / factor.ln();
        counts[(row.max(0.0) as usize).min(ROWS - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1);
    let mut out = String::from("\n");
    for (row, count) in counts.into_iter().enumerate() {
        let upto = shown(first * factor.powi(row as i32 + 1));
        // A single time is still visible.
        let length = (BAR * count).div_ceil(most);
        let line = format!("{upto:>9}  {:BAR$}  {count}", "█".repeat(length));
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{line}");
    }
    out
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 30.0;

/// One panel for each series: time to the right, duration upwards on a logarithmic
/// scale. Each column spans the shortest to the longest time.
pub(super) fn svg(panels: &[(String, &Series)]) -> String {
    let height = HEIGHT * panels.len() as f64;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
"##
    );
    for (i, (title, series)) in panels.iter().enumerate() {
        let _ = writeln!(
            svg,
            r#"<g transform="translate(0 {})"><text x="{LEFT}" y="18" font-size="14">{title}</text>"#,
            HEIGHT * i as f64
        );
        panel(&mut svg, series);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, series: &Series) {
    let sorted = series.sorted();
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return;
    };
    let end = series
        .values()
        .iter()
        .map(|(at, _)| *at)
        .max()
        .unwrap_or_default();
    // From a power of ten to a power of ten, in ms.
    let low = ms(*first).max(1e-6).log10().floor();
    let high = ms(*last).max(1e-6).log10().ceil().max(low + 1.0);
    let y = |time: f64| {
        let part = (time.max(1e-6).log10() - low) / (high - low);
        HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
    };
    let columns = WIDTH - LEFT - 20.0;
    let mut rule = |at_ms: f64, colour: &str, label: &str| {
        let y = y(at_ms);
        let _ = writeln!(
            svg,
            r##"<line x1="{LEFT}" x2="{x}" y1="{y:.1}" y2="{y:.1}" stroke="{colour}"/><text x="{text}" y="{below:.1}" text-anchor="end" fill="{colour}">{label}</text>"##,
            x = LEFT + columns,
            text = LEFT - 6.0,
            below = y + 4.0,
        );
    };
    for power in low as i32..=high as i32 {
        let at = 10f64.powi(power);
        rule(at, "#ccc", &format!("{at} ms"));
    }
    let mut extremes: Vec<Option<(f64, f64)>> = vec![None; columns as usize + 1];
    for (at, time) in series.values() {
        let part = at.as_secs_f64() / end.as_secs_f64().max(f64::MIN_POSITIVE);
        let time = ms(*time);
        let (low, high) = extremes[(part * columns) as usize].get_or_insert((time, time));
        *low = low.min(time);
        *high = high.max(time);
    }
    for (column, extremes) in extremes.iter().enumerate() {
        let Some((low, high)) = extremes else {
            continue;
        };
        let x = LEFT + column as f64;
        // A single point also has a height.
        let (top, bottom) = (y(*high) - 0.75, y(*low) + 0.75);
        let _ = writeln!(
            svg,
            r##"<line x1="{x}" x2="{x}" y1="{top:.1}" y2="{bottom:.1}" stroke="#2a6f97"/>"##
        );
    }
    for (part, name) in [(0.5, "p50"), (0.99, "p99")] {
        let Some(time) = quantile(&sorted, part).map(ms) else {
            continue;
        };
        let y = y(time);
        let _ = writeln!(
            svg,
            r##"<line x1="{LEFT}" x2="{end}" y1="{y:.1}" y2="{y:.1}" stroke="#d98200" stroke-dasharray="4 3"/><text x="{text}" y="{above:.1}" text-anchor="end" fill="#a86500">{name} {time}</text>"##,
            end = LEFT + columns,
            text = LEFT + columns,
            above = y - 3.0,
            time = shown(time),
        );
    }
    let _ = writeln!(
        svg,
        r#"<text x="{x}" y="{y}" text-anchor="end">{:.1} s</text>"#,
        end.as_secs_f64(),
        x = LEFT + columns,
        y = HEIGHT - 10.0,
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn series(times_us: impl IntoIterator<Item = u64>) -> Series {
        let mut series = Series::default();
        for (i, us) in times_us.into_iter().enumerate() {
            series.add(Duration::from_millis(i as u64), Duration::from_micros(us));
        }
        series
    }

    #[test]
    fn the_distribution_counts_every_time_once() {
        // From 1 to 1024 ms in ten rows: each is twice as far as the one before.
        let times = (0..=10)
            .map(|power| 1000 * 2u64.pow(power))
            .chain([1500; 39]);
        let text = distribution(&series(times));
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rows.len(), ROWS);
        let count = |row: &str| {
            row.split_whitespace()
                .last()
                .unwrap()
                .parse::<usize>()
                .unwrap()
        };
        assert_eq!(rows.iter().map(|row| count(row)).sum::<usize>(), 50);
        assert_eq!(rows[0], format!(" 2.000 ms  {}  40", "█".repeat(40)));
        assert!(rows[9].starts_with("  1024 ms  █"), "{text}");
    }

    #[test]
    fn few_times_or_equal_ones_have_no_distribution() {
        assert_eq!(distribution(&series([])), "");
        assert_eq!(distribution(&series([1, 2, 3])), "");
        assert_eq!(distribution(&series([5; 100])), "");
    }

    #[test]
    fn a_picture_has_a_panel_for_each_series_and_bounded_size() {
        let (many, none) = (series((0..100_000).map(|i| 20 + i % 70)), series([]));
        let svg = svg(&[("a".into(), &many), ("b".into(), &none)]);
        assert_eq!(svg.matches("<g ").count(), 2);
        assert!(
            svg.contains(">p50 0.054 ms<") && svg.contains(r#"height="480""#),
            "{svg}"
        );
        assert!(svg.len() < 80_000, "{}", svg.len());
    }
}
