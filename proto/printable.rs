//! Makes untrusted text safe for terminals and logs. PURE.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes every control character except tabs, for example as `\x1b`, `\r` and `\n`.
///
/// For one line of foreign text, such as a cell of a table: ESC could move the cursor or change
/// the terminal's title, and a line end could start a line that looks like our own.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\t')
}

/// Like [`printable_line`], but keeps line ends.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\t' | '\n'))
}

/// A line of JSON in which control characters and those that change the direction of text are
/// escaped. JSON itself escapes only those below U+0020.
pub fn printable_json(line: String) -> String {
    if !line.contains(|c| is_unsafe(c) && c >= '\x7f') {
        return line;
    }
    let mut out = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        // They occur only within strings, and all of them have four digits.
        let _ = match c {
            c if is_unsafe(c) && c >= '\x7f' => write!(out, "\\u{:04x}", u32::from(c)),
            c => out.write_char(c),
        };
    }
    out
}

/// A text for a cell of a table: [`printable_line`], with an apostrophe before what a spreadsheet
/// would take for a formula.
pub fn printable_cell(text: &str) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\'']);
    match is_formula {
        true => format!("'{}", escaped(text, |_| false)).into(),
        false => escaped(text, |_| false),
    }
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_unsafe = |c: char| is_unsafe(c) && !stays(c);
    if !text.contains(is_unsafe) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            c if !is_unsafe(c) => out.write_char(c),
            '\t' | '\n' | '\r' => write!(out, "{}", c.escape_default()),
            c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
            c => write!(out, "{}", c.escape_unicode()),
        };
    }
    out.into()
}

/// Control characters, and characters that change the direction of the surrounding text.
fn is_unsafe(c: char) -> bool {
    let is_direction = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}');
    c.is_control() || is_direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_nothing_else() {
        for (text, line) in [
            ("", ""),
            ("zażółć 10 µm\ttab \\x1b", "zażółć 10 µm\ttab \\x1b"),
            ("\x1b[2Jgone\x07", "\\x1b[2Jgone\\x07"),
            ("nul \0 cr \r del \x7f", "nul \\x00 cr \\r del \\x7f"),
            ("\u{9b}31m", "\\x9b31m"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("two\nlines", "two\\nlines"),
        ] {
            assert_eq!(printable_line(text), line);
            assert!(!printable_line(text).contains(|c: char| c.is_control() && c != '\t'));
        }
        assert_eq!(printable("two\nlines\r\n"), "two\nlines\\r\n");
        // Safe text is not copied.
        assert!(matches!(printable("safe\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_has_no_control_characters() {
        let line = r#"{"a":"tab \t ż"}"#.to_owned();
        assert_eq!(printable_json(line.clone()), line);
        let line = "{\"a\":\"\u{9b}2J\u{202e}\u{7f}\u{200f}\"}".to_owned();
        assert_eq!(
            printable_json(line),
            r#"{"a":"\u009b2J\u202e\u007f\u200f"}"#
        );
    }

    #[test]
    fn cells_are_no_formulas() {
        for (text, cell) in [
            ("wall", "wall"),
            ("a=1", "a=1"),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\\t=1"),
            ("two\nlines\u{9b}", "two\\nlines\\x9b"),
        ] {
            assert_eq!(printable_cell(text), cell);
        }
    }
}
