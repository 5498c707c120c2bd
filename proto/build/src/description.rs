//! The description that a driver sends to the mediator, so that clients know its device: the files
//! that describe it. PURE.

use std::collections::BTreeSet;

use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, FileDescriptor, Value};

use crate::comments::{keep_comments_only, list};

/// Files that every client has.
const KNOWN: [&str; 2] = ["drivermsg.proto", "interface.proto"];

/// The longest description that mediators keep, in bytes.
pub(crate) const MAX_BYTES: usize = 16_000;

/// One file with its imports, out of an encoded `FileDescriptorSet`: as `Description.files` in
/// `mediator.proto` wants it.
pub(crate) fn files(set: &[u8], file: &str) -> Result<Vec<u8>, String> {
    let set = keep_comments_only(set)?;
    let pool = DescriptorPool::decode(&*set).map_err(|error| error.to_string())?;
    let mut wanted = BTreeSet::new();
    if let Some(file) = pool.get_file_by_name(file) {
        collect(&file, &mut wanted);
    }
    let descriptor = pool
        .get_message_by_name("google.protobuf.FileDescriptorSet")
        .ok_or("no file imports google/protobuf/descriptor.proto")?;
    let mut set = DynamicMessage::decode(descriptor, &*set).map_err(|error| error.to_string())?;
    list(&mut set, "file").retain(|file| {
        let name = (file.as_message()).and_then(|file| file.get_field_by_name("name"));
        let name = name.as_deref().and_then(Value::as_str);
        name.is_some_and(|name| wanted.contains(name))
    });
    Ok(set.encode_to_vec())
}

fn collect(file: &FileDescriptor, wanted: &mut BTreeSet<String>) {
    let name = file.name();
    if KNOWN.contains(&name) || name.starts_with("google/protobuf/") {
        return;
    }
    if wanted.insert(name.to_owned()) {
        for import in file.dependencies() {
            collect(&import, wanted);
        }
    }
}
