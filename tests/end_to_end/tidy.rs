//! House rules that the compiler cannot check.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::root;

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in ["client-sdk", "drivers", "mediator", "proto"] {
        collect(&root().join(folder), &mut found);
    }
    assert!(found.len() > 30, "the sources are here");
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The code of a file without its comments and its tests.
fn code(text: &str) -> String {
    let tests = text.find("#[cfg(test)]\nmod tests {");
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
            .any(|line| line.ends_with(" PURE.") || line.contains(" PURE, but for"));
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

#[test]
fn unsafe_code_stands_in_two_small_modules() {
    for (path, text) in sources() {
        if text.contains("unsafe {") || text.contains(concat!("allow(", "unsafe_code)")) {
            let allowed = ["batch.rs", "spawn.rs"].map(|file| format!("mediator/src/shell/{file}"));
            let is_allowed = allowed.iter().any(|file| path.ends_with(file));
            assert!(is_allowed, "{}", path.display());
            assert!(text.contains("// SAFETY: "));
        }
    }
}
