//! Generates the trait of a device's driver from its description. PURE.

use std::fmt::Write;

use amber_schema::{Field as Described, Interface, Kind, Method, Setting};
use prost_reflect::DescriptorPool;

use crate::field_path::FieldPath;
use crate::{docs, names};

mod motion;

use motion::Moves;

/// The trait of the drivers of a device, its link, and the function that makes a driver of it.
/// The code stands next to the messages of the package, or anywhere if they are Amber's own.
///
/// `description` is what its drivers hand to the mediator.
///
/// # Errors
/// A field is not in the package of the service; the error names the method.
pub(crate) fn rust(
    pool: &DescriptorPool,
    interface: &Interface,
    is_only_one: bool,
    description: Option<&[u8]>,
) -> Result<String, String> {
    let (package, service) = package_and_name(interface);
    let methods = interface.methods.iter().map(|method| {
        Rpc::new(pool, package, method).map_err(|why| format!("method {}: {why}", method.name))
    });
    let device = Device {
        interface,
        service,
        function: match is_only_one {
            true => "driver".to_owned(),
            false => format!("{}_driver", names::snake(service)),
        },
        message: names::driver_msg(package),
        description,
        rpcs: methods.collect::<Result<_, _>>()?,
    };
    let mut out = String::new();
    device.answers(&mut out);
    device.link(&mut out);
    device.driver_trait(&mut out);
    device.function(&mut out);
    Ok(out)
}

/// The package and the name of the service: `lamp` and `Lamp`.
pub(crate) fn package_and_name(interface: &Interface) -> (&str, &str) {
    (interface.service.rsplit_once('.')).unwrap_or(("", &interface.service))
}

struct Device<'a> {
    interface: &'a Interface,
    service: &'a str,
    /// The name of the function that makes a driver.
    function: String,
    /// The path of the device's `DriverMsg`.
    message: String,
    /// The description for the mediator.
    description: Option<&'a [u8]>,
    rpcs: Vec<Rpc<'a>>,
}

struct Rpc<'a> {
    method: &'a Method,
    name: String,
    flags: Vec<FieldPath>,
    /// Each argument with its name and its type.
    arguments: Vec<(FieldPath, String, String)>,
    answer: Vec<Field>,
    /// The field of a refusal, and its value, which uses the text `why`.
    refusal: Option<(FieldPath, &'static str)>,
    set: Vec<Condition>,
    start: Vec<Condition>,
    stop: Vec<Condition>,
    moves: Option<Moves>,
}

/// A value that a field in the request must have.
struct Condition {
    place: FieldPath,
    value: String,
    /// The value that an absent field means, if the description defines it.
    absent: Option<String>,
}

impl Condition {
    fn holds(&self) -> String {
        (self.place).has("message", &self.value, self.absent.as_deref())
    }

    /// Like `holds`, but an absent field is at least 0, false or empty.
    fn holds_or_is_absent(&self) -> String {
        let absent = self.absent.clone().unwrap_or_else(|| self.place.zero());
        self.place.has("message", &self.value, Some(&absent))
    }
}

/// The field in which an answer refuses a request, if a driver can set it.
fn refusal(
    pool: &DescriptorPool,
    package: &str,
    kind: &Kind,
) -> Result<Option<(FieldPath, &'static str)>, String> {
    let Kind::Ask {
        refusal: Some(field),
        ..
    } = kind
    else {
        return Ok(None);
    };
    let value = match &*field.type_name {
        "string" => "::std::borrow::ToOwned::to_owned(why)",
        "amber.mediator_proto.Refusal" => {
            "::amber_proto::mediator::Refusal { \
             reason: ::amber_proto::mediator::refusal::Reason::Failed.into(), \
             message: ::std::borrow::ToOwned::to_owned(why), hint: ::core::option::Option::None }"
        }
        // The description names no field for the reason.
        _ => return Ok(None),
    };
    let place = FieldPath::find(pool, &field.path, package)?.settable()?;
    Ok(Some((place, value)))
}

