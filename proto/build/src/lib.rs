//! Generates Rust code from the `.proto` files of devices. IO.
//!
//! Programs use it by `amber_sdk::device!`, which explains what is generated. No `protoc` is needed.
//! The build scripts of Amber's own crates use it for Amber's own devices.

#![warn(missing_docs)]

use std::error;
use std::fmt;
use std::path::{Path, PathBuf};

use amber_schema::Interface;
use prost_build::Module;
use prost_reflect::DescriptorPool;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use protox::file::{
    ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver,
};

mod client;
mod comments;
mod description;
mod devices;
mod docs;
mod driver;
mod field_path;
mod fold;
mod names;

/// The files of Amber's own devices, which other files may import.
const OURS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/ours.rs"));

/// The Rust code of a user's device.
#[derive(Debug)]
pub struct Device {
    /// The package of the file.
    pub package: String,
    /// The messages of the package.
    pub messages: String,
    /// The clients of its devices.
    pub clients: String,
    /// The traits of their drivers.
    pub drivers: String,
    /// The files that were read, as they were named.
    pub read: Vec<PathBuf>,
}

/// Compiles the file of a device. The code names everything by way of `amber_sdk`.
///
/// The file may import the files next to it with the same package, `drivermsg.proto` and the files of
/// Amber's devices; the latter are built in.
///
/// # Errors
/// A file cannot be read or compiled, or is not a device file; the error names the place, the
/// reason and a hint.
pub fn device(file: &Path) -> Result<Device, Error> {
    let mut device = generated(file)?;
    for code in [
        &mut device.messages,
        &mut device.clients,
        &mut device.drivers,
    ] {
        *code = code
            .replace("::amber_proto", "::amber_sdk::proto")
            .replace("::amber_client", "::amber_sdk")
            .replace("::amber_driver", "::amber_sdk::driver");
    }
    Ok(device)
}

/// Folds the extensions of `amber.DriverMsg` in all files of a set: each file with extensions
/// gets a message `DriverMsg` with the base fields and its own. For Amber's own build script.
///
/// `drivermsg.proto` must be in the set.
///
/// # Errors
/// A file extends another message, has its own `DriverMsg`, or uses a
/// number twice.
pub fn fold_extensions(set: &mut FileDescriptorSet) -> Result<(), Error> {
    fold::fold_extensions(set).map_err(Error)
}

/// Removes from an encoded `FileDescriptorSet` what no tool needs at run time:
/// all source locations except those with a comment on Amber's devices. For
/// Amber's own build script. The options of services, methods and fields stay.
///
/// # Errors
/// The bytes are not a descriptor set with all imports.
pub fn keep_comments_only(set: &[u8]) -> Result<Vec<u8>, Error> {
    comments::keep_comments_only(set).map_err(Error)
}

/// The interfaces of Amber's own devices.
///
/// # Errors
/// A description breaks a rule.
pub fn our_interfaces() -> Result<Vec<Interface>, Error> {
    Ok(described(&our_compiler()?, &[])?.1)
}

fn our_compiler() -> Result<protox::Compiler, Error> {
    let mut compiler = protox::Compiler::with_file_resolver(Ours);
    compiler.include_imports(true).include_source_info(true);
    for (name, _) in OURS {
        compiler
            .open_file(name)
            .map_err(|error| Error(format!("{name}: {error:?}")))?;
    }
    Ok(compiler)
}

/// The Rust traits of the drivers of Amber's own devices, in one module for each device. For the
/// build script of amber-driver.
///
/// # Errors
/// A description breaks a rule.
pub fn our_drivers() -> Result<String, Error> {
    let (pool, interfaces) = described(&our_compiler()?, &[])?;
    let mut out = String::new();
    for interface in &interfaces {
        let module = interface.file.trim_end_matches(".proto");
        // The mediator has no driver. Its trait tests the generator: it has fields inside of fields.
        if interface.device_type == 0 {
            out += "#[cfg(test)]\n";
        }
        let code = driver::rust(&pool, interface, true, None).map_err(Error)?;
        out += &format!(
            "/// Drivers of the device {}: [`{module}::driver`].\n\
             pub mod {module} {{\n#[doc(no_inline)]\npub use ::amber_proto::{module}::*;\n\n{code}}}\n",
            interface.name
        );
    }
    Ok(out)
}

