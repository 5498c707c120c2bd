//! Parses single values with a unit and a range. PURE.

use amber_schema::{Field, conversion};
use prost_reflect::Value;

use crate::words::hex_bytes;

/// Reads a value of a field that is not a message; of a list, one element.
///
/// A number may have a unit that measures the same as that of the field, as in `0.5s` for a field in
/// ms. Without one, it is in `bare_unit`, or else in the unit of the field.
///
/// # Errors
/// The error in the text, without the name of the field.
pub(crate) fn read(field: &Field, text: &str, bare_unit: Option<&str>) -> Result<Value, String> {
    match &*field.type_name {
        "string" => Ok(Value::String(text.to_owned())),
        "bool" => match text {
            "true" | "on" | "yes" => Ok(Value::Bool(true)),
            "false" | "off" | "no" => Ok(Value::Bool(false)),
            _ => Err(format!("'{text}' is not true or false")),
        },
        "bytes" => match hex_bytes(text) {
            Some(bytes) => Ok(Value::Bytes(bytes.into())),
            None => Err(format!("'{text}' is not hexadecimal")),
        },
        "double" => number(field, text, bare_unit).map(Value::F64),
        "float" => number(field, text, bare_unit).map(|number| Value::F32(number as f32)),
        "int32" | "sint32" | "sfixed32" => whole(field, text, bare_unit).map(Value::I32),
        "int64" | "sint64" | "sfixed64" => whole(field, text, bare_unit).map(Value::I64),
        "uint32" | "fixed32" => whole(field, text, bare_unit).map(Value::U32),
        "uint64" | "fixed64" => whole(field, text, bare_unit).map(Value::U64),
        _ => choice(field, text),
    }
}

/// The range and the unit of a field, e.g. `from 0 to 120000 ms`; empty if it has none.
pub(crate) fn range(field: &Field) -> String {
    let unit = field.unit.as_deref().unwrap_or_default();
    let range = match (field.min, field.max) {
        (Some(min), Some(max)) => format!("from {min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) if field.type_name.starts_with('u') => format!("from 0 to {max}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => String::new(),
    };
    match (range.is_empty(), unit.is_empty()) {
        (true, _) => unit.to_owned(),
        (false, true) => range,
        (false, false) => format!("{range} {unit}"),
    }
}

fn choice(field: &Field, text: &str) -> Result<Value, String> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    let found = (field.choices.iter()).find(|choice| plain(&choice.name) == plain(text));
    found
        .map(|choice| Value::EnumNumber(choice.number))
        .ok_or_else(|| {
            let names: Vec<_> = (field.choices.iter())
                .map(|choice| choice.name.as_str())
                .collect();
            format!("'{text}' is not one of {}", names.join(", "))
        })
}

/// A number in the unit of the field, within its range.
fn number(field: &Field, text: &str, bare_unit: Option<&str>) -> Result<f64, String> {
    let is_of_number =
        |c: char| c.is_ascii_digit() || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
    // The longest prefix that is a number: an `e` may belong to the unit.
    let mut end = text.find(|c| !is_of_number(c)).unwrap_or(text.len());
    let digits = loop {
        match text[..end].parse::<f64>() {
            Ok(number) if number.is_finite() => break Some(number),
            _ if end == 0 => break None,
            _ => end -= 1,
        }
    };
    let Some(digits) = digits else {
        return Err(format!("'{text}' is not a number"));
    };
    let own = field.unit.as_deref();
    let unit = match text[end..].trim() {
        "" => bare_unit.or(own),
        unit => Some(unit),
    };
    let factor = match (unit, own) {
        (None, _) => 1.0,
        (Some(unit), Some(own)) if unit == own => 1.0,
        (Some(unit), Some(own)) => conversion(unit, own)
            .ok_or_else(|| format!("'{text}' is not in {own}, and '{unit}' cannot be converted"))?,
        (Some(unit), None) => return Err(format!("'{text}' must not have a unit ('{unit}')")),
    };
    let value = digits * factor;
    let is_in_range = field.min.is_none_or(|min| value >= min)
        && field.max.is_none_or(|max| value <= max)
        && (value >= 0.0 || !field.type_name.starts_with('u'));
    match is_in_range {
        true => Ok(value),
        false if field.min.or(field.max).is_none() => {
            Err(format!("'{text}' is out of range: it must not be negative"))
        }
        false => Err(format!("'{text}' is out of range: {}", range(field))),
    }
}

/// A number without a fraction. Converted values need not be exact.
fn whole<T: TryFrom<i128>>(
    field: &Field,
    text: &str,
    bare_unit: Option<&str>,
) -> Result<T, String> {
    let value = number(field, text, bare_unit)?;
    let rounded = value.round();
    if (value - rounded).abs() > 1e-6 {
        let unit = (field.unit.iter()).map(|unit| format!(" of {unit}"));
        let unit: String = unit.collect();
        return Err(format!("'{text}' is not a whole number{unit}"));
    }
    // Large whole numbers are not exact as f64.
    let exact = text.parse::<i128>().ok().filter(|_| bare_unit.is_none());
    T::try_from(exact.unwrap_or(rounded as i128))
        .map_err(|_| format!("'{text}' is too large for {}", field.type_name))
}
