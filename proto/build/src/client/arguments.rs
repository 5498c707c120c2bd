//! The arguments of a method, and the message that is made of them. PURE.

use std::slice;

use amber_schema::{Cardinality, Field, Kind as MethodKind, Method, Setting};
use prost_reflect::{DescriptorPool, Kind};

use super::fields::{Message, PathStep, way};
use super::types::{self, Shape, shape};
use crate::names;

/// An argument of a method.
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) type_name: String,
    /// Documentation, if its name and type are not sufficient.
    pub(crate) docs: String,
}

/// The messages that a method sends.
pub(crate) struct Request {
    pub(crate) arguments: Vec<Argument>,
    /// Statements before the message.
    pub(crate) lets: Vec<String>,
    /// The request, or the message that starts a stream.
    pub(crate) start: String,
    /// The message that stops a stream.
    pub(crate) stop: String,
    /// An expression for the period of a stream.
    pub(crate) period: Option<String>,
    /// An expression for the time that the device may take, as an `Option`.
    pub(crate) duration: Option<String>,
}

/// The way in which an argument is passed.
struct Passed {
    type_name: String,
    /// The expression that makes the field of it.
    expression: String,
}

struct Builder<'a> {
    pool: &'a DescriptorPool,
    package: &'a str,
    method: &'a Method,
    message: Message,
    request: Request,
}

/// # Errors
/// A field of the request belongs to another package.
pub(crate) fn request(
    method: &Method,
    pool: &DescriptorPool,
    package: &str,
) -> Result<Request, String> {
    let mut builder = Builder {
        pool,
        package,
        method,
        message: Message::default(),
        request: Request {
            arguments: Vec::new(),
            lets: Vec::new(),
            start: String::new(),
            stop: String::new(),
            period: None,
            duration: None,
        },
    };
    for flag in &method.flags {
        let way = way(pool, flag, package)?;
        builder.message.set(&way, "true".into());
    }
    for field in &method.request {
        builder.add(field)?;
    }
    builder.settings(&method.set)?;
    let (start, stop) = match &method.kind {
        MethodKind::StreamByRequest { start, stop, .. } => (&start[..], &stop[..]),
        _ => (&[][..], &[][..]),
    };
    let before = builder.message.clone();
    builder.settings(start)?;
    builder.request.start = builder.message.expression(package);
    builder.message = before;
    builder.settings(stop)?;
    builder.request.stop = builder.message.expression(package);
    Ok(builder.request)
}

