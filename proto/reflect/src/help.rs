//! Help texts of methods and their arguments, and answers with units. PURE.

use std::fmt::Write as _;

use amber_proto::printable_line;
use amber_schema::{Cardinality, Field, Interface, Method};
use serde_json::{Map, Value};

use crate::arguments::{self, Spelling, kebab};
use crate::schemas::{MAX_SHOWN, MAX_SHOWN_BYTES, short};
use crate::value;

/// The first sentence of a comment, without its full stop.
pub fn summary(docs: &str) -> String {
    let first = docs.split_once(". ").map_or(docs, |(first, _)| first);
    let first = first.split("\n\n").next().unwrap_or_default();
    first.replace('\n', " ").trim_end_matches('.').to_owned()
}

/// The range and the unit of a field, e.g. `from 0 to 120000 ms`; empty if it has none.
pub fn range(field: &Field) -> String {
    value::range(field)
}

/// The requests of a device: a line for each, with its arguments. `more` are other spellings, each
/// with what it does.
pub fn requests<'a>(
    interface: &Interface,
    more: impl Iterator<Item = (&'a str, &'a str)>,
) -> String {
    let rows = (interface.methods.iter())
        .filter(|method| !method.is_stream())
        .map(|method| {
            let usage = arguments::usage(method);
            let usage = format!("{} {usage}", method.command).trim_end().to_owned();
            [usage, summary(&method.docs)]
        });
    let more = more.map(|(name, about)| [name, about].map(str::to_owned));
    aligned(&rows.chain(more).collect::<Vec<_>>())
}

/// The help of a method: its arguments with their units, ranges and defaults, and its answer or
/// its published data.
pub fn method(method: &Method, spelling: Spelling<'_>) -> String {
    let mut out = format!("{}\n", method.docs.trim());
    let arguments = arguments::arguments(method);
    if !arguments.is_empty() {
        out += "\nArguments, in this order or as name=value:\n";
        let rows = arguments.iter().map(|argument| {
            let mut about = [type_of(argument.field), value::range(argument.field)];
            if argument.is_table() {
                about[0] = "rows, or `none`".to_owned();
            }
            let mut about = joined(&about);
            let default = argument.default(method, &spelling).map(str::to_owned);
            let is_flag = argument.field.type_name == "bool" && spelling.flags.is_some();
            let absent = argument.field.absent_means.clone();
            if let Some(default) = default.or(absent.filter(|_| !is_flag)) {
                let _ = write!(about, " [default: {default}]");
            }
            [
                argument.name.clone(),
                about,
                argument.field.docs.replace('\n', " "),
            ]
        });
        let mut rows: Vec<_> = rows.collect();
        let tables = arguments.iter().filter(|it| it.is_table());
        for column in tables.flat_map(|table| &table.field.fields) {
            rows.push(row(column, 1));
        }
        out += &indented(&aligned(&rows));
    }
    if arguments::duration(method).is_some() {
        let bare = arguments::BARE_DURATION;
        let _ = writeln!(out, "\nA time without a unit is in {bare}.");
    }
    if let Some(flags) = spelling.flags {
        let _ = writeln!(out, "\nWithout any of these: {flags}.");
    }
    let title = if method.is_stream() {
        "Publishes"
    } else {
        "Answer"
    };
    let mut rows = Vec::new();
    for field in method.answer.iter().chain(&method.may_answer) {
        add_rows(&mut rows, field, 0);
    }
    if !rows.is_empty() {
        let _ = write!(out, "\n{title}:\n{}", indented(&aligned(&rows)));
    }
    out
}

fn add_rows(rows: &mut Vec<[String; 3]>, field: &Field, depth: usize) {
    rows.push(row(field, depth));
    for inner in &field.fields {
        add_rows(rows, inner, depth + 1);
    }
}

fn row(field: &Field, depth: usize) -> [String; 3] {
    let name = format!("{}{}", "  ".repeat(depth), kebab(&field.name));
    let about = joined(&[type_of(field), value::range(field)]);
    [name, about, field.docs.replace('\n', " ")]
}

fn type_of(field: &Field) -> String {
    let name = match field.choices.is_empty() {
        true => field
            .type_name
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_owned(),
        false => {
            let names = field.choices.iter().map(|choice| choice.name.as_str());
            names.collect::<Vec<_>>().join("|")
        }
    };
    match field.cardinality {
        Cardinality::Repeated => format!("list of {name}"),
        _ => name,
    }
}

fn joined(words: &[String]) -> String {
    let words = words.iter().map(String::as_str).filter(|it| !it.is_empty());
    words.collect::<Vec<_>>().join(", ")
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

/// Columns of equal width, except for the last one.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:width$}  "))
            .collect();
        out += line.trim_end();
        out += "\n";
    }
    out
}

/// The fields of a message in one line, with units where they are known.
pub fn one_line(fields: &[Field], values: &Map<String, Value>) -> String {
    let field_of = |name: &str| fields.iter().find(|field| field.name == name);
    let shown = (values.iter()).map(|(name, value)| match field_of(name) {
        Some(field) => format!("{name}: {}", with_unit(field, value)),
        None => format!("{name}: {}", short(value)),
    });
    shown.collect::<Vec<_>>().join("  ")
}

