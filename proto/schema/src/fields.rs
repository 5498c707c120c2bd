//! Fields of `DriverMsg`, with the options that describe them. PURE.

use prost_reflect::{
    DynamicMessage, ExtensionDescriptor, FieldDescriptor, FileDescriptor, Kind, MessageDescriptor,
    Value,
};

use crate::error::Error;
use crate::model::{Cardinality, Choice, Field};
use crate::unit::is_unit;

/// Finds the field that a description names: an extension of `DriverMsg`, or a field in one.
///
/// # Errors
/// The reason, without the place, if there is none; or an error in the field's own options.
pub(crate) fn find(file: &FileDescriptor, name: &str) -> Result<Result<Field, Error>, String> {
    let parts: Vec<_> = name.split('.').collect();
    let pool = file.parent_pool();
    let local = match file.package_name() {
        "" => parts[0].to_owned(),
        package => format!("{package}.{}", parts[0]),
    };
    let (extension, rest) = pool
        .get_extension_by_name(&local)
        .map(|extension| (extension, &parts[1..]))
        .or_else(|| {
            (1..=parts.len()).find_map(|end| {
                let extension = pool.get_extension_by_name(&parts[..end].join("."))?;
                Some((extension, &parts[end..]))
            })
        })
        .ok_or_else(|| no_such_field(file, name))?;
    let extended = extension.containing_message();
    if extended.full_name() != "amber.DriverMsg" {
        return Err(format!(
            "'{name}' extends {}, not amber.DriverMsg",
            extended.full_name()
        ));
    }
    let mut raw = Raw::extension(&extension);
    let mut path = extension.full_name().to_owned();
    for part in rest {
        let inner = match &raw.kind {
            Kind::Message(message) => message.get_field_by_name(part),
            _ => None,
        };
        let inner = inner.ok_or_else(|| format!("'{path}' has no field '{part}'"))?;
        path = format!("{path}.{part}");
        raw = Raw::field(&inner);
    }
    Ok(raw.described(path, &Outside::default(), &mut Way::default()))
}

fn no_such_field(file: &FileDescriptor, name: &str) -> String {
    let known: Vec<_> = file.extensions().map(|it| it.name().to_owned()).collect();
    let distance = |known: &String| strsim::damerau_levenshtein(name, known);
    match known.iter().min_by_key(|known| distance(known)) {
        Some(near) if distance(near) <= 1 + near.len() / 3 => {
            format!("no extension of DriverMsg is called '{name}'; did you mean '{near}'?")
        }
        _ => format!("no extension of DriverMsg is called '{name}'"),
    }
}

/// Whether a text is a value of a single field of this type.
pub(crate) fn is_value(kind: &Kind, text: &str) -> bool {
    match kind {
        Kind::Double | Kind::Float => text.parse().is_ok_and(|value: f64| value.is_finite()),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => text.parse::<i32>().is_ok(),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => text.parse::<i64>().is_ok(),
        Kind::Uint32 | Kind::Fixed32 => text.parse::<u32>().is_ok(),
        Kind::Uint64 | Kind::Fixed64 => text.parse::<u64>().is_ok(),
        Kind::Bool => text.parse::<bool>().is_ok(),
        Kind::String => true,
        Kind::Enum(values) => values.get_value_by_name(text).is_some(),
        Kind::Bytes | Kind::Message(_) => false,
    }
}

/// The type of the field with this path below an extension, for values in a request.
pub(crate) fn kind_of(file: &FileDescriptor, path: &str) -> Option<Kind> {
    let pool = file.parent_pool();
    let parts: Vec<_> = path.split('.').collect();
    (1..=parts.len()).find_map(|end| {
        let extension = pool.get_extension_by_name(&parts[..end].join("."))?;
        let mut kind = extension.kind();
        for part in &parts[end..] {
            kind = kind.as_message()?.get_field_by_name(part)?.kind();
        }
        Some(kind)
    })
}

/// The most fields inside one field of `DriverMsg`: ten times what a device needs. A description
/// may come from a stranger, and messages inside messages multiply.
const MAX_FIELDS: usize = 500;
/// The deepest nesting of messages, for the same reason: the reader calls itself for each.
const MAX_DEPTH: usize = 32;

/// The path from a field of `DriverMsg` to one inside it.
#[derive(Default)]
struct Way {
    /// The full names of the messages.
    messages: Vec<String>,
    /// The number of fields so far, all branches counted.
    fields: usize,
}

