//! Folds extensions into separate messages. PURE.
//!
//! prost ignores `extend`. So every file that extends `amber.DriverMsg` gets its own message
//! `DriverMsg` in its own package, with the base fields and the extension fields. They keep
//! their numbers, so the bytes are the same. The message also contains the fields of publicly
//! imported files: the device then accepts the messages of another device.

use std::collections::BTreeMap;
use std::mem;

use prost_types::field_descriptor_proto::Label;
use prost_types::source_code_info::Location;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

const BASE: &str = ".amber.DriverMsg";
/// The last of the base fields that the messages of devices have. Those behind it are for pieces of
/// long messages, which the SDKs join.
const LAST_BASE_FIELD: i32 = 5;
/// Files of options only, for which there is no Rust.
const OPTIONS: [&str; 2] = ["google/protobuf/descriptor.proto", "interface.proto"];
/// Field numbers in descriptor.proto, for paths of source locations.
const FILE_MESSAGE: i32 = 4;
const FILE_EXTENSION: i32 = 7;
const MESSAGE_FIELD: i32 = 2;

type Comments = BTreeMap<Vec<i32>, Location>;

/// Folds all files of a set, and removes those that only declare options. The set must contain `drivermsg.proto`. Source locations are kept.
///
/// # Errors
/// A file extends another message, has its own `DriverMsg`, or uses a
/// number twice.
pub(crate) fn fold_extensions(set: &mut FileDescriptorSet) -> Result<(), String> {
    (set.file).retain(|file| !OPTIONS.contains(&file.name()));
    let base = base_fields(set)?;
    let extensions: BTreeMap<_, _> = set.file.iter().map(extensions).collect();
    for file in &mut set.file {
        let public = file.public_dependency.iter();
        let imported: Vec<_> = public
            .filter_map(|index| file.dependency.get(usize::try_from(*index).ok()?))
            .filter_map(|name| extensions.get(name))
            .flatten()
            .cloned()
            .collect();
        fold_file(file, &base, imported)?;
    }
    Ok(())
}

/// Whether a file adds fields to the messages of drivers.
pub(crate) fn extends_base(file: &FileDescriptorProto) -> bool {
    file.extension.iter().any(|field| field.extendee() == BASE)
}

/// The fields of `amber.DriverMsg` with their comments. `type` is optional, so that a missing
/// type differs from DATA.
fn base_fields(
    set: &mut FileDescriptorSet,
) -> Result<Vec<(FieldDescriptorProto, Location)>, String> {
    let file = (set.file.iter_mut())
        .find(|file| file.package() == "amber")
        .ok_or("no file with package amber")?;
    let comments = comments(file);
    for message in &mut file.message_type {
        for field in &mut message.field {
            if field.name() == "clientIDs" {
                // Names are not on the wire; prost would choose `client_i_ds`.
                field.name = Some("client_ids".into());
            }
        }
    }
    let index = (file.message_type.iter())
        .position(|message| message.name() == "DriverMsg")
        .ok_or("amber.DriverMsg is missing")?;
    let fields = file.message_type[index].field.iter().enumerate();
    Ok(fields
        .filter(|(_, field)| field.number() <= LAST_BASE_FIELD)
        .map(|(i, field)| {
            let mut field = field.clone();
            field.label = Some(Label::Optional as i32);
            let path = [FILE_MESSAGE, index as i32, MESSAGE_FIELD, i as i32];
            (field, comment(&comments, &path))
        })
        .collect())
}

/// The name of a file, and the fields that it adds to the messages of drivers.
fn extensions(file: &FileDescriptorProto) -> (String, Vec<(FieldDescriptorProto, Location)>) {
    let comments = comments(file);
    let fields = file.extension.iter().enumerate();
    let fields = fields.map(|(j, field)| {
        let mut field = field.clone();
        field.extendee = None;
        (field, comment(&comments, &[FILE_EXTENSION, j as i32]))
    });
    (file.name().to_owned(), fields.collect())
}

fn fold_file(
    file: &mut FileDescriptorProto,
    base: &[(FieldDescriptorProto, Location)],
    imported: Vec<(FieldDescriptorProto, Location)>,
) -> Result<(), String> {
    let comments = comments(file);
    let mut fields = base.to_vec();
    fields.extend(imported);
    let own = mem::take(&mut file.extension);
    if own.is_empty() {
        return Ok(());
    }
    for (j, mut field) in own.into_iter().enumerate() {
        if field.extendee() != BASE {
            return Err(format!("{}: extends {}", file.name(), field.extendee()));
        }
        field.extendee = None;
        fields.push((field, comment(&comments, &[FILE_EXTENSION, j as i32])));
    }
    fields.sort_by_key(|(field, _)| field.number());
    if let Some(pair) = fields
        .windows(2)
        .find(|pair| pair[0].0.number() == pair[1].0.number())
    {
        return Err(format!(
            "{}: number {} is used twice",
            file.name(),
            pair[0].0.number()
        ));
    }
    if file
        .message_type
        .iter()
        .any(|message| message.name() == "DriverMsg")
    {
        return Err(format!("{}: has its own DriverMsg", file.name()));
    }

    // prost-build panics when a message or field has no source location.
    let message = file.message_type.len() as i32;
    let locations = &mut file.source_code_info.get_or_insert_default().location;
    locations.push(Location {
        path: vec![FILE_MESSAGE, message],
        span: vec![0, 0, 0],
        leading_comments: Some(" The base message with this device's extensions.".into()),
        ..Location::default()
    });
    for (k, (_, location)) in fields.iter().enumerate() {
        let path = vec![FILE_MESSAGE, message, MESSAGE_FIELD, k as i32];
        locations.push(Location {
            path,
            ..location.clone()
        });
    }
    file.message_type.push(DescriptorProto {
        name: Some("DriverMsg".into()),
        field: fields.into_iter().map(|(field, _)| field).collect(),
        ..DescriptorProto::default()
    });
    Ok(())
}

fn comments(file: &FileDescriptorProto) -> Comments {
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    locations
        .map(|location| (location.path.clone(), location.clone()))
        .collect()
}

fn comment(comments: &Comments, path: &[i32]) -> Location {
    comments.get(path).cloned().unwrap_or_else(|| Location {
        span: vec![0, 0, 0],
        ..Location::default()
    })
}