/// The fields of an answer: a line for each, and a table for lists that are its columns.
pub fn lines(fields: &[Field], values: &Map<String, Value>) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut tables = String::new();
    for field in fields {
        match values.get(&field.name) {
            None => {}
            Some(Value::Object(columns)) if field.columns => tables += &table(field, columns),
            Some(Value::Array(all)) if !field.fields.is_empty() => {
                for value in all {
                    rows.push((&field.name, with_unit(field, value)));
                }
            }
            Some(Value::Object(inner)) if fields.len() == 1 => {
                return lines(&field.fields, inner);
            }
            // A single text needs no quotes.
            Some(Value::String(text)) if counted(field, text).is_none() => {
                rows.push((&field.name, printable_line(text).into_owned()))
            }
            Some(value) => rows.push((&field.name, with_unit(field, value))),
        }
    }
    let width = rows.iter().map(|(name, _)| name.len() + 1).max();
    let width = width.unwrap_or_default();
    let mut out = String::new();
    for (name, value) in rows {
        let _ = writeln!(out, "{:width$} {value}", format!("{name}:"));
    }
    out + &tables
}

/// The maximum number of table rows to show.
const MAX_ROWS: usize = 100;

fn table(field: &Field, columns: &Map<String, Value>) -> String {
    let heading = field.fields.iter().map(|column| match &column.unit {
        Some(unit) => format!("{} ({unit})", kebab(&column.name)),
        None => kebab(&column.name),
    });
    let heading: Vec<_> = heading.collect();
    let lists: Vec<&[Value]> = (field.fields.iter())
        .map(|column| match columns.get(&column.name) {
            Some(Value::Array(values)) => &values[..],
            _ => &[],
        })
        .collect();
    let count = lists.iter().map(|list| list.len()).max().unwrap_or(0);
    let mut out = heading.join("  ") + "\n";
    for index in 0..count.min(MAX_ROWS) {
        let cells = lists.iter().zip(&heading).map(|(list, heading)| {
            let cell = list.get(index).map_or("-".to_owned(), plain);
            let width = heading.chars().count();
            format!("{cell:>width$}")
        });
        out += &cells.collect::<Vec<_>>().join("  ");
        out += "\n";
    }
    if count > MAX_ROWS {
        let _ = writeln!(out, "... {count} rows in total");
    }
    out
}

fn with_unit(field: &Field, value: &Value) -> String {
    match (value, &field.unit) {
        (Value::Object(inner), _) => format!("{{ {} }}", one_line(&field.fields, inner)),
        (Value::Array(all), unit) => {
            let shown: Vec<_> = (all.iter().take(MAX_SHOWN))
                .map(|value| match value {
                    Value::Object(inner) => format!("{{ {} }}", one_line(&field.fields, inner)),
                    value => plain(value),
                })
                .collect();
            let more = match all.len() > MAX_SHOWN {
                true => format!(", ... {} in total", all.len()),
                false => String::new(),
            };
            let unit = unit.as_ref().map(|unit| format!(" {unit}"));
            format!("[{}{more}]{}", shown.join(", "), unit.unwrap_or_default())
        }
        (value, Some(unit)) => format!("{} {unit}", rounded(value, digits(field))),
        (Value::String(text), None) => counted(field, text).unwrap_or_else(|| plain(value)),
        (value, None) => plain(value),
    }
}

/// The number of bytes, if the text is that of a field with many: people do not read a picture in hex.
fn counted(field: &Field, text: &str) -> Option<String> {
    let bytes = text.len() / 2;
    let is_long = field.type_name == "bytes" && bytes > MAX_SHOWN_BYTES;
    is_long.then(|| format!("<{bytes} bytes>"))
}

/// The usual digits of a number for people: JSON has all of them.
const DIGITS: usize = 6;

/// A place on Earth needs more digits: six of a degree would be a hundred metres.
fn digits(field: &Field) -> usize {
    match field.name.as_str() {
        "latitude" | "longitude" => 10,
        _ => DIGITS,
    }
}

/// A value without its unit.
fn plain(value: &Value) -> String {
    rounded(value, DIGITS)
}

fn rounded(value: &Value, digits: usize) -> String {
    match value {
        Value::Number(number) if number.is_f64() => {
            let decimals = digits.saturating_sub(1);
            let text = format!("{:.decimals$e}", number.as_f64().unwrap_or_default());
            let rounded = text.parse::<f64>();
            rounded.map_or_else(|_| value.to_string(), |it| Value::from(it).to_string())
        }
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people_have_six_digits() {
        for (value, shown) in [
            (Value::from(0.547_020_182_228_428_5), "0.54702"),
            (Value::from(0.999_999_999_999_999_6), "1.0"),
            (Value::from(-2.866_208_305e-6), "-2.86621e-6"),
            (Value::from(1200.0), "1200.0"),
            (Value::from(1_795_406_548_606_u64), "1795406548606"),
            (Value::from("text"), "\"text\""),
        ] {
            assert_eq!(plain(&value), shown);
        }
        let longitude = Value::from(-151.215_183_333_333);
        assert_eq!(rounded(&longitude, 10), "-151.2151833");
    }

    #[test]
    fn the_bytes_of_a_picture_are_counted() {
        let interfaces = crate::built_in();
        let camera = interfaces.iter().find(|it| it.name == "camera").unwrap();
        let answer = &camera.method("picture").unwrap().answer;
        let shown = |bytes: usize| {
            let picture = serde_json::json!({ "data": "ff".repeat(bytes), "sequence": 7 });
            let values = Map::from_iter([("picture".to_owned(), picture)]);
            (one_line(answer, &values), lines(answer, &values))
        };
        let (line, table) = shown(1000);
        assert_eq!(line, "picture: { data: <1000 bytes>  sequence: 7 }");
        assert_eq!(table, "data:     <1000 bytes>\nsequence: 7\n");
        assert!(shown(3).1.contains("ffffff"));
    }
}
