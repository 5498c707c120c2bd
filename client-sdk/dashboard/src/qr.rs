//! An address as a QR code for the terminal, so that nobody types a token on a phone. PURE.

use qrcode::{Color, EcLevel, QrCode};

/// The light modules that must be around a code. The standard asks for 4, and phones are content with 2.
const BORDER: usize = 2;
/// Black on white whatever the colours of the terminal are: not all phones read an inverted code.
const PAINT: &str = "\x1b[30;107m";
const RESET: &str = "\x1b[0m";

/// The lines of the code, with two rows of modules each. `None` if the text is too long.
#[must_use]
pub(crate) fn code(text: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (width, modules) = (code.width(), code.to_colors());
    let inside = |at: usize| at.checked_sub(BORDER).filter(|at| *at < width);
    let is_dark = |x: usize, y: usize| {
        let at = inside(x).zip(inside(y));
        at.is_some_and(|(x, y)| modules.get(y * width + x) == Some(&Color::Dark))
    };
    let side = width + 2 * BORDER;
    let line = |y: usize| {
        let characters = (0..side).map(|x| match (is_dark(x, y), is_dark(x, y + 1)) {
            (true, true) => '█',
            (true, false) => '▀',
            (false, true) => '▄',
            (false, false) => ' ',
        });
        format!("{PAINT}{}{RESET}\n", characters.collect::<String>())
    };
    Some((0..side).step_by(2).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_fits_a_terminal_and_has_its_three_finder_patterns() {
        let text = format!("http://192.168.100.100:8026/#{}", "x".repeat(22));
        let code = code(&text).unwrap();
        let rows: Vec<Vec<char>> = (code.lines())
            .map(|line| {
                let line = line.strip_prefix(PAINT).unwrap();
                line.strip_suffix(RESET).unwrap().chars().collect()
            })
            .collect();
        // Version 3 has 29 modules.
        let side = 29 + 2 * BORDER;
        assert_eq!(rows.len(), side.div_ceil(2));
        assert!(rows.iter().all(|row| row.len() == side));
        let is_dark = |x: usize, y: usize| {
            let at = rows[(y + BORDER) / 2][x + BORDER];
            matches!((at, (y + BORDER) % 2), ('█', _) | ('▀', 0) | ('▄', 1))
        };
        for (left, top) in [(0, 0), (29 - 7, 0), (0, 29 - 7)] {
            for (x, y) in (0..7).flat_map(|x| (0..7).map(move |y| (x, y))) {
                let ring = (x as i32 - 3).abs().max((y as i32 - 3).abs());
                assert_eq!(is_dark(left + x, top + y), ring != 2, "{x} {y}");
            }
        }
    }

    #[test]
    fn a_text_that_is_too_long_has_no_code() {
        assert_eq!(code(&"x".repeat(3000)), None);
    }
}
