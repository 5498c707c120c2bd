//! Every command that a page or a help text shows is one that this program accepts. Tests only.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;

use super::Cli;

/// The pages for people: README.md, docs and those of the packages.
fn pages() -> Vec<PathBuf> {
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
fn commands(page: &str) -> Vec<(usize, Vec<String>)> {
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
        // Two blanks before parentheses begin a remark of a help text.
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

// Builds without all features lack commands.
#[cfg(all(
    feature = "discovery",
    feature = "record",
    feature = "top",
    feature = "web"
))]
#[test]
fn every_command_in_the_documentation_is_accepted() {
    let mut checked = 0;
    let mut failed = String::new();
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for (line, words) in commands(&page) {
            checked += 1;
            let Err(error) = Cli::try_parse_from(&words) else {
                continue;
            };
            if !matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) {
                failed += &format!("{}:{line}: {words:?}\n{error}\n", path.display());
            }
        }
    }
    assert!(checked > 100, "only {checked} commands were found");
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn commands_are_found_in_code_blocks() {
    let page = "amber text\n\
                ```sh\n\
                amber devices   # all of them\n\
                $ amber call dummy message 'a # b | c' | cat\n\
                cargo build\n\
                amber mediator \\\n  --config x > log &\n\
                ```\n\
                amber text\n";
    let found: Vec<_> = commands(page)
        .into_iter()
        .map(|(line, words)| (line, words.join("+")))
        .collect();
    let expected = [
        (3, "amber+devices"),
        (4, "amber+call+dummy+message+a # b | c"),
        (6, "amber+mediator+--config+x"),
    ];
    assert_eq!(
        found,
        expected.map(|(line, words)| (line, words.to_owned()))
    );
}
