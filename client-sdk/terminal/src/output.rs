//! Results as text for people or as JSON for programs. IO.
//!
//! Text for people and JSON may include text of drivers, devices and other programs. Its control
//! characters are escaped here, by the functions of `amber_proto::printable`. Only [`print()`] writes
//! bytes as they are: files, and our own drawings.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use amber_proto::{printable, printable_json, printable_line};
use serde::Serialize;

use crate::Failure;

/// A result as text for people; each line ends with a line feed.
pub trait Human {
    /// The text.
    fn human(&self) -> String;
}

/// Shows a result on stdout, with JSON as one line.
///
/// # Errors
/// As [`print()`].
pub fn show(result: &(impl Serialize + Human), json: bool) -> Result<(), Failure> {
    match json {
        true => print_json(result),
        false => print_text(&result.human()),
    }
}

/// Writes text to stdout, which may have parts of others.
///
/// # Errors
/// As [`print()`].
pub fn print_text(text: &str) -> Result<(), Failure> {
    print(printable(text).as_bytes())
}

/// Writes a line over the current one of a terminal; the cursor stays behind it.
///
/// # Errors
/// As [`print()`].
pub fn print_over(line: &str) -> Result<(), Failure> {
    print(format!("\r{}\x1b[K", printable_line(line)).as_bytes())
}

/// Writes a value to stdout, as JSON in one line.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(value);
    let line = line.map_err(|error| Failure::new(format!("cannot write JSON: {error}")))?;
    print((printable_json(line) + "\n").as_bytes())
}

/// Writes data to stdout immediately, as they are.
///
/// # Errors
/// It cannot be written. A closed pipe gives a failure that shows nothing and
/// ends with exit code 0.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::output_closed()),
        Err(error) => Err(Failure::new(format!("cannot write to stdout: {error}"))),
    }
}

/// Writes a remark to stderr.
pub fn note(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(&text.to_string()));
}

/// Makes the console of Windows understand colours and movements of the cursor; other terminals do. A
/// program calls this when it starts.
pub fn prepare_terminal() {
    // It fails where the output goes to a file.
    let _ = anstyle_query::windows::enable_ansi_colors();
}

/// The width of the terminal at stdout, if there is one.
pub fn terminal_columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

/// Whether colours make sense on stdout: a terminal, unless the user does not want them.
pub fn has_colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_plain = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && !unwanted && !is_plain
}

/// Rows in aligned columns under a heading.
pub fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let rows = rows
        .iter()
        .map(|row| row.each_ref().map(|cell| printable_line(cell).into_owned()));
    let rows: Vec<_> = rows.collect();
    let mut widths = heading.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in std::iter::once(&heading.map(String::from)).chain(&rows) {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Names and values, one per line; those without a value are left out.
pub fn fields(fields: &[(&str, Option<String>)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
    let mut out = String::new();
    for (name, value) in fields {
        if let Some(value) = value {
            let value = printable_line(value);
            let _ = writeln!(out, "{:width$} {value}", format!("{name}:"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_not_padded() {
        let rows = [
            ["dummy:0".to_owned(), "up".to_owned(), String::new()],
            ["x".to_owned(), "backoff".to_owned(), "why".to_owned()],
        ];
        assert_eq!(
            table(["DEVICE", "STATE", "LAST"], &rows),
            "DEVICE   STATE    LAST\ndummy:0  up\nx        backoff  why\n"
        );
    }

    #[test]
    fn foreign_text_stays_on_its_line_and_is_escaped() {
        assert_eq!(
            fields(&[("reason", Some("a\nhint: \x1b[31m".into()))]),
            "reason: a\\nhint: \\x1b[31m\n"
        );
        assert_eq!(
            table(["A", "B"], &[["\r\0".to_owned(), "b".to_owned()]]),
            "A       B\n\\r\\x00  b\n"
        );
    }

    #[test]
    fn fields_without_value_are_left_out() {
        let shown = fields(&[
            ("state", Some("up".into())),
            ("pid", None),
            ("restarts", Some("2".into())),
        ]);
        assert_eq!(shown, "state:    up\nrestarts: 2\n");
    }
}
