//! Shrinks descriptors that become a part of a program. PURE.

use prost_reflect::{DescriptorPool, DynamicMessage, Value};

/// Files whose comments are about options and not about a device.
const WITHOUT_COMMENTS: [&str; 2] = ["google/protobuf/descriptor.proto", "interface.proto"];

/// Removes source locations without a comment. Custom options stay, since the set is read by
/// reflection: `prost_types` would drop them.
pub(crate) fn keep_comments_only(set: &[u8]) -> Result<Vec<u8>, String> {
    let pool = DescriptorPool::decode(set).map_err(|error| error.to_string())?;
    let descriptor = pool
        .get_message_by_name("google.protobuf.FileDescriptorSet")
        .ok_or("no file imports google/protobuf/descriptor.proto")?;
    let mut set = DynamicMessage::decode(descriptor, set).map_err(|error| error.to_string())?;
    for file in list(&mut set, "file") {
        let Value::Message(file) = file else { continue };
        let name = file.get_field_by_name("name");
        let name = name.as_ref().and_then(|name| name.as_str());
        if name.is_some_and(|name| WITHOUT_COMMENTS.contains(&name)) {
            file.clear_field_by_name("source_code_info");
        } else if let Some(Value::Message(info)) = file.get_field_by_name_mut("source_code_info") {
            list(info, "location").retain(has_comment);
        }
    }
    Ok(prost_reflect::prost::Message::encode_to_vec(&set))
}

pub(crate) fn list<'a>(message: &'a mut DynamicMessage, field: &str) -> &'a mut Vec<Value> {
    match message.get_field_by_name_mut(field) {
        Some(Value::List(list)) => list,
        _ => unreachable!("{field} of descriptor.proto is a list"),
    }
}

fn has_comment(location: &Value) -> bool {
    let has =
        |field| (location.as_message()).is_some_and(|location| location.has_field_by_name(field));
    has("leading_comments") || has("trailing_comments")
}