/// The clients of Amber's own devices. For Amber's own build script.
///
/// # Errors
/// A description breaks a rule.
pub fn our_clients() -> Result<String, Error> {
    let (pool, interfaces) = described(&our_compiler()?, &[])?;
    let ours: Vec<_> = interfaces.iter().collect();
    let clients = client::rust(&ours, &pool).map_err(Error)?;
    Ok(clients + &client::accessors(&interfaces))
}

/// The Rust names of Amber's own devices: constants of `DeviceType`, and a module of messages for
/// each device. For Amber's own build script.
///
/// # Errors
/// A file is not in the package that its name asks for.
pub fn device_names(interfaces: &[Interface]) -> Result<String, Error> {
    devices::rust(interfaces).map_err(Error)
}

/// All files that were compiled, and the interfaces in them. `known` are the devices whose types
/// and names are taken.
fn described(
    compiler: &protox::Compiler,
    known: &[Interface],
) -> Result<(DescriptorPool, Vec<Interface>), Error> {
    // Only this form has the options of interface.proto.
    let pool = DescriptorPool::decode(&*compiler.encode_file_descriptor_set())
        .map_err(|error| Error(format!("cannot read the descriptors: {error}")))?;
    let interfaces = amber_schema::read_all(&pool, known).map_err(|error| {
        let hint = error.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
        Error(format!("{error}{}", hint.unwrap_or_default()))
    })?;
    Ok((pool, interfaces))
}

/// The error in a file, and a hint. `Debug` prints the same text, because that is
/// what a build script shows if it returns the error.
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Error {}

/// The same as [`device`], with the names of Amber's own crates.
fn generated(file: &Path) -> Result<Device, Error> {
    let Parsed {
        mut set,
        encoded,
        pool,
        interfaces,
        read,
    } = parse(file)?;
    let theirs =
        |file: &FileDescriptorProto| !is_ours(file.name()) && file.package() != "google.protobuf";
    let mut package = None;
    for file in set.file.iter().filter(|file| theirs(file)) {
        let before = package.replace(file.package().to_owned());
        let problem = match (file.package(), before) {
            ("", _) => "it has no package\nhint: write, for example, `package lamp;`".to_owned(),
            (name, _) if name == "amber" || name.starts_with("amber.") => {
                format!("the package {name} is Amber's own\nhint: choose another name")
            }
            (name, Some(before)) if name != before => format!(
                "it has the package {name}, and a file that it imports or that imports it has {before}\n\
                 hint: give all files of one device the same package"
            ),
            _ => continue,
        };
        return Err(Error(format!("{}: {problem}", file.name())));
    }
    let package = package.unwrap_or_default();
    let extending = (set.file.iter()).filter(|file| theirs(file) && fold::extends_base(file));
    let extending = extending.count();
    if extending > 1 {
        return Err(Error(format!(
            "{}: another file of the package {package} also extends amber.DriverMsg\n\
             hint: give each device its own package",
            file.display()
        )));
    }
    fold_extensions(&mut set)?;
    let module = Module::from_protobuf_package_name;
    let requests = (set.file.into_iter())
        .map(|file| (module(file.package()), file))
        .collect();
    let mut messages = (config().generate(requests))
        .map_err(|error| Error(format!("cannot generate Rust code: {error}")))?
        .remove(&module(&package))
        .unwrap_or_default();
    if extending > 0 {
        messages += "::amber_proto::device_message!(DriverMsg);\n";
    }
    let theirs: Vec<&Interface> = (interfaces.iter())
        .filter(|it| !is_ours(&it.file))
        .collect();
    let clients = match &theirs[..] {
        [] => String::new(),
        some => client::rust(some, &pool).map_err(Error)?,
    };
    let mut drivers = String::new();
    for interface in &theirs {
        let located = |why| Error(format!("{}: {why}", interface.file));
        let description = description::files(&encoded, &interface.file).map_err(located)?;
        let description = (description.len() <= description::MAX_BYTES).then_some(&*description);
        drivers +=
            &driver::rust(&pool, interface, theirs.len() == 1, description).map_err(located)?;
    }
    Ok(Device {
        package,
        messages,
        clients,
        drivers,
        read,
    })
}

