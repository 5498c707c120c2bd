//! Interfaces as text for people, and as Markdown. PURE.

use std::fmt::Write as _;

use crate::model::{Cardinality, Field, Harmless, Interface, Kind, Method, Setting};

/// An interface as plain text, for a terminal.
pub fn text(interface: &Interface) -> String {
    let names: Vec<_> = interface.names().collect();
    let mut out = format!(
        "{} (device type {})\n",
        names.join(" or "),
        interface.device_type
    );
    paragraph(&mut out, "", &interface.docs);
    for method in &interface.methods {
        let moves = moves(method).map_or(String::new(), |words| format!(", {words}"));
        let _ = writeln!(out, "\n{}  ({}{moves})", method.command, kind(method));
        paragraph(&mut out, "    ", &method.docs);
        for (title, fields) in parts(method) {
            let _ = writeln!(out, "  {title}:");
            let mut rows = Vec::new();
            for field in fields {
                add_rows(&mut rows, field, &fixed(method), 2);
            }
            out += &aligned(&rows);
        }
    }
    out
}

/// Interfaces as a part of a document in Markdown: a section for each. Several begin with a table of
/// their numbers.
pub fn markdown(interfaces: &[Interface]) -> String {
    let mut out = String::new();
    if interfaces.len() > 1 {
        out += "## Numbers\n\n| device type | name | extensions |\n|---|---|---|\n";
        for it in interfaces {
            let numbers = runs(&it.numbers);
            let names: Vec<_> = it.names().collect();
            let names = names.join(", ");
            let _ = writeln!(out, "| {} | {names} | {numbers} |", it.device_type);
        }
        out += "\n";
    }
    for interface in interfaces {
        let _ = writeln!(
            out,
            "## {}: device type {}\n",
            interface.name, interface.device_type
        );
        let _ = writeln!(out, "{}\n", interface.docs);
        let _ = writeln!(
            out,
            "Service `{}` in `{}`.",
            interface.service, interface.file
        );
        for method in &interface.methods {
            let _ = writeln!(out, "\n### {}: {}\n", interface.name, method.command);
            if !method.docs.is_empty() {
                let _ = writeln!(out, "{}\n", method.docs);
            }
            let _ = writeln!(out, "Kind: {}.", kind(method));
            if let Some(words) = moves(method) {
                let _ = writeln!(out, "It {}.", words.replace("; stops", ".\nIt stops"));
            }
            if interface.device_type != 0 && method.harmless == Harmless::Unknown {
                let _ = writeln!(
                    out,
                    "It may move or change something, so `amber check` does not send it."
                );
            }
            for flag in &method.flags {
                let _ = writeln!(out, "The client sets the field `{}` to true.", last(flag));
            }
            for (title, fields) in parts(method) {
                let _ = writeln!(out, "\n| {} | type | unit, range | meaning |", title);
                out += "|---|---|---|---|\n";
                let mut rows = Vec::new();
                for field in fields {
                    add_rows(&mut rows, field, &fixed(method), 0);
                }
                for row in rows {
                    let indent = "&nbsp;".repeat(2 * row.depth);
                    let [name, type_name, unit, docs] =
                        [row.name, row.type_name, row.unit, row.docs].map(|cell| cell_of(&cell));
                    let _ = writeln!(out, "| {indent}`{name}` | {type_name} | {unit} | {docs} |");
                }
            }
        }
        out += "\n";
    }
    out.truncate(out.trim_end().len());
    out += "\n";
    out
}

