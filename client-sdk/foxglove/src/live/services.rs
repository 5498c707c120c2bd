//! The requests of devices as services that viewers can call. PURE.
//!
//! Arguments and answers are JSON objects with the names of the description.

use std::collections::BTreeMap;
use std::sync::Arc;

use amber_proto::Device;
use amber_reflect::Schemas;
use amber_reflect::arguments::{self, Argument};
use amber_schema::{Interface, Kind, Method};
use amber_web::calls::keeps_moving;
use serde_json::{Map, Value, json};

use super::catalog::Described;
use super::limits::MAX_CHANNELS;
use super::protocol;

/// A request of a device.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) device: Device,
    /// The name of the request.
    pub(super) request: String,
    pub(super) schemas: Arc<Schemas>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Services {
    all: BTreeMap<u32, Service>,
    last_id: u32,
}

impl Services {
    /// These are the devices now. Returns the services that are new, and those that are gone.
    pub(super) fn set_devices(&mut self, devices: &[Described]) -> (Vec<u32>, Vec<u32>) {
        let is_gone = |it: &Service| !devices.iter().any(|now| now.device == it.device);
        let gone = self.all.iter().filter(|(_, it)| is_gone(it));
        let gone: Vec<_> = gone.map(|(id, _)| *id).collect();
        gone.iter().for_each(|id| drop(self.all.remove(id)));
        let known: Vec<_> = self.all.values().map(|it| it.device).collect();
        let mut new = Vec::new();
        for Described { device, schemas } in devices {
            let Some(interface) = schemas.interface(device.device_type) else {
                continue;
            };
            if known.contains(device) {
                continue;
            }
            for method in interface.methods.iter().filter(|it| is_service(it)) {
                if self.all.len() >= MAX_CHANNELS {
                    break;
                }
                // Like the numbers of channels, a number is never used again.
                self.last_id += 1;
                new.push(self.last_id);
                let service = Service {
                    device: *device,
                    request: method.command.clone(),
                    schemas: schemas.clone(),
                };
                self.all.insert(self.last_id, service);
            }
        }
        (new, gone)
    }

    /// All services, for a new viewer.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.all.keys().copied().collect()
    }

    /// One service.
    pub(super) fn get(&self, id: u32) -> Option<&Service> {
        self.all.get(&id)
    }

    /// The description of a service for viewers.
    pub(super) fn told(&self, id: u32) -> Option<Value> {
        let service = self.all.get(&id)?;
        let (interface, method) = service.described()?;
        let name = format!(
            "/{}/{}/{}",
            interface.name, service.device.id, method.command
        );
        let kind = format!("amber.{}.{}", interface.name, method.command);
        let arguments = arguments::arguments(method);
        Some(protocol::service(
            id,
            &name,
            &kind,
            &request_schema(&arguments),
        ))
    }
}

impl Service {
    /// The interface of the device, and the request.
    pub(super) fn described(&self) -> Option<(&Interface, &Method)> {
        let interface = self.schemas.interface(self.device.device_type)?;
        Some((interface, interface.method(&self.request)?))
    }
}

/// The wheels would keep turning when the viewer is gone, so it cannot set their speeds.
fn is_service(method: &Method) -> bool {
    matches!(method.kind, Kind::Ask { .. } | Kind::Tell) && !keeps_moving(method)
}