/// Options of the field around a message of numbers, which apply to each of them.
#[derive(Clone, Debug, Default)]
struct Outside {
    unit: Option<String>,
    min: Option<f64>,
    max: Option<f64>,
}

/// The common part of extensions and fields.
struct Raw {
    name: String,
    number: u32,
    kind: Kind,
    cardinality: Cardinality,
    oneof: Option<String>,
    options: DynamicMessage,
    file: FileDescriptor,
    place: Vec<i32>,
}

impl Raw {
    fn extension(it: &ExtensionDescriptor) -> Self {
        Self {
            name: it.name().to_owned(),
            number: it.number(),
            kind: it.kind(),
            cardinality: cardinality(it.cardinality()),
            oneof: None,
            options: it.options(),
            file: it.parent_file(),
            place: it.path().to_vec(),
        }
    }

    fn field(it: &FieldDescriptor) -> Self {
        Self {
            name: it.name().to_owned(),
            number: it.number(),
            kind: it.kind(),
            cardinality: cardinality(it.cardinality()),
            oneof: it.containing_oneof().map(|oneof| oneof.name().to_owned()),
            options: it.options(),
            file: it.parent_file(),
            place: it.path().to_vec(),
        }
    }

    /// The checked field, with everything inside it. Recursive messages end at the second level;
    /// `inside` is the path to this field.
    fn described(self, path: String, outside: &Outside, inside: &mut Way) -> Result<Field, Error> {
        let own = Outside {
            unit: self.text("amber.unit"),
            min: self.number("amber.min"),
            max: self.number("amber.max"),
        };
        let absent_means = self.text("amber.absent_means");
        self.check(&own, absent_means.as_deref())?;
        let both = Outside {
            unit: own.unit.or_else(|| outside.unit.clone()),
            min: own.min.or(outside.min),
            max: own.max.or(outside.max),
        };

        let mut fields = Vec::new();
        let (value, columns) = match &self.kind {
            Kind::Message(message) => (text(message, "amber.value"), is_table(message)?),
            _ => (None, false),
        };
        if let Kind::Message(message) = &self.kind
            && !inside
                .messages
                .iter()
                .any(|outer| outer == message.full_name())
        {
            inside.messages.push(message.full_name().to_owned());
            for field in message.fields() {
                inside.fields += 1;
                if inside.fields > MAX_FIELDS || inside.messages.len() > MAX_DEPTH {
                    let text = format!(
                        "{path}: more than {MAX_FIELDS} fields, or messages nested deeper than {MAX_DEPTH}"
                    );
                    return Err(Error::at(&self.file, &self.place, text));
                }
                let path = format!("{path}.{}", field.name());
                fields.push(Raw::field(&field).described(path, &both, inside)?);
            }
            inside.messages.pop();
        }
        let choices = match &self.kind {
            Kind::Enum(values) => (values.values())
                .map(|value| Choice {
                    name: value.name().to_owned(),
                    number: value.number(),
                    docs: docs(&values.parent_file(), value.path()),
                })
                .collect(),
            _ => Vec::new(),
        };
        let always_set = self.option("amber.always_set");
        let always_set = always_set.and_then(|value| value.as_bool());
        let of_number = if is_number(&self.kind) {
            both
        } else {
            Outside::default()
        };
        Ok(Field {
            docs: docs(&self.file, &self.place),
            type_name: type_name(&self.kind),
            unit: of_number.unit,
            name: self.name,
            path,
            number: self.number,
            cardinality: self.cardinality,
            min: of_number.min,
            max: of_number.max,
            absent_means,
            always_set: always_set.unwrap_or_default(),
            oneof: self.oneof,
            value,
            columns,
            fields,
            choices,
        })
    }