fn absent_means(fields: &[Described], path: &str) -> Option<String> {
    fields.iter().find_map(|field| match field.path == path {
        true => field.absent_means.clone(),
        false => absent_means(&field.fields, path),
    })
}

/// Conditions that must all hold.
fn all(conditions: impl Iterator<Item = String>) -> String {
    conditions.collect::<Vec<_>>().join(" && ")
}

/// A field of an answer or publication.
struct Field {
    /// Its name in a struct.
    name: String,
    place: FieldPath,
    is_sure: bool,
    type_name: String,
    docs: String,
}

impl<'a> Rpc<'a> {
    fn new(pool: &DescriptorPool, package: &str, method: &'a Method) -> Result<Self, String> {
        let find = |path: &str| FieldPath::find(pool, path, package);
        let settings = |settings: &[Setting]| -> Result<Vec<_>, String> {
            let condition = |it: &Setting| {
                Ok(Condition {
                    place: find(&it.field)?,
                    value: it.value.clone(),
                    absent: absent_means(&method.request, &it.field),
                })
            };
            settings.iter().map(condition).collect()
        };
        let (start, stop) = match &method.kind {
            Kind::StreamByRequest { start, stop, .. } => (settings(start)?, settings(stop)?),
            _ => (Vec::new(), Vec::new()),
        };
        let arguments = method.request.iter().map(|field| {
            let place = find(&field.path)?;
            let type_name = place.value_type(package);
            let name = match names::with_unit(&field.name, field.unit.as_deref()) {
                name if ["reply", "outcome", "origin"].contains(&&*name) => {
                    format!("{name}_argument")
                }
                name => name,
            };
            Ok((place, name, type_name))
        });
        let sure = method.answer.iter().map(|field| (field, true));
        let maybe = method.may_answer.iter().map(|field| (field, false));
        let answer = sure.chain(maybe).map(|(field, is_sure)| {
            let place = find(&field.path)?.settable()?;
            let type_name = match is_sure {
                true => place.value_type(package),
                false => place.maybe_type(package),
            };
            Ok(Field {
                name: names::with_unit(&field.name, field.unit.as_deref()),
                place,
                is_sure,
                type_name,
                docs: field.docs.clone(),
            })
        });
        Ok(Self {
            method,
            moves: Moves::of(method, find, settings)?,
            // Like `set-angle` on the command line.
            name: names::snake(&method.command),
            flags: (method.flags.iter().map(|path| find(path))).collect::<Result<_, _>>()?,
            arguments: arguments.collect::<Result<_, String>>()?,
            answer: answer.collect::<Result<_, String>>()?,
            refusal: refusal(pool, package, &method.kind)?,
            set: settings(&method.set)?,
            start,
            stop,
        })
    }

    fn is_stream_by_request(&self) -> bool {
        matches!(self.method.kind, Kind::StreamByRequest { .. })
    }

    /// The name without `r#`, as a part of other names.
    fn stem(&self) -> &str {
        self.name.trim_start_matches("r#")
    }

    /// The type of an answer or publication: that of its only field, or a struct.
    fn answer_type(&self) -> String {
        match &self.answer[..] {
            [one] => one.type_name.clone(),
            _ => self.struct_name(),
        }
    }

    fn struct_name(&self) -> String {
        let kind = if self.method.is_stream() {
            "Data"
        } else {
            "Answer"
        };
        format!("{}{kind}", names::camel(&self.method.name))
    }

    /// The condition under which a message requests this method.
    fn is_requested(&self) -> String {
        let presence = match self.flags.is_empty() {
            true => self.arguments.iter().map(|(place, ..)| place).collect(),
            // The flag alone is the request; absent arguments are empty.
            false => Vec::from_iter(&self.flags),
        };
        let present = (presence.iter()).map(|place| format!("{}.is_some()", place.get("message")));
        let set = self.set.iter().map(Condition::holds);
        all(present.chain(set))
    }

