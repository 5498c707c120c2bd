//! The model of a device's interface. PURE.

use serde::Serialize;

/// The interface of a device type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interface {
    /// The name for people and command lines, e.g. `drive-to-point`.
    pub name: String,
    /// A second name that says what the device does, e.g. `laser` for `hokuyo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The device type.
    #[serde(rename = "type")]
    pub device_type: i32,
    /// The full name of the service.
    pub service: String,
    /// The `.proto` file.
    pub file: String,
    /// The comment on the service, in Markdown.
    pub docs: String,
    /// Whether the driver answers every request from its start on, because the device needs no
    /// hardware and no other device.
    #[serde(skip_serializing_if = "is_false")]
    pub always_answers: bool,
    /// The numbers of the fields that its file adds to `DriverMsg`, ascending.
    #[serde(skip)]
    pub numbers: Vec<u32>,
    /// Requests and streams, in the order of the file.
    pub methods: Vec<Method>,
}

impl Interface {
    /// The name, and the second one if there is one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [Some(&*self.name), self.alias.as_deref()]
            .into_iter()
            .flatten()
    }
}

/// A request or a stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// The name, e.g. `SetAngle`.
    pub name: String,
    /// The name on the command line, e.g. `set-angle`.
    pub command: String,
    /// The comment, in Markdown.
    pub docs: String,
    /// The kind of message exchange.
    #[serde(flatten)]
    pub kind: Kind,
    /// Full names of fields of type bool that the client sets to true.
    pub flags: Vec<String>,
    /// Fields of `DriverMsg` that carry the arguments.
    pub request: Vec<Field>,
    /// Values in the request that make it this method.
    pub set: Vec<Setting>,
    /// The requests that a tool may send to a real device without asking.
    pub harmless: Harmless,
    /// What it moves, if it moves something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<Moves>,
    /// Fields of `DriverMsg` that every answer or published message has.
    pub answer: Vec<Field>,
    /// Fields of `DriverMsg` that an answer or published message may have.
    pub may_answer: Vec<Field>,
    /// The class that the SDKs have for the whole answer or published message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The kind of message exchange of a method.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// A request with an answer, which repeats its number.
    Ask {
        /// Whether the answer repeats the flags.
        repeats_flag: bool,
        /// The field of an answer that refuses the request.
        refusal: Option<Box<Field>>,
        /// How long a client waits for the answer by default.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u32>,
        /// The full name of the argument for the time limit of the device in milliseconds. A
        /// client waits longer than that.
        #[serde(skip_serializing_if = "Option::is_none")]
        duration: Option<String>,
    },
    /// A request without an answer.
    Tell,
    /// Published data; starts with SUBSCRIBE and stops with UNSUBSCRIBE.
    Subscribe,
    /// Published data; starts and stops with the request in a DATA message.
    StreamByRequest {
        /// The full name of the argument that is the period.
        period: Option<String>,
        /// Values in the request that start the stream.
        start: Vec<Setting>,
        /// Values in the request that stop the stream.
        stop: Vec<Setting>,
    },
}

/// Arguments with which a request moves nothing and changes nothing of importance, so that a tool
/// may send it to a real device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Harmless {
    /// Unknown: the request may move something.
    Unknown,
    /// Any arguments: the request only reads, or it is a stream.
    Any,
    /// These arguments, and no others.
    With(Vec<Setting>),
}

/// A request that moves something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moves {
    /// The arguments with which it stops all motion of the device; others are absent or empty.
    /// `None`: it cannot stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<Setting>>,
    /// Whether the motion goes on without further requests until it is done.
    #[serde(skip_serializing_if = "is_false")]
    pub errand: bool,
}

/// A fixed value of a field, independent of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The name of the field, as in [`Field::path`].
    pub field: String,
    /// A number, true, false, a text, or the name of an enum value.
    pub value: String,
}

impl Setting {
    /// Whether it is about this field, or one inside.
    pub fn is_in(&self, field: &Field) -> bool {
        let rest = self.field.strip_prefix(&field.path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// A field of `DriverMsg` or of a message in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Field {
    /// The name, e.g. `servoAddress`.
    pub name: String,
    /// The path from `DriverMsg`, e.g. `amber.maestro_proto.setAngleCommand.servoAddress`.
    pub path: String,
    /// The number on the wire.
    pub number: u32,
    /// The type in the `.proto`: `int32`, `string`, or the full name of a message or enum.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether it may be absent, and whether there may be several.
    pub cardinality: Cardinality,
    /// The unit of the number, e.g. `mm/s`; see [`crate::is_unit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The smallest valid value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest valid value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// The value that an absent field means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent_means: Option<String>,
    /// Whether answers and published data always have this optional field.
    #[serde(skip_serializing_if = "is_false")]
    pub always_set: bool,
    /// The comment, in Markdown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub docs: String,
    /// The name of the group of which a message has at most one field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oneof: Option<String>,
    /// The class that the SDKs have for this message, or for one of its rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether the lists of this message are the columns of a table, and so have equal length.
    #[serde(skip_serializing_if = "is_false")]
    pub columns: bool,
    /// The fields of a message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// The values of an enum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
}

/// Whether a field may be absent, and whether there may be several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cardinality {
    /// At most one.
    Optional,
    /// Exactly one.
    Required,
    /// Any number.
    Repeated,
}

/// A value of an enum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The name.
    pub name: String,
    /// The number on the wire.
    pub number: i32,
    /// The comment, in Markdown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub docs: String,
}

// The signature is that of `skip_serializing_if`.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(it: &bool) -> bool {
    !it
}

impl Interface {
    /// A method by its name, `SetAngle` or `set-angle`.
    pub fn method(&self, name: &str) -> Option<&Method> {
        let mut methods = self.methods.iter();
        methods.find(|method| method.name == name || method.command == name)
    }

    /// Whether the device has something that moves.
    pub fn moves(&self) -> bool {
        self.methods.iter().any(|method| method.moves.is_some())
    }

    /// The request that stops all motion, with its arguments; `None` if the device has none.
    pub fn stop(&self) -> Option<(&Method, &[Setting])> {
        let stop = |method| -> Option<(&Method, &[Setting])> {
            let method: &Method = method;
            Some((method, method.moves.as_ref()?.stop.as_deref()?))
        };
        self.methods.iter().find_map(stop)
    }
}

impl Field {
    /// Whether it is a message, or a list of messages.
    pub fn is_message(&self) -> bool {
        let is_single = matches!(&*self.type_name, "bool" | "string" | "bytes");
        !is_single && !self.is_number() && self.choices.is_empty()
    }

    /// Whether it is a number, or a list of numbers.
    pub fn is_number(&self) -> bool {
        matches!(
            &*self.type_name,
            "double" | "float" | "int32" | "int64" | "uint32" | "uint64" | "sint32" | "sint64"
        ) || ["fixed32", "fixed64", "sfixed32", "sfixed64"].contains(&&*self.type_name)
    }
}

impl Method {
    /// The arguments that must be absent or empty in a request that stops: those of which `stop`
    /// says nothing.
    pub fn empty_to_stop<'a>(&'a self, stop: &'a [Setting]) -> impl Iterator<Item = &'a Field> {
        let is_named = |field: &Field| stop.iter().any(|setting| setting.is_in(field));
        self.request.iter().filter(move |field| !is_named(field))
    }

    /// Whether it is a stream.
    pub fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Subscribe | Kind::StreamByRequest { .. })
    }
}