    fn check(&self, own: &Outside, absent_means: Option<&str>) -> Result<(), Error> {
        let wrong = |text: String| {
            Err(Error::at(
                &self.file,
                &self.place,
                format!("field {}: {text}", self.name),
            ))
        };
        let has_numbers = match &self.kind {
            Kind::Message(message) => message.fields().all(|field| is_number(&field.kind())),
            kind => is_number(kind),
        };
        let (min, max) = (own.min, own.max);
        if let Some(unit) = own.unit.as_deref() {
            if !has_numbers {
                return wrong("unit is only for a number or for a message of numbers".into());
            }
            if !is_unit(unit) {
                return wrong(format!("unknown unit '{unit}'"))
                    .map_err(|error| error.hint("use a unit such as mm/s, deg, m/s^2 or 25 us/s"));
            }
        }
        if (min.is_some() || max.is_some()) && !has_numbers {
            return wrong("min and max are only for a number or for a message of numbers".into());
        }
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return wrong(format!("min {min} is above max {max}"));
        }
        let Some(value) = absent_means else {
            return Ok(());
        };
        if self.cardinality != Cardinality::Optional {
            return wrong("absent_means is only for an optional field".into());
        }
        if !is_value(&self.kind, value) {
            let type_name = type_name(&self.kind);
            return wrong(format!(
                "absent_means '{value}' is not a value of type {type_name}"
            ));
        }
        if let Ok(value) = value.parse::<f64>()
            && is_number(&self.kind)
            && (min.is_some_and(|min| value < min) || max.is_some_and(|max| value > max))
        {
            return wrong(format!("absent_means {value} is outside of min and max"));
        }
        Ok(())
    }

    fn text(&self, option: &str) -> Option<String> {
        self.option(option)?.as_str().map(str::to_owned)
    }

    fn number(&self, option: &str) -> Option<f64> {
        self.option(option)?.as_f64()
    }

    fn option(&self, name: &str) -> Option<Value> {
        let extension = self.file.parent_pool().get_extension_by_name(name)?;
        (self.options.has_extension(&extension))
            .then(|| self.options.get_extension(&extension).into_owned())
    }
}

/// A text among the options of a message.
fn text(message: &MessageDescriptor, option: &str) -> Option<String> {
    let extension = message.parent_pool().get_extension_by_name(option)?;
    let options = message.options();
    let value = (options.has_extension(&extension)).then(|| options.get_extension(&extension))?;
    value.as_str().map(str::to_owned)
}

/// Whether the lists of a message are the columns of a table.
///
/// # Errors
/// The message has this option, but contains something other than lists.
fn is_table(message: &MessageDescriptor) -> Result<bool, Error> {
    let pool = message.parent_pool();
    let Some(extension) = pool.get_extension_by_name("amber.columns") else {
        return Ok(false);
    };
    if message.options().get_extension(&extension).as_bool() != Some(true) {
        return Ok(false);
    }
    let is_column = |field: FieldDescriptor| field.is_list() && field.kind().as_message().is_none();
    match message.fields().count() > 0 && message.fields().all(is_column) {
        true => Ok(true),
        false => Err(Error::at(
            &message.parent_file(),
            message.path(),
            format!(
                "message {}: columns is only for a message of lists of single values",
                message.name()
            ),
        )),
    }
}

/// The comment on the element of a file that has this path.
pub(crate) fn docs(file: &FileDescriptor, path: &[i32]) -> String {
    let info = file.file_descriptor_proto().source_code_info.as_ref();
    let mut locations = info.iter().flat_map(|info| &info.location);
    let comment = (locations.find(|location| location.path == path))
        .and_then(|location| location.leading_comments.as_deref());
    let lines = comment.unwrap_or_default().lines();
    let lines: Vec<_> = lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    lines.join("\n").trim().to_owned()
}

fn cardinality(cardinality: prost_reflect::Cardinality) -> Cardinality {
    match cardinality {
        prost_reflect::Cardinality::Optional => Cardinality::Optional,
        prost_reflect::Cardinality::Required => Cardinality::Required,
        prost_reflect::Cardinality::Repeated => Cardinality::Repeated,
    }
}

fn is_number(kind: &Kind) -> bool {
    !matches!(
        kind,
        Kind::Bool | Kind::String | Kind::Bytes | Kind::Message(_) | Kind::Enum(_)
    )
}

fn type_name(kind: &Kind) -> String {
    let name = |message: &MessageDescriptor| message.full_name().to_owned();
    match kind {
        Kind::Message(message) => name(message),
        Kind::Enum(values) => values.full_name().to_owned(),
        Kind::Double => "double".into(),
        Kind::Float => "float".into(),
        Kind::Int32 => "int32".into(),
        Kind::Int64 => "int64".into(),
        Kind::Uint32 => "uint32".into(),
        Kind::Uint64 => "uint64".into(),
        Kind::Sint32 => "sint32".into(),
        Kind::Sint64 => "sint64".into(),
        Kind::Fixed32 => "fixed32".into(),
        Kind::Fixed64 => "fixed64".into(),
        Kind::Sfixed32 => "sfixed32".into(),
        Kind::Sfixed64 => "sfixed64".into(),
        Kind::Bool => "bool".into(),
        Kind::String => "string".into(),
        Kind::Bytes => "bytes".into(),
    }
}
