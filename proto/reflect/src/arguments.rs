//! Parses the arguments of a method from words into a message. PURE.

use amber_proto::MsgType;
use amber_schema::{Cardinality, Field, Kind, Method, Setting};
use prost::Message as _;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};
use serde_json::Map;

use crate::{Error, Schemas, value};

/// An argument of a method: a single value, a list, or a table.
#[derive(Clone, Debug)]
pub struct Argument<'a> {
    /// The name on the command line, e.g. `servo-address`.
    pub name: String,
    /// The field that it sets.
    pub field: &'a Field,
    /// Whether the request requires it.
    pub is_required: bool,
}

/// Familiar spellings that differ from the description.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spelling<'a> {
    /// This number of words without names stands for the arguments in this order.
    pub spread: Option<(usize, &'a [usize])>,
    /// The flags that are set if the words set none, separated by commas.
    pub flags: Option<&'a str>,
    /// The values of omitted arguments.
    pub defaults: &'a [(&'a str, &'a str)],
}

/// The values of arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given(Vec<(String, Value)>);

impl Argument<'_> {
    /// Whether it is a table, with one word for each row.
    pub fn is_table(&self) -> bool {
        self.field.columns
    }

    /// Whether it is a list, with commas between the elements.
    pub fn is_list(&self) -> bool {
        !self.is_table() && self.field.cardinality == Cardinality::Repeated
    }

    /// Its range and unit, or else its type.
    pub fn about(&self) -> String {
        match value::range(self.field) {
            range if range.is_empty() => self.field.type_name.clone(),
            range => range,
        }
    }

    /// Its value if the words omit it and the request defines a value.
    pub(crate) fn default<'s>(&self, method: &Method, spelling: &Spelling<'s>) -> Option<&'s str> {
        let own = spelling.defaults.iter().find(|it| it.0 == self.name);
        let is_period = self.is_required && period(method) == Some(&self.field.path);
        own.map(|(_, value)| *value)
            .or(is_period.then_some(USUAL_PERIOD))
    }

    fn is_flag(&self) -> bool {
        self.field.type_name == "bool" && !self.is_list()
    }

    /// Its placeholder in a usage line.
    fn placeholder(&self) -> String {
        let upper = |name: &str| kebab(name).to_ascii_uppercase();
        let shown = match self.is_table() {
            true => {
                let columns: Vec<_> = self.field.fields.iter().map(|it| upper(&it.name)).collect();
                let between = if columns.len() == 2 { "=" } else { "," };
                format!("{}...", columns.join(between))
            }
            false if self.is_list() => format!("{}[,...]", upper(&self.name)),
            false if self.field.type_name == "bool" => "true|false".to_owned(),
            false => upper(&self.name),
        };
        match self.is_required {
            true => shown,
            false => format!("[{shown}]"),
        }
    }
}

impl Given {
    /// The value of a time in ms, by the full name of its field.
    pub fn time_ms(&self, path: &str) -> Option<u64> {
        let (_, value) = self.0.iter().find(|(of, _)| of == path)?;
        match *value {
            Value::U32(ms) => Some(ms.into()),
            Value::U64(ms) => Some(ms),
            Value::I32(ms) => u64::try_from(ms).ok(),
            Value::I64(ms) => u64::try_from(ms).ok(),
            _ => None,
        }
    }
}

/// The arguments of a method, in the order of its fields.
pub fn arguments(method: &Method) -> Vec<Argument<'_>> {
    let mut found = Vec::new();
    for root in &method.request {
        add(&mut found, method, root, "", true);
    }
    found
}