fn config() -> prost_build::Config {
    let mut config = prost_build::Config::new();
    config.bytes(["."]).prost_path("::amber_proto::prost");
    config.extern_path(".amber.DriverMsg.MsgType", "::amber_proto::MsgType");
    for message in [
        "DriverHdr",
        "DriverMsg",
        "Joins",
        "MissingPieces",
        "Piece",
        "Receipt",
    ] {
        config.extern_path(
            format!(".amber.{message}"),
            format!("::amber_proto::{message}"),
        );
    }
    for (name, _) in OURS {
        let device = name.trim_end_matches(".proto");
        if device != "drivermsg" {
            config.extern_path(
                format!(".amber.{device}_proto"),
                format!("::amber_proto::{device}"),
            );
        }
    }
    config
}

/// The descriptors of the files.
struct Parsed {
    set: FileDescriptorSet,
    /// The same with the options of interface.proto.
    encoded: Vec<u8>,
    pool: DescriptorPool,
    /// Also those of Amber's own devices, if a file imports them.
    interfaces: Vec<Interface>,
    /// The files on the disk.
    read: Vec<PathBuf>,
}

/// A file with its imports.
fn parse(file: &Path) -> Result<Parsed, Error> {
    let mut resolver = ChainFileResolver::new();
    // Built-in files come first, so another drivermsg.proto nearby is ignored.
    resolver.add(Ours);
    let folder = file.parent().unwrap_or(Path::new(""));
    let here = folder.as_os_str().is_empty();
    resolver.add(IncludeFileResolver::new(
        if here { Path::new(".") } else { folder }.to_owned(),
    ));
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(true);
    let mut open = |name: &Path, shown: &Path| {
        compiler.open_file(name).map(drop).map_err(|error| {
            Error(format!(
                "{}: {error:?}\nhint: a device's file has `import \"drivermsg.proto\";` and \
                 `extend amber.DriverMsg {{ ... }}`",
                shown.display()
            ))
        })
    };
    // Folding needs the base message even if no file imports it.
    open(Path::new("drivermsg.proto"), Path::new("drivermsg.proto"))?;
    open(file.file_name().map_or(file, Path::new), file)?;
    // The rules of descriptions hold at build time already.
    let (pool, interfaces) = described(&compiler, &our_interfaces()?)?;
    let read = compiler.files().filter_map(|file| file.path());
    Ok(Parsed {
        read: read.map(Path::to_owned).collect(),
        set: compiler.file_descriptor_set(),
        encoded: compiler.encode_file_descriptor_set(),
        pool,
        interfaces,
    })
}

fn is_ours(name: &str) -> bool {
    OURS.iter().any(|(ours, _)| *ours == name)
}

/// Amber's files, built into this program.
struct Ours;

impl FileResolver for Ours {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match OURS.iter().find(|(ours, _)| *ours == name) {
            Some((_, source)) => File::from_source(name, source),
            None => GoogleFileResolver::new().open_file(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use prost::Message;

    use super::*;

    const LAMP: &str = "syntax = \"proto2\";\npackage lamp;\nimport \"drivermsg.proto\";\n\
                        import \"hokuyo.proto\";\n\
                        extend amber.DriverMsg {\n  // The brightness.\n  optional uint32 brightness = 112;\n\
                        optional amber.hokuyo_proto.Scan scan = 113; }\n";

    /// The Rust of the first file's package, or the error.
    fn compiled(files: &[(&str, &str)]) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let device = generated(&folder.path().join(files[0].0));
        let device = device.map_err(|error| format!("{error:?}"))?;
        assert_eq!(device.read.len(), files.len(), "{:?}", device.read);
        Ok(device.messages)
    }

    #[test]
    fn extensions_and_base_fields_are_in_one_message() {
        let rust = compiled(&[("lamp.proto", LAMP)]).unwrap();
        for words in [
            "pub struct DriverMsg",
            "/// The brightness.",
            "tag=\"112\"",
            "tag=\"3\"",
            "enumeration=\"::amber_proto::MsgType\"",
            "::amber_proto::hokuyo::Scan",
            "::amber_proto::device_message!(DriverMsg);",
        ] {
            assert!(
                rust.replace(" = ", "=").contains(words),
                "no {words} in {rust}"
            );
        }
    }

    #[test]
    fn a_file_with_a_description_is_compiled_like_one_without() {
        let described = LAMP.replace(
            "import \"hokuyo.proto\";\n",
            "import \"hokuyo.proto\";\nimport \"interface.proto\";\n\
             service Lamp {\n\
             option (amber.device) = { type: 201 name: \"lamp\" };\n\
             rpc Brightness(amber.DriverMsg) returns (stream amber.DriverMsg) {\n\
             option (amber.stream) = { data: \"brightness\" };\n}\n}\n",
        );
        let plain = compiled(&[("lamp.proto", LAMP)]).unwrap();
        assert_eq!(compiled(&[("lamp.proto", &described)]).unwrap(), plain);
    }

