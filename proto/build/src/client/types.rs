//! Types of fields in Rust. PURE.

use amber_schema::{Cardinality, Field};
use prost_reflect::Kind;

use super::fields::PathStep;
use crate::names;

pub(crate) const STRING: &str = "::std::string::String";
pub(crate) const DURATION: &str = "::core::time::Duration";
const BYTES: &str = "::amber_proto::prost::bytes::Bytes";

/// A path in the value's crate.
pub(crate) fn value(name: &str) -> String {
    format!("::amber_client::values::{name}")
}

pub(crate) fn vec_of(item: &str) -> String {
    format!("::std::vec::Vec<{item}>")
}

pub(crate) fn option_of(item: &str) -> String {
    format!("::core::option::Option<{item}>")
}

/// The type of one value of a field.
pub(crate) fn single(kind: &Kind, package: &str) -> String {
    match kind {
        Kind::Double => "f64".into(),
        Kind::Float => "f32".into(),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => "i32".into(),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => "i64".into(),
        Kind::Uint32 | Kind::Fixed32 => "u32".into(),
        Kind::Uint64 | Kind::Fixed64 => "u64".into(),
        Kind::Bool => "bool".into(),
        Kind::String => STRING.into(),
        Kind::Bytes => BYTES.into(),
        Kind::Message(message) => names::message(message, package),
        Kind::Enum(values) => names::enumeration(values, package),
    }
}

/// The form of a message in the SDK.
pub(crate) enum Shape<'a> {
    /// As a value of the SDK.
    Value(&'a str),
    /// As rows, which are values of the SDK.
    Rows(&'a str),
    /// As rows, which are tuples.
    Tuples(&'a [Field]),
    /// As a list: the only field of the message.
    List(&'a Field),
    /// Unchanged.
    Plain,
}

/// How the SDK shows the message of a field. A table whose value has the name of the message is one
/// value; otherwise the value is that of a row.
pub(crate) fn shape(field: &Field) -> Shape<'_> {
    let message = field.type_name.rsplit('.').next().unwrap_or_default();
    match (&field.value, field.columns, &field.fields[..]) {
        (Some(value), true, _) if value != message => Shape::Rows(value),
        (Some(value), _, _) => Shape::Value(value),
        (None, true, columns) => Shape::Tuples(columns),
        (None, false, [only]) if is_list(only) => Shape::List(only),
        (None, false, _) => Shape::Plain,
    }
}

fn is_list(field: &Field) -> bool {
    field.cardinality == Cardinality::Repeated
}

/// The last step of the way to the field, and the field in it.
pub(crate) fn inner(step: &PathStep, name: &str) -> Option<PathStep> {
    let kind = step.kind();
    let field = kind.as_message()?.get_field_by_name(name)?;
    Some(PathStep::Field(field))
}
