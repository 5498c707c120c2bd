//! Ways from `DriverMsg` to a field, and expressions that read and write it. PURE.

use std::fmt::Write;

use prost_reflect::{
    Cardinality, DescriptorPool, ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor,
};

use crate::field_path::is_within_reach;
use crate::names;

/// One step of the way: a field of `DriverMsg`, or a field of the message before.
#[derive(Clone)]
pub(crate) enum PathStep {
    Extension(ExtensionDescriptor),
    Field(FieldDescriptor),
}

/// The way from `DriverMsg` to a field.
pub(crate) fn way(
    pool: &DescriptorPool,
    path: &str,
    package: &str,
) -> Result<Vec<PathStep>, String> {
    let parts: Vec<_> = path.split('.').collect();
    let (extension, rest) = (1..=parts.len())
        .find_map(|end| {
            let extension = pool.get_extension_by_name(&parts[..end].join("."))?;
            Some((extension, &parts[end..]))
        })
        .ok_or_else(|| format!("field '{path}' does not exist"))?;
    if !is_within_reach(pool, &extension.parent_file(), package) {
        return Err(format!(
            "'{path}' is a field of another package\nhint: declare a field of the same type in \
             this file, or import its file with `import public`"
        ));
    }
    let mut steps = vec![PathStep::Extension(extension)];
    for part in rest {
        let kind = steps[steps.len() - 1].kind();
        let field = (kind.as_message()).and_then(|message| message.get_field_by_name(part));
        let field = field.ok_or_else(|| format!("field '{path}' does not exist"))?;
        steps.push(PathStep::Field(field));
    }
    Ok(steps)
}

impl PathStep {
    fn name(&self) -> String {
        names::snake(match self {
            Self::Extension(field) => field.name(),
            Self::Field(field) => field.name(),
        })
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Extension(field) => field.kind(),
            Self::Field(field) => field.kind(),
        }
    }

    pub(crate) fn number(&self) -> u32 {
        match self {
            Self::Extension(field) => field.number(),
            Self::Field(field) => field.number(),
        }
    }

    /// The struct and the name of the group of which it has at most one field.
    fn oneof(&self) -> Option<(MessageDescriptor, String)> {
        match self {
            Self::Extension(_) => None,
            Self::Field(field) => {
                let oneof = field.containing_oneof()?;
                (!oneof.is_synthetic())
                    .then(|| (field.parent_message().clone(), oneof.name().into()))
            }
        }
    }

    /// Whether the member of the struct is an `Option`.
    pub(crate) fn is_option(&self) -> bool {
        match self {
            Self::Extension(field) => field.cardinality() == Cardinality::Optional,
            Self::Field(field) => {
                field.cardinality() == Cardinality::Optional && field.supports_presence()
            }
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        match self {
            Self::Extension(field) => field.cardinality() == Cardinality::Repeated,
            Self::Field(field) => field.cardinality() == Cardinality::Repeated,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Extension(one), Self::Extension(other)) => one.number() == other.number(),
            (Self::Field(one), Self::Field(other)) => one.number() == other.number(),
            _ => false,
        }
    }
}

/// An expression for the field of a message, as an `Option`.
pub(crate) fn read(message: &str, way: &[PathStep], package: &str) -> String {
    expression(message, way, package, "", "")
}

/// An expression for a reference to the field of a message, as an `Option`.
pub(crate) fn look(message: &str, way: &[PathStep], package: &str) -> String {
    expression(message, way, package, "&", ".as_ref()")
}

fn expression(message: &str, way: &[PathStep], package: &str, by: &str, as_ref: &str) -> String {
    let mut out = String::new();
    for (k, step) in way.iter().enumerate() {
        let name = step.name();
        if k == 0 {
            let _ = match step.is_option() {
                true => write!(out, "{message}.{name}{as_ref}"),
                false => write!(out, "Some({by}{message}.{name})"),
            };
        } else if let Some((owner, oneof)) = step.oneof() {
            let member = names::snake(&oneof);
            let variant = variant(step, &owner, &oneof, package);
            let _ = write!(
                out,
                ".and_then(|it| it.{member}{as_ref}).and_then(|it| match it {{ {variant}(it) => \
                 Some(it), _ => None }})"
            );
        } else {
            let _ = match step.is_option() {
                true => write!(out, ".and_then(|it| it.{name}{as_ref})"),
                false => write!(out, ".map(|it| {by}it.{name})"),
            };
        }
    }
    out
}