fn add<'a>(
    found: &mut Vec<Argument<'a>>,
    method: &'a Method,
    field: &'a Field,
    inside: &str,
    is_required: bool,
) {
    if fixed(method).any(|setting| setting.field == field.path) {
        return;
    }
    let is_root = method.request.iter().any(|root| root.path == field.path);
    let is_period = period(method).is_some_and(|path| *path == field.path);
    let name = match is_period {
        true => "period".to_owned(),
        false => format!("{inside}{}", kebab(&field.name)),
    };
    let is_required = is_required
        && match field.cardinality {
            Cardinality::Required => true,
            Cardinality::Optional => is_root || is_period && field.absent_means.is_none(),
            Cardinality::Repeated => true,
        };
    let is_message = !is_scalar(field) && field.choices.is_empty();
    if is_message && !field.columns {
        // Lists of messages cannot be written as words; `FIELD=VALUE` accepts them as JSON.
        if field.cardinality != Cardinality::Repeated {
            let inside = if is_root {
                String::new()
            } else {
                format!("{name}.")
            };
            for inner in &field.fields {
                add(found, method, inner, &inside, is_required);
            }
        }
        return;
    }
    let is_taken = found.iter().any(|other| other.name == name);
    let root = field.path.rsplit('.').nth(1).unwrap_or_default();
    let name = match is_taken {
        true => format!("{}.{name}", kebab(root)),
        false => name,
    };
    found.push(Argument {
        name,
        field,
        is_required,
    });
}

fn is_scalar(field: &Field) -> bool {
    matches!(
        &*field.type_name,
        "double" | "float" | "bool" | "string" | "bytes"
    ) || field.type_name.ends_with("int32")
        || field.type_name.ends_with("int64")
        || field.type_name.ends_with("fixed32")
        || field.type_name.ends_with("fixed64")
}

/// Values that are not in the words.
fn fixed(method: &Method) -> impl Iterator<Item = &Setting> {
    let start: &[Setting] = match &method.kind {
        Kind::StreamByRequest { start, .. } => start,
        _ => &[],
    };
    method.set.iter().chain(start)
}

/// The unit of a duration that is written without one, as for all durations of the command line.
pub(crate) const BARE_DURATION: &str = "s";

/// The period of a stream that needs one, if the words give none.
pub(crate) const USUAL_PERIOD: &str = "100ms";

/// The full name of the argument for the time limit of the device.
pub fn duration(method: &Method) -> Option<&String> {
    match &method.kind {
        Kind::Ask { duration, .. } => duration.as_ref(),
        _ => None,
    }
}

/// The full name of the period of a stream.
pub fn period(method: &Method) -> Option<&String> {
    match &method.kind {
        Kind::StreamByRequest { period, .. } => period.as_ref(),
        _ => None,
    }
}

/// The arguments in a usage line, e.g. `SERVO-ADDRESS ANGLE`.
pub fn usage(method: &Method) -> String {
    let arguments = arguments(method);
    let flags = arguments.iter().filter(|it| it.is_flag()).count();
    let is_whole = is_whole(method, &arguments);
    let mut words: Vec<String> = Vec::new();
    let mut names = Vec::new();
    for argument in &arguments {
        match argument.is_flag() && flags > 1 {
            true => names.push(argument.name.as_str()),
            false if is_whole => {
                let word = argument.placeholder();
                words.push(word.trim_matches(['[', ']']).to_owned());
            }
            false => words.push(argument.placeholder()),
        }
    }
    if !names.is_empty() {
        words.push(format!("[{}]", names.join(",")));
    }
    words.join(" ")
}

/// Reads the arguments of a method: values in the order of the fields, or `name=value`.
///
/// # Errors
/// The argument, the reason why it is invalid, and the correct form.
pub fn read(method: &Method, words: &[String], spelling: Spelling<'_>) -> Result<Given, Error> {
    let arguments = arguments(method);
    let mut reader = Reader {
        method,
        arguments: &arguments,
        spelling,
        given: Given::default(),
        named: Vec::new(),
    };
    let mut positional = Vec::new();
    for word in words {
        let named = word.split_once('=').and_then(|(name, value)| {
            let found = arguments.iter().position(|it| is_name(name, it))?;
            Some((found, value))
        });
        match named {
            Some((index, value)) => reader.single(index, value)?,
            None => positional.push(word.as_str()),
        }
    }
    if let Some((count, order)) = spelling.spread
        && positional.len() == count
    {
        positional = order.iter().map(|&index| positional[index]).collect();
    }
    reader.check_count(&positional)?;
    reader.positional(&positional)?;
    reader.defaults()?;
    let missing = (arguments.iter().enumerate())
        .find(|(index, it)| it.is_required && !reader.named.contains(index));
    if let Some((_, argument)) = missing {
        return Err(Error::new(match argument.is_table() {
            true => format!("a row is missing: {}", argument.placeholder()),
            false => format!("argument '{}' is missing", argument.name),
        }));
    }
    if let Some(path) = period(method)
        && arguments
            .iter()
            .any(|it| it.is_required && it.field.path == *path)
        && reader.given.time_ms(path) == Some(0)
    {
        return Err(Error::new("argument 'period' must be above 0"));
    }
    // Without numbers, a value such as the speeds of all wheels says nothing. Settings may all be absent.
    let is_value = is_whole(method, &arguments) && !arguments.is_empty();
    if method.kind == Kind::Tell && is_value && reader.named.is_empty() {
        return Err(Error::new("the arguments are missing"));
    }
    Ok(reader.given)
}

