//! Reports errors of the command line as `error:` and `hint:`, like all other errors. PURE.

use amber_proto::DeviceType;
use clap::error::{ContextKind, ContextValue};

/// Commands and options that a build may lack, with the cargo features that add them.
const OPTIONAL: [(&str, bool, &[&str]); 8] = [
    (
        "cli",
        cfg!(feature = "cli"),
        &[
            "demo",
            "mediator",
            "driver",
            "sim",
            "doctor",
            "init",
            "servo",
            "import",
            "check",
            "check-client",
        ],
    ),
    (
        "cli,record",
        cfg!(all(feature = "cli", feature = "record")),
        &["play"],
    ),
    (
        "cli,web",
        cfg!(all(feature = "cli", feature = "web")),
        &["--no-dashboard"],
    ),
    ("discovery", cfg!(feature = "discovery"), &["discover"]),
    (
        "record",
        cfg!(all(feature = "record", target_os = "linux")),
        &["record", "snapshot"],
    ),
    (
        "record",
        cfg!(feature = "record"),
        &["info", "recover", "export"],
    ),
    ("top", cfg!(feature = "top"), &["top"]),
    (
        "web",
        cfg!(feature = "web"),
        &["dashboard", "foxglove", "--listen", "--mjpeg"],
    ),
];

/// Explains that this build lacks a command or an option; `None` if the error is about something else.
pub(super) fn missing_feature(error: &clap::Error) -> Option<String> {
    let unknown = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let unknown = unknown.into_iter().find_map(|kind| error.get(kind));
    let Some(ContextValue::String(word)) = unknown else {
        return None;
    };
    let lacks = |(_, is_built, words): &&(_, bool, &[&str])| !is_built && words.contains(&&**word);
    OPTIONAL
        .iter()
        .find(lacks)
        .map(|(feature, ..)| lacking(word, feature))
}

fn lacking(word: &str, feature: &str) -> String {
    let hint = without(feature);
    format!("error: this `amber` was built without '{word}'\nhint: {hint}\n")
}

/// What to do without these features.
pub(super) fn without(features: &str) -> String {
    // Where a feature is on already, what is missing needs Linux, too.
    let needs_linux =
        features.starts_with("cli") || features == "record" && cfg!(feature = "record");
    match needs_linux && !cfg!(target_os = "linux") {
        true => "it needs Linux: run it on the robot".to_owned(),
        false => format!(
            "build it with the feature '{features}', which is on by default: `cargo build --release \
             -p amber-mediator --features {features}`"
        ),
    }
}

/// What the standard library says about values, and words for people.
const WORDS: [(&str, &str); 8] = [
    ("invalid float literal", "not a number"),
    ("cannot parse float from empty string", "not a number"),
    ("invalid digit found in string", "not a whole number"),
    (
        "cannot parse integer from empty string",
        "not a whole number",
    ),
    ("number too large to fit in target type", "too large"),
    ("number too small to fit in target type", "too small"),
    ("invalid IP address syntax", "not an IP address"),
    (
        "invalid socket address syntax",
        "not an address with a port, such as 127.0.0.1:8026 or [::1]:8026",
    ),
];

/// Rewrites clap's message about an invalid command line.
pub(super) fn explained(error: &str) -> String {
    let Explained { text, hints } = Explained::of(error);
    let hints = hints.into_iter().map(|hint| format!("hint: {hint}\n"));
    format!("{text}\n{}", hints.collect::<String>())
}

/// An error of a command line, with at least one hint.
pub(super) struct Explained {
    /// It begins with `error: `.
    pub(super) text: String,
    pub(super) hints: Vec<String>,
}

impl Explained {
    /// The same as clap's message.
    pub(super) fn of(error: &str) -> Self {
        let (text, hints) = parts(error);
        let text = text
            .into_iter()
            .map(in_words)
            .collect::<Vec<_>>()
            .join("\n");
        Self { text, hints }
    }
}

/// A line without the words of the standard library.
fn in_words(line: &str) -> String {
    let known = (WORDS.iter()).find_map(|(technical, words)| {
        let start = line.strip_suffix(technical)?;
        Some(format!("{start}{words}"))
    });
    known.unwrap_or_else(|| line.to_owned())
}

