//! Completes devices, requests, streams and arguments: from the mediator, and from descriptions. IO.

use std::collections::BTreeMap;
use std::path::PathBuf;

use amber_client::MediatorAddress;
use amber_proto::{Device, DeviceType};
use amber_reflect::arguments::{self, Argument};
use amber_reflect::{Schemas, help};
use amber_schema::{Interface, Method};

use super::{customs, descriptions, names};

/// A candidate for the next word, with an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub word: String,
    /// A short explanation.
    pub about: String,
}

/// A command line whose last word is completed.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The mediator that it names, or the usual one.
    pub mediator: MediatorAddress,
    /// The files that describe users' devices.
    pub proto: Vec<PathBuf>,
    /// The recordings that it names.
    pub recordings: Vec<PathBuf>,
    /// The device of `amber call` and `amber watch`.
    pub device: Option<Device>,
    /// The words after the device.
    pub words: Vec<String>,
}

/// The devices of the recordings, or else of the mediator; without it, those that have a description.
#[must_use]
pub fn devices(line: &Line) -> Vec<Candidate> {
    let about = |kind: DeviceType| {
        let mut built_in = amber_reflect::built_in().iter();
        let known = built_in.find(|it| it.device_type == kind.0);
        known.map(|it| help::summary(&it.docs)).unwrap_or_default()
    };
    let recorded = names::of_recordings(&line.recordings);
    if !recorded.is_empty() {
        let all = recorded.into_iter();
        let candidate = |(word, kind)| Candidate {
            word,
            about: about(kind),
        };
        return all.map(candidate).collect();
    }
    let (running, mut names) = names::of_mediator(&line.mediator, names::FOR_COMPLETION);
    // A file that does not compile yet hides no other candidates.
    names.extend(names::described(&line.proto).unwrap_or_default());
    let built_in = amber_reflect::built_in().iter();
    let built_in = built_in.map(|it| (it.name.clone(), DeviceType(it.device_type)));
    let known: BTreeMap<DeviceType, String> = (built_in.chain(names))
        .map(|(name, kind)| (kind, name))
        .collect();
    if running.is_empty() {
        let all = known.into_iter();
        let candidate = |(kind, word)| Candidate {
            word,
            about: about(kind),
        };
        return all.map(candidate).collect();
    }
    let candidate = |device: Device| {
        let kind = device.device_type;
        let name = known.get(&kind).cloned();
        let name = name.unwrap_or_else(|| kind.to_string());
        Candidate {
            word: match device.id.0 {
                0 => name,
                id => format!("{name}:{id}"),
            },
            about: about(kind),
        }
    };
    let all = running.into_iter().chain([Device::MEDIATOR]);
    all.map(candidate).collect()
}

/// The requests of a device, or its streams, and then their arguments.
#[must_use]
pub fn after_device(line: &Line, streams: bool) -> Vec<Candidate> {
    let Some(device) = line.device else {
        return Vec::new();
    };
    let schemas = match descriptions::for_help(device, &line.proto, &line.mediator) {
        Ok(known) => known.schemas,
        Err(_) => Schemas::built_in(),
    };
    match (schemas.interface(device.device_type), &line.words[..]) {
        (None, _) => Vec::new(),
        (Some(interface), []) => methods(interface, streams),
        (Some(interface), [method, given @ ..]) => {
            let method = interface.method(method);
            method.map_or_else(Vec::new, |method| values(method, given))
        }
    }
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
fn values(method: &Method, given: &[String]) -> Vec<Candidate> {
    let arguments = arguments::arguments(method);
    let name_of = |word: &String| word.split_once('=').map(|(name, _)| name.to_owned());
    let named: Vec<_> = given.iter().filter_map(name_of).collect();
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

    /// The candidates without a mediator.
    fn after(device: &str, words: &str, proto: &[PathBuf]) -> Vec<String> {
        let line = Line {
            // Nothing listens there.
            mediator: "127.0.0.1:1".parse().unwrap(),
            proto: proto.to_vec(),
            device: Some(device.parse().unwrap()),
            recordings: Vec::new(),
            words: words.split_whitespace().map(str::to_owned).collect(),
        };
        let found = after_device(&line, false).into_iter();
        found.map(|candidate| candidate.word).collect()
    }

    #[test]
    fn requests_and_arguments_are_completed() {
        assert!(after("roboclaw", "", &[]).contains(&"speeds".to_owned()));
        assert_eq!(
            after("maestro", "set-angle", &[]),
            ["servo-address=", "angle="]
        );
        assert_eq!(after("maestro", "set-angle 3", &[]), ["angle="]);
        assert_eq!(
            after("maestro", "set-angle angle=3", &[]),
            ["servo-address="]
        );
        assert!(after("dummy", "enable", &[]).contains(&"true".to_owned()));
        let actions = after("mediator", "change-driver 5 0", &[]);
        assert!(actions.contains(&"RESTART".to_owned()), "{actions:?}");
        assert_eq!(after("dummy", "x", &[]), [""; 0]);
        assert_eq!(after("77:0", "", &[]), [""; 0]);
        let line = Line {
            device: Some("hokuyo".parse().unwrap()),
            ..Line::default()
        };
        let streams: Vec<_> = after_device(&line, true)
            .into_iter()
            .map(|it| it.word)
            .collect();
        assert_eq!(streams, ["scans"]);
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
        let proto = [file];
        assert_eq!(after("201", "", &proto), ["dim"]);
        assert_eq!(after("201", "dim", &proto), ["brightness="]);
        let line = Line {
            mediator: "127.0.0.1:1".parse().unwrap(),
            proto: proto.to_vec(),
            ..Line::default()
        };
        let words: Vec<_> = devices(&line).into_iter().map(|it| it.word).collect();
        for word in ["lamp", "hokuyo", "mediator"] {
            assert!(words.contains(&word.to_owned()), "{words:?}");
        }
    }
}
