//! Comments of `.proto` files as documentation in Rust. PURE.

/// Adds `///` lines. An empty text adds nothing.
pub(crate) fn write(out: &mut String, indent: &str, text: &str) {
    for line in text.lines() {
        out.push_str(format!("{indent}/// {line}").trim_end());
        out.push('\n');
    }
}

/// A comment as rustdoc should read it: what looks like a link to an item, like HTML or like code
/// to test is plain text.
pub(crate) fn markdown(comment: &str) -> String {
    let mut is_block = false;
    let lines = comment.lines().map(|line| {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
            // Rustdoc would compile a block without a language.
            let without_language = line.trim() == "```";
            return match is_block && without_language {
                true => "```text".to_owned(),
                false => line.trim_start().to_owned(),
            };
        }
        if is_block {
            return line.to_owned();
        }
        // Four spaces begin a block of code.
        let spaces = line.len() - line.trim_start().len();
        let indent = " ".repeat(spaces.min(3));
        format!("{indent}{}", escaped(line.trim_start()))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Escapes brackets outside of inline code, except for links with an address.
fn escaped(line: &str) -> String {
    let mut out = String::new();
    for (k, part) in line.split('`').enumerate() {
        if k > 0 {
            out.push('`');
        }
        if k % 2 == 1 {
            out.push_str(part);
            continue;
        }
        for (at, c) in part.char_indices() {
            let rest = &part[at..];
            let is_link = || {
                (rest.find(']')).is_some_and(|end| rest[end..].starts_with("]("))
                    || out.ends_with('\\')
            };
            let is_address = || rest.starts_with("<http") || out.ends_with('\\');
            match c {
                '[' if !is_link() => out.push_str("\\["),
                '<' if !is_address() => out.push_str("\\<"),
                _ => out.push(c),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_stays_plain() {
        for (comment, expected) in [
            ("In [0, 360).", "In \\[0, 360)."),
            ("See [here](https://a.b).", "See [here](https://a.b)."),
            ("A Vec<u8>, `Vec<u8>[0]`.", "A Vec\\<u8>, `Vec<u8>[0]`."),
            ("<https://a.b> \\[x]", "<https://a.b> \\[x]"),
            ("a:\n\n      1 2\n  - b", "a:\n\n   1 2\n  - b"),
            ("```\nlet [x]\n```\n[y]", "```text\nlet [x]\n```\n\\[y]"),
        ] {
            assert_eq!(markdown(comment), expected);
        }
    }

    #[test]
    fn lines_have_no_spaces_at_their_end() {
        let mut out = String::new();
        write(&mut out, "    ", "One.\n\nTwo.");
        assert_eq!(out, "    /// One.\n    ///\n    /// Two.\n");
    }
}
