//! Panels of any device, generated from its description. IO.

use std::collections::HashMap;

use amber_client::{Client, Mediator};
use amber_proto::Device;
use amber_proto::mediator::log_line::Source;
use amber_proto::mediator::{LogLine, ReadLog};
use amber_reflect::Schemas;
use amber_reflect::arguments::{self, Spelling};
use amber_schema::{Harmless, Interface, Kind, Method};
use amber_web::calls::{self, in_words};
use amber_web::limits::MEDIATOR_DEADLINE;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::backlog::Subject;
use crate::feeds;
use crate::frames::{self, state_name};
use crate::hub::{PanelFrame, Permission};
use crate::input::Input;
use crate::limits::{DRIVERS_PERIOD, MAX_VALUE, PANEL_PERIOD, PANEL_POLL};

/// Lines of the log that a panel shows: they fill its place.
const LINES: u32 = 30;

/// Shows the description, the driver and the values of a device until it is dropped.
///
/// It is a separate client: some devices keep one stream per client, and the panel must not change
/// the stream of the plots.
pub(crate) async fn watch(mediator: String, device: Device, inputs: mpsc::Sender<Input>) {
    let client = feeds::connected(&mediator, &inputs).await;
    let panel = Panel {
        client,
        device,
        inputs,
    };
    let calls::Known { schemas, problem } = calls::schemas(&panel.client, device).await;
    let interface = schemas.interface(device.device_type);
    let streams = async {
        let Some(interface) = interface else {
            return;
        };
        panel
            .values(interface, schemas.for_device(Some(device.device_type)))
            .await;
    };
    tokio::join!(panel.about(interface, problem), streams);
}

struct Panel {
    client: Client,
    device: Device,
    inputs: mpsc::Sender<Input>,
}

impl Panel {
    /// The driver once a second, with the description or the problem with it.
    async fn about(&self, interface: Option<&Interface>, problem: Option<String>) {
        let mediator = self.client.mediator().with_deadline(MEDIATOR_DEADLINE);
        let requests = interface.map(described);
        let mut ticks = interval(DRIVERS_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let mut driver = match mediator.driver(self.device).await {
                Ok(driver) => json!({
                    "state": state_name(driver.state()),
                    "pid": driver.pid,
                    "state_ms": driver.state_ms(),
                    "restarts": driver.restarts(),
                    "last_exit": driver.last_exit,
                    "reason": driver.reason,
                    "hint": driver.hint.or(driver.last_exit_hint),
                    "command": driver.command.join(" "),
                    "policy": driver.restart_policy,
                    "lines": self.lines(&mediator, driver.last_words).await,
                }),
                Err(error) => json!({ "error": in_words(&error) }),
            };
            let about = |driver: &Value| {
                frames::text(&json!({
                    "t": "about", "device": self.device.to_string(),
                    "interface": requests, "problem": problem, "driver": driver,
                }))
            };
            let drive = about(&driver);
            // A command line may contain secrets.
            driver
                .as_object_mut()
                .map(|driver| driver.remove("command"));
            let look = about(&driver);
            let subject = Subject::About(self.device.into());
            self.send(subject, PanelFrame { drive, look }).await;
        }
    }

    /// The last lines of the log about the driver. Older mediators only have those of the driver
    /// itself, without times.
    async fn lines(&self, mediator: &Mediator, last_words: Vec<String>) -> Value {
        let wanted = ReadLog {
            device: Some(self.device.into()),
            last: Some(LINES),
            ..ReadLog::default()
        };
        let Ok(page) = mediator.read_log(wanted).await else {
            return last_words
                .into_iter()
                .map(|text| json!({ "text": text }))
                .collect();
        };
        let line = |line: LogLine| {
            let is_amber = line.source() == Source::Mediator;
            json!({ "time_ms": line.time_ms, "amber": is_amber, "text": line.text })
        };
        page.lines.into_iter().map(line).collect()
    }

    /// The published messages of the device, or its answers to requests that only read.
    async fn values(&self, interface: &Interface, schemas: &Schemas) {
        let methods = &interface.methods;
        let has_subscribe = methods.iter().any(|it| it.kind == Kind::Subscribe);
        let subscribed = async {
            if has_subscribe {
                self.published(methods, schemas, None).await;
            }
        };
        let by_request = async {
            // A client has one set of arguments per device, so one stream is enough.
            let stream = methods
                .iter()
                .find(|it| it.is_stream() && it.kind != Kind::Subscribe);
            if let Some(method) = stream
                && let Some(requests) = schemas.whole_stream(method, PANEL_PERIOD)
            {
                let requests = (requests.start.into(), requests.stop.into());
                self.published(methods, schemas, Some(requests)).await;
            }
        };
        let asked = async {
            if !methods.iter().any(Method::is_stream) {
                self.poll(methods, schemas).await;
            }
        };
        tokio::join!(subscribed, by_request, asked);
    }

