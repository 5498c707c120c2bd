//! Completes devices, requests, streams and arguments from the descriptions.
//! IO: it reads users' files.

use std::path::PathBuf;

use amber_client::MediatorAddress;
use amber_proto::Device;
use amber_reflect::arguments::{self, Argument};
use amber_reflect::{Schemas, help};
use amber_schema::{Interface, Method};

use super::{customs, descriptions};

/// A candidate for the next word, with an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The word.
    pub word: String,
    /// A short explanation.
    pub about: String,
}

/// Commands whose first argument is a device.
const OF_DEVICES: [&str; 10] = [
    "bench", "call", "describe", "ping", "restart", "start", "status", "stop", "trace", "watch",
];

/// Commands whose arguments are all devices.
const OF_MANY_DEVICES: [&str; 1] = ["record"];

/// Commands whose first argument is a file and whose other arguments are devices.
const OF_FILE_AND_DEVICES: [&str; 1] = ["export"];

/// Options that are followed by a value.
const WITH_VALUE: [&str; 19] = [
    "-m",
    "--mediator",
    "-n",
    "--count",
    "--proto",
    "--timeout",
    "--period",
    "--sensors",
    "-i",
    "--interval",
    "--seconds",
    "--request",
    "--as",
    "-o",
    "--output",
    "--for",
    "--max-size",
    "--snapshot",
    "--buffer",
];

/// Candidates for the last word of a command line (without `amber`). There are none if the last
/// word is an option, or if no description applies. The mediator is asked for descriptions, unless
/// the line names another mediator.
pub fn candidates(words: &[String], mediator: &MediatorAddress) -> Vec<Candidate> {
    let Some((last, before)) = words.split_last() else {
        return Vec::new();
    };
    let mut mediator = mediator.clone();
    let mut proto = Vec::new();
    let mut positional = Vec::new();
    let mut before = before.iter();
    while let Some(word) = before.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (option, Some(value)),
            _ => (word.as_str(), None),
        };
        let value = match value {
            None if WITH_VALUE.contains(&option) => match before.next() {
                Some(value) => Some(value.as_str()),
                // The last word is the value of an option.
                None => return Vec::new(),
            },
            value => value,
        };
        match (option, value) {
            ("--proto", Some(file)) => proto.push(PathBuf::from(file)),
            ("-m" | "--mediator", Some(address)) => {
                mediator = address.parse().unwrap_or(mediator);
            }
            _ if word.starts_with('-') => {}
            _ => positional.push(word.as_str()),
        }
    }
    if last.starts_with('-') {
        return Vec::new();
    }
    // A file that does not compile yet hides no other candidates.
    let found = match &positional[..] {
        [verb] if OF_DEVICES.contains(verb) => devices(&known(&proto)),
        [verb, given @ ..] if OF_MANY_DEVICES.contains(verb) => others(&known(&proto), given),
        [verb, _, given @ ..] if OF_FILE_AND_DEVICES.contains(verb) => {
            others(&known(&proto), given)
        }
        [verb @ ("call" | "watch"), device, rest @ ..] => {
            let Ok(device) = device.parse::<Device>() else {
                return Vec::new();
            };
            let schemas = match descriptions::for_help(device, &proto, &mediator) {
                Ok(known) => known.schemas,
                Err(_) => Schemas::built_in(),
            };
            match (schemas.interface(device.device_type), rest) {
                (None, _) => Vec::new(),
                (Some(interface), []) => methods(interface, *verb == "watch"),
                (Some(interface), [method, given @ ..]) => {
                    let method = interface.method(method);
                    method.map_or_else(Vec::new, |method| values(method, given))
                }
            }
        }
        _ => Vec::new(),
    };
    let fits = |candidate: &Candidate| candidate.word.starts_with(last.as_str());
    found.into_iter().filter(fits).collect()
}

/// The descriptions of Amber and of these files.
fn known(proto: &[PathBuf]) -> Schemas {
    Schemas::with(proto).unwrap_or_else(|_| Schemas::built_in())
}

/// The devices that are not given yet.
fn others(schemas: &Schemas, given: &[&str]) -> Vec<Candidate> {
    let mut all = devices(schemas);
    all.retain(|candidate| !given.contains(&candidate.word.as_str()));
    all
}

fn devices(schemas: &Schemas) -> Vec<Candidate> {
    let own = schemas.own_interfaces().map(|interface| Candidate {
        // Names of users' devices are not known to the command line, but their types are.
        word: interface.device_type.to_string(),
        about: interface.name.clone(),
    });
    let ours = amber_reflect::built_in().iter().map(|interface| Candidate {
        word: interface.name.clone(),
        about: help::summary(&interface.docs),
    });
    own.chain(ours).collect()
}

