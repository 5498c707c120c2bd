//! The result of a method, and the expressions that read it. PURE.

use std::fmt::Write;

use amber_schema::{Field, Kind as MethodKind, Method};
use prost_reflect::{DescriptorPool, Kind};

use super::fields::{PathStep, look, read, way};
use super::types::{self, Shape, shape};
use crate::names;

/// The result of a method.
pub(crate) struct Answer {
    pub(crate) type_name: String,
    /// Statements that read `message_`, and the value as an `Option` for streams. They return
    /// `Ok(None)` from a stream if the message is about something else.
    pub(crate) body: String,
    /// The members of a struct for this method, if it has several values.
    pub(crate) members: Vec<Member>,
    /// Names of fields without which a published message is skipped.
    pub(crate) needed: Vec<String>,
    /// The numbers of the fields of `DriverMsg` by which a client knows a published message.
    pub(crate) numbers: Vec<u32>,
}

/// A member of the struct that a method returns.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) docs: String,
}

struct Reader<'a> {
    pool: &'a DescriptorPool,
    package: &'a str,
    method: &'a Method,
}

/// `struct_name` is the name of the struct if there are several values.
///
/// # Errors
/// A field belongs to another package.
pub(crate) fn answer(
    method: &Method,
    pool: &DescriptorPool,
    package: &str,
    struct_name: &str,
) -> Result<Answer, String> {
    let reader = Reader {
        pool,
        package,
        method,
    };
    let mut body = String::new();
    reader.refusal(&mut body)?;
    let needed = method.answer.iter().map(|it| it.name.clone()).collect();
    let (type_name, value, members) =
        match (&method.value, &method.answer[..], &method.may_answer[..]) {
            (Some(value), _, _) => reader.whole(value, &mut body)?,
            (None, [only], []) => {
                let (type_name, value) = reader.required(only, &mut body)?;
                (type_name, value, Vec::new())
            }
            (None, [], [only]) if method.is_stream() => {
                let (type_name, value) = reader.required(only, &mut body)?;
                (type_name, value, Vec::new())
            }
            (None, [], [only]) => {
                let (type_name, value) = reader.optional(only, &mut body)?;
                (type_name, value, Vec::new())
            }
            (None, required, optional) => {
                reader.several(required, optional, struct_name, &mut body)?
            }
        };
    let value = match method.is_stream() {
        true => format!("Ok(Some({value}))"),
        false => format!("Ok({value})"),
    };
    body.push_str(&value);
    Ok(Answer {
        type_name,
        body,
        members,
        needed,
        numbers: reader.numbers()?,
    })
}

type Parts = (String, String, Vec<Member>);

