//! Compares answers and published data with the description of the device. PURE.

use std::borrow::Cow;

use amber_reflect::{Schemas, help};
use amber_schema::{Cardinality, Field, Interface, Kind, Method};
use serde_json::{Map, Value};

/// An implausible value, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Implausible {
    pub(crate) what: String,
    pub(crate) expected: Cow<'static, str>,
}

pub(crate) type Plausibility = Result<(), Implausible>;

/// The fields of a message by name.
pub(crate) type Values = Map<String, Value>;

/// The fields of a message.
///
/// # Errors
/// They cannot be parsed.
pub(crate) fn values(schemas: &Schemas, message: &[u8]) -> Result<Values, Implausible> {
    schemas.values(message).ok_or_else(|| Implausible {
        what: "its fields cannot be parsed".into(),
        expected: "the fields in the .proto file of the device".into(),
    })
}

/// The names of the fields that an answer to this method must have, and of those that it lacks. An
/// answer that refuses the request needs none.
pub(crate) fn required<'a>(
    method: &'a Method,
    schemas: &Schemas,
    values: &Values,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let has = |path: &str| schemas.value_at(values, path).is_some();
    let mut paths: Vec<&str> = method.answer.iter().map(|field| &*field.path).collect();
    if let Kind::Ask {
        repeats_flag,
        refusal,
        ..
    } = &method.kind
    {
        if *repeats_flag {
            paths.extend(method.flags.iter().map(String::as_str));
        }
        if refusal.as_ref().is_some_and(|refusal| has(&refusal.path)) {
            return (vec![], vec![]);
        }
    }
    let name = |path: &&'a str| path.rsplit('.').next().unwrap_or(path);
    let missing = paths.iter().filter(|path| !has(path)).map(name);
    (paths.iter().map(name).collect(), missing.collect())
}

/// Checks that a published message has the data of a stream that the interface describes.
pub(crate) fn stream(interface: &Interface, schemas: &Schemas, values: &Values) -> Plausibility {
    data(&streams(interface), schemas, values)
}

/// Checks that a published message has the data of one of these streams, if there are any.
pub(crate) fn data(streams: &[&Method], schemas: &Schemas, values: &Values) -> Plausibility {
    let lacks = |method: &&Method| !required(method, schemas, values).1.is_empty();
    match streams.iter().all(lacks) && !streams.is_empty() {
        false => Ok(()),
        true => {
            let data = streams.iter().flat_map(|method| &method.answer);
            let data: Vec<_> = data.map(|field| field.name.as_str()).collect();
            let expected = format!("a message with {}", data.join(" or "));
            wrong("it contains no data of any stream".into(), expected)
        }
    }
}

/// The streams that a device publishes to subscribers: those by SUBSCRIBE, or all streams if there
/// are only others.
pub(crate) fn streams(interface: &Interface) -> Vec<&Method> {
    let streams = interface.methods.iter().filter(|method| method.is_stream());
    let (by_subscribe, others): (Vec<_>, Vec<_>) =
        streams.partition(|method| method.kind == Kind::Subscribe);
    match by_subscribe.is_empty() {
        true => others,
        false => by_subscribe,
    }
}

/// Compares all fields of a message that the interface describes with their descriptions.
pub(crate) fn ranges(interface: &Interface, schemas: &Schemas, values: &Values) -> Plausibility {
    let methods = interface.methods.iter();
    let fields = methods.flat_map(|method| method.answer.iter().chain(&method.may_answer));
    for field in fields {
        if let Some(value) = schemas.value_at(values, &field.path) {
            all(&field.name, field, value)?;
        }
    }
    Ok(())
}

/// A value, or each value of a list; `name` is that of the field, from the outermost one.
fn all(name: &str, field: &Field, value: &Value) -> Plausibility {
    match value {
        Value::Array(list) => list.iter().try_for_each(|value| one(name, field, value)),
        value => one(name, field, value),
    }
}

fn one(name: &str, field: &Field, value: &Value) -> Plausibility {
    let said = |what: String| match field.cardinality {
        Cardinality::Repeated => format!("{what} in {name}"),
        _ => format!("{name} is {what}"),
    };
    match value {
        Value::Object(values) => message(name, field, values),
        // JSON has no NaN and no infinity.
        Value::Null if field.is_number() => wrong(said("NaN or infinite".into()), "a number"),
        Value::Number(number) if field.choices.is_empty() => {
            let number = number.as_f64().unwrap_or_default();
            let is_small = field.min.is_some_and(|min| number < min);
            match is_small || field.max.is_some_and(|max| number > max) {
                true => wrong(said(number.to_string()), help::range(field)),
                false => Ok(()),
            }
        }
        Value::Number(number) => {
            let names = field.choices.iter().map(|choice| choice.name.as_str());
            let names: Vec<_> = names.collect();
            wrong(
                said(number.to_string()),
                format!("one of {}", names.join(", ")),
            )
        }
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => Ok(()),
    }
}

fn message(name: &str, field: &Field, values: &Values) -> Plausibility {
    for inner in &field.fields {
        match values.get(&inner.name) {
            Some(value) => all(&format!("{name}.{}", inner.name), inner, value)?,
            None if inner.cardinality == Cardinality::Required || inner.always_set => {
                let expected = format!("{} has a value", inner.name);
                return wrong(format!("{name} has no {}", inner.name), expected);
            }
            None => {}
        }
    }
    let columns = field.fields.iter().filter(|_| field.columns);
    let columns: Vec<_> = columns
        .map(|column| {
            let list = values.get(&column.name).and_then(Value::as_array);
            (list.map_or(0, Vec::len), &column.name)
        })
        .collect();
    match columns.iter().any(|(length, _)| *length != columns[0].0) {
        false => Ok(()),
        true => {
            let lengths = columns.iter();
            let lengths = lengths.map(|(length, name)| format!("{length} {name}"));
            let expected = "lists of the same length: each row has one value of every list";
            wrong(lengths.collect::<Vec<_>>().join(" but "), expected)
        }
    }
}

fn wrong(what: String, expected: impl Into<Cow<'static, str>>) -> Plausibility {
    Err(Implausible {
        what,
        expected: expected.into(),
    })
}

#[cfg(test)]
mod tests;
