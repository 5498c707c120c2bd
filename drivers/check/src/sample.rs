//! Values that fit the description of a device: arguments of requests that only read, and the
//! answers and published data of the devices of the test mediator. PURE.

use amber_reflect::Schemas;
use amber_reflect::arguments::{self, Given, Spelling};
use amber_schema::{Cardinality, Field, Method};
use serde_json::{Map, Value, json};

/// The time on the first message, in ms since 1970; each further one is 100 ms later.
const FIRST_TIME_MS: f64 = 1_700_000_000_000.0;
const STEP_MS: f64 = 100.0;

/// The elements of a list, and the rows of a table: the numbers in them go from the smallest to the
/// largest value.
const ELEMENTS: u32 = 11;

/// The range of a number that has none in its description.
const USUAL_RANGE: f64 = 10.0;

/// Arguments for a request: every flag is true, and every needed argument has a value in its range.
/// `None` if an argument cannot be made up.
pub(crate) fn arguments(method: &Method) -> Option<Given> {
    let period = arguments::period(method);
    let all = arguments::arguments(method).into_iter();
    let words = all.filter_map(|argument| {
        let text = match one(argument.field, 0, 0.5) {
            _ if period == Some(&argument.field.path) => format!("{STEP_MS}ms"),
            Value::Bool(_) => "true".to_owned(),
            _ if !argument.is_required => return None,
            _ if argument.is_table() => "none".to_owned(),
            Value::String(text) => text,
            value => value.to_string(),
        };
        Some(format!("{}={text}", argument.name))
    });
    arguments::read(method, &words.collect::<Vec<_>>(), Spelling::default()).ok()
}

/// Puts a value into the fields of a message, at the path of a field.
pub(crate) fn put(schemas: &Schemas, message: &mut Map<String, Value>, path: &str, value: Value) {
    let ends = path.match_indices('.').map(|(end, _)| end);
    let is_extension = |end: &usize| {
        schemas
            .pool()
            .get_extension_by_name(&path[..*end])
            .is_some()
    };
    let end = ends.chain([path.len()]).find(is_extension);
    let (root, inside) = path.split_at(end.unwrap_or(path.len()));
    let nested = inside.rsplit('.').filter(|name| !name.is_empty());
    let value = nested.fold(value, |value, name| json!({ name: value }));
    message.insert(root.to_owned(), value);
}

/// The `number`-th value of a field.
pub(crate) fn value(field: &Field, number: u32) -> Value {
    match field.cardinality {
        // One is enough, and lists in lists would multiply.
        Cardinality::Repeated if field.is_message() => json!([one(field, number, 0.5)]),
        Cardinality::Repeated => (0..ELEMENTS)
            .map(|i| one(field, number, f64::from(i) / f64::from(ELEMENTS - 1)))
            .collect(),
        Cardinality::Required | Cardinality::Optional => one(field, number, 0.5),
    }
}

/// One value of a field; a number lies at `part` of its range.
fn one(field: &Field, number: u32, part: f64) -> Value {
    if field.is_message() {
        let is_first = |inner: &&Field| {
            let same = |it: &&Field| it.oneof.is_some() && it.oneof == inner.oneof;
            (field.fields.iter().find(same)).is_none_or(|first| first.path == inner.path)
        };
        let inside = field.fields.iter().filter(is_first);
        let inside = inside.map(|inner| (inner.name.clone(), value(inner, number)));
        return Value::Object(inside.collect());
    }
    if let Some(choice) = field.choices.first() {
        return choice.name.clone().into();
    }
    match &*field.type_name {
        "bool" => true.into(),
        "bytes" => "".into(),
        "string" if number == 0 => field.name.clone().into(),
        "string" => format!("{} {number}", field.name).into(),
        "double" | "float" => json!(between(field, number, part)),
        _ => json!(between(field, number, part).round() as i64),
    }
}

fn between(field: &Field, number: u32, part: f64) -> f64 {
    let passed = f64::from(number) * STEP_MS;
    match field.unit.as_deref() {
        Some("ms since 1970") => return FIRST_TIME_MS + passed,
        Some("us since 1970") => return (FIRST_TIME_MS + passed) * 1000.0,
        Some("ms") if field.min.or(field.max).is_none() => return passed,
        _ => {}
    }
    let (low, high) = match (field.min, field.max) {
        (Some(min), Some(max)) => (min, max),
        (Some(min), None) => (min, min + USUAL_RANGE),
        (None, Some(max)) if max >= 0.0 => (0.0, max),
        (None, Some(max)) => (max - USUAL_RANGE, max),
        (None, None) => (0.0, USUAL_RANGE),
    };
    low + (high - low) * part
}
