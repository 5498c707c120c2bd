//! Reads the services of a file, and checks every rule of a description. PURE.

use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, FileDescriptor, MethodDescriptor,
    ServiceDescriptor, Value,
};

use crate::error::Error;
use crate::fields::{docs, find, is_value, kind_of};
use crate::model::{Cardinality, Field, Harmless, Interface, Kind, Method, Moves, Setting};

/// The numbers of extensions that are free for users.
const USERS_NUMBERS: std::ops::RangeInclusive<u32> = 110..=179;
/// The device types that are free for users, ...
const USERS_TYPES: std::ops::RangeFrom<i32> = 100..;
/// ... except for gateways to other robot protocols.
const GATEWAY: i32 = 200;

/// The most methods of a device, and the most fields in all of them: ten times what a device of
/// ours needs. A description may come from a stranger.
const MAX_METHODS: usize = 256;
const MAX_FIELDS: usize = 2000;

/// The interfaces that a file describes: one for each service with the option `amber.device`.
///
/// The device types and names of `known` devices are not free for a user's file. Amber's own files
/// may have them.
///
/// # Errors
/// The first rule that the file breaks.
pub fn read(file: &FileDescriptor, known: &[Interface]) -> Result<Vec<Interface>, Error> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for service in file.services() {
        let Some(interface) = Service {
            service: &service,
            known,
        }
        .read()?
        else {
            continue;
        };
        if let Some(other) = interfaces
            .iter()
            .find(|it| it.device_type == interface.device_type)
        {
            let text = format!(
                "service {}: device type {} is already used by {}",
                service.name(),
                interface.device_type,
                other.service
            );
            return Err(Error::at(file, service.path(), text));
        }
        interfaces.push(interface);
    }
    if !interfaces.is_empty() && !is_ours(file) {
        for extension in file.extensions() {
            let is_driver_msg = extension.containing_message().full_name() == "amber.DriverMsg";
            if is_driver_msg && !USERS_NUMBERS.contains(&extension.number()) {
                let (name, number) = (extension.name(), extension.number());
                let text = format!("field {name}: number {number} is reserved");
                let error = Error::at(file, extension.path(), text);
                return Err(error.hint("choose an unused number from 110 to 179"));
            }
        }
    }
    Ok(interfaces)
}

/// The interfaces that the files of a pool describe, by device type; see [`read`].
///
/// # Errors
/// The first rule that a file breaks.
pub fn read_all(pool: &DescriptorPool, known: &[Interface]) -> Result<Vec<Interface>, Error> {
    let mut interfaces = Vec::new();
    for file in pool.files() {
        interfaces.extend(read(&file, known)?);
    }
    interfaces.sort_by_key(|interface| interface.device_type);
    Ok(interfaces)
}

/// The number of fields, with those inside.
fn count(fields: &[Field]) -> usize {
    fields.iter().map(|field| 1 + count(&field.fields)).sum()
}

/// The numbers of the fields that a file adds to `DriverMsg`, ascending.
fn numbers(file: &FileDescriptor) -> Vec<u32> {
    let is_of_messages =
        |it: &ExtensionDescriptor| it.containing_message().full_name() == "amber.DriverMsg";
    let extensions = file.extensions().filter(is_of_messages);
    let mut numbers: Vec<_> = extensions.map(|it| it.number()).collect();
    numbers.sort_unstable();
    numbers
}

fn is_ours(file: &FileDescriptor) -> bool {
    file.package_name().starts_with("amber.")
}

struct Service<'a> {
    service: &'a ServiceDescriptor,
    known: &'a [Interface],
}

