//! The description of a device from untrusted descriptors. PURE.

use std::collections::{HashMap, HashSet};

use amber_schema::Interface;
use prost::Message;
use prost_reflect::DescriptorPool;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, MethodDescriptorProto, OneofDescriptorProto,
};

use super::files;
use crate::{Error, built_in};

/// The longest descriptor set that is read, in bytes: hundreds of times what a device needs.
pub const MAX_DESCRIPTOR_BYTES: usize = 1024 * 1024;

/// The maximum number of files in a descriptor set. The search for imports takes quadratic time.
const MAX_FILES: usize = 256;

const HINT: &str = "make it with `protoc --include_imports --include_source_info \
                    --descriptor_set_out=FILE`, or with prost-build or protox";

/// A `FileDescriptorSet` whose files stay bytes: decoding them would drop the options that
/// describe a device.
#[derive(Clone, PartialEq, Message)]
struct RawSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

/// The device's files with what they import, and the interfaces in them.
///
/// # Errors
/// The bytes are invalid, or break a rule of descriptions.
pub(super) fn read(bytes: &[u8]) -> Result<(DescriptorPool, Vec<Interface>), Error> {
    if bytes.len() > MAX_DESCRIPTOR_BYTES {
        return Err(Error::new("the descriptors are longer than 1 MiB"));
    }
    let invalid = |error| Error::new(format!("invalid descriptors: {error}")).hint(HINT);
    let set = RawSet::decode(bytes).map_err(invalid)?;
    if set.file.len() > MAX_FILES {
        return Err(Error::new(format!(
            "the descriptors have more than {MAX_FILES} files"
        )));
    }
    let ours = Ours::read();
    let mut own = Vec::new();
    for bytes in set.file {
        let file = FileDescriptorProto::decode(&bytes[..]).map_err(invalid)?;
        if ours.has(&file) {
            continue;
        }
        check_names(&file)?;
        check_syntax(&file)?;
        check_identifiers(&file)?;
        own.push((file, bytes));
    }
    let imported = ours.imported_by(own.iter().map(|(file, _)| file))?;
    let all = imported.iter().map(|(file, _)| file);
    check_numbers(all.chain(own.iter().map(|(file, _)| file)))?;

    let names: Vec<_> = own.iter().map(|(file, _)| file.name().to_owned()).collect();
    let mut pool = DescriptorPool::new();
    let all = imported.into_iter().cloned().chain(own);
    for (file, bytes) in in_order(all.collect())? {
        (pool.decode_file_descriptor_proto(&bytes[..]))
            .map_err(|error| Error::new(format!("{}: {error}", file.name())).hint(HINT))?;
    }
    let mut interfaces = Vec::new();
    for name in names {
        let file = pool.get_file_by_name(&name).expect("it was added above");
        interfaces.extend(amber_schema::read(&file, built_in())?);
    }
    match interfaces.is_empty() {
        true => Err(Error::new("the descriptors describe no device")
            .hint("see proto/interface.proto for the options of a service")),
        false => Ok((pool, interfaces)),
    }
}

/// The files of Amber and of protobuf, decoded and as bytes.
struct Ours(Vec<(FileDescriptorProto, Vec<u8>)>);

impl Ours {
    fn read() -> Self {
        let raw = RawSet::decode(amber_proto::DESCRIPTORS).expect("as below");
        let files = files::built_in_files().file.into_iter();
        Self(files.zip(raw.file).collect())
    }

    /// Whether a file is one of ours, as in a set with all imports.
    fn has(&self, file: &FileDescriptorProto) -> bool {
        let is = |ours: &FileDescriptorProto| {
            ours.name() == file.name() && ours.package() == file.package()
        };
        self.0.iter().any(|(ours, _)| is(ours))
    }

    /// The files of ours that others import, directly or not, and those that every message needs.
    fn imported_by<'a>(
        &self,
        files: impl Iterator<Item = &'a FileDescriptorProto>,
    ) -> Result<Vec<&(FileDescriptorProto, Vec<u8>)>, Error> {
        let mut own = HashSet::new();
        let mut wanted: Vec<String> = vec!["drivermsg.proto".into(), "interface.proto".into()];
        for file in files {
            own.insert(file.name());
            wanted.extend(file.dependency.iter().cloned());
        }
        let mut names = HashSet::new();
        while let Some(name) = wanted.pop() {
            if own.contains(&*name) || !names.insert(name.clone()) {
                continue;
            }
            let found = self.0.iter().find(|(file, _)| file.name() == name);
            let Some((file, _)) = found else {
                return Err(Error::new(format!("the descriptors lack '{name}'")).hint(HINT));
            };
            wanted.extend(file.dependency.iter().cloned());
        }
        Ok((self.0.iter())
            .filter(|(file, _)| names.contains(file.name()))
            .collect())
    }
}