impl Builder<'_> {
    fn add(&mut self, field: &Field) -> Result<(), String> {
        let way = way(self.pool, &field.path, self.package)?;
        let Some(last) = way.last().cloned() else {
            return Ok(());
        };
        let is_single = field.cardinality != Cardinality::Repeated;
        let is_message = last.kind().as_message().is_some();
        if !is_single || !is_message {
            self.argument(field, &way, &last, false);
            return Ok(());
        }
        match shape(field) {
            Shape::Rows(_) | Shape::Tuples(_) => self.argument(field, &way, &last, false),
            Shape::Plain | Shape::List(_) if self.is_flat(field) => {
                self.message.set_message(&way, None);
                for inner in &field.fields {
                    let Some(step) = types::inner(&last, &inner.name) else {
                        continue;
                    };
                    let way = [&way[..], slice::from_ref(&step)].concat();
                    if self.is_time(inner) {
                        self.time(inner, &way, &step);
                    } else if !self.is_set(inner) {
                        self.argument(inner, &way, &step, step.is_option());
                    }
                }
            }
            _ => {
                let name = self.free_name(field);
                let message = types::single(&last.kind(), self.package);
                let base = self.bind(&name, format!("{name}.into()"), &message);
                self.message.set_message(&way, Some(base));
                for inner in &field.fields {
                    let Some(step) = types::inner(&last, &inner.name) else {
                        continue;
                    };
                    if self.is_time(inner) {
                        self.time(inner, &[&way[..], slice::from_ref(&step)].concat(), &step);
                    }
                }
                let type_name = format!("impl ::core::convert::Into<{message}>");
                self.push(name, type_name, field);
            }
        }
        Ok(())
    }

    /// Whether each field of a message is a separate argument: at most one may be absent.
    fn is_flat(&self, field: &Field) -> bool {
        let decided = |it: &&Field| !self.is_set(it) && !self.is_time(it);
        let is_optional = |it: &&Field| it.cardinality == Cardinality::Optional;
        let optional = field
            .fields
            .iter()
            .filter(decided)
            .filter(is_optional)
            .count();
        optional <= 1 && field.fields.iter().all(|it| it.oneof.is_none())
    }

    fn is_set(&self, field: &Field) -> bool {
        let starts = match &self.method.kind {
            MethodKind::StreamByRequest { start, .. } => &start[..],
            _ => &[],
        };
        (self.method.set.iter().chain(starts)).any(|setting| setting.field == field.path)
    }

    /// Whether a field is the period or the duration of the method.
    fn is_time(&self, field: &Field) -> bool {
        let time = match &self.method.kind {
            MethodKind::StreamByRequest { period, .. } => period,
            MethodKind::Ask { duration, .. } => duration,
            _ => &None,
        };
        time.as_ref() == Some(&field.path)
    }

    fn argument(&mut self, field: &Field, way: &[PathStep], step: &PathStep, may_be_absent: bool) {
        let name = self.free_name(field);
        let passed = passed(field, step, &name, self.package, may_be_absent);
        let expression = self.bind(
            &name,
            passed.expression,
            &self.member_type(step, may_be_absent),
        );
        match may_be_absent {
            true => self.message.set_option(way, expression),
            false => self.message.set(way, expression),
        }
        self.push(name, passed.type_name, field);
    }

    /// The name of an argument. Where two would have the same name, the second begins with the name
    /// of its message.
    fn free_name(&self, field: &Field) -> String {
        let unit = field.unit.as_deref();
        let name = names::with_unit(&field.name, unit);
        let is_time = match &self.method.kind {
            MethodKind::StreamByRequest { period, .. } => period.is_some() && name == "period",
            MethodKind::Ask { duration, .. } => duration.is_some() && name == "duration",
            _ => false,
        };
        let is_taken = self.request.arguments.iter().any(|it| it.name == name);
        match (is_time || is_taken, field.path.rsplit('.').nth(1)) {
            (true, Some(outer)) => names::with_unit(&format!("{outer}_{}", field.name), unit),
            _ => name,
        }
    }

    /// Arguments of streams are needed twice, so they become variables.
    fn bind(&mut self, name: &str, expression: String, type_name: &str) -> String {
        if !self.method.is_stream() {
            return expression;
        }
        (self.request.lets).push(format!("let {name}: {type_name} = {expression};"));
        format!("{name}.clone()")
    }

    /// The type of the member of the struct, without its `Option` unless it may be absent.
    fn member_type(&self, step: &PathStep, may_be_absent: bool) -> String {
        let one = match step.kind() {
            Kind::Enum(_) => "i32".to_owned(),
            kind => types::single(&kind, self.package),
        };
        match (step.is_list(), may_be_absent) {
            (true, _) => types::vec_of(&one),
            (false, true) => types::option_of(&one),
            (false, false) => one,
        }
    }

    /// The period of a stream or the duration of a request.
    fn time(&mut self, field: &Field, way: &[PathStep], step: &PathStep) {
        let number = types::single(&step.kind(), self.package);
        let ms = |time| format!("{number}::try_from({time}.as_millis()).unwrap_or({number}::MAX)");
        let option = types::option_of(types::DURATION);
        if !self.method.is_stream() {
            let (type_name, duration) = match step.is_option() {
                true => {
                    let value = format!("duration.map(|time| {})", ms("time"));
                    self.message.set_option(way, value);
                    (option, "duration")
                }
                false => {
                    self.message.set(way, ms("duration"));
                    (types::DURATION.to_owned(), "Some(duration)")
                }
            };
            self.request.duration = Some(duration.to_owned());
            self.push("duration".into(), type_name, field);
            return;
        }
        let (type_name, period) = match field.absent_means.as_deref() {
            None => {
                self.message.set(way, format!("{}.max(1)", ms("period")));
                (types::DURATION.to_owned(), "period".to_owned())
            }
            // Drivers of the original system expect that 0 is written out.
            Some("0") => {
                let value = format!("period.map_or(0, |time| {}.max(1))", ms("time"));
                self.message.set(way, value);
                (option, "period.unwrap_or_default()".to_owned())
            }
            Some(absent_ms) => {
                let value = format!("period.map(|time| {}.max(1))", ms("time"));
                self.message.set_option(way, value);
                let absent = format!("{}::from_millis({absent_ms})", types::DURATION);
                (option, format!("period.unwrap_or({absent})"))
            }
        };
        self.request.period = Some(period);
        self.push("period".into(), type_name, field);
    }

    fn settings(&mut self, settings: &[Setting]) -> Result<(), String> {
        for setting in settings {
            let way = way(self.pool, &setting.field, self.package)?;
            let Some(last) = way.last() else { continue };
            let expression = literal(&last.kind(), &setting.value);
            self.message.set(&way, expression);
        }
        Ok(())
    }

    fn push(&mut self, name: String, type_name: String, field: &Field) {
        let mut docs: Vec<String> = Vec::new();
        let first = field.docs.split("\n\n").next().unwrap_or_default();
        let first = first.split_whitespace().collect::<Vec<_>>().join(" ");
        // The comment on a field of DriverMsg describes the request, as the method does.
        if field.path.matches('.').count() > 2 && !first.is_empty() {
            docs.push(first.trim_end_matches('.').to_owned());
        }
        if let Some(unit) = &field.unit
            && names::with_unit(&field.name, Some(unit)) == names::with_unit(&field.name, None)
            && !self.is_time(field)
            && !field.name.to_lowercase().ends_with(&unit.to_lowercase())
        {
            docs.push(format!("In {unit}"));
        }
        match (field.min, field.max) {
            (Some(min), Some(max)) => docs.push(format!("From {min} to {max}")),
            (Some(min), None) => docs.push(format!("At least {min}")),
            (None, Some(max)) => docs.push(format!("At most {max}")),
            (None, None) => {}
        }
        if let Some(absent) = &field.absent_means
            && type_name.starts_with("::core::option::Option")
        {
            docs.push(format!("`None` means {absent}"));
        }
        let docs = docs.iter().map(|sentence| format!("{sentence}."));
        self.request.arguments.push(Argument {
            name,
            type_name,
            docs: docs.collect::<Vec<_>>().join(" "),
        });
    }
}