/// A JSON schema: viewers show it next to the input.
fn request_schema(arguments: &[Argument<'_>]) -> Value {
    let property = |argument: &Argument<'_>| {
        let field = argument.field;
        let kind = match &*field.type_name {
            "bool" => "boolean",
            _ if !field.choices.is_empty() => "string",
            "string" | "bytes" => "string",
            _ => "number",
        };
        let mut property = match argument.is_list() || argument.is_table() {
            true => json!({ "type": "array" }),
            false => json!({ "type": kind }),
        };
        let choices: Vec<_> = field.choices.iter().map(|it| &it.name).collect();
        if !choices.is_empty() {
            property["enum"] = json!(choices);
        }
        property["description"] = json!(argument.about());
        (argument.name.clone(), property)
    };
    let properties: Map<_, _> = arguments.iter().map(property).collect();
    let required: Vec<_> = (arguments.iter())
        .filter(|it| it.is_required)
        .map(|it| &it.name)
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The words of a command line for the payload of a call.
///
/// # Errors
/// It is not an object of values, texts, and lists of them.
pub(super) fn words(payload: &[u8]) -> Result<Vec<String>, String> {
    // A viewer may send nothing if there are no arguments.
    if payload.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let values: Map<String, Value> = serde_json::from_slice(payload)
        .map_err(|error| format!("the arguments are not a JSON object: {error}"))?;
    let values = values.into_iter().filter(|(_, value)| !value.is_null());
    values
        .map(|(name, value)| {
            let text = match &value {
                Value::Array(list) => {
                    let texts: Option<Vec<_>> = list.iter().map(text).collect();
                    texts.map(|texts| texts.join(","))
                }
                value => text(value),
            };
            let invalid = || format!("argument '{name}' is not a value or a list of values");
            Ok(format!("{name}={}", text.ok_or_else(invalid)?))
        })
        .collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::super::catalog::tests::described;
    use super::*;

    #[test]
    fn requests_are_services_but_not_the_speeds_of_the_wheels() {
        let mut services = Services::default();
        let devices = described(&[
            DeviceType::ROBOCLAW,
            DeviceType::MAESTRO,
            DeviceType::HOKUYO,
        ]);
        let (new, gone) = services.set_devices(&devices);
        assert!(gone.is_empty());
        let told: Vec<_> = new.iter().map(|id| services.told(*id).unwrap()).collect();
        let names: Vec<_> = told.iter().map(|it| it["name"].as_str().unwrap()).collect();
        for name in [
            "/roboclaw/0/speeds",
            "/maestro/0/set-angle",
            "/hokuyo/0/scan",
        ] {
            assert!(names.contains(&name), "{names:?}");
        }
        for no in ["/roboclaw/0/drive", "/hokuyo/0/scans"] {
            assert!(!names.contains(&no), "{names:?}");
        }
        let set = told.iter().find(|it| it["name"] == "/maestro/0/set-angle");
        let request = &set.unwrap()["request"];
        let schema: Value = serde_json::from_str(request["schema"].as_str().unwrap()).unwrap();
        assert_eq!(schema["required"], json!(["servo-address", "angle"]));
        assert_eq!(schema["properties"]["angle"]["type"], "number");
        assert_eq!(services.set_devices(&devices), (vec![], vec![]));
        let (none, gone) = services.set_devices(&described(&[DeviceType::HOKUYO]));
        assert!(none.is_empty() && gone.len() + services.ids().len() == new.len());
    }

    #[test]
    fn arguments_become_words() {
        for (payload, expected) in [
            ("", Ok(&[][..])),
            ("{}", Ok(&[])),
            (
                r#"{"angle": 45.5, "servo-address": 3}"#,
                Ok(&["angle=45.5", "servo-address=3"]),
            ),
            (
                r#"{"enable": true, "text": "a b", "no": null}"#,
                Ok(&["enable=true", "text=a b"]),
            ),
            (r#"{"addresses": [0, 1]}"#, Ok(&["addresses=0,1"])),
            ("[]", Err("the arguments are not a JSON object")),
            (
                r#"{"a": {}}"#,
                Err("argument 'a' is not a value or a list of values"),
            ),
        ] {
            let found = words(payload.as_bytes());
            match (&found, expected) {
                (Ok(words), Ok(expected)) => assert_eq!(words, expected, "{payload}"),
                (Err(why), Err(expected)) => assert!(why.starts_with(expected), "{why}"),
                _ => panic!("{payload}: {found:?}"),
            }
        }
    }
}
