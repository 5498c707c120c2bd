//! Converts the settings of the original mediator. PURE.
//!
//! The original reads `settings.config`: tuples `{supervised_driver, {driver, {Name}}, {Type,
//! Id}, Options}`. It starts each driver in its own working directory with exactly two
//! arguments, the values of `config_file` and `log_config_file`. Settings of 2013 may lack them. All
//! other entries are reported.

pub mod erlang;

use std::fmt::Write as _;
use std::path::Path;

use amber_proto::{Device, DeviceType};

use self::erlang::{Position, SyntaxError, Term, Value, consult};

/// The converted configuration, and notes about omitted entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// TOML.
    pub toml: String,
    /// Entries that could not be converted, each with its place.
    pub notes: Vec<String>,
    /// The number of entries that were left out; each has a note.
    pub left_out: usize,
    /// The number of drivers.
    pub drivers: usize,
}

/// The entry of a driver is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {message}", at.line, at.column)]
struct InvalidEntry {
    at: Position,
    message: String,
}

struct Driver {
    name: String,
    device: Device,
    command: Vec<String>,
    at: Position,
}

/// Converts the settings. `directory` is the folder in which the original was started, unless
/// it is that of the new file. Invalid entries are left out, because the other drivers do not
/// depend on them.
///
/// # Errors
/// The text is not a list of Erlang terms.
pub fn import(text: &str, directory: Option<&Path>) -> Result<Imported, SyntaxError> {
    let mut drivers: Vec<Driver> = Vec::new();
    let mut left_out = 0;
    let mut notes = Vec::new();
    for term in consult(text)? {
        let problem = match named(&term) {
            Some(("supervised_driver", rest)) => match driver(&term, rest, &mut notes) {
                Ok(driver) => {
                    let same = |known: &&Driver| known.device == driver.device;
                    match drivers.iter().find(same) {
                        Some(known) => format!(
                            "{}: {} already has a driver in line {}",
                            at(&term),
                            driver.device,
                            known.at.line
                        ),
                        None => {
                            drivers.push(driver);
                            continue;
                        }
                    }
                }
                Err(error) => error.to_string(),
            },
            // The UDP server of the original; this mediator always has one.
            Some((
                "supervised_node",
                [
                    Term {
                        value: Value::Tuple(of),
                        ..
                    },
                    ..,
                ],
            )) if matches!(of.first().map(|t| &t.value), Some(Value::Atom(name)) if name == "udpserver") =>
            {
                continue;
            }
            Some((other, _)) => format!(
                "{}: '{other}' belongs to Erlang and has no equivalent",
                at(&term)
            ),
            None => format!("{}: not an entry", at(&term)),
        };
        left_out += 1;
        notes.push(format!("{problem}: entry left out"));
    }
    Ok(Imported {
        toml: toml(&drivers, directory),
        drivers: drivers.len(),
        notes,
        left_out,
    })
}

fn at(term: &Term) -> String {
    format!("line {}", term.at.line)
}

fn error<T>(term: &Term, message: impl Into<String>) -> Result<T, InvalidEntry> {
    Err(InvalidEntry {
        at: term.at,
        message: message.into(),
    })
}

/// The name at the beginning of a tuple, and its other elements.
fn named(term: &Term) -> Option<(&str, &[Term])> {
    let Value::Tuple(elements) = &term.value else {
        return None;
    };
    match elements.split_first()? {
        (
            Term {
                value: Value::Atom(name),
                ..
            },
            rest,
        ) => Some((name, rest)),
        _ => None,
    }
}

fn driver(term: &Term, rest: &[Term], notes: &mut Vec<String>) -> Result<Driver, InvalidEntry> {
    let [module, device, options] = rest else {
        return error(
            term,
            "a supervised_driver has three parts: {driver, {name}}, {Type, Id} and [options]",
        );
    };
    let (kind, name) = match named(module) {
        Some((kind, [name])) => (kind, name),
        _ => return error(module, "expected {driver, {name}}"),
    };
    let Some((name, [])) = named(name) else {
        return error(name, "expected {name}");
    };
    if kind != "driver" {
        return error(
            term,
            format!("'{name}' is a module '{kind}' that runs inside Erlang, not a program"),
        );
    }
    let device = device_of(device)?;
    let Value::List(entries) = &options.value else {
        return error(options, "expected a list of options");
    };
    let (mut program, mut config, mut log) = (None, None, None);
    for entry in entries {
        let (key, value) = match named(entry) {
            Some((key, [value])) => (key, value),
            _ => return error(entry, "expected {key, value}"),
        };
        let slot = match key {
            "cdriver" => &mut program,
            "config_file" => &mut config,
            "log_config_file" => &mut log,
            other => {
                notes.push(format!(
                    "{}: option '{other}' of '{name}' was never read by the original: left out",
                    at(entry)
                ));
                continue;
            }
        };
        // The original uses the first of several.
        if slot.is_none() {
            *slot = Some(text_of(value)?);
        }
    }
    let Some(program) = program.filter(|program| !program.is_empty()) else {
        return error(
            options,
            format!(
                "'{name}' has no {{cdriver, \"...\"}}, and the original does not start it without"
            ),
        );
    };
    let arguments = match (config, log) {
        (Some(config), Some(log)) => vec![config, log],
        (config, log) => {
            notes.push(format!(
                "{}: '{name}' has no {}, as in 2013: the driver gets only the arguments that it has",
                at(term),
                match (&config, &log) {
                    (None, None) => "config_file and no log_config_file",
                    (None, Some(_)) => "config_file",
                    (Some(_), _) => "log_config_file",
                }
            ));
            match log {
                // It stays the second argument.
                Some(log) => vec![config.unwrap_or_default(), log],
                None => config.into_iter().collect(),
            }
        }
    };
    // The original does not search PATH.
    let program = match program.contains('/') {
        true => program,
        false => format!("./{program}"),
    };
    Ok(Driver {
        name: name.into(),
        device,
        command: [vec![program], arguments].concat(),
        at: term.at,
    })
}

