//! The commands that pages and help texts show. Tests only, also those in tests/end_to_end.

use std::fs;
use std::path::{Path, PathBuf};

/// The pages for people: README.md, docs and those of the packages.
pub(crate) fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages: Vec<_> = ["README.md", "CONTRIBUTING.md"]
        .map(|page| root.join(page))
        .into();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The commands of `amber` in the code blocks of a page, with their lines.
pub(crate) fn commands(page: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut is_code = false;
    let mut lines = (1..).zip(page.lines());
    while let Some((number, line)) = lines.next() {
        let mut line = line.trim().to_owned();
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        while let Some(rest) = line.strip_suffix('\\') {
            let (_, next) = lines.next().unwrap();
            line = format!("{rest}{}", next.trim());
        }
        // In help texts, two blanks before parentheses begin a remark.
        let line = line.split("  (").next().unwrap_or_default();
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let line = line.strip_prefix("sudo -u amber ").unwrap_or(line);
        // `amber top` prints a line that begins with `amber at`.
        if is_code && line.starts_with("amber ") && !line.starts_with("amber at ") {
            found.push((number, shell_words::split(first_command(line)).unwrap()));
        }
    }
    found
}

/// A line of a shell up to a comment, a pipe, a redirection or the next command.
fn first_command(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, char) in line.char_indices() {
        match (quote, char) {
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(char),
            (None, '|' | '>' | '&' | ';') => return &line[..at],
            (None, '#') if before == ' ' => return &line[..at],
            _ => {}
        }
        before = char;
    }
    line
}

/// The other commands in the shell blocks of a page, with their lines.
#[allow(dead_code, reason = "only tests/end_to_end uses it")]
pub(crate) fn other_commands(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block = None;
    let mut continues = false;
    for (number, line) in (1..).zip(page.lines()) {
        let line = line.trim();
        if let Some(language) = line.strip_prefix("```") {
            block = block.is_none().then_some(language);
            continue;
        }
        let is_command = !continues && !line.is_empty() && !line.starts_with('#');
        if block == Some("sh") && is_command && !line.starts_with("amber ") {
            found.push((number, line.to_owned()));
        }
        continues = line.ends_with('\\');
    }
    found
}
