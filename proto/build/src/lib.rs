//! Generates Rust code from the `.proto` files of your own devices, in a build script. IO.
//!
//! No `protoc` is needed. `build.rs` is
//!
//! ```no_run
//! fn main() -> Result<(), amber_build::Error> {
//!     amber_build::compile(&["lamp.proto"])
//! }
//! ```
//!
//! and in the program, where `lamp` is the package of the file:
//!
//! ```ignore
//! mod lamp {
//!     amber_proto::include_messages!("lamp");
//!     // If a `service` of the file has the option `amber.device`: the trait of its drivers.
//!     amber_driver::include_driver!("lamp");
//! }
//! ```
//!
//! Then `lamp::DriverMsg` has the base fields and the fields that the file adds with `extend
//! amber.DriverMsg`. It works with `amber_driver::Driver` and `amber_client::proxy::Proxy`.
//! Other messages of the file are next to it. The program must depend on `amber-proto`, because
//! the generated code uses it.
//!
//! If the file describes the interface of the device by a `service`, there are also clients:
//!
//! ```ignore
//! mod lamp {
//!     amber_proto::include_messages!("lamp");
//!     amber_client::include_client!("lamp");
//! }
//!
//! let lamp = lamp::Lamp::of(&client, 0);
//! lamp.set_brightness(40).await?;
//! ```
//!
//! Each `rpc` is a method, with its comment as documentation:
//!
//! - The fields of a request are arguments, if at most one of them is optional. Otherwise the
//!   message is the argument. A table (`amber.columns`) is a slice of tuples. The period of a stream
//!   and the duration of a request are a `Duration`.
//! - The field of an answer is the result; several fields are a struct, such as
//!   `LampState` for the method `State`.
//! - A message with a class (`amber.value`) is this class of `amber_client::values`. For a message
//!   of your own, implement `From` or `TryFrom` between the two, or `Row` for a table.
//! - `lamp::blocking::Lamp` has the same methods for programs without async.

#![warn(missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, error};

use amber_schema::Interface;
use prost_reflect::DescriptorPool;
use prost_types::FileDescriptorSet;
use protox::file::{
    ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver,
};

mod client;
mod comments;
mod description;
mod devices;
mod driver;
mod field_path;
mod fold;
mod names;

/// The files of Amber's own devices, which other files may import.
const OURS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/ours.rs"));