    /// The arguments of a call, each with a comma after it.
    fn values(&self) -> String {
        let value = |(place, ..): &(FieldPath, _, _)| {
            format!("{}.cloned().unwrap_or_default(), ", place.get("message"))
        };
        self.arguments.iter().map(value).collect()
    }

    /// The parameters of the method, each with a comma after it.
    fn parameters(&self) -> String {
        let parameter =
            |(_, name, type_name): &(_, String, String)| format!("{name}: {type_name}, ");
        self.arguments.iter().map(parameter).collect()
    }

    /// The arguments of a stream in one type.
    fn stream_argument(&self) -> (String, String) {
        match &self.arguments[..] {
            [(place, _, type_name)] => (
                type_name.clone(),
                format!("{}.cloned().unwrap_or_default()", place.get("message")),
            ),
            several => {
                let types = several.iter().map(|(_, _, type_name)| type_name.clone());
                (
                    format!("({})", types.collect::<Vec<_>>().join(", ")),
                    format!("({})", self.values()),
                )
            }
        }
    }
}

/// Writes comments, indented.
fn docs(out: &mut String, indent: &str, text: &str) {
    docs::write(out, indent, &docs::markdown(text));
}

impl Device<'_> {
    /// The structs of answers and publications with several fields.
    fn answers(&self, out: &mut String) {
        for rpc in &self.rpcs {
            let what = match rpc.method.kind {
                Kind::Tell => continue,
                Kind::Ask { .. } => "The answer to",
                Kind::Subscribe | Kind::StreamByRequest { .. } => "What is published by",
            };
            if let [_] = rpc.answer[..] {
                continue;
            }
            let _ = writeln!(
                out,
                "/// {what} `{}`.\n#[derive(Clone, Debug, PartialEq)]\npub struct {} {{",
                rpc.stem(),
                rpc.struct_name()
            );
            for field in &rpc.answer {
                match field.docs.is_empty() {
                    true => docs(out, "    ", "A field of the message."),
                    false => docs(out, "    ", &field.docs),
                }
                let _ = writeln!(out, "    pub {}: {},", field.name, field.type_name);
            }
            let _ = writeln!(out, "}}\n");
        }
    }

    /// The link, with a method for each stream, and for each answer that comes later.
    fn link(&self, out: &mut String) {
        let Self {
            service, message, ..
        } = self;
        let _ = writeln!(
            out,
            "/// The link of a [`{service}Driver`] to the mediator: a [`Link`](::amber_driver::Link) \
             that knows what\n/// the device publishes.\n\
             #[derive(Clone, Debug)]\n\
             pub struct {service}Link(::amber_driver::Link<{message}>);\n\n\
             impl ::core::ops::Deref for {service}Link {{\n    \
             type Target = ::amber_driver::Link<{message}>;\n\n    \
             fn deref(&self) -> &Self::Target {{ &self.0 }}\n}}\n\n\
             #[allow(dead_code, clippy::all)]\n\
             impl {service}Link {{"
        );
        for rpc in &self.rpcs {
            self.link_methods(out, rpc);
        }
        let _ = writeln!(out, "}}\n");
    }

    fn link_methods(&self, out: &mut String, rpc: &Rpc<'_>) {
        const RESULT: &str = "::core::result::Result<(), ::amber_driver::SendError>";
        let (name, stem, value) = (&rpc.name, rpc.stem(), rpc.answer_type());
        let errors = "    ///\n    /// # Errors\n    /// The message was not sent.";
        match rpc.method.kind {
            Kind::Tell => return,
            Kind::Ask { .. } => {
                let _ = writeln!(
                    out,
                    "    /// Answers a `{stem}` request of which the driver kept only the origin.\n\
                     {errors}\n    \
                     pub fn answer_{stem}(&self, origin: &::amber_driver::Origin, answer: {value}) \
                     -> {RESULT} {{\n        \
                     self.0.answer(origin, Self::{stem}_message(answer))\n    }}\n"
                );
            }
            Kind::Subscribe => {
                docs(out, "    ", &rpc.method.docs);
                let _ = writeln!(
                    out,
                    "    ///\n    /// Publishes to all subscribers.\n{errors}\n    \
                     pub fn {name}(&self, data: {value}) -> {RESULT} {{\n        \
                     self.0.publish(Self::{stem}_message(data))\n    }}\n"
                );
                let _ = writeln!(
                    out,
                    "    /// Like `{stem}`, to the subscribers of one device; only in a process \
                     that serves several.\n{errors}\n    \
                     pub fn {stem}_for(&self, device: ::amber_driver::Device, data: {value}) \
                     -> {RESULT} {{\n        \
                     self.0.publish_for(device, Self::{stem}_message(data))\n    }}\n"
                );
            }
            Kind::StreamByRequest { .. } => {
                docs(out, "    ", &rpc.method.docs);
                let _ = writeln!(
                    out,
                    "    ///\n    /// Publishes to the clients that started the stream with a \
                     request of this origin.\n{errors}\n    \
                     pub fn {name}(&self, origin: &::amber_driver::Origin, data: {value}) \
                     -> {RESULT} {{\n        \
                     self.0.publish_to(origin, Self::{stem}_message(data))\n    }}\n"
                );
            }
        }
        let _ = writeln!(
            out,
            "    fn {stem}_message(value: {value}) -> {} {{\n        \
             let mut message = <{} as ::core::default::Default>::default();",
            self.message, self.message
        );
        let repeats_flag = matches!(
            rpc.method.kind,
            Kind::Ask {
                repeats_flag: true,
                ..
            }
        );
        for flag in rpc.flags.iter().filter(|_| repeats_flag) {
            let _ = writeln!(out, "        {}", flag.set("message", "true"));
        }
        for field in &rpc.answer {
            let value = match rpc.answer.len() {
                1 => "value".to_owned(),
                _ => format!("value.{}", field.name),
            };
            let set = match field.is_sure {
                true => field.place.set("message", &value),
                false => field.place.set_maybe("message", &value),
            };
            let _ = writeln!(out, "        {set}");
        }
        let _ = writeln!(out, "        message\n    }}\n");
        if let Some((place, value)) = &rpc.refusal {
            let _ = writeln!(
                out,
                "    fn {stem}_refusal(why: &str) -> {message} {{\n        \
                 let mut message = <{message} as ::core::default::Default>::default();\n        \
                 {set}\n        message\n    }}\n",
                message = self.message,
                set = place.set("message", value),
            );
        }
    }

    /// The name of a method of the trait that is not in the description. `PidFollowTrajectory`
    /// has its own method `start`.
    fn hook(&self, name: &str) -> String {
        match self.rpcs.iter().any(|rpc| rpc.name == name) {
            true => format!("{name}_driver"),
            false => name.to_owned(),
        }
    }

    /// The only stream by SUBSCRIBE, if there is exactly one.
    fn stream(&self) -> Option<&Rpc<'_>> {
        let is_stream = |rpc: &&Rpc<'_>| rpc.method.kind == Kind::Subscribe;
        let mut streams = self.rpcs.iter().filter(is_stream);
        streams.next().filter(|_| streams.next().is_none())
    }

    /// The type that `publish` returns.
    fn published(&self) -> String {
        (self.stream()).map_or_else(|| self.message.clone(), Rpc::answer_type)
    }

    fn driver_trait(&self, out: &mut String) {
        let Self {
            service, message, ..
        } = self;
        docs(out, "", &self.interface.docs);
        let function = &self.function;
        let (start, received, period, publish, publish_for) = (
            self.hook("start"),
            self.hook("received"),
            self.hook("period"),
            self.hook("publish"),
            self.hook("publish_for"),
        );
        let handles_gone_clients = self.hook("handles_gone_clients");
        let (subscribed, client_gone, wake_at, wake, shutdown) = (
            self.hook("subscribed"),
            self.hook("client_gone"),
            self.hook("wake_at"),
            self.hook("wake"),
            self.hook("shutdown"),
        );
        let published = self.published();
        let _ = writeln!(
            out,
            "///\n\
             /// A driver of this device has the methods of its description; run it with\n\
             /// `amber_driver::serve({function}(driver))`. The methods run one at a time. If a \
             message\n/// requests several, the first in the order of the description is called, and \
             besides it those\n/// of streams.\n\
             #[allow(async_fn_in_trait, clippy::all)] // They are only ever run on one thread.\n\
             pub trait {service}Driver {{\n    \
             /// Called first, before any request; see [`Driver::start`](::amber_driver::Driver::start).\n    \
             ///\n    /// # Errors\n    \
             /// Anything that prevents the driver from working. The process ends.\n    \
             async fn {start}(&mut self, _link: {service}Link) -> ::core::result::Result<(), \
             ::std::boxed::Box<dyn ::std::error::Error + ::core::marker::Send + ::core::marker::Sync>> \
             {{ ::core::result::Result::Ok(()) }}\n"
        );
        for rpc in &self.rpcs {
            self.trait_method(out, rpc);
        }
        let _ = writeln!(
            out,
            "    /// Called with each message before its method is. Can remove what must not take effect,\n    \
             /// if a message requests several methods.\n    \
             fn {received}(&mut self, _request: &mut ::amber_driver::Request<{message}>) {{}}\n\n    \
             /// The time between two calls of `{publish}`, which happen only while there are\n    \
             /// subscribers.\n    \
             fn {period}(&self) -> ::core::option::Option<::core::time::Duration> \
             {{ ::core::option::Option::None }}\n\n    \
             /// What to send to all subscribers now; `None` if there is nothing.\n    \
             async fn {publish}(&mut self) -> ::core::option::Option<{published}> \
             {{ ::core::option::Option::None }}\n\n    \
             /// The same for one device, in a process that serves several of this type.\n    \
             async fn {publish_for}(&mut self, _device: ::amber_driver::Device) \
             -> ::core::option::Option<{published}> {{ self.{publish}().await }}\n\n    \
             /// When to call `{wake}`; asked again after each other call.\n    \
             fn {wake_at}(&self) -> ::core::option::Option<::std::time::Instant> \
             {{ ::core::option::Option::None }}\n\n    \
             /// Called at the time of `{wake_at}`.\n    \
             async fn {wake}(&mut self) {{}}\n\n    \
             /// Called when a client subscribes that was not subscribed before.\n    \
             async fn {subscribed}(&mut self, _client: ::amber_driver::ClientId) {{}}\n\n    \
             /// Called when a client has left or died: stop all motion that it started.\n    \
             async fn {client_gone}(&mut self, _client: ::amber_driver::ClientId) {{}}\n\n    \
             /// Whether `{client_gone}` stops what the client moved. If not, the harness sends the\n    \
             /// request that stops, if the description has one (`moves`).\n    \
             fn {handles_gone_clients}(&self) -> bool {{ false }}\n\n    \
             /// Called last: stop everything that moves.\n    \
             async fn {shutdown}(&mut self) {{}}\n}}\n"
        );
    }

    fn trait_method(&self, out: &mut String, rpc: &Rpc<'_>) {
        let parameters = match rpc.method.kind {
            Kind::Ask { .. } => format!(
                "{}reply: ::amber_driver::Reply<{}>",
                rpc.parameters(),
                rpc.answer_type()
            ),
            Kind::Tell => format!("{}outcome: ::amber_driver::Outcome", rpc.parameters()),
            Kind::StreamByRequest { .. } => format!(
                "origin: ::amber_driver::Origin, request: ::amber_driver::StreamRequest<{}>",
                rpc.stream_argument().0
            ),
            // The driver publishes by `publish` or by its link.
            Kind::Subscribe => return,
        };
        docs(out, "    ", &rpc.method.docs);
        let _ = writeln!(out, "    async fn {}(&mut self, {parameters});\n", rpc.name);
    }

    fn function(&self, out: &mut String) {
        let Self {
            service,
            message,
            function,
            ..
        } = self;
        let this = format!("{service}Driver");
        let _ = writeln!(
            out,
            "/// Makes a [`{this}`] a [`Driver`](::amber_driver::Driver), for `amber_driver::serve`.\n\
             #[allow(clippy::all)]\n\
             pub fn {function}<D: {this}>(driver: D) -> impl ::amber_driver::Driver<Message = {message}> {{\n\
             struct Adapter<D> {{\n    driver: D,\n    \
             link: ::core::option::Option<{service}Link>,\n    \
             unknown: ::amber_driver::UnknownRequests,\n}}\n\n\
             impl<D: {this}> ::amber_driver::Driver for Adapter<D> {{\n    \
             type Message = {message};\n"
        );
        self.request(out);
        out.push_str("    fn reports_outcomes(&self) -> bool {\n        true\n    }\n\n");
        if let Some(bytes) = self.description {
            let _ = writeln!(
                out,
                "    fn description(&self) -> ::core::option::Option<&'static [u8]> {{\n        \
                 ::core::option::Option::Some(b\"{}\")\n    }}\n",
                bytes.escape_ascii()
            );
        }
        self.moves(out);
        let streams = self.rpcs.iter().filter(|rpc| rpc.is_stream_by_request());
        let gone: String = streams
            .map(|rpc| {
                format!(
                    "let origin = ::amber_driver::Origin::of(client);\n        \
                     {this}::{}(&mut self.driver, origin, \
                     ::amber_driver::StreamRequest::ClientGone).await;\n        ",
                    rpc.name
                )
            })
            .collect();
        let wrap = match self.stream() {
            Some(rpc) => format!(".map({service}Link::{}_message)", rpc.stem()),
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "    async fn start(&mut self, link: ::amber_driver::Link<{message}>) \
             -> ::core::result::Result<(), \
             ::std::boxed::Box<dyn ::std::error::Error + ::core::marker::Send + ::core::marker::Sync>> {{\n        \
             let link = {service}Link(link);\n        \
             self.link = ::core::option::Option::Some(link.clone());\n        \
             {this}::{start}(&mut self.driver, link).await\n    }}\n\n    \
             fn period(&self) -> ::core::option::Option<::core::time::Duration> {{\n        \
             {this}::{period}(&self.driver)\n    }}\n\n    \
             async fn publish(&mut self) -> ::core::option::Option<{message}> {{\n        \
             {this}::{publish}(&mut self.driver).await{wrap}\n    }}\n\n    \
             async fn publish_for(&mut self, device: ::amber_driver::Device) \
             -> ::core::option::Option<{message}> {{\n        \
             {this}::{publish_for}(&mut self.driver, device).await{wrap}\n    }}\n\n    \
             fn wake_at(&self) -> ::core::option::Option<::std::time::Instant> {{\n        \
             {this}::{wake_at}(&self.driver)\n    }}\n\n    \
             async fn wake(&mut self) {{\n        {this}::{wake}(&mut self.driver).await\n    }}\n\n    \
             async fn subscribed(&mut self, client: ::amber_driver::ClientId) {{\n        \
             {this}::{subscribed}(&mut self.driver, client).await\n    }}\n\n    \
             async fn client_died(&mut self, client: ::amber_driver::ClientId) {{\n        \
             {gone}{this}::{client_gone}(&mut self.driver, client).await\n    }}\n\n    \
             async fn shutdown(&mut self) {{\n        \
             {this}::{shutdown}(&mut self.driver).await\n    }}\n}}\n\n\
             Adapter {{\n    driver,\n    link: ::core::option::Option::None,\n    \
             unknown: ::core::default::Default::default(),\n}}\n}}\n",
            start = self.hook("start"),
            period = self.hook("period"),
            publish = self.hook("publish"),
            publish_for = self.hook("publish_for"),
            wake_at = self.hook("wake_at"),
            wake = self.hook("wake"),
            subscribed = self.hook("subscribed"),
            client_gone = self.hook("client_gone"),
            shutdown = self.hook("shutdown"),
        );
    }

    /// The handler that calls the methods.
    fn request(&self, out: &mut String) {
        let Self {
            service, message, ..
        } = self;
        let this = format!("{service}Driver");
        let _ = writeln!(
            out,
            "    async fn request(&mut self, mut request: ::amber_driver::Request<{message}>) \
             -> ::core::option::Option<{message}> {{\n        \
             {this}::{}(&mut self.driver, &mut request);\n        \
             let ::amber_driver::Request {{ message, origin }} = request;\n        \
             let link = self.link.as_ref()?;\n        \
             {is_known}",
            self.hook("received"),
            is_known = match self.rpcs.iter().any(|rpc| rpc.is_stream_by_request()) {
                true => "let mut is_known = false;",
                false => "let is_known = false;",
            }
        );
        for rpc in self.rpcs.iter().filter(|rpc| rpc.is_stream_by_request()) {
            self.stream_request(out, rpc);
        }
        let mut chain = String::new();
        for rpc in &self.rpcs {
            let (name, condition) = (&rpc.name, rpc.is_requested());
            let handle = match rpc.method.kind {
                Kind::Subscribe | Kind::StreamByRequest { .. } => continue,
                Kind::Ask { .. } => format!(
                    "::amber_driver::Reply::new(link, &origin, {service}Link::{stem}_message, {})",
                    match rpc.refusal {
                        Some(_) => format!(
                            "::core::option::Option::Some({service}Link::{}_refusal)",
                            rpc.stem()
                        ),
                        None => "::core::option::Option::None".to_owned(),
                    },
                    stem = rpc.stem()
                ),
                Kind::Tell => "::amber_driver::Outcome::new(link, &origin)".to_owned(),
            };
            let _ = write!(
                chain,
                "if {condition} {{\n            let handle = {handle};\n            \
                 {this}::{name}(&mut self.driver, {}handle).await;\n        }} else ",
                rpc.values()
            );
        }
        let _ = writeln!(
            out,
            "        {chain}if !is_known {{\n            \
             self.unknown.refuse(link, &origin);\n        }}\n        \
             ::core::option::Option::None\n    }}\n"
        );
    }

    fn stream_request(&self, out: &mut String, rpc: &Rpc<'_>) {
        let (_, argument) = rpc.stream_argument();
        let stop = all(rpc.stop.iter().map(Condition::holds_or_is_absent));
        let start = match rpc.start.is_empty() {
            true => "true".to_owned(),
            false => all(rpc.start.iter().map(Condition::holds)),
        };
        let _ = writeln!(
            out,
            "        if {condition} {{\n            \
             let wanted = if {stop} {{ ::core::option::Option::Some(\
             ::amber_driver::StreamRequest::Stop({argument})) }} else if {start} {{ \
             ::core::option::Option::Some(::amber_driver::StreamRequest::Start({argument})) }} \
             else {{ ::core::option::Option::None }};\n            \
             if let ::core::option::Option::Some(wanted) = wanted {{\n                \
             is_known = true;\n                \
             {service}Driver::{name}(&mut self.driver, ::core::clone::Clone::clone(&origin), wanted).await;\n            }}\n        }}",
            condition = rpc.is_requested(),
            service = self.service,
            name = rpc.name,
        );
    }
}
