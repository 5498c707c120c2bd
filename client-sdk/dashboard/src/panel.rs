//! Panels of any device: what its description says, and the requests of a page. IO.

use amber_client::Client;
use amber_proto::Device;
use amber_reflect::arguments;
use amber_schema::{Interface, Method};
use amber_web::calls;
use serde_json::{Value, json};

use crate::hub::Permission;

/// The description of a device, for its panel in a page. The page itself, with the package of
/// `client-sdk/js`, shows the values and the driver.
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