/// Compiles files to Rust, for `amber_proto::include_messages!`.
///
/// A file may import the files next to it, `drivermsg.proto` and the files of Amber's devices;
/// the latter are built in. Cargo runs the build script again when one of the files changes.
///
/// # Errors
/// A file cannot be read or compiled, or is not a device file; the error names the place, the
/// reason and a hint.
pub fn compile(files: &[impl AsRef<Path>]) -> Result<(), Error> {
    let out = env::var_os("OUT_DIR").ok_or_else(|| {
        Error("OUT_DIR is not set\nhint: call amber_build::compile from build.rs".into())
    })?;
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    let read = compile_to(&files, Path::new(&out))?;
    for path in read {
        #[allow(clippy::print_stdout)] // For Cargo.
        {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    Ok(())
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

/// Returns the files that were read.
fn compile_to(files: &[&Path], out: &Path) -> Result<Vec<PathBuf>, Error> {
    let Parsed {
        mut set,
        encoded,
        pool,
        interfaces,
        read,
    } = parse(files)?;
    let mut packages = BTreeSet::new();
    for file in &set.file {
        if is_ours(file.name()) || file.package() == "google.protobuf" {
            continue;
        }
        let problem = match file.package() {
            "" => Some("it has no package\nhint: write, for example, `package lamp;`".to_owned()),
            package if package == "amber" || package.starts_with("amber.") => Some(format!(
                "the package {package} is Amber's own\nhint: choose another name"
            )),
            package if fold::extends_base(file) && !packages.insert(package.to_owned()) => {
                Some(format!(
                    "another file of the package {package} also extends amber.DriverMsg\n\
                     hint: give each device its own package"
                ))
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(Error(format!("{}: {problem}", file.name())));
        }
    }
    fold_extensions(&mut set)?;
    let mut config = prost_build::Config::new();
    config
        .out_dir(out)
        .bytes(["."])
        .prost_path("::amber_proto::prost");
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
    let cannot = |error: &dyn fmt::Display| Error(format!("cannot generate Rust code: {error}"));
    config.compile_fds(set).map_err(|error| cannot(&error))?;
    for package in packages {
        let path = out.join(format!("{package}.rs"));
        let mut file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(|error| cannot(&error))?;
        writeln!(file, "::amber_proto::device_message!(DriverMsg);")
            .map_err(|error| cannot(&error))?;
    }
    write_surfaces(&encoded, &pool, &interfaces, out)?;
    Ok(read)
}

/// Writes the clients and the traits of drivers, one file each for each package that describes a
/// device, and next to them the description that drivers hand to the mediator.
fn write_surfaces(
    set: &[u8],
    pool: &DescriptorPool,
    interfaces: &[Interface],
    out: &Path,
) -> Result<(), Error> {
    let write = |path: &Path, bytes: &[u8]| {
        fs::write(path, bytes)
            .map_err(|error| Error(format!("cannot write {}: {error}", path.display())))
    };
    let mut packages: BTreeMap<&str, Vec<&Interface>> = BTreeMap::new();
    for interface in interfaces.iter().filter(|it| !is_ours(&it.file)) {
        let (package, _) = driver::package_and_name(interface);
        packages.entry(package).or_default().push(interface);
    }
    for (package, interfaces) in packages {
        let clients = client::rust(&interfaces, pool).map_err(Error)?;
        write(
            &out.join(format!("{package}.client.rs")),
            clients.as_bytes(),
        )?;
        let mut code = String::new();
        for interface in &interfaces {
            let located = |why| Error(format!("{}: {why}", interface.file));
            let description = description::files(set, &interface.file).map_err(located)?;
            let name = format!("{}.description.bin", interface.service);
            write(&out.join(&name), &description)?;
            let description = (description.len() <= description::MAX_BYTES).then_some(&*name);
            let is_only_one = interfaces.len() == 1;
            code += &driver::rust(pool, interface, is_only_one, description).map_err(located)?;
        }
        write(&out.join(format!("{package}.driver.rs")), code.as_bytes())?;
    }
    Ok(())
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

/// All files with their imports.
fn parse(files: &[&Path]) -> Result<Parsed, Error> {
    let mut resolver = ChainFileResolver::new();
    // Built-in files come first, so another drivermsg.proto nearby is ignored.
    resolver.add(Ours);
    let folders: BTreeSet<_> = files.iter().filter_map(|file| file.parent()).collect();
    for folder in folders {
        let here = folder.as_os_str().is_empty();
        resolver.add(IncludeFileResolver::new(
            if here { Path::new(".") } else { folder }.to_owned(),
        ));
    }
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
    for file in files {
        open(file.file_name().map_or(*file, Path::new), file)?;
    }
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
        let paths: Vec<_> = files
            .iter()
            .map(|(name, _)| folder.path().join(name))
            .collect();
        let paths: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
        let read = compile_to(&paths, folder.path()).map_err(|error| format!("{error:?}"))?;
        assert_eq!(read.len(), files.len(), "{read:?}");
        Ok(fs::read_to_string(folder.path().join("lamp.rs")).unwrap())
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
        compile_to(&[&path], folder.path()).map_err(|error| error.to_string())?;
        Ok(fs::read_to_string(folder.path().join("lamp.client.rs")).unwrap())
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
        compile_to(&[&path], folder.path()).map_err(|error| error.to_string())?;
        let description = fs::read(folder.path().join("lamp.Lamp.description.bin")).unwrap();
        let set = FileDescriptorSet::decode(&*description).unwrap();
        let names: Vec<_> = set.file.iter().map(|file| file.name()).collect();
        assert_eq!(names, ["hokuyo.proto", "lamp.proto"]);
        let rust = fs::read_to_string(folder.path().join("lamp.driver.rs")).unwrap();
        Ok(rust)
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
            "\"/lamp.Lamp.description.bin\"",
        ] {
            assert!(rust.contains(words), "no {words} in {rust}");
        }
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
                &[("lamp.proto", LAMP), ("second.proto", LAMP)],
                // The compiler reports this first.
                "lamp",
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