fn variant(step: &PathStep, owner: &MessageDescriptor, oneof: &str, package: &str) -> String {
    let name = match step {
        PathStep::Extension(field) => field.name().to_owned(),
        PathStep::Field(field) => field.name().to_owned(),
    };
    format!(
        "{}::{}",
        names::oneof(owner, oneof, package),
        names::camel(&name)
    )
}

/// A message to write: some of its fields, and an expression for all others.
#[derive(Clone, Default)]
pub(crate) struct Message {
    /// `None` is `DriverMsg`.
    descriptor: Option<MessageDescriptor>,
    fields: Vec<(PathStep, Part)>,
    /// An expression of the type of the message.
    base: Option<String>,
}

#[derive(Clone)]
enum Part {
    /// An expression for the value.
    Value(String),
    /// An expression for the `Option` of the value.
    Option(String),
    Message(Message),
}

impl Message {
    /// Sets a field to a value, in place of what was set before.
    pub(crate) fn set(&mut self, way: &[PathStep], value: String) {
        self.put(way, Part::Value(value));
    }

    /// Like [`Message::set`], with an expression for an `Option`.
    pub(crate) fn set_option(&mut self, way: &[PathStep], value: String) {
        self.put(way, Part::Option(value));
    }

    /// Makes a field present that is a message. `base` is an expression for it.
    pub(crate) fn set_message(&mut self, way: &[PathStep], base: Option<String>) {
        let descriptor = way
            .last()
            .and_then(|step| step.kind().as_message().cloned());
        self.put(
            way,
            Part::Message(Self {
                descriptor,
                base,
                ..Self::default()
            }),
        );
    }

    fn put(&mut self, way: &[PathStep], part: Part) {
        let Some((first, rest)) = way.split_first() else {
            return;
        };
        let position = self.fields.iter().position(|(it, _)| it.is_same(first));
        if rest.is_empty() {
            match position {
                Some(k) => self.fields[k].1 = part,
                None => self.fields.push((first.clone(), part)),
            }
            return;
        }
        let k = position.unwrap_or_else(|| {
            let descriptor = first.kind().as_message().cloned();
            let message = Self {
                descriptor,
                ..Self::default()
            };
            self.fields.push((first.clone(), Part::Message(message)));
            self.fields.len() - 1
        });
        if let Part::Message(message) = &mut self.fields[k].1 {
            message.put(rest, part);
        }
    }

    /// The expression that makes the message.
    pub(crate) fn expression(&self, package: &str) -> String {
        if self.fields.is_empty()
            && let Some(base) = &self.base
        {
            return base.clone();
        }
        let name = match &self.descriptor {
            Some(descriptor) => names::message(descriptor, package),
            None => names::driver_msg(package),
        };
        let mut members: Vec<String> = Vec::new();
        for (step, part) in &self.fields {
            let value = match part {
                Part::Value(value) => value.clone(),
                Part::Message(message) => message.expression(package),
                Part::Option(option) => {
                    members.push(format!("{}: {option}", step.name()));
                    continue;
                }
            };
            members.push(match step.oneof() {
                Some((owner, oneof)) => {
                    let variant = variant(step, &owner, &oneof, package);
                    format!("{}: Some({variant}({value}))", names::snake(&oneof))
                }
                None if step.is_option() => format!("{}: Some({value})", step.name()),
                None => format!("{}: {value}", step.name()),
            });
        }
        match (&self.base, &self.descriptor) {
            (Some(base), _) => members.push(format!("..{base}")),
            (None, None) => members.push("..::amber_proto::DeviceMessage::data()".into()),
            (None, Some(descriptor)) if members.len() < member_count(descriptor) => {
                members.push("..::core::default::Default::default()".into());
            }
            (None, Some(_)) => {}
        }
        format!("{name} {{ {} }}", members.join(", "))
    }
}

/// The number of members of the struct.
fn member_count(message: &MessageDescriptor) -> usize {
    let is_single = |field: &FieldDescriptor| {
        (field.containing_oneof()).is_none_or(|oneof| oneof.is_synthetic())
    };
    let oneofs = message.oneofs().filter(|oneof| !oneof.is_synthetic());
    message.fields().filter(is_single).count() + oneofs.count()
}
