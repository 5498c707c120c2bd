//! House rules that the compiler cannot check.

mod published;

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::root;

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["client-sdk", "drivers", "mediator", "proto"] {
        collect(&root().join(folder), "rs", &mut found);
    }
    assert!(found.len() > 30, "the sources are here");
    found
}

/// Folders of what tools have built or downloaded.
const FOREIGN: [&str; 4] = [".git", ".venv", "node_modules", "target"];

/// The files of a folder with an extension, and their texts.
fn collect(folder: &Path, extension: &str, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && FOREIGN.iter().all(|foreign| name != *foreign) {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|one| one == extension) {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The code of a file without its comments and its tests.
fn code(text: &str) -> String {
    let tests = text.find("\nmod tests {");
    let lines = text[..tests.unwrap_or(text.len())].lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

#[test]
fn pure_modules_have_no_io() {
    let mut pure = 0;
    for (path, text) in sources() {
        let is_pure = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .any(|line| line.ends_with(" PURE.") || line.contains(" PURE, except for"));
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        if !is_pure || is_test {
            continue;
        }
        pure += 1;
        for forbidden in [
            "mio::",
            "tokio::",
            "Instant::now",
            "SystemTime::now",
            "std::process",
            "println!",
        ] {
            assert!(
                !code(&text).contains(forbidden),
                "{}: {forbidden}",
                path.display()
            );
        }
    }
    assert!(pure >= 10, "only {pure} pure modules found");
}

/// Clients also run on Windows. What needs Unix or Linux stands behind a `cfg`, or in a module that
/// does: those of `amber record`, the sockets of a mediator that announces itself, and `platform/unix`.
#[test]
fn clients_use_unix_only_where_there_is_one() {
    let behind_cfg = [
        "cli/src/platform/unix.rs",
        "cli/src/record/",
        "discovery/src/sockets.rs",
    ];
    let mut found = Vec::new();
    for folder in ["client-sdk", "proto", "drivers/map"] {
        collect(&root().join(folder), "rs", &mut found);
    }
    assert!(found.len() > 100, "the sources are here");
    let needs_unix = |text: &str| {
        let code = code(text);
        let words = ["os::unix", "signal::unix", "rustix::", "nix::"];
        words.iter().any(|word| code.contains(word)) && !code.contains("#[cfg(unix)]")
    };
    for (path, text) in found {
        let shown = path.display().to_string();
        let is_test = shown.contains("/tests/") || shown.ends_with("tests.rs");
        let is_behind = behind_cfg.iter().any(|place| shown.contains(place));
        assert!(is_test || is_behind || !needs_unix(&text), "{shown}");
    }
}

/// Options of a driver may be in a file, and a driver may be any program, so its command line says
/// nothing. Programs ask the device instead, such as `robot` for the shape of the robot.
#[test]
fn only_the_supervisor_reads_the_command_lines_of_drivers() {
    // These show it to people, as it is, or hide it from them.
    let shows = [
        "client-sdk/cli/src/status.rs",
        "client-sdk/dashboard/src/relay.rs",
        "client-sdk/dashboard/page/panel.js",
    ];
    let mut files = Vec::new();
    for (folder, extension) in [
        ("client-sdk", "rs"),
        ("client-sdk", "js"),
        ("client-sdk", "py"),
        ("drivers", "rs"),
        ("drivers", "py"),
    ] {
        collect(&root().join(folder), extension, &mut files);
    }
    let mut shown = 0;
    for (path, text) in files {
        let count = code(&text).matches("driver.command").count();
        if shows.iter().any(|file| path.ends_with(file)) {
            shown += count;
            assert_eq!(count, 1, "{}", path.display());
        } else {
            assert_eq!(count, 0, "{} reads a command line", path.display());
        }
    }
    assert_eq!(shown, shows.len());
}

#[test]
fn unsafe_code_stands_in_three_small_modules() {
    for (path, text) in sources() {
        if text.contains("unsafe {") || text.contains(concat!("allow(", "unsafe_code)")) {
            let is_allowed = [
                "mediator/src/shell/batch.rs",
                "mediator/src/shell/spawn.rs",
                "drivers/src/camera/source/v4l2/linux.rs",
            ]
            .iter()
            .any(|file| path.ends_with(file));
            assert!(is_allowed, "{}", path.display());
            assert!(text.contains("// SAFETY: "));
        }
    }
}

/// Lines of prose that are longer than 100 characters. Code blocks, tables, HTML and lines that
/// cannot be broken do not count.
fn long_lines(page: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let numbered = (1..).zip(page.lines());
    let prose = numbered.filter(|(_, line)| {
        let text = line.trim_start();
        is_code ^= text.starts_with("```");
        !is_code && !text.starts_with('|') && !text.starts_with("<img ") && text.contains(' ')
    });
    prose
        .filter(|(_, line)| line.chars().count() > 100)
        .collect()
}

#[test]
fn prose_has_lines_of_at_most_100_characters() {
    let mut pages = Vec::new();
    collect(&root(), "md", &mut pages);
    assert!(pages.len() > 30, "the pages are here");
    let mut found = Vec::new();
    for (path, text) in &pages {
        for (number, line) in long_lines(text) {
            found.push(format!("{}:{number}: {line}", path.display()));
        }
    }
    assert!(found.is_empty(), "break these lines:\n{}", found.join("\n"));
}

#[test]
fn long_lines_of_prose_are_found() {
    let long = "word ".repeat(21);
    let page = format!(
        "{long}\n```sh\n{long}\n```\n| {long} |\n{}\n",
        "x".repeat(200)
    );
    assert_eq!(long_lines(&page), [(1, long.as_str())]);
}

/// The links of a page to files, without those to the web and within the page.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

#[test]
fn links_of_pages_lead_to_files() {
    let mut pages = Vec::new();
    collect(&root(), "md", &mut pages);
    for (path, text) in pages {
        // A template: its links are those of docs/performance.md.
        if path.ends_with("bench/src/performance.md") {
            continue;
        }
        for target in links(&text) {
            // Links of a page are relative to its folder. Some examples only look like links.
            let found = path.parent().unwrap().join(target);
            let is_code = target.contains([' ', '`', '"', ',']);
            assert!(is_code || found.exists(), "{}: {target}", path.display());
        }
    }
}

#[test]
fn every_page_is_in_the_book() {
    let folder = root().join("docs");
    let summary = fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
    let listed: Vec<_> = links(&summary).map(|page| folder.join(page)).collect();
    let mut pages = Vec::new();
    collect(&folder, "md", &mut pages);
    for (path, _) in pages {
        let is_listed = path.ends_with("SUMMARY.md") || listed.contains(&path);
        assert!(is_listed, "list {} in docs/SUMMARY.md", path.display());
    }
}