/// Whether the arguments are one value, such as the speeds of all wheels.
fn is_whole(method: &Method, arguments: &[Argument<'_>]) -> bool {
    matches!(&method.request[..], [root] if root.value.is_some())
        && (arguments.iter()).all(|it| !it.is_flag() && !it.is_table())
}

struct Reader<'a> {
    method: &'a Method,
    arguments: &'a [Argument<'a>],
    spelling: Spelling<'a>,
    given: Given,
    /// The arguments that have a value.
    named: Vec<usize>,
}

impl Reader<'_> {
    /// A message that is one value has all its fields, or names the given ones.
    fn check_count(&self, positional: &[&str]) -> Result<(), Error> {
        let (given, wanted) = (positional.len(), self.arguments.len());
        if !is_whole(self.method, self.arguments) || given == 0 || given == wanted {
            return Ok(());
        }
        let or = self
            .spelling
            .spread
            .map(|(count, _)| format!("{count} or "));
        let or = or.unwrap_or_default();
        Err(Error::new(format!(
            "expected {or}{wanted} arguments, got {given}"
        )))
    }

    fn positional(&mut self, words: &[&str]) -> Result<(), Error> {
        let mut words = words.iter().copied().peekable();
        for index in 0..self.arguments.len() {
            if self.named.contains(&index) {
                continue;
            }
            let argument = &self.arguments[index];
            if argument.is_table() {
                let rows: Vec<_> = words.by_ref().collect();
                if !rows.is_empty() {
                    self.rows(index, &rows)?;
                }
                continue;
            }
            let Some(word) = words.peek() else { break };
            if argument.is_flag() && self.set_flags(index, word)? {
                words.next();
                break;
            }
            let word = words.next().unwrap_or_default();
            self.single(index, word)?;
        }
        match words.next() {
            None => Ok(()),
            Some(word) => Err(Error::new(format!("unexpected argument '{word}'"))),
        }
    }

    /// Reads `accel,gyro`: these flags from `first` on are true and the others false. `false` if the
    /// word is a value of a single flag.
    fn set_flags(&mut self, first: usize, word: &str) -> Result<bool, Error> {
        let is_free = |index: &usize| {
            let argument = &self.arguments[*index];
            argument.is_flag() && !self.named.contains(index)
        };
        let flags: Vec<_> = (first..self.arguments.len()).filter(is_free).collect();
        let is_value = value::read(self.arguments[first].field, word, None).is_ok();
        if flags.len() < 2 || is_value {
            return Ok(false);
        }
        let mut set = Vec::new();
        for name in word.split(',') {
            let found =
                (flags.iter().copied()).find(|&index| is_name(name.trim(), &self.arguments[index]));
            let Some(index) = found else {
                let names = flags
                    .iter()
                    .map(|&index| self.arguments[index].name.as_str());
                let names: Vec<_> = names.collect();
                let text = format!("'{name}' is not one of {}", names.join(", "));
                return Err(Error::new(text));
            };
            set.push(index);
        }
        for index in flags {
            let has_default = |(name, _): &(&str, &str)| *name == self.arguments[index].name;
            if set.contains(&index) || !self.spelling.defaults.iter().any(has_default) {
                self.give(index, Value::Bool(set.contains(&index)));
            }
        }
        Ok(true)
    }

    fn defaults(&mut self) -> Result<(), Error> {
        if let Some(flags) = self.spelling.flags {
            let mut indices = (0..self.arguments.len()).filter(|&at| self.arguments[at].is_flag());
            let has_flags = indices.clone().any(|index| self.named.contains(&index));
            if let (false, Some(first)) = (has_flags, indices.next()) {
                self.set_flags(first, flags)?;
            }
        }
        for index in 0..self.arguments.len() {
            let default = self.arguments[index].default(self.method, &self.spelling);
            if let (Some(value), false) = (default, self.named.contains(&index)) {
                self.single(index, value)?;
            }
        }
        Ok(())
    }

    fn give(&mut self, index: usize, value: Value) {
        self.named.push(index);
        let path = self.arguments[index].field.path.clone();
        self.given.0.push((path, value));
    }

    /// A value or a list in one word.
    fn single(&mut self, index: usize, word: &str) -> Result<(), Error> {
        let argument = &self.arguments[index];
        if self.named.contains(&index) {
            let text = format!("argument '{}' is given twice", argument.name);
            return Err(Error::new(text));
        }
        if argument.is_table() {
            return self.rows(index, &word.split_whitespace().collect::<Vec<_>>());
        }
        let value = match argument.is_list() {
            false => self.value(argument.field, &argument.name, word)?,
            true => {
                let words = word.split(',').filter(|word| !word.is_empty());
                let values =
                    words.map(|word| self.value(argument.field, &argument.name, word.trim()));
                Value::List(values.collect::<Result<_, _>>()?)
            }
        };
        self.give(index, value);
        Ok(())
    }

    /// Rows of a table, as `3=45` or `1.5,2,0.3`; `none` is a table without rows.
    fn rows(&mut self, index: usize, rows: &[&str]) -> Result<(), Error> {
        let argument = &self.arguments[index];
        let columns = &argument.field.fields;
        let mut lists = vec![Vec::new(); columns.len()];
        let rows = if rows == ["none"] { &[] } else { rows };
        for row in rows {
            let cells: Vec<_> = match row.split_once('=') {
                Some((first, second)) if columns.len() == 2 => vec![first, second],
                _ => row.split(',').collect(),
            };
            if cells.len() != columns.len() {
                return Err(Error::new(format!(
                    "row '{row}' has {} values, expected {}: {}",
                    cells.len(),
                    columns.len(),
                    argument.placeholder()
                )));
            }
            for ((list, column), cell) in lists.iter_mut().zip(columns).zip(cells) {
                list.push(self.value(column, &kebab(&column.name), cell.trim())?);
            }
        }
        self.named.push(index);
        for (column, list) in columns.iter().zip(lists) {
            self.given.0.push((column.path.clone(), Value::List(list)));
        }
        Ok(())
    }

    fn value(&self, field: &Field, name: &str, word: &str) -> Result<Value, Error> {
        let is_duration = duration(self.method) == Some(&field.path);
        let bare_unit = is_duration.then_some(BARE_DURATION);
        value::read(field, word, bare_unit)
            .map_err(|why| Error::new(format!("argument '{name}': {why}")))
    }
}