fn methods(interface: &Interface, streams: bool) -> Vec<Candidate> {
    let methods = interface.methods.iter();
    let methods = methods.filter(|method| method.is_stream() == streams);
    let methods = methods.map(|method| Candidate {
        word: method.command.clone(),
        about: help::summary(&method.docs),
    });
    let device_type = amber_proto::DeviceType(interface.device_type);
    let aliases = customs::aliases(device_type).filter(|_| !streams);
    let aliases = aliases.map(|alias| Candidate {
        word: alias.name.to_owned(),
        about: alias.about.to_owned(),
    });
    methods.chain(aliases).collect()
}

/// Names of arguments that are not given yet, and values of the argument whose turn it is.
fn values(method: &Method, given: &[&str]) -> Vec<Candidate> {
    let arguments = arguments::arguments(method);
    let name_of = |word: &&&str| word.split_once('=').map(|(name, _)| name.to_owned());
    let named: Vec<_> = given.iter().filter_map(|word| name_of(&word)).collect();
    let free: Vec<&Argument<'_>> = (arguments.iter())
        .filter(|argument| !named.contains(&argument.name))
        .skip(given.len() - named.len())
        .collect();
    let mut found = Vec::new();
    if let Some(next) = free.first() {
        let choices = next.field.choices.iter().map(|choice| choice.name.clone());
        let choices: Vec<_> = match &*next.field.type_name {
            "bool" => vec!["true".to_owned(), "false".to_owned()],
            _ => choices.collect(),
        };
        found.extend(choices.into_iter().map(|word| Candidate {
            word,
            about: next.name.clone(),
        }));
    }
    let names = free.iter().filter(|argument| !argument.is_table());
    found.extend(names.map(|argument| Candidate {
        word: format!("{}=", argument.name),
        about: argument.about(),
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let line: Vec<_> = line.split(' ').map(str::to_owned).collect();
        // Nothing listens there.
        let nowhere: MediatorAddress = "127.0.0.1:1".parse().unwrap();
        let found = candidates(&line, &nowhere).into_iter();
        found.map(|candidate| candidate.word).collect()
    }

    #[test]
    fn devices_requests_and_arguments_are_completed() {
        assert_eq!(words("call ro"), ["roboclaw", "robot"]);
        assert_eq!(words("--json -m host status ho"), ["hokuyo"]);
        assert_eq!(words("call roboclaw s"), ["speeds", "stop"]);
        assert_eq!(words("call maestro:1 set-a"), ["set-angle", "set-angles"]);
        assert_eq!(words("watch hokuyo "), ["scans"]);
        assert_eq!(
            words("call maestro set-angle "),
            ["servo-address=", "angle="]
        );
        assert_eq!(words("call maestro set-angle 3 "), ["angle="]);
        assert_eq!(
            words("call maestro set-angle angle=3 --timeout 2 "),
            ["servo-address="]
        );
        assert_eq!(words("call dummy enable t"), ["true"]);
        assert_eq!(
            words("call mediator change-driver 5 0 ST"),
            ["START", "STOP"]
        );
        assert_eq!(words("record ho"), ["hokuyo"]);
        assert_eq!(words("record -o drive.mcap --for 5 dummy ho"), ["hokuyo"]);
        assert_eq!(words("export drive.mcap --csv roboc"), ["roboclaw"]);
        for none in [
            "",
            "record hokuyo ho",
            "record -o ",
            "export ho",
            "call --pro",
            "call 77 ",
            "call --timeout ",
            "devices ",
            "call dummy x ",
        ] {
            assert_eq!(words(none), [""; 0], "{none}");
        }
    }

    #[test]
    fn the_device_of_a_user_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lamp.proto");
        let text = "syntax = \"proto2\"; package lamp;\n\
            import \"drivermsg.proto\"; import \"interface.proto\";\n\
            extend amber.DriverMsg { optional uint32 brightness = 110; }\n\
            service Lamp { option (amber.device) = { type: 201 name: \"lamp\" };\n\
            rpc Dim(amber.DriverMsg) returns (amber.Nothing) {\n\
            option (amber.tell) = { request: \"brightness\" }; } }\n";
        std::fs::write(&file, text).unwrap();
        let line = |rest: &str| format!("call --proto {} {rest}", file.display());
        assert_eq!(words(&line("2")), ["201"]);
        assert_eq!(words(&line("201 ")), ["dim"]);
        assert_eq!(words(&line("201 dim ")), ["brightness="]);
    }
}