/// The lines of the text, and the hints.
fn parts(error: &str) -> (Vec<&str>, Vec<String>) {
    let mut text: Vec<&str> = Vec::new();
    let mut hints: Vec<String> = Vec::new();
    let mut usage = None;
    for line in error
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
    {
        if let Some(tip) = line.trim_start().strip_prefix("tip: ") {
            hints.push(tip.to_owned());
        } else if let Some(line) = line.strip_prefix("Usage: ") {
            usage = Some(line);
        } else if !line.starts_with("For more information") {
            text.push(line);
        }
    }
    if error.contains("unknown device type ") {
        hints.push(format!(
            "device types are {}; others are numbers, e.g. 77:0",
            device_types()
        ));
    }
    if hints.is_empty() {
        hints.push(match usage {
            Some(usage) => format!("usage: {usage}; `--help` shows more"),
            None => "`--help` shows more".to_owned(),
        });
    }
    (text, hints)
}

/// The names of device types, with the second ones.
fn device_types() -> String {
    let named = DeviceType::NAMES.map(|(kind, name)| {
        let alias = DeviceType::ALIASES.iter().find(|(other, _)| *other == kind);
        match alias {
            Some((_, alias)) => format!("{name} ({alias})"),
            None => name.to_owned(),
        }
    });
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::Cli;
    use super::*;

    #[test]
    fn a_command_that_was_not_built_names_its_feature() {
        for (feature, is_built, words) in OPTIONAL {
            for word in words {
                let command = match *word {
                    "--listen" => format!("amber metrics {word} 127.0.0.1:0"),
                    // An option of a command that is missing itself.
                    "--no-dashboard" if !cfg!(feature = "cli") => continue,
                    "--no-dashboard" => format!("amber demo {word} --help"),
                    _ => format!("amber {word} --help"),
                };
                let error = Cli::try_parse_from(command.split(' ')).err();
                let missing = error.as_ref().and_then(missing_feature);
                let expected = (!is_built).then(|| lacking(word, feature));
                assert_eq!(missing, expected, "{command}");
            }
        }
        let typo = Cli::try_parse_from(["amber", "recrod"]).err().unwrap();
        assert_eq!(missing_feature(&typo), None);
        assert_eq!(
            lacking("top", "top"),
            "error: this `amber` was built without 'top'\n\
             hint: build it with the feature 'top', which is on by default: `cargo build --release \
             -p amber-mediator --features top`\n"
        );
    }

    #[test]
    fn invalid_command_lines_give_an_error_and_a_hint() {
        for (line, expected) in [
            (
                "amber statu",
                "error: unrecognized subcommand 'statu'\n\
                 hint: some similar subcommands exist: 'start', 'status'\n",
            ),
            (
                "amber ping",
                "error: the following required arguments were not provided:\n  <DEVICE>\n\
                 hint: usage: amber ping <DEVICE>; `--help` shows more\n",
            ),
            (
                "amber ping spoon",
                "error: invalid value 'spoon' for '<DEVICE>': unknown device type 'spoon'\n\
                 hint: device types are NAMES; others are numbers, e.g. 77:0\n",
            ),
            (
                "amber goto 1.x 2",
                "error: invalid value '1.x' for '<X>': not a number\n\
                 hint: `--help` shows more\n",
            ),
            (
                "amber drive --left fast --right 1 --for 2",
                "error: invalid value 'fast' for '--left <MM_S>': not a whole number\n\
                 hint: `--help` shows more\n",
            ),
            (
                "amber drive --left 99999999999 --right 1 --for 2",
                "error: invalid value '99999999999' for '--left <MM_S>': 99999999999 is not in \
                 -2147483648..=2147483647\n\
                 hint: `--help` shows more\n",
            ),
        ] {
            let error = Cli::try_parse_from(line.split(' ')).err().unwrap();
            assert_eq!(
                explained(&error.to_string()),
                expected.replace("NAMES", &device_types())
            );
        }
    }
}
