//! Messages of a recording as text: JSON, or rows of a table. PURE.

use std::borrow::Cow;
use std::collections::HashMap;

use amber_proto::{printable_cell, printable_json};
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions, Value as Field,
};
use serde_json::Value;

use crate::messages::Stored;

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// With everything.
    Whole,
    /// For cells: of long data, such as a picture, only the length.
    Cells,
}

/// The most bytes of a field that are written into a cell.
const CELL_BYTES: usize = 64;

/// The schemas of a recording, compiled once.
#[derive(Debug, Default)]
pub struct Table {
    messages: HashMap<u16, Option<MessageDescriptor>>,
    columns: Vec<String>,
    is_raw: bool,
}

impl Table {
    /// A table without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether rows have text exactly as it was sent: see [`Table::text`].
    pub fn set_raw(&mut self, is_raw: bool) {
        self.is_raw = is_raw;
    }

    /// A text as a cell. Unless it is raw, nothing in it is a formula for a spreadsheet or a command
    /// for a terminal: see [`printable_cell`].
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.is_raw {
            true => Cow::Borrowed(text),
            false => printable_cell(text),
        }
    }

    /// A message as JSON; `None` if its schema is not usable.
    pub fn value(
        &mut self,
        channel: u16,
        stored: &Stored,
        data: &[u8],
        form: Form,
    ) -> Option<Value> {
        let descriptor = self.messages.entry(channel).or_insert_with(|| {
            let pool = DescriptorPool::decode(&stored.descriptors[..]).ok()?;
            pool.get_message_by_name(&stored.schema)
        });
        let message = DynamicMessage::decode(descriptor.clone()?, data).ok()?;
        let options = SerializeOptions::new().use_proto_field_name(true);
        // Numbers of 64 bits as numbers: the tools for tables expect them.
        let options = options.stringify_64_bit_integers(false);
        let serializer = serde_json::value::Serializer;
        let mut value = message.serialize_with_options(serializer, &options).ok()?;
        if form == Form::Cells {
            shorten(&message, &mut value);
        }
        Some(value)
    }

    /// The columns of a message that were not there before, in order. Lists are one column.
    pub fn add_columns(&mut self, value: &Value) {
        for (name, _) in flat(value) {
            if !self.columns.contains(&name) {
                self.columns.push(name);
            }
        }
    }

    /// The columns of [`Table::row`].
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// One row of a message: a cell for each column.
    pub fn row(&self, value: &Value) -> Vec<String> {
        let cells = flat(value).into_iter();
        let mut cells: HashMap<_, _> = cells.map(|(name, cell)| (name, cell.shown(self))).collect();
        let cell = |name: &String| cells.remove(name).unwrap_or_default();
        self.columns.iter().map(cell).collect()
    }
}

/// Replaces the long bytes of a message by their number.
fn shorten(message: &DynamicMessage, value: &mut Value) {
    for (field, content) in message.fields() {
        let Some(value) = value.get_mut(field.name()) else {
            continue;
        };
        match (content, value) {
            (Field::Bytes(bytes), value) if bytes.len() > CELL_BYTES => {
                *value = format!("<{} bytes>", bytes.len()).into();
            }
            (Field::Message(inner), value) => shorten(inner, value),
            (Field::List(all), Value::Array(values)) => {
                for (inner, value) in all.iter().zip(values) {
                    if let Field::Message(inner) = inner {
                        shorten(inner, value);
                    }
                }
            }
            _ => {}
        }
    }
}

/// One line of JSON for a message.
pub fn json_line(time_ns: u64, topic: &str, value: &Value) -> String {
    let topic = Value::from(topic);
    let line = format!(r#"{{"time_ns":{time_ns},"topic":{topic},"message":{value}}}"#);
    printable_json(line)
}

/// The content of a cell.
enum Cell {
    /// Numbers and the like.
    Plain(String),
    /// Text of a device.
    Text(String),
}

impl Cell {
    fn of(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.clone()),
            Value::Null => Self::Plain(String::new()),
            other => Self::Plain(other.to_string()),
        }
    }

    fn shown(self, table: &Table) -> String {
        match self {
            Self::Plain(text) => text,
            Self::Text(text) => table.text(&text).into_owned(),
        }
    }
}

/// `{"scan": {"angles": [1, 2]}}` as `scan.angles` and `1 2`.
fn flat(value: &Value) -> Vec<(String, Cell)> {
    fn add(path: &str, value: &Value, cells: &mut Vec<(String, Cell)>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = match path.is_empty() {
                        true => name.clone(),
                        false => format!("{path}.{name}"),
                    };
                    add(&path, value, cells);
                }
            }
            Value::Array(all) => {
                let has_numbers = all.iter().all(|it| it.is_number() || it.is_boolean());
                let all = all.iter().map(|it| match it {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                let all: Vec<_> = all.collect();
                let all = all.join(" ");
                let cell = if has_numbers {
                    Cell::Plain(all)
                } else {
                    Cell::Text(all)
                };
                cells.push((path.to_owned(), cell));
            }
            other => cells.push((path.to_owned(), Cell::of(other))),
        }
    }
    let mut cells = Vec::new();
    add("", value, &mut cells);
    cells
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_fields_are_columns_and_lists_are_one() {
        let mut table = Table::new();
        let first = json!({"type": "DATA", "scan": {"angles": [1, 2.5], "unit": "deg"}});
        let second = json!({"type": "DATA", "ackNum": 7});
        table.add_columns(&first);
        table.add_columns(&second);
        let mut columns = table.columns().to_vec();
        columns.sort();
        assert_eq!(columns, ["ackNum", "scan.angles", "scan.unit", "type"]);
        let row: HashMap<_, _> = table.columns().iter().zip(table.row(&first)).collect();
        assert_eq!(row[&"scan.angles".to_owned()], "1 2.5");
        assert_eq!(row[&"ackNum".to_owned()], "");
    }

    #[test]
    fn text_of_devices_is_no_formula_and_no_command() {
        let value = json!({"name": "=HYPERLINK(\"http://x\")", "speed": -5, "list": [-1, 2],
            "words": ["+1", "\u{1b}[2J"], "plain": "a-b"});
        let mut table = Table::new();
        table.add_columns(&value);
        let row = |table: &Table| -> HashMap<_, _> {
            table
                .columns()
                .iter()
                .cloned()
                .zip(table.row(&value))
                .collect()
        };
        let safe = row(&table);
        assert_eq!(safe["name"], "'=HYPERLINK(\"http://x\")");
        assert_eq!(safe["words"], "'+1 \\x1b[2J");
        assert_eq!((&*safe["speed"], &*safe["list"]), ("-5", "-1 2"));
        assert_eq!(safe["plain"], "a-b");
        table.set_raw(true);
        assert_eq!(row(&table)["words"], "+1 \u{1b}[2J");
    }
}