    /// The clients of a lamp with these fields, messages and methods, or the error.
    fn clients(fields: &str, messages: &str, methods: &str) -> Result<String, String> {
        let text = format!(
            "syntax = \"proto2\";\npackage lamp;\nimport \"drivermsg.proto\";\n\
             import \"hokuyo.proto\";\nimport \"interface.proto\";\n\
             extend amber.DriverMsg {{ {fields} }}\n{messages}\nservice Lamp {{\n\
             option (amber.device) = {{ type: 201 name: \"lamp\" }};\n{methods}\n}}\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lamp.proto");
        fs::write(&path, text).unwrap();
        let device = generated(&path).map_err(|error| error.to_string())?;
        Ok(device.clients)
    }

    const ASK: &str = "(amber.DriverMsg) returns (amber.DriverMsg)";

    #[test]
    fn names_in_clients_are_different() {
        let rust = clients(
            "optional bool get = 110; optional bool on = 111; optional Place from = 112;
             optional Place to = 113;",
            "message LampState {} message Place { required double x = 1 [(amber.unit) = \"m\"]; }",
            &format!(
                "rpc State{ASK} {{ option (amber.ask) = {{ flag: \"get\" answer: \"on\"
                   may_answer: \"to\" }}; }}
                 rpc Ping{ASK} {{ option (amber.ask) = {{ request: [\"from\", \"to\"]
                   answer: \"on\" }}; }}"
            ),
        )
        .unwrap();
        assert!(rust.contains("pub struct LampStateAnswer {"), "{rust}");
        let ping = "pub async fn ping_(&self, x_m: f64, to_x_m: f64) -> ";
        assert!(rust.contains(ping), "{rust}");
    }

    #[test]
    fn fields_of_other_packages_are_an_error() {
        let error = clients(
            "optional bool get = 110;",
            "",
            &format!(
                "rpc Scan{ASK} {{ option (amber.ask) = {{ flag: \"get\"
                   answer: \"amber.hokuyo_proto.scan\" }}; }}"
            ),
        )
        .unwrap_err();
        let expected = "lamp.proto: method Scan: 'amber.hokuyo_proto.scan' is a field of another \
                         package\nhint: ";
        assert!(error.starts_with(expected), "{error}");
    }

    /// A lamp with a description, after replacing text in it.
    fn described_lamp(from: &str, to: &str) -> Result<String, String> {
        let lamp = "syntax = \"proto2\";\npackage lamp;\nimport \"drivermsg.proto\";\n\
             import \"interface.proto\";\nimport \"hokuyo.proto\";\n\
             extend amber.DriverMsg {\n\
             optional Wish wish = 112;\n\
             // How bright it is.\n\
             optional uint32 brightness = 113 [(amber.unit) = \"%\"];\n\
             optional string colour = 114;\n\
             optional bool off = 115;\n\
             optional string refused = 117;\n\
             optional Watch watch = 116;\n}\n\
             message Watch { optional uint32 ms = 1 [(amber.unit) = \"ms\", \
             (amber.absent_means) = \"1000\"]; }\n\
             message Wish { oneof what { uint32 shine = 1; Colour colour = 2; } }\n\
             message Colour { required string name = 1; }\n\
             // A lamp.\n\
             service Lamp {\n\
             option (amber.device) = { type: 201 name: \"lamp\" };\n\
             // Shines.\n\
             rpc Shine(amber.DriverMsg) returns (amber.DriverMsg) { option (amber.ask) = \
             { request: \"wish.shine\" answer: \"brightness\" may_answer: \"colour\" \
             refusal: \"refused\" }; }\n\
             rpc Start(amber.DriverMsg) returns (amber.Nothing) { option (amber.tell) = \
             { flag: \"off\" request: \"wish.colour\" }; }\n\
             rpc Brightness(amber.DriverMsg) returns (stream amber.DriverMsg) { option \
             (amber.stream) = { data: \"brightness\" }; }\n\
             rpc Samples(amber.DriverMsg) returns (stream amber.DriverMsg) { option \
             (amber.stream) = { request: \"watch\" period: \"watch.ms\" data: \"brightness\" \
             stop: { field: \"watch.ms\" value: \"0\" } }; }\n}\n";
        assert!(lamp.contains(from), "{from}");
        let lamp = lamp.replace(from, to);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lamp.proto");
        fs::write(&path, lamp).unwrap();
        let parsed = parse(&path).unwrap_or_else(|error| panic!("{error}"));
        let description = description::files(&parsed.encoded, "lamp.proto").unwrap();
        let set = FileDescriptorSet::decode(&*description).unwrap();
        let names: Vec<_> = set.file.iter().map(|file| file.name()).collect();
        assert_eq!(names, ["hokuyo.proto", "lamp.proto"]);
        let device = generated(&path).map_err(|error| error.to_string())?;
        Ok(device.drivers)
    }

    #[test]
    fn a_described_device_has_a_trait_for_its_drivers() {
        let rust = described_lamp("", "").unwrap();
        for words in [
            "/// A lamp.",
            "pub trait LampDriver {",
            "/// Shines.",
            "async fn shine(&mut self, shine: u32, reply: ::amber_driver::Reply<ShineAnswer>);",
            "pub struct ShineAnswer {",
            "/// How bright it is.",
            "pub brightness_percent: u32,",
            "message.refused = ::core::option::Option::Some(::std::borrow::ToOwned::to_owned(why));",
            "::core::option::Option::Some(LampLink::shine_refusal))",
            "pub colour: ::core::option::Option<::std::string::String>,",
            // The description has a method `start`.
            "async fn start(&mut self, colour: self::Colour, outcome: ::amber_driver::Outcome);",
            "async fn start_driver(&mut self, _link: LampLink)",
            "async fn publish(&mut self) -> ::core::option::Option<u32>",
            "pub fn brightness(&self, data: u32)",
            "pub fn driver<D: LampDriver>(driver: D)",
            "::core::option::Option::Some(b\"\\n",
        ] {
            assert!(rust.contains(words), "no {words} in {rust}");
        }
    }

    #[test]
    fn code_in_a_comment_is_no_test_of_the_program() {
        let rust = described_lamp("// Shines.", "// Shines.\n//\n//     shine(7)").unwrap();
        assert!(rust.contains("/// Shines."), "{rust}");
        assert!(!rust.contains("///     shine(7)"), "{rust}");
    }

    #[test]
    fn an_absent_field_stops_a_stream_only_if_it_means_that() {
        let stops = |rust: &str, absent: &str| {
            let ms = "it.watch.as_ref()).and_then(|it| it.ms.as_ref())";
            rust.contains(&format!("{ms}.{absent}(|it| *it == 0)"))
        };
        assert!(stops(&described_lamp("", "").unwrap(), "is_some_and"));
        let plain = described_lamp(", (amber.absent_means) = \"1000\"", "").unwrap();
        assert!(stops(&plain, "is_none_or"));
    }

    #[test]
    fn a_description_that_rust_cannot_follow_is_refused() {
        let error = described_lamp("\"wish.shine\"", "\"amber.hokuyo_proto.scan\"").unwrap_err();
        let expected = "lamp.proto: method Shine: 'amber.hokuyo_proto.scan' is a field of another \
                        package\nhint: ";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn errors_say_where_and_what_to_do() {
        for (files, words) in [
            (
                &[("lamp.proto", "syntax = \"proto2\";\nextend what")][..],
                "lamp.proto",
            ),
            (
                &[("lamp.proto", "syntax = \"proto2\";")],
                "it has no package\nhint: ",
            ),
            (
                &[("lamp.proto", "syntax = \"proto2\";\npackage amber;")],
                "is Amber's own\nhint: ",
            ),
            (
                &[
                    (
                        "lamp.proto",
                        "syntax = \"proto2\";\npackage lamp;\nimport \"second.proto\";",
                    ),
                    ("second.proto", "syntax = \"proto2\";\npackage other;"),
                ],
                "lamp.proto: it has the package lamp, and a file that it imports or that imports it \
                 has other\nhint: ",
            ),
            (
                &[(
                    "lamp.proto",
                    "syntax = \"proto2\";\npackage lamp;\nimport \"drivermsg.proto\";\n\
                     extend amber.DriverMsg { optional bool a = 110; }\n\
                     message DriverMsg {}",
                )],
                "has its own DriverMsg",
            ),
        ] {
            let error = compiled(files).unwrap_err();
            assert!(error.contains(words), "no {words:?} in {error}");
        }
    }
}