/// Names of Amber and of protobuf are reserved.
fn check_names(file: &FileDescriptorProto) -> Result<(), Error> {
    let (name, package) = (file.name(), file.package());
    for taken in ["amber", "google"] {
        if package == taken || package.starts_with(&format!("{taken}.")) {
            return Err(Error::new(format!(
                "{name}: package '{package}' is reserved"
            )));
        }
    }
    if ["drivermsg.proto", "interface.proto"].contains(&name) {
        return Err(Error::new(format!(
            "{name}: this is the name of a file of Amber"
        )));
    }
    Ok(())
}

/// Rejects a syntax that the pool does not know: the pool would panic (prost-reflect 0.16).
fn check_syntax(file: &FileDescriptorProto) -> Result<(), Error> {
    match file.syntax.as_deref() {
        None | Some("proto2" | "proto3") => Ok(()),
        Some(syntax) => Err(Error::new(format!(
            "{}: syntax '{}' is not supported",
            file.name(),
            syntax.escape_default()
        ))
        .hint("write `syntax = \"proto2\";` at the top of the file")),
    }
}

/// Rejects names that no `.proto` file can have: the pool panics on a name with a dot
/// (prost-reflect 0.16), and names are printed.
fn check_identifiers(file: &FileDescriptorProto) -> Result<(), Error> {
    let mut names = Vec::new();
    if !file.package().is_empty() {
        names.extend(file.package().split('.'));
    }
    for message in &file.message_type {
        names_in(message, &mut names);
    }
    file.enum_type
        .iter()
        .for_each(|it| enum_names(it, &mut names));
    names.extend(file.extension.iter().map(FieldDescriptorProto::name));
    for service in &file.service {
        names.push(service.name());
        names.extend(service.method.iter().map(MethodDescriptorProto::name));
    }
    match names.into_iter().find(|name| !is_identifier(name)) {
        None => Ok(()),
        Some(name) => Err(Error::new(format!(
            "{}: invalid name '{}'",
            file.name(),
            name.escape_default()
        ))
        .hint("use letters, digits and '_', and begin with a letter or '_'")),
    }
}

fn names_in<'a>(message: &'a DescriptorProto, names: &mut Vec<&'a str>) {
    names.push(message.name());
    let fields = message.field.iter().chain(&message.extension);
    names.extend(fields.map(FieldDescriptorProto::name));
    names.extend(message.oneof_decl.iter().map(OneofDescriptorProto::name));
    message
        .enum_type
        .iter()
        .for_each(|it| enum_names(it, names));
    for inner in &message.nested_type {
        names_in(inner, names);
    }
}

fn enum_names<'a>(of: &'a EnumDescriptorProto, names: &mut Vec<&'a str>) {
    names.push(of.name());
    names.extend(of.value.iter().map(EnumValueDescriptorProto::name));
}

fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    (bytes.next()).is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Rejects two fields with the same number: the pool does not check this in time.
fn check_numbers<'a>(files: impl Iterator<Item = &'a FileDescriptorProto>) -> Result<(), Error> {
    let mut numbers = HashMap::new();
    for file in files {
        let mut fields: Vec<_> = file.extension.iter().collect();
        let messages = &file.message_type;
        messages.iter().for_each(|it| extensions(it, &mut fields));
        for field in fields {
            // Names may be relative, so full names cannot be compared.
            let extended = field.extendee().rsplit('.').next().unwrap_or_default();
            let known = numbers.insert((extended.to_owned(), field.number()), field.name());
            if let Some(other) = known {
                let text = format!(
                    "{}: field '{}' has number {}, which '{other}' already has",
                    file.name(),
                    field.name(),
                    field.number()
                );
                return Err(Error::new(text).hint("choose an unused number from 110 to 179"));
            }
        }
    }
    Ok(())
}

fn extensions<'a>(message: &'a DescriptorProto, fields: &mut Vec<&'a FieldDescriptorProto>) {
    fields.extend(&message.extension);
    for inner in &message.nested_type {
        extensions(inner, fields);
    }
}

type Raw = (FileDescriptorProto, Vec<u8>);

/// Each file comes after those that it imports.
fn in_order(mut files: Vec<Raw>) -> Result<Vec<Raw>, Error> {
    let (mut ordered, mut done) = (Vec::new(), HashSet::new());
    while !files.is_empty() {
        let (ready, rest): (Vec<_>, Vec<_>) = (files.into_iter())
            .partition(|(file, _)| file.dependency.iter().all(|name| done.contains(name)));
        if ready.is_empty() {
            let name = rest[0].0.name();
            return Err(Error::new(format!("{name}: circular import")));
        }
        done.extend(ready.iter().map(|(file, _)| file.name().to_owned()));
        ordered.extend(ready);
        files = rest;
    }
    Ok(ordered)
}