fn device_of(term: &Term) -> Result<Device, InvalidEntry> {
    let numbers = match &term.value {
        Value::Tuple(elements) => match elements.as_slice() {
            [
                Term {
                    value: Value::Integer(kind),
                    ..
                },
                Term {
                    value: Value::Integer(id),
                    ..
                },
            ] => i32::try_from(*kind).ok().zip(i32::try_from(*id).ok()),
            _ => None,
        },
        _ => None,
    };
    match numbers {
        Some((0, _)) => error(term, "device type 0 is the mediator itself"),
        Some((kind, id)) => Ok(Device::new(DeviceType(kind), id)),
        None => error(
            term,
            "expected the device as {Type, Id}, two numbers of 32 bits",
        ),
    }
}

fn text_of(term: &Term) -> Result<String, InvalidEntry> {
    match &term.value {
        Value::Text(text) | Value::Atom(text) => Ok(text.clone()),
        // In Erlang, an empty text is an empty list.
        Value::List(elements) if elements.is_empty() => Ok(String::new()),
        Value::Binary(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => error(term, "expected a text"),
    }
}

fn toml(drivers: &[Driver], directory: Option<&Path>) -> String {
    let mut out = String::from(
        "# Made by `amber import` from the settings of the original mediator.\n\
         # Each driver gets exactly the two arguments that it got there.\n",
    );
    if directory.is_none() {
        out += "# Paths are relative to the folder of this file: it belongs where the original was\n\
                # started (see also `amber import --directory`).\n";
    }
    for driver in drivers {
        let _ = write!(out, "\n# {}\n[[driver]]\n", driver.name.escape_default());
        let _ = writeln!(out, "device = {}", quoted(&driver.device.to_string()));
        let words: Vec<_> = driver.command.iter().map(|word| quoted(word)).collect();
        let _ = writeln!(out, "command = [{}]", words.join(", "));
        if let Some(directory) = directory {
            let _ = writeln!(out, "directory = {}", quoted(&directory.to_string_lossy()));
        }
    }
    out
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use amber_core::config::Config;

    const SETTINGS: &str = r#"
% Patrz: config.hrl
{supervised_node,
  {udpserver,
    {udpserver}},
  []
}.

%%{supervised_driver, {driver, {ninedof} }, {1, 0}, [ {cdriver, "x"} ] }.

{supervised_driver,
  {driver,
    {dummy}
  },
  {5, 0},
  [
    {cdriver, "../drivers/bin/dummy.sh"},
    {config_file, ""},
    {log_config_file, ""}
  ]
}.
{supervised_driver, {driver, {hokuyo}}, {4, 1}, [{log_config_file, "a \"b\".conf"},
  {config_file, "hokuyo.conf"}, {cdriver, "hokuyo_driver"}]}.
{supervised_driver, {driver, {own}}, {-7, 2147483647}, [{cdriver, "/bin/x"}, {config_file, []},
  {log_config_file, 'log'}, {colour, red}]}.
{supervised_driver, {qc_node_echo, {echo}}, {2, 3}, []}.
{supervised_node, {qc_node, {a}}, []}.
{supervised_driver, {driver, {again}}, {5, 0}, [{cdriver, "y"}, {config_file, ""}, {log_config_file, ""}]}.
"#;

    #[test]
    fn imported_drivers_get_the_same_arguments() {
        let imported = import(SETTINGS, None).unwrap();
        let config =
            Config::parse(&imported.toml, &PathBuf::from("amber.toml"), &|_| None).unwrap();
        let drivers: Vec<_> = config
            .drivers
            .iter()
            .map(|driver| (driver.devices[0].to_string(), driver.command.join("|")))
            .collect();
        let expected = [
            ("dummy:0", "../drivers/bin/dummy.sh||"),
            ("hokuyo:1", "./hokuyo_driver|hokuyo.conf|a \"b\".conf"),
            ("-7:2147483647", "/bin/x||log"),
        ];
        let expected = expected.map(|(device, command)| (device.to_owned(), command.to_owned()));
        assert_eq!(drivers, expected);
        assert_eq!(imported.drivers, 3);
    }

    #[test]
    fn left_out_entries_are_reported() {
        let notes = import(SETTINGS, None).unwrap().notes;
        assert_eq!(notes.len(), 4, "{notes:?}");
        for (note, words) in notes.iter().zip([
            "'colour' of 'own' was never read",
            "'echo' is a module 'qc_node_echo' that runs inside Erlang",
            "'supervised_node' belongs to Erlang",
            "dummy:0 already has a driver in line 11",
        ]) {
            assert!(note.contains(words), "{note}");
        }
        // The option belongs to an entry that is imported.
        assert_eq!(import(SETTINGS, None).unwrap().left_out, 3);
    }

    #[test]
    fn entries_of_2013_without_files_are_imported_with_a_remark() {
        for (options, command, remark) in [
            (
                r#"{cdriver, "x"}"#,
                "./x",
                "no config_file and no log_config_file",
            ),
            (
                r#"{cdriver, "x"}, {config_file, "c"}"#,
                "./x|c",
                "no log_config_file",
            ),
            (
                r#"{cdriver, "x"}, {log_config_file, "l"}"#,
                "./x||l",
                "no config_file",
            ),
        ] {
            let text = format!("{{supervised_driver, {{driver, {{x}}}}, {{1, 0}}, [{options}]}}.");
            let imported = import(&text, None).unwrap();
            assert_eq!((imported.drivers, imported.left_out), (1, 0), "{text}");
            let config =
                Config::parse(&imported.toml, &PathBuf::from("amber.toml"), &|_| None).unwrap();
            assert_eq!(config.drivers[0].command.join("|"), command);
            let [note] = &imported.notes[..] else {
                panic!("{:?}", imported.notes);
            };
            assert!(
                note.starts_with("line 1: 'x' has ") && note.contains(remark),
                "{note}"
            );
        }
    }

    #[test]
    fn a_directory_is_written_for_each_driver() {
        let imported = import(SETTINGS, Some(Path::new("/opt/amber"))).unwrap();
        let config =
            Config::parse(&imported.toml, &PathBuf::from("/etc/amber.toml"), &|_| None).unwrap();
        for driver in config.drivers {
            assert_eq!(driver.directory.as_deref(), Some(Path::new("/opt/amber")));
        }
    }

    #[test]
    fn invalid_entries_are_reported_with_their_place() {
        for (text, message) in [
            (
                "{supervised_driver, x}.",
                "1:1: a supervised_driver has three parts",
            ),
            (
                "{supervised_driver, {driver}, {1,0}, []}.",
                "1:21: expected {driver, {name}}",
            ),
            (
                "{supervised_driver, {driver, {x}}, {1}, []}.",
                "1:36: expected the device as {Type, Id}",
            ),
            (
                "{supervised_driver, {driver, {x}}, {0,0}, []}.",
                "1:36: device type 0",
            ),
            (
                "{supervised_driver, {driver, {x}}, {1,0}, []}.",
                "1:43: 'x' has no {cdriver, \"...\"}",
            ),
            (
                "{supervised_driver, {driver, {x}}, {1,0}, [{cdriver, 7}]}.",
                "1:54: expected a text",
            ),
        ] {
            let imported = import(text, None).unwrap();
            assert_eq!((imported.drivers, imported.left_out), (0, 1), "{text}");
            let [note] = &imported.notes[..] else {
                panic!("{text}: {:?}", imported.notes);
            };
            assert!(note.starts_with(message), "{text}: {note}");
            assert!(note.ends_with(": entry left out"), "{text}: {note}");
        }
        let error = import("{supervised_driver,\n", None).unwrap_err();
        assert_eq!(error.to_string(), "2:1: the text ends inside a term");
    }

    #[test]
    fn an_invalid_entry_does_not_stop_the_others() {
        // As settings were written early in 2013: one name instead of {driver, {name}}.
        let text = format!("{{supervised_driver, roboclaw, {{2, 0}}, []}}.\n{SETTINGS}");
        let imported = import(&text, None).unwrap();
        assert_eq!((imported.drivers, imported.left_out), (3, 4));
        assert_eq!(imported.toml, import(SETTINGS, None).unwrap().toml);
        assert!(imported.notes[0].starts_with("1:21: expected {driver, {name}}"));
    }
}
