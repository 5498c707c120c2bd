//! Bar charts as SVG. PURE.

use std::fmt::Write;

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    pub label: String,
    /// The value; 0 or more.
    pub value: f64,
    /// Whether to highlight the bar.
    pub is_ours: bool,
}

const WIDTH: f64 = 720.0;
const LABELS: f64 = 170.0;
const VALUES: f64 = 70.0;
const ROW: f64 = 24.0;
const TOP: f64 = 44.0;
/// Between a bar or a line and a figure.
const GAP: f64 = 6.0;
/// More than the width of a digit.
const DIGIT: f64 = 8.0;

/// A chart of bars on one scale that starts at zero, with a line at `mark`.
pub fn bars(title: &str, bars: &[Bar], mark: Option<f64>) -> String {
    let height = TOP + ROW * bars.len() as f64 + 10.0;
    let longest = (bars.iter().map(|bar| bar.value))
        .chain(mark)
        .fold(f64::MIN_POSITIVE, f64::max);
    let length = |value: f64| (WIDTH - LABELS - VALUES) * value / longest;
    let line = mark.map(|mark| LABELS + length(mark));
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13" role="img">
<title>{title}</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="10" y="24" font-size="15" font-weight="bold">{title}</text>
"##,
        title = escape(title)
    );
    for (i, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * i as f64;
        let fill = if bar.is_ours { "#d98200" } else { "#9aa7b1" };
        let value = number(bar.value);
        let end = LABELS + length(bar.value) + GAP;
        let figure = end - GAP..end + DIGIT * value.len() as f64 + GAP;
        // A figure that the line would cross goes to the right of the line.
        let end = match line.filter(|line| figure.contains(line)) {
            Some(line) => line + GAP,
            None => end,
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            r##"<text x="{x}" y="{text}" text-anchor="end">{label}</text><rect x="{LABELS}" y="{y}" width="{width:.1}" height="{height}" fill="{fill}"/><text x="{end:.1}" y="{text}">{value}</text>"##,
            x = LABELS - 8.0,
            text = y + 14.0,
            label = escape(&bar.label),
            width = length(bar.value),
            height = ROW - 6.0,
        );
    }
    if let Some(x) = line {
        let _ = writeln!(
            svg,
            r##"<line x1="{x:.1}" x2="{x:.1}" y1="{y1}" y2="{y2}" stroke="#333" stroke-dasharray="4 3"/>"##,
            y1 = TOP - 6.0,
            y2 = height - 8.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Formats a number with three significant digits; thousands are written out.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v.is_nan() => "-".into(),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_a_scale_and_labels_are_escaped() {
        let bar = |label: &str, value, is_ours| Bar {
            label: label.into(),
            value,
            is_ours,
        };
        let svg = bars(
            "a < b",
            &[bar("x&y", 1.0, true), bar("z", 2.0, false)],
            Some(1.0),
        );
        assert!(svg.contains("a &lt; b") && svg.contains("x&amp;y"));
        assert!(svg.contains(r#"width="240.0""#) && svg.contains(r#"width="480.0""#));
        assert!(svg.contains(r#"x1="410.0""#));
        assert_eq!(svg.matches("<rect").count(), 3);
    }

    #[test]
    fn the_line_crosses_no_figure() {
        for percent in 0..200 {
            let bar = Bar {
                label: "ours".into(),
                value: f64::from(percent) / 100.0,
                is_ours: true,
            };
            let longest = Bar {
                value: 3.0,
                ..bar.clone()
            };
            let svg = bars("title", &[longest, bar], Some(1.0));
            let line = LABELS + 160.0;
            let figure = svg.lines().find(|text| text.contains("y=\"82\"")).unwrap();
            let (_, text) = figure.rsplit_once("<text x=\"").unwrap();
            let start: f64 = text.split('"').next().unwrap().parse().unwrap();
            let end = start + 4.0 * DIGIT;
            assert!(end < line || start > line, "{percent} %: {figure}");
        }
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [(361_234.0, "361234"), (20.04, "20.0"), (1.234, "1.23")] {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(f64::NAN), "-");
    }
}