fn passed(
    field: &Field,
    step: &PathStep,
    name: &str,
    package: &str,
    may_be_absent: bool,
) -> Passed {
    let one = types::single(&step.kind(), package);
    let is_list = field.cardinality == Cardinality::Repeated;
    let (type_name, expression) = match (step.kind(), is_list, may_be_absent) {
        (Kind::String, false, false) => (
            format!("impl ::core::convert::Into<{one}>"),
            format!("{name}.into()"),
        ),
        (Kind::String, false, true) => (
            types::option_of("&str"),
            format!("{name}.map(::core::convert::Into::into)"),
        ),
        (Kind::Bytes, false, false) => (
            format!("impl ::core::convert::Into<{one}>"),
            format!("{name}.into()"),
        ),
        (Kind::String | Kind::Bytes, true, _) => (
            format!("impl ::core::iter::IntoIterator<Item = impl ::core::convert::Into<{one}>>"),
            format!("{name}.into_iter().map(::core::convert::Into::into).collect()"),
        ),
        (Kind::Enum(_), false, false) => (one, format!("{name}.into()")),
        (Kind::Enum(_), false, true) => (
            types::option_of(&one),
            format!("{name}.map(::core::convert::Into::into)"),
        ),
        (Kind::Enum(_), true, _) => (
            format!("&[{one}]"),
            format!("{name}.iter().map(|it| (*it).into()).collect()"),
        ),
        (Kind::Message(_), false, false) => match shape(field) {
            Shape::Rows(value) => {
                let row = types::value(value);
                let call = "::amber_client::values::Row::table";
                (format!("&[{row}]"), format!("{call}({name})"))
            }
            Shape::Tuples(columns) => tuples(columns, step, name, package),
            _ => (
                format!("impl ::core::convert::Into<{one}>"),
                format!("{name}.into()"),
            ),
        },
        (Kind::Message(_), true, _) => (
            format!("impl ::core::iter::IntoIterator<Item = impl ::core::convert::Into<{one}>>"),
            format!("{name}.into_iter().map(::core::convert::Into::into).collect()"),
        ),
        (_, true, _) => (format!("&[{one}]"), format!("{name}.to_vec()")),
        (_, false, true) => (types::option_of(&one), name.to_owned()),
        (_, false, false) => (one, name.to_owned()),
    };
    Passed {
        type_name,
        expression,
    }
}

/// A slice of tuples for a table, and the message of it.
fn tuples(columns: &[Field], step: &PathStep, name: &str, package: &str) -> (String, String) {
    let mut kinds = Vec::new();
    let mut members = Vec::new();
    for (k, column) in columns.iter().enumerate() {
        let Some(inner) = types::inner(step, &column.name) else {
            continue;
        };
        let value = match inner.kind() {
            Kind::String | Kind::Bytes => format!("row.{k}.clone()"),
            Kind::Enum(_) => format!("row.{k}.into()"),
            _ => format!("row.{k}"),
        };
        kinds.push(types::single(&inner.kind(), package));
        let member = names::snake(&column.name);
        members.push(format!(
            "{member}: {name}.iter().map(|row| {value}).collect()"
        ));
    }
    let message = types::single(&step.kind(), package);
    // A tuple of one needs the comma.
    let comma = if kinds.len() == 1 { "," } else { "" };
    (
        format!("&[({}{comma})]", kinds.join(", ")),
        format!("{message} {{ {} }}", members.join(", ")),
    )
}

/// A value of the description as an expression.
fn literal(kind: &Kind, value: &str) -> String {
    match kind {
        Kind::String => format!("{value:?}.into()"),
        Kind::Enum(values) => (values.get_value_by_name(value))
            .map_or_else(|| "0".into(), |it| it.number().to_string()),
        Kind::Double | Kind::Float => {
            let number: f64 = value.parse().unwrap_or_default();
            format!("{number:?}")
        }
        _ => value.to_owned(),
    }
}
