//! Messages of a recording as text: JSON, or rows of a table. PURE.

use std::collections::HashMap;

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::Value;

use crate::messages::Stored;

/// The schemas of a recording, compiled once.
#[derive(Debug, Default)]
pub struct Table {
    messages: HashMap<u16, Option<MessageDescriptor>>,
    columns: Vec<String>,
}

impl Table {
    /// A table without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// A message as JSON; `None` if its schema is not usable.
    pub fn value(&mut self, channel: u16, stored: &Stored, data: &[u8]) -> Option<Value> {
        let descriptor = self.messages.entry(channel).or_insert_with(|| {
            let pool = DescriptorPool::decode(&stored.descriptors[..]).ok()?;
            pool.get_message_by_name(&stored.schema)
        });
        let message = DynamicMessage::decode(descriptor.clone()?, data).ok()?;
        let options = SerializeOptions::new().use_proto_field_name(true);
        // Numbers of 64 bits as numbers: the tools for tables expect them.
        let options = options.stringify_64_bit_integers(false);
        message
            .serialize_with_options(serde_json::value::Serializer, &options)
            .ok()
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
        let mut cells: HashMap<_, _> = flat(value).into_iter().collect();
        let cell = |name: &String| cells.remove(name).unwrap_or_default();
        self.columns.iter().map(cell).collect()
    }
}

/// One line of JSON for a message.
pub fn json_line(time_ns: u64, topic: &str, value: &Value) -> String {
    let topic = Value::from(topic);
    format!(r#"{{"time_ns":{time_ns},"topic":{topic},"message":{value}}}"#)
}

/// `{"scan": {"angles": [1, 2]}}` as `scan.angles` and `1 2`.
fn flat(value: &Value) -> Vec<(String, String)> {
    fn add(path: &str, value: &Value, cells: &mut Vec<(String, String)>) {
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
                let all: Vec<_> = all.iter().map(cell).collect();
                cells.push((path.to_owned(), all.join(" ")));
            }
            other => cells.push((path.to_owned(), cell(other))),
        }
    }
    let mut cells = Vec::new();
    add("", value, &mut cells);
    cells
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
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
}