/// Ascending numbers in words, e.g. `80-89, 96`.
fn runs(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let words = runs.map(|run| match run {
        [first, _, .., last] => format!("{first}-{last}"),
        few => few
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn kind(method: &Method) -> String {
    match &method.kind {
        Kind::Ask {
            repeats_flag: false,
            ..
        } => "request with an answer".into(),
        Kind::Ask {
            repeats_flag: true, ..
        } => "request with an answer, which repeats the flag".into(),
        Kind::Tell => "request without an answer".into(),
        Kind::Subscribe => "stream, by SUBSCRIBE".into(),
        Kind::StreamByRequest { stop, .. } => {
            let stop = stop
                .iter()
                .map(|it| format!("{} = {}", last(&it.field), it.value));
            let stop = stop.collect::<Vec<_>>().join(", ");
            format!("stream, by a request; stops with {stop}")
        }
    }
}

/// What a request that moves something does, with its verb.
fn moves(method: &Method) -> Option<String> {
    let moves = method.moves.as_ref()?;
    let value = |it: &Setting| format!("{} = {}", last(&it.field), it.value);
    Some(match moves.stop.as_deref() {
        None if moves.errand => "moves the device until it is done".into(),
        None => "moves the device".into(),
        // Nothing is left that could move it.
        Some([]) if method.request.is_empty() => "stops the device".into(),
        Some([]) => "moves the device; stops it without arguments".into(),
        Some(stop) => {
            let values: Vec<_> = stop.iter().map(value).collect();
            format!("moves the device; stops it with {}", values.join(", "))
        }
    })
}

/// The lists of fields that a method has, with a title.
fn parts(method: &Method) -> impl Iterator<Item = (&'static str, &Vec<Field>)> {
    let titles = match method.is_stream() {
        true => ["arguments", "data", "data, not always"],
        false => ["arguments", "answer", "answer, not always"],
    };
    let lists = [&method.request, &method.answer, &method.may_answer];
    titles
        .into_iter()
        .zip(lists)
        .filter(|(_, fields)| !fields.is_empty())
}

/// Arguments that already have a value.
fn fixed(method: &Method) -> Vec<&str> {
    let starts = match &method.kind {
        Kind::StreamByRequest { start, .. } => &start[..],
        _ => &[],
    };
    let settings = method.set.iter().chain(starts);
    settings.map(|setting| setting.field.as_str()).collect()
}

struct Row {
    depth: usize,
    name: String,
    type_name: String,
    unit: String,
    docs: String,
}

fn add_rows(rows: &mut Vec<Row>, field: &Field, fixed: &[&str], depth: usize) {
    if fixed.contains(&field.path.as_str()) {
        return;
    }
    let name = last(&field.type_name);
    let type_name = match field.cardinality {
        Cardinality::Repeated => format!("list of {name}"),
        Cardinality::Required => format!("{name}, required"),
        Cardinality::Optional => name.to_owned(),
    };
    let mut docs = field.docs.split_whitespace().collect::<Vec<_>>().join(" ");
    if !field.choices.is_empty() {
        let names = field.choices.iter().map(|choice| choice.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        docs = format!("{docs} One of {names}.").trim().to_owned();
    }
    rows.push(Row {
        depth,
        name: field.name.clone(),
        type_name,
        unit: unit(field),
        docs,
    });
    for inner in &field.fields {
        add_rows(rows, inner, fixed, depth + 1);
    }
}

/// The unit, the range and the meaning of an absent field.
fn unit(field: &Field) -> String {
    let range = match (field.min, field.max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}")),
        (Some(min), None) => Some(format!("from {min}")),
        (None, Some(max)) => Some(format!("to {max}")),
        (None, None) => None,
    };
    let absent = field
        .absent_means
        .as_ref()
        .map(|value| format!("absent means {value}"));
    let parts = [field.unit.clone(), range, absent];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn aligned(rows: &[Row]) -> String {
    let name = |row: &Row| 2 * row.depth + row.name.len();
    let widest = |width: &dyn Fn(&Row) -> usize| rows.iter().map(width).max().unwrap_or(0);
    let (names, types) = (widest(&name), widest(&|row| row.type_name.len()));
    let units = widest(&|row| row.unit.len());
    let mut out = String::new();
    for row in rows {
        let indented = format!("{}{}", "  ".repeat(row.depth), row.name);
        let line = format!(
            "{indented:names$}  {:types$}  {:units$}  {}",
            row.type_name, row.unit, row.docs
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn paragraph(out: &mut String, indent: &str, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "{}", format!("{indent}{line}").trim_end());
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A vertical line would end the cell.
fn cell_of(text: &str) -> String {
    text.replace('|', "\\|")
}
