//! Panels of any device: what its description says. IO.

use amber_client::Client;
use amber_proto::Device;
use amber_reflect::arguments;
use amber_schema::{Field, Interface, Method};
use amber_web::calls;
use serde_json::{Value, json};

/// The description of a device, for its panel in a page. The page itself, with the package of
/// `client-sdk/js`, shows the values and the driver, and sends the requests.
///
/// # Errors
/// It is unknown, or invalid.
pub(crate) async fn describe(client: &Client, device: Device) -> Result<Value, String> {
    let calls::Known { schemas, problem } = calls::schemas(client, device).await;
    match (schemas.interface(device.device_type), problem) {
        (Some(interface), _) => Ok(described(interface)),
        (None, Some(problem)) => Err(problem),
        (None, None) => Err(format!(
            "{device} has no description, so its values and requests are unknown: \
             docs/write-a-driver.md says how a driver provides one"
        )),
    }
}

/// The description for the page, with the arguments of each request. `path` leads from the message to
/// the field of an argument, and `roots` is the number of its fields that are arguments.
fn described(interface: &Interface) -> Value {
    let methods: Vec<_> = (interface.methods.iter())
        .map(|method| {
            let arguments: Vec<_> = (arguments::arguments(method).iter())
                .map(|argument| {
                    json!({
                        "name": argument.name, "required": argument.is_required,
                        "path": path(method, argument.field), "columns": argument.field.fields,
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
                "reads": calls::only_reads(method), "roots": method.request.len(), "arguments": arguments,
                "refused": refusal_of(method),
                "answer": method.answer.iter().chain(&method.may_answer).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({ "name": interface.name, "docs": interface.docs, "methods": methods })
}

/// The names of the fields from that of a request to one inside.
fn path<'a>(method: &Method, field: &'a Field) -> Vec<&'a str> {
    let is_inside = |root: &&Field| {
        let rest = field.path.strip_prefix(&root.path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    // Without the package, or the message that has the field of the request.
    let root = method.request.iter().find(is_inside);
    let start = root.and_then(|root| root.path.rfind('.'));
    let names = &field.path[start.map_or(0, |at| at + 1)..];
    names.split('.').collect()
}

/// The reason why the dashboard rejects a request, if it does: motion must end with its page.
fn refusal_of(method: &Method) -> Option<&'static str> {
    let moves = calls::keeps_moving(method);
    moves.then_some("use the stick, because it stops the wheels when the page closes")
}

#[cfg(test)]
mod tests {
    use amber_reflect::Schemas;

    use super::*;

    #[test]
    fn a_path_leads_from_the_request_to_the_argument() {
        let schemas = Schemas::built_in();
        let names = |device: &str, method: &str| {
            let device: Device = device.parse().unwrap();
            let interface = schemas.interface(device.device_type).unwrap();
            let method = interface.method(method).unwrap();
            let arguments = arguments::arguments(method);
            let names = arguments.iter().map(|it| path(method, it.field).join("."));
            names.collect::<Vec<_>>().join(" ")
        };
        for (device, method, expected) in [
            ("dummy", "enable", "enable"),
            (
                "maestro",
                "set-angle",
                "setAngleCommand.servoAddress setAngleCommand.angle",
            ),
            ("mapping", "explore", "explore.on explore.speed"),
            (
                "mediator",
                "change-driver",
                "change_driver.device.type change_driver.device.id change_driver.action",
            ),
        ] {
            assert_eq!(names(device, method), expected, "{device} {method}");
        }
    }
}