impl Reader<'_> {
    fn way(&self, field: &Field) -> Result<Vec<PathStep>, String> {
        way(self.pool, &field.path, self.package)
    }

    fn numbers(&self) -> Result<Vec<u32>, String> {
        let fields = match &self.method.answer[..] {
            [] => &self.method.may_answer,
            needed => needed,
        };
        let mut numbers = Vec::new();
        for field in fields {
            let number = self.way(field)?.first().map(PathStep::number);
            numbers.extend(number.filter(|number| !numbers.contains(number)));
        }
        Ok(numbers)
    }

    /// Returns early if the device refuses.
    fn refusal(&self, body: &mut String) -> Result<(), String> {
        let MethodKind::Ask {
            refusal: Some(field),
            ..
        } = &self.method.kind
        else {
            return Ok(());
        };
        let way = self.way(field)?;
        let look = look("message_", &way, self.package);
        let refused = match way.last().map(PathStep::kind) {
            Some(Kind::Message(it)) if it.full_name() == "amber.mediator_proto.Refusal" => {
                "refusal(refused_)"
            }
            Some(Kind::String) => "refused(refused_)",
            _ => "refused(&::std::format!(\"{refused_:?}\"))",
        };
        let _ = writeln!(
            body,
            "if let Some(refused_) = {look} {{ \
             return Err(::amber_client::generated::{refused}); }}"
        );
        Ok(())
    }

    /// The whole message as one value.
    fn whole(&self, value: &str, body: &mut String) -> Result<Parts, String> {
        if self.method.is_stream() {
            for field in &self.method.answer {
                let look = look("message_", &self.way(field)?, self.package);
                let _ = writeln!(body, "if {look}.is_none() {{ return Ok(None); }}");
            }
        }
        let type_name = types::value(value);
        let value = "::amber_client::generated::value(&message_)?".to_owned();
        Ok((type_name, value, Vec::new()))
    }

    /// A required field.
    fn required(&self, field: &Field, body: &mut String) -> Result<(String, String), String> {
        let way = self.way(field)?;
        let (read, name) = (read("message_", &way, self.package), variable(field));
        let _ = match self.method.is_stream() {
            true => writeln!(
                body,
                "let Some({name}) = {read} else {{ return Ok(None); }};"
            ),
            false => {
                let shown = self.shown(field);
                writeln!(
                    body,
                    "let {name} = ::amber_client::generated::required({read}, {shown:?})?;"
                )
            }
        };
        let Some(step) = way.last() else {
            return Err(format!("field '{}' does not exist", field.path));
        };
        Ok(self.converted(field, step, name))
    }

    /// A field that may be absent.
    fn optional(&self, field: &Field, body: &mut String) -> Result<(String, String), String> {
        let way = self.way(field)?;
        let (read, name) = (read("message_", &way, self.package), variable(field));
        let Some(step) = way.last() else {
            return Err(format!("field '{}' does not exist", field.path));
        };
        let (type_name, value) = self.converted(field, step, "it");
        let _ = match value == "it" {
            true => writeln!(body, "let {name} = {read};"),
            false => writeln!(
                body,
                "let {name} = match {read} {{ Some(it) => Some({value}), None => None }};"
            ),
        };
        Ok((types::option_of(&type_name), name))
    }

    fn several(
        &self,
        required: &[Field],
        optional: &[Field],
        struct_name: &str,
        body: &mut String,
    ) -> Result<Parts, String> {
        let mut members = Vec::new();
        let mut values = Vec::new();
        let fields =
            (required.iter().map(|it| (it, true))).chain(optional.iter().map(|it| (it, false)));
        for (field, is_required) in fields {
            let (type_name, value) = match is_required {
                true => self.required(field, body)?,
                false => self.optional(field, body)?,
            };
            let name = names::with_unit(&field.name, field.unit.as_deref());
            values.push(format!("{name}: {value}"));
            members.push(Member {
                name,
                type_name,
                docs: field.docs.clone(),
            });
        }
        let type_name = format!("self::{struct_name}");
        let value = format!("{type_name} {{ {} }}", values.join(", "));
        Ok((type_name, value, members))
    }

    /// The type that the SDK has for a field, and an expression that makes it of the one that
    /// `prost` has.
    fn converted(&self, field: &Field, step: &PathStep, it: impl Into<String>) -> (String, String) {
        let it = it.into();
        let (type_name, one) = self.one(field, step, "it");
        match (step.is_list(), one == "it") {
            (false, _) => {
                let (type_name, value) = self.one(field, step, &it);
                (type_name, value)
            }
            (true, true) => (types::vec_of(&type_name), it),
            (true, false) => {
                let body = one.trim_end_matches('?');
                let collect = "collect::<::core::result::Result<_, _>>()?";
                (
                    types::vec_of(&type_name),
                    format!("{it}.into_iter().map(|it| {body}).{collect}"),
                )
            }
        }
    }

    /// The same for one of a list, which is a fallible conversion or nothing.
    fn one(&self, field: &Field, step: &PathStep, it: &str) -> (String, String) {
        let plain = types::single(&step.kind(), self.package);
        if let Kind::Enum(_) = step.kind() {
            let call = format!("::amber_client::generated::value::<_, {plain}>({it})?");
            return (plain, call);
        }
        match shape(field) {
            Shape::Value(value) => {
                let value = types::value(value);
                let call = format!("::amber_client::generated::value::<_, {value}>({it})?");
                (value, call)
            }
            Shape::Rows(value) => {
                let value = types::value(value);
                let call = format!("::amber_client::generated::rows::<_, {value}>(&{it})?");
                (types::vec_of(&value), call)
            }
            Shape::Tuples(columns) => tuples(columns, step, it, self.package),
            Shape::List(inner) => match types::inner(step, &inner.name) {
                Some(list) => {
                    let member = format!("{it}.{}", names::snake(&inner.name));
                    self.converted(inner, &list, member)
                }
                None => (plain, it.to_owned()),
            },
            Shape::Plain => (plain, it.to_owned()),
        }
    }

    /// The name of a field for errors: as in the description.
    fn shown(&self, field: &Field) -> String {
        let path = field.path.strip_prefix(self.package).unwrap_or(&field.path);
        path.trim_start_matches('.').to_owned()
    }
}

/// A table as a list of tuples.
fn tuples(columns: &[Field], step: &PathStep, it: &str, package: &str) -> (String, String) {
    let mut kinds = Vec::new();
    let (mut lengths, mut chain, mut pattern) = (Vec::new(), String::new(), String::new());
    let mut names_of = Vec::new();
    for (k, column) in columns.iter().enumerate() {
        let Some(inner) = types::inner(step, &column.name) else {
            continue;
        };
        let member = names::snake(&column.name);
        kinds.push(match inner.kind() {
            Kind::Enum(_) => "i32".to_owned(),
            kind => types::single(&kind, package),
        });
        lengths.push(format!("it.{member}.len()"));
        names_of.push(format!("c{k}"));
        match k {
            0 => {
                let _ = write!(chain, "it.{member}.into_iter()");
                pattern = "c0".into();
            }
            _ => {
                let _ = write!(chain, ".zip(it.{member})");
                pattern = format!("({pattern}, c{k})");
            }
        }
    }
    let comma = if kinds.len() == 1 { "," } else { "" };
    let type_name = types::vec_of(&format!("({}{comma})", kinds.join(", ")));
    let value = format!(
        "{{ let it = {it}; ::amber_client::generated::columns(&[{}])?; {chain}.map(|{pattern}| \
         ({}{comma})).collect() }}",
        lengths.join(", "),
        names_of.join(", ")
    );
    (type_name, value)
}

/// The name of the variable of a field.
fn variable(field: &Field) -> String {
    names::snake(&field.name)
}
