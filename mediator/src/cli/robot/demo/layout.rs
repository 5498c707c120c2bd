//! Lines of the demo's introduction that fit the terminal. PURE.

/// The longest line if the terminal is wider, or if there is no terminal.
pub(super) const MAX_COLUMNS: usize = 120;

const INDENT: &str = "  ";

/// The minimum space between a command and its remark.
const GAP: usize = 3;

/// Wraps a text to at most this many columns; later lines begin with the indent.
pub(super) fn wrapped(text: &str, indent: &str, columns: usize) -> String {
    fill(text, "", indent, "", columns)
}

/// Commands to type, each with a remark: on the same line where there is room for
/// all remarks, otherwise on a line before it. A command that is still too long
/// continues on the next line in the syntax of the shell.
pub(super) fn commands(commands: &[(String, &str)], columns: usize) -> String {
    let length = |text: &str| text.chars().count();
    let width = commands.iter().map(|(command, _)| length(command)).max();
    let width = width.unwrap_or(0);
    let longest = commands.iter().map(|(_, remark)| length(remark)).max();
    let is_wide = INDENT.len() + width + GAP + 2 + longest.unwrap_or(0) <= columns;
    let mut out = String::new();
    for (command, remark) in commands {
        if is_wide {
            let gap = width + GAP;
            out += &format!("{INDENT}{command:gap$}# {remark}\n");
        } else {
            out += &fill(remark, "  # ", "  # ", "", columns);
            out += &fill(command, INDENT, "    ", " \\", columns);
        }
    }
    out
}

/// Breaks a text between words. A word that is longer than a line stays whole.
fn fill(text: &str, first: &str, later: &str, end: &str, columns: usize) -> String {
    let mut lines = vec![first.to_owned()];
    let mut is_empty = true;
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else {
            break;
        };
        let gap = if is_empty { "" } else { " " };
        let needed = line.chars().count() + gap.len() + word.chars().count() + end.len();
        if is_empty || needed <= columns {
            line.push_str(gap);
            line.push_str(word);
        } else {
            line.push_str(end);
            lines.push(format!("{later}{word}"));
        }
        is_empty = false;
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<(String, &'static str)> {
        vec![
            ("amber devices".into(), "the devices"),
            (
                "amber watch ninedof --period 100ms --sensors accel,gyro".into(),
                "ten times a second; Ctrl-C ends",
            ),
        ]
    }

    #[test]
    fn remarks_stand_beside_commands_where_there_is_room() {
        let wide = commands(&some(), MAX_COLUMNS);
        let lines: Vec<_> = wide.lines().collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].find('#'), lines[1].find('#'));
        assert!(lines[0].ends_with("   # the devices"), "{wide}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for columns in 30..=MAX_COLUMNS {
            let text = commands(&some(), columns) + &wrapped(&"word ".repeat(60), "  ", columns);
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
        assert_eq!(
            commands(&some()[1..], 40),
            "  # ten times a second; Ctrl-C ends\n\
             \x20 amber watch ninedof --period 100ms \\\n\
             \x20   --sensors accel,gyro\n"
        );
    }

    #[test]
    fn a_word_that_is_too_long_stays_whole() {
        let path = "x".repeat(200);
        assert_eq!(wrapped(&path, "  ", 80), format!("{path}\n"));
    }
}