impl Service<'_> {
    /// `None` if the service does not describe a device.
    fn read(&self) -> Result<Option<Interface>, Error> {
        let file = self.service.parent_file();
        let Some(device) = option(&self.service.options(), &file, "amber.device") else {
            let is_described = |method: &MethodDescriptor| !ways(method, &file).is_empty();
            return match self.service.methods().find(is_described) {
                Some(method) => Err(self
                    .error(format!("method {} needs a device", method.name()))
                    .hint("add `option (amber.device) = { type: 201 name: \"lamp\" };`")),
                None => Ok(None),
            };
        };
        let number = |name| (device.get_field_by_name(name)).and_then(|value| value.as_i32());
        let device_type = number("type").unwrap_or_default();
        let name = text(&device, "name").unwrap_or_default();
        let alias = text(&device, "alias");
        self.check_device(device_type, &name)?;
        if alias.is_some() && !is_ours(&file) {
            return Err(self
                .error("only devices of Amber have an alias".to_owned())
                .hint("choose the one name that says what the device is"));
        }

        let mut methods: Vec<Method> = Vec::new();
        let mut fields = 0;
        for method in self.service.methods() {
            let read = Rpc {
                method: &method,
                file: &file,
            }
            .read()?;
            if let Some(other) = methods.iter().find(|other| collide(other, &read)) {
                let text = format!("method {}: same fields as method {}", read.name, other.name);
                return Err(Error::at(&file, method.path(), text));
            }
            fields += count(&read.request) + count(&read.answer) + count(&read.may_answer);
            methods.push(read);
            if methods.len() > MAX_METHODS || fields > MAX_FIELDS {
                let text = format!("more than {MAX_METHODS} methods or {MAX_FIELDS} fields");
                return Err(self.error(text));
            }
        }
        // Otherwise nothing could end the motion when its client is gone.
        let can_stop = |it: &Method| it.moves.as_ref().is_some_and(|it| it.stop.is_some());
        if let Some(errand) = (methods.iter())
            .find(|it| it.moves.as_ref().is_some_and(|moves| moves.errand))
            .filter(|_| !methods.iter().any(can_stop))
        {
            let text = format!("method {}: nothing stops its motion", errand.name);
            let hint = "add `stop` to `moves` of a method of this device";
            return Err(self.error(text).hint(hint));
        }
        Ok(Some(Interface {
            name,
            alias,
            device_type,
            service: self.service.full_name().to_owned(),
            file: file.name().to_owned(),
            docs: docs(&file, self.service.path()),
            always_answers: flag(&device, "always_answers"),
            numbers: numbers(&file),
            methods,
        }))
    }

    fn check_device(&self, device_type: i32, name: &str) -> Result<(), Error> {
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
            && !name.ends_with('-')
            && !name.contains("--")
            && (name.chars()).all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        if !is_name {
            return Err(self
                .error(format!("invalid device name '{name}'"))
                .hint("use lower case, and `-` between words"));
        }
        if is_ours(&self.service.parent_file()) {
            return Ok(());
        }
        let is_known = self.known.iter().any(|it| it.device_type == device_type);
        if !USERS_TYPES.contains(&device_type) || device_type == GATEWAY || is_known {
            return Err(self
                .error(format!("device type {device_type} is reserved"))
                .hint("choose a number from 100 to 199, or from 201 on"));
        }
        let mut known = self.known.iter().flat_map(Interface::names);
        if known.any(|known| known == name) {
            return Err(self.error(format!("'{name}' is the name of a device of Amber")));
        }
        Ok(())
    }

    fn error(&self, text: String) -> Error {
        let text = format!("service {}: {text}", self.service.name());
        Error::at(&self.service.parent_file(), self.service.path(), text)
    }
}

/// Whether a driver or a client could not distinguish two methods.
fn collide(one: &Method, other: &Method) -> bool {
    fn fields(method: &Method) -> Vec<&str> {
        let request = method.request.iter().map(|field| field.path.as_str());
        request
            .chain(method.flags.iter().map(String::as_str))
            .collect()
    }
    if one.kind == Kind::Subscribe && other.kind == Kind::Subscribe {
        return (one.answer.iter())
            .any(|field| other.answer.iter().any(|it| it.path == field.path));
    }
    let others = fields(other);
    let share = fields(one).iter().any(|field| others.contains(field));
    let differ = (one.set.iter()).any(|setting| {
        (other.set.iter()).any(|it| it.field == setting.field && it.value != setting.value)
    });
    share && !differ
}