    async fn published(
        &self,
        methods: &[Method],
        schemas: &Schemas,
        requests: Option<(Bytes, Bytes)>,
    ) {
        let proxy = self.client.device(self.device);
        let updates = match requests {
            Some((start, stop)) => proxy.subscribe_raw_by(start, stop, PANEL_PERIOD).await,
            None => proxy.subscribe_raw().await,
        };
        let Ok(mut updates) = updates else {
            return;
        };
        let mut shown: HashMap<String, Instant> = HashMap::new();
        while let Some(update) = updates.next().await {
            let values = schemas.decode(&update.message).unwrap_or_default();
            for method in methods.iter().filter(|method| method.is_stream()) {
                let Some(value) = calls::answer_of(method, schemas, &values) else {
                    continue;
                };
                let now = Instant::now();
                let last = shown.get(&method.command);
                if last.is_some_and(|last| now.duration_since(*last) < PANEL_PERIOD) {
                    continue;
                }
                shown.insert(method.command.clone(), now);
                self.value(method, Ok(value)).await;
            }
        }
    }

    /// Asks requests that only read and need no arguments.
    async fn poll(&self, methods: &[Method], schemas: &Schemas) {
        let is_readable =
            |it: &&Method| matches!(it.kind, Kind::Ask { .. }) && it.harmless == Harmless::Any;
        let requests: Vec<_> = (methods.iter().filter(is_readable))
            .filter_map(|method| Some((method, request(method, schemas, &[]).ok()?)))
            .collect();
        if requests.is_empty() {
            return;
        }
        let proxy = self.client.device(self.device);
        let mut ticks = interval(PANEL_POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            for (method, request) in &requests {
                ticks.tick().await;
                let answer = match proxy.request_raw(request.clone()).await {
                    Ok(answer) => calls::read_answer(method, schemas, &answer),
                    Err(error) => Err(error.to_string()),
                };
                self.value(method, answer).await;
            }
        }
    }

    async fn value(&self, method: &Method, value: Result<Map<String, Value>, String>) {
        let device = self.device.to_string();
        let name = &method.command;
        let mut shown = match value {
            Ok(value) => json!({ "t": "value", "device": device, "method": name, "value": value }),
            Err(why) => json!({ "t": "value", "device": device, "method": name, "error": why }),
        };
        if shown.to_string().len() > MAX_VALUE {
            shown = json!({
                "t": "value", "device": device, "method": name,
                "error": "the value is too large for a panel",
            });
        }
        let subject = Subject::Value(self.device.into(), name.clone());
        self.send(subject, frames::text(&shown).into()).await;
    }

    async fn send(&self, subject: Subject, frames: PanelFrame) {
        let input = Input::Panel(self.device, subject, frames);
        let _ = self.inputs.send(input).await;
    }
}

/// The description for the page, with the arguments of each request as words.
fn described(interface: &Interface) -> Value {
    let methods: Vec<_> = (interface.methods.iter())
        .map(|method| {
            let arguments: Vec<_> = (arguments::arguments(method).iter())
                .map(|argument| {
                    json!({
                        "name": argument.name, "required": argument.is_required,
                        "about": argument.about(), "type": argument.field.type_name,
                        "docs": argument.field.docs, "unit": argument.field.unit,
                        "min": argument.field.min, "max": argument.field.max,
                        "list": argument.is_list(), "table": argument.is_table(),
                        "choices": argument.field.choices.iter().map(|it| &it.name).collect::<Vec<_>>(),
                    })
                })
                .collect();
            json!({
                "name": method.command, "docs": method.docs, "stream": method.is_stream(),
                "reads": calls::only_reads(method), "arguments": arguments,
                "refused": refusal_of(method),
                "answer": method.answer.iter().chain(&method.may_answer).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "name": interface.name, "docs": interface.docs, "methods": methods })
}

/// The reason why the dashboard rejects a request, if it does: motion must end with its page.
fn refusal_of(method: &Method) -> Option<&'static str> {
    let moves = calls::keeps_moving(method);
    moves.then_some("use the stick, because it stops the wheels when the page closes")
}

/// Sends a request of a page, and returns the answer by name.
///
/// # Errors
/// The request is unknown or not allowed, an argument is invalid, or the device does not answer.
pub(crate) async fn call(
    client: &Client,
    leases: &calls::Leases,
    device: Device,
    name: &str,
    words: &[String],
    permission: Permission,
) -> Result<Value, String> {
    let calls::Known { schemas, problem } = calls::schemas(client, device).await;
    let interface = schemas.interface(device.device_type);
    let why = || problem.unwrap_or_else(|| format!("{device} has no description"));
    let interface = interface.ok_or_else(why)?;
    let method = interface.method(name).filter(|it| !it.is_stream());
    let method = method.ok_or_else(|| format!("{device} has no request '{name}'"))?;
    if let (Permission::OnlyRead(why), false) = (permission, calls::only_reads(method)) {
        return Err(why.to_owned());
    }
    if let Some(why) = refusal_of(method) {
        return Err(why.to_owned());
    }
    calls::call(client, leases, device, &schemas, method, words).await
}

fn request(method: &Method, schemas: &Schemas, words: &[String]) -> Result<Bytes, String> {
    let given = arguments::read(method, words, Spelling::default());
    let request = schemas.request(method, &given.map_err(|error| error.text)?);
    Ok(request.map_err(|error| error.text)?.into())
}