/// The messages of a stream that starts by a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartStop {
    /// Starts it.
    pub start: Vec<u8>,
    /// Stops it.
    pub stop: Vec<u8>,
}

impl Schemas {
    /// The request of a method with these arguments. These schemas are those of the device
    /// ([`Schemas::for_device`]).
    ///
    /// # Errors
    /// The method is not of these schemas.
    pub fn request(&self, method: &Method, given: &Given) -> Result<Vec<u8>, Error> {
        let mut message = self.new_request(method, given)?;
        for setting in fixed(method) {
            self.apply(&mut message, method, setting)?;
        }
        Ok(message.encode_to_vec())
    }

    /// The two requests of a stream by a request.
    ///
    /// # Errors
    /// As [`Schemas::request`].
    pub fn start_stop(&self, method: &Method, given: &Given) -> Result<StartStop, Error> {
        let mut message = self.new_request(method, given)?;
        for setting in fixed(method) {
            self.apply(&mut message, method, setting)?;
        }
        let start = message.encode_to_vec();
        if let Kind::StreamByRequest { stop, .. } = &method.kind {
            for setting in stop {
                self.apply(&mut message, method, setting)?;
            }
        }
        let stop = message.encode_to_vec();
        Ok(StartStop { start, stop })
    }

    /// The value at the path of a field, in the fields of a message by name ([`Schemas::decode`]).
    pub fn value_at<'a>(
        &self,
        values: &'a Map<String, serde_json::Value>,
        path: &str,
    ) -> Option<&'a serde_json::Value> {
        let parts: Vec<_> = path.split('.').collect();
        let (extension, inner) = (1..=parts.len()).find_map(|end| {
            let extension = self.pool().get_extension_by_name(&parts[..end].join("."))?;
            Some((extension, &parts[end..]))
        })?;
        let outer = values.get(extension.name())?;
        inner.iter().try_fold(outer, |value, part| value.get(part))
    }

    fn new_request(&self, method: &Method, given: &Given) -> Result<DynamicMessage, Error> {
        let mut message = DynamicMessage::new(self.message().clone());
        message.set_field_by_name("type", Value::EnumNumber(MsgType::Data.into()));
        for flag in &method.flags {
            self.set(&mut message, flag, Some(Value::Bool(true)))?;
        }
        for root in &method.request {
            let inside = format!("{}.", root.path);
            let is_given = |(path, _): &(String, Value)| path.starts_with(&inside);
            let is_needed = method.request.len() == 1 || given.0.iter().any(is_given);
            if is_needed && !is_scalar(root) {
                self.set(&mut message, &root.path, None)?;
            }
        }
        for (path, value) in &given.0 {
            self.set(&mut message, path, Some(value.clone()))?;
        }
        Ok(message)
    }

    fn apply(
        &self,
        message: &mut DynamicMessage,
        method: &Method,
        setting: &Setting,
    ) -> Result<(), Error> {
        let field = find(&method.request, &setting.field)
            .ok_or_else(|| Error::new(format!("no field '{}'", setting.field)))?;
        let value = value::read(field, &setting.value, None).map_err(Error::new)?;
        self.set(message, &setting.field, Some(value))
    }

    /// Sets the field with this path from `DriverMsg`; without a value, makes the message there.
    fn set(
        &self,
        message: &mut DynamicMessage,
        path: &str,
        value: Option<Value>,
    ) -> Result<(), Error> {
        let unknown = || Error::new(format!("no field '{path}'"));
        let parts: Vec<_> = path.split('.').collect();
        let (extension, inner) = (1..=parts.len())
            .find_map(|end| {
                let extension = self.pool().get_extension_by_name(&parts[..end].join("."))?;
                Some((extension, &parts[end..]))
            })
            .ok_or_else(unknown)?;
        let mut at = message.get_extension_mut(&extension);
        for part in inner {
            let inside = at.as_message_mut().ok_or_else(unknown)?;
            let field = inside.descriptor().get_field_by_name(part);
            at = inside.get_field_mut(&field.ok_or_else(unknown)?);
        }
        if let Some(value) = value {
            *at = value;
        }
        Ok(())
    }
}

/// A field by its path.
pub(crate) fn find<'a>(fields: &'a [Field], path: &str) -> Option<&'a Field> {
    fields.iter().find_map(|field| match field.path == path {
        true => Some(field),
        false => find(&field.fields, path),
    })
}

/// `servoAddress` and `get_status` as `servo-address` and `get-status`.
pub(crate) fn kebab(name: &str) -> String {
    let mut out = String::new();
    let mut was_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && was_lower {
            out.push('-');
        }
        was_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        out.push(match letter {
            '_' => '-',
            letter => letter.to_ascii_lowercase(),
        });
    }
    out
}

fn is_name(text: &str, argument: &Argument<'_>) -> bool {
    let plain = |name: &str| name.replace(['-', '_'], "").to_ascii_lowercase();
    plain(text) == plain(&argument.name) || text == argument.field.name
}

#[cfg(test)]
mod tests;