/// The option for methods that a method has.
fn ways(method: &MethodDescriptor, file: &FileDescriptor) -> Vec<(&'static str, DynamicMessage)> {
    let options = method.options();
    let ways = ["ask", "tell", "stream"].into_iter();
    ways.filter_map(|way| {
        option(&options, file, &format!("amber.{way}")).map(|option| (way, option))
    })
    .collect()
}

/// The options whose values may also be those of the whole request.
const HARMLESS: &str = "harmless";
const STOP: &str = "stop in moves";

struct Rpc<'a> {
    method: &'a MethodDescriptor,
    file: &'a FileDescriptor,
}

impl Rpc<'_> {
    fn read(&self) -> Result<Method, Error> {
        let ways = ways(self.method, self.file);
        let [(way, options)] = &ways[..] else {
            return Err(self.error("it needs exactly one of the options ask, tell and stream"));
        };
        self.check_signature(way)?;
        let flags = self.flags(options)?;
        let request = self.fields(&texts(options, "request"))?;
        let set = self.settings(options, "set", &request)?;
        let answer_name = if *way == "stream" { "data" } else { "answer" };
        let may_name = if *way == "stream" {
            "may_have"
        } else {
            "may_answer"
        };
        let answer = self.fields(&texts(options, answer_name))?;
        let may_answer = self.fields(&texts(options, may_name))?;
        let no_answer = answer.is_empty() && may_answer.is_empty();
        let kind = match *way {
            "ask" if no_answer => return Err(self.error("ask needs an answer field")),
            "stream" if no_answer => return Err(self.error("stream needs a data field")),
            "ask" | "tell" if flags.is_empty() && request.is_empty() => {
                return Err(self.error(format!("{way} needs a flag or a request field")));
            }
            "ask" => self.ask(options, &flags, &request)?,
            "tell" => Kind::Tell,
            _ if request.is_empty() => self.subscribe(options)?,
            _ => self.stream_by_request(options, &request)?,
        };
        let moves = self.moves(options, &kind, &flags, &request)?;
        let harmless = match &moves {
            Some(moves) => moves.stop.clone().map_or(Harmless::Unknown, Harmless::With),
            None => self.harmless(options, &request)?,
        };
        let name = self.method.name().to_owned();
        Ok(Method {
            command: kebab(&name),
            docs: docs(self.file, self.method.path()),
            name,
            kind,
            flags,
            request,
            set,
            harmless,
            moves,
            answer,
            may_answer,
            value: text(options, "value"),
        })
    }

    /// The types of the `rpc` must match its option.
    fn check_signature(&self, way: &str) -> Result<(), Error> {
        let (input, output) = (self.method.input(), self.method.output());
        if input.full_name() != "amber.DriverMsg" || self.method.is_client_streaming() {
            return Err(self.error("it must take an amber.DriverMsg"));
        }
        let is = (output.full_name(), self.method.is_server_streaming());
        let (should_be, words) = match way {
            "ask" => (("amber.DriverMsg", false), "ask returns amber.DriverMsg"),
            "tell" => (("amber.Nothing", false), "tell returns amber.Nothing"),
            _ => (
                ("amber.DriverMsg", true),
                "stream returns a stream of amber.DriverMsg",
            ),
        };
        match is == should_be {
            true => Ok(()),
            false => Err(self.error(words)),
        }
    }

    fn ask(
        &self,
        options: &DynamicMessage,
        flags: &[String],
        request: &[Field],
    ) -> Result<Kind, Error> {
        let repeats_flag = flag(options, "repeats_flag");
        if repeats_flag && flags.is_empty() {
            return Err(self.error("repeats_flag needs a flag"));
        }
        let refusal = match text(options, "refusal") {
            Some(name) => Some(Box::new(self.field(&name)?)),
            None => None,
        };
        let timeout_ms = (options.has_field_by_name("timeout_ms"))
            .then(|| options.get_field_by_name("timeout_ms")?.as_u32());
        let duration = match text(options, "duration") {
            Some(name) => Some(self.milliseconds(&name, request, "duration")?),
            None => None,
        };
        Ok(Kind::Ask {
            repeats_flag,
            refusal,
            timeout_ms: timeout_ms.flatten(),
            duration,
        })
    }

    fn harmless(&self, options: &DynamicMessage, request: &[Field]) -> Result<Harmless, Error> {
        if self.method.is_server_streaming() || flag(options, "reads") {
            return Ok(Harmless::Any);
        }
        let harmless = options.has_field_by_name("harmless");
        let harmless = harmless.then(|| options.get_field_by_name("harmless"));
        match harmless.flatten().as_deref().and_then(Value::as_message) {
            Some(harmless) => {
                let values = harmless.get_field_by_name("set");
                Ok(Harmless::With(self.values(
                    values.as_deref(),
                    HARMLESS,
                    request,
                )?))
            }
            None => Ok(Harmless::Unknown),
        }
    }

    /// `options` are those of ask, tell or stream.
    fn moves(
        &self,
        options: &DynamicMessage,
        kind: &Kind,
        flags: &[String],
        request: &[Field],
    ) -> Result<Option<Moves>, Error> {
        let Some(moves) = option(&self.method.options(), self.file, "amber.moves") else {
            return Ok(None);
        };
        if flag(options, "reads") {
            return Err(self.error("a request that `reads` moves nothing"));
        }
        if options.has_field_by_name("harmless") {
            return Err(self.error("with `moves`, say `stop` instead of `harmless`"));
        }
        if *kind == Kind::Subscribe {
            return Err(self.error("a stream by SUBSCRIBE moves nothing"));
        }
        let errand = flag(&moves, "errand");
        let stop = moves.has_field_by_name("stop");
        let stop = stop.then(|| moves.get_field_by_name("stop")).flatten();
        let Some(stop) = stop.as_deref().and_then(Value::as_message) else {
            return Ok(Some(Moves { stop: None, errand }));
        };
        let stop = self.values(stop.get_field_by_name("set").as_deref(), STOP, request)?;
        if flags.is_empty() {
            let is_absent = |field: &&Field| !stop.iter().any(|setting| setting.is_in(field));
            if let Some(field) = request.iter().find(is_absent) {
                let text = format!("{STOP}: a request without '{}' is none", field.name);
                return Err(self.error(text).hint("set a value in it"));
            }
        }
        if let Some(field) = request.iter().find_map(|field| missing(field, &stop)) {
            let text = format!("{STOP}: the required '{}' has no value", field.name);
            return Err(self.error(text));
        }
        let stop = Some(stop);
        Ok(Some(Moves { stop, errand }))
    }

    fn subscribe(&self, options: &DynamicMessage) -> Result<Kind, Error> {
        for name in ["period", "start", "stop"] {
            if options.has_field_by_name(name) {
                return Err(self.error(format!("{name} needs a request field")));
            }
        }
        Ok(Kind::Subscribe)
    }

    fn stream_by_request(
        &self,
        options: &DynamicMessage,
        request: &[Field],
    ) -> Result<Kind, Error> {
        let stop = self.settings(options, "stop", request)?;
        if stop.is_empty() {
            return Err(self.error("a stream by a request needs a value that stops it"));
        }
        let period = match text(options, "period") {
            Some(name) => Some(self.milliseconds(&name, request, "period")?),
            None => None,
        };
        let start = self.settings(options, "start", request)?;
        Ok(Kind::StreamByRequest {
            period,
            start,
            stop,
        })
    }

    fn flags(&self, options: &DynamicMessage) -> Result<Vec<String>, Error> {
        let flags = texts(options, "flag").into_iter().map(|name| {
            let field = self.field(&name)?;
            match field.type_name == "bool" {
                true => Ok(field.path),
                false => Err(self.error(format!("flag '{name}' is not of type bool"))),
            }
        });
        flags.collect()
    }

    fn settings(
        &self,
        options: &DynamicMessage,
        name: &str,
        request: &[Field],
    ) -> Result<Vec<Setting>, Error> {
        self.values(options.get_field_by_name(name).as_deref(), name, request)
    }

    fn values(
        &self,
        values: Option<&Value>,
        name: &str,
        request: &[Field],
    ) -> Result<Vec<Setting>, Error> {
        let values = values.and_then(Value::as_list).unwrap_or_default().iter();
        let settings = values.filter_map(Value::as_message).map(|setting| {
            let field = text(setting, "field").unwrap_or_default();
            let value = text(setting, "value").unwrap_or_default();
            let field = self.inside(&field, request, name)?;
            match kind_of(self.file, &field) {
                Some(kind) if is_value(&kind, &value) => Ok(Setting { field, value }),
                _ => Err(self.error(format!("{name}: '{value}' is not a value of '{field}'"))),
            }
        });
        settings.collect()
    }

    /// The full name of a field inside the request that is a time in milliseconds.
    fn milliseconds(&self, name: &str, request: &[Field], what: &str) -> Result<String, Error> {
        let path = self.inside(name, request, what)?;
        let field = self.field(name)?;
        let is_whole = ["uint32", "uint64", "int32", "int64"].contains(&&*field.type_name);
        match is_whole && field.unit.as_deref() == Some("ms") {
            true => Ok(path),
            false => Err(self.error(format!("{what}: '{name}' is not a whole number of ms"))),
        }
    }

    /// The full name of a field inside the request.
    fn inside(&self, name: &str, request: &[Field], what: &str) -> Result<String, Error> {
        let path = self.field(name)?.path;
        let is_inside = |outer: &Field| {
            let is_itself = [HARMLESS, STOP].contains(&what) && path == outer.path;
            is_itself || path.starts_with(&format!("{}.", outer.path))
        };
        match request.iter().any(is_inside) {
            true => Ok(path),
            false => Err(self.error(format!("{what}: '{name}' is not inside the request"))),
        }
    }

    fn fields(&self, names: &[String]) -> Result<Vec<Field>, Error> {
        names.iter().map(|name| self.field(name)).collect()
    }

    fn field(&self, name: &str) -> Result<Field, Error> {
        find(self.file, name).map_err(|why| self.error(why))?
    }

    fn error(&self, text: impl AsRef<str>) -> Error {
        let text = format!("method {}: {}", self.method.name(), text.as_ref());
        Error::at(self.file, self.method.path(), text)
    }
}

fn option(options: &DynamicMessage, file: &FileDescriptor, name: &str) -> Option<DynamicMessage> {
    let extension = file.parent_pool().get_extension_by_name(name)?;
    let value = options
        .has_extension(&extension)
        .then(|| options.get_extension(&extension))?;
    value.as_message().cloned()
}

/// A required field without a value inside a message that has values.
fn missing<'a>(field: &'a Field, values: &[Setting]) -> Option<&'a Field> {
    if !values.iter().any(|setting| setting.is_in(field)) {
        return (field.cardinality == Cardinality::Required).then_some(field);
    }
    field.fields.iter().find_map(|inner| missing(inner, values))
}

/// A field of type bool; false if it is absent.
fn flag(message: &DynamicMessage, field: &str) -> bool {
    let value = message.get_field_by_name(field);
    value.and_then(|value| value.as_bool()).unwrap_or_default()
}

fn text(message: &DynamicMessage, field: &str) -> Option<String> {
    if !message.has_field_by_name(field) {
        return None;
    }
    message
        .get_field_by_name(field)?
        .as_str()
        .map(str::to_owned)
}

/// The texts of a field, of which there may be any number or at most one.
fn texts(message: &DynamicMessage, field: &str) -> Vec<String> {
    match message.get_field_by_name(field).as_deref() {
        Some(Value::List(list)) => list
            .iter()
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect(),
        _ => text(message, field).into_iter().collect(),
    }
}

/// `SetAngle` as `set-angle`.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out.replace('_', "-")
}
