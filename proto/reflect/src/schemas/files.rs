//! The schemas of users' own devices, compiled together with ours. IO.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use amber_proto::DESCRIPTORS;
use amber_schema::Interface;
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};
use protox::file::{DescriptorSetFileResolver, File, FileResolver};

use crate::Error;

const HINT: &str = "the file of a device needs `import \"drivermsg.proto\";` and `extend amber.DriverMsg \
                    { ... }`, as in the folder proto";

/// The longest schema, in bytes: hundreds of times what a device needs.
const SCHEMA_BYTES: u64 = 1024 * 1024;

/// Reports missing, endless and too long files by name; the compiler does not.
fn check_file(path: &Path) -> Result<(), Error> {
    let cannot = |what: &dyn fmt::Display| Error::new(format!("{}: {what}", path.display()));
    let found =
        fs::metadata(path).map_err(|error| cannot(&format_args!("cannot read: {error}")))?;
    let hint = "`--proto` needs a .proto file with the messages of your device";
    if !found.is_file() {
        return Err(cannot(&"not a regular file").hint(hint));
    }
    if found.len() > SCHEMA_BYTES {
        return Err(cannot(&"longer than 1 MiB").hint(hint));
    }
    fs::File::open(path).map_err(|error| cannot(&format_args!("cannot read: {error}")))?;
    Ok(())
}

/// The files of Amber.
pub(super) fn built_in_files() -> FileDescriptorSet {
    FileDescriptorSet::decode(DESCRIPTORS)
        .expect("amber-proto has the descriptors it was built from")
}

/// Our schemas and those of the files.
///
/// # Errors
/// A file cannot be read or compiled, or uses a field number that another file has.
pub(super) fn pool(files: &[PathBuf]) -> Result<DescriptorPool, Error> {
    let ours = built_in_files();
    let packages: Vec<_> = (ours.file.iter())
        .map(|file| (file.name().to_owned(), file.package().to_owned()))
        .collect();
    let mut own: Vec<(String, PathBuf)> = Vec::new();
    for path in files {
        check_file(path)?;
        if own.iter().any(|(_, known)| known == path) {
            continue;
        }
        let base = path.file_name().unwrap_or(path.as_os_str());
        let base = base.to_string_lossy().into_owned();
        let known = packages.iter().find(|(name, _)| *name == base);
        if let Some((name, package)) = known {
            let is_ours = File::open(name, path)
                .is_ok_and(|file| file.file_descriptor_proto().package() == package);
            if is_ours {
                continue;
            }
        }
        // Two files may have the same name in different folders.
        let is_taken = known.is_some() || own.iter().any(|(name, _)| *name == base);
        let name = match is_taken {
            true => format!("{}/{base}", own.len() + 1),
            false => base,
        };
        own.push((name, path.clone()));
    }
    let clash = Rc::default();
    let resolver = Resolver {
        numbers: RefCell::new(HashMap::new()),
        clash: Rc::clone(&clash),
        own: own.clone(),
        folders: folders(files),
        ours: DescriptorSetFileResolver::new(ours),
    };
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    let ours = packages.into_iter().map(|(name, _)| (name, None));
    let own = own.into_iter().map(|(name, path)| (name, Some(path)));
    for (name, path) in ours.chain(own) {
        compiler.open_file(&name).map_err(|error| {
            if let Some(clash) = clash.take() {
                return clash;
            }
            let shown = path.map_or(name, |path| path.display().to_string());
            Error::new(format!("{shown}: {error}")).hint(HINT)
        })?;
    }
    Ok(compiler.descriptor_pool())
}

/// The interfaces that a user's file or its imports describe.
///
/// # Errors
/// The first rule that a description breaks.
pub(super) fn interfaces(pool: &DescriptorPool, path: &Path) -> Result<Vec<Interface>, Error> {
    let mut interfaces = Vec::new();
    for file in pool.files() {
        let package = file.package_name();
        if package == "amber" || package.starts_with("amber.") {
            continue;
        }
        interfaces.extend(
            amber_schema::read(&file, crate::built_in())
                .map_err(|error| broken_rule(error, path))?,
        );
    }
    Ok(interfaces)
}

/// The error with the path that the user gave.
fn broken_rule(mut error: amber_schema::Error, path: &Path) -> Error {
    let name = path.file_name().unwrap_or(path.as_os_str());
    if error.file.ends_with(&*name.to_string_lossy()) {
        error.file = shown(path);
    }
    error.into()
}

/// The folders for imports: those of the files.
fn folders(files: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in files.iter().filter_map(|file| file.parent()) {
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.into());
        }
    }
    folders
}

/// Finds files by name, ours first: there must be only one drivermsg.proto.
struct Resolver {
    ours: DescriptorSetFileResolver,
    own: Vec<(String, PathBuf)>,
    folders: Vec<PathBuf>,
    /// The field and the file of each number; the pool panics at a duplicate.
    numbers: RefCell<HashMap<i32, (String, String)>>,
    clash: Rc<RefCell<Option<Error>>>,
}

impl FileResolver for Resolver {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let (file, shown) = match self.ours.open_file(name) {
            Ok(file) => (file, name.to_owned()),
            Err(_) => self.open_own(name)?,
        };
        if let Some(clash) = self.register(file.file_descriptor_proto(), &shown) {
            self.clash.replace(Some(clash));
            return Err(protox::Error::new("a field number is used twice"));
        }
        Ok(file)
    }
}

impl Resolver {
    fn open_own(&self, name: &str) -> Result<(File, String), protox::Error> {
        let given = self.own.iter().find(|(own, _)| own == name);
        let beside = || self.folders.iter().map(|folder| folder.join(name));
        let path = match given {
            Some((_, path)) => path.clone(),
            None => beside()
                .find(|path| path.is_file())
                .ok_or_else(|| protox::Error::file_not_found(name))?,
        };
        let file = File::open(name, &path)?;
        Ok((file, shown(&path)))
    }

    /// Registers the field numbers of a file, or reports a duplicate.
    fn register(&self, file: &FileDescriptorProto, shown: &str) -> Option<Error> {
        let mut fields: Vec<_> = file.extension.iter().collect();
        file.message_type
            .iter()
            .for_each(|message| nested(message, &mut fields));
        let mut numbers = self.numbers.borrow_mut();
        for field in fields.into_iter().filter(|field| extends_driver_msg(field)) {
            let (number, name) = (field.number(), field.name().to_owned());
            if let Some((other, of)) = numbers.get(&number) {
                let text = format!(
                    "{shown}: field '{name}' has number {number}, which '{other}' in {of} already has"
                );
                return Some(Error::new(text).hint(
                    "choose an unused number from 110 to 179; all users' devices share this range",
                ));
            }
            numbers.insert(number, (name, shown.to_owned()));
        }
        None
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn nested<'a>(message: &'a DescriptorProto, fields: &mut Vec<&'a FieldDescriptorProto>) {
    fields.extend(&message.extension);
    for inner in &message.nested_type {
        nested(inner, fields);
    }
}

/// The name is as written in the file, not resolved.
fn extends_driver_msg(field: &FieldDescriptorProto) -> bool {
    field.extendee().rsplit('.').next() == Some("DriverMsg")
}

#[cfg(test)]
mod tests {
    use super::super::Schemas;
    use super::*;

    fn schema(package: &str, field: &str, number: u32) -> String {
        format!(
            "syntax = \"proto2\";\npackage {package};\nimport \"drivermsg.proto\";\n\
             extend amber.DriverMsg {{ optional bool {field} = {number}; }}\n"
        )
    }

    fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A device with a flag and a description.
    fn described(package: &str, field: &str, device_type: u32) -> String {
        format!(
            "syntax = \"proto2\";\npackage {package};\nimport \"drivermsg.proto\";\n\
             import \"interface.proto\";\n\
             extend amber.DriverMsg {{ optional bool {field} = 110; }}\n\
             service S {{\n  option (amber.device) = {{ type: {device_type} name: \"{package}\" }};\n\
             rpc Set(amber.DriverMsg) returns (amber.Nothing) {{\n\
             option (amber.tell) = {{ request: \"{field}\" }};\n}}\n}}\n"
        )
    }

    #[test]
    fn two_described_devices_may_use_one_number() {
        let folder = tempfile::tempdir().unwrap();
        let lamp = file(folder.path(), "lamp.proto", &described("lamp", "lit", 201));
        let fan = file(
            folder.path(),
            "fan.proto",
            &described("fan", "turning", 202),
        );
        let plain = file(folder.path(), "plain.proto", &schema("plain", "on", 110));
        let schemas = Schemas::with(&[lamp.clone(), fan, plain.clone()]).unwrap();
        let name = |schemas: &Schemas, device_type| {
            let schemas = schemas.for_device(device_type);
            let fields = schemas.decode(b"\x10\x01\xf0\x06\x01").unwrap();
            fields.keys().next().unwrap().clone()
        };
        let type_of = |number| Some(amber_proto::DeviceType(number));
        assert_eq!(name(&schemas, type_of(201)), "lit");
        assert_eq!(name(&schemas, type_of(202)), "turning");
        assert_eq!(name(&schemas, type_of(203)), "on");
        assert_eq!(name(&schemas, None), "on");
        assert_eq!(schemas.fields(amber_proto::DeviceType(202)), ["turning"]);
        assert_eq!(schemas.described_type(), None);
        let on = serde_json::Map::from_iter([("turning".to_owned(), true.into())]);
        assert!(schemas.encode(amber_proto::DeviceType(202), &on).is_ok());
        assert!(schemas.encode(amber_proto::DeviceType(201), &on).is_err());

        // A single description also serves devices of any other type.
        let one = Schemas::with(&[lamp]).unwrap();
        assert_eq!(name(&one, type_of(205)), "lit");
        assert_eq!(name(&one, None), "lit");
        assert_eq!(one.described_type(), type_of(201));
    }

    #[test]
    fn a_field_number_in_use_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let lamp = file(folder.path(), "lamp.proto", &schema("lamp", "on", 110));
        let other = file(folder.path(), "fan.proto", &schema("fan", "run", 110));
        for number in [20, 40, 51, 180] {
            let text = schema("own", "mine", number);
            let own = file(folder.path(), "own.proto", &text);
            let failure = format!("{:?}", Schemas::with(&[own]).unwrap_err());
            let words = format!("own.proto: field 'mine' has number {number}, which '");
            assert!(failure.contains(&words), "{failure}");
            assert!(failure.contains("from 110 to 179"), "{failure}");
        }
        let failure = Schemas::with(&[lamp.clone(), other]).unwrap_err();
        let failure = format!("{failure:?}");
        assert!(
            failure.contains("fan.proto: field 'run' has number 110"),
            "{failure}"
        );
        assert!(failure.contains("which 'on' in "), "{failure}");
        // The same file twice is not a clash.
        assert!(Schemas::with(&[lamp.clone(), lamp]).is_ok());
    }

    #[test]
    fn files_with_the_same_name_in_two_folders_are_both_read() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            file(folder.path(), "here/b.proto", &schema("here", "near", 120)),
            file(folder.path(), "b.proto", &schema("there", "far", 121)),
        ];
        let fields = Schemas::with(&files)
            .unwrap()
            .fields(amber_proto::DeviceType(201));
        assert_eq!(fields, ["near", "far"]);
    }

    #[test]
    fn a_neighbouring_file_does_not_hide_a_named_one() {
        let folder = tempfile::tempdir().unwrap();
        file(
            folder.path(),
            "here/b.proto",
            &schema("hidden", "wrong", 122),
        );
        let files = [
            file(folder.path(), "here/a.proto", &schema("a", "first", 120)),
            file(folder.path(), "b.proto", &schema("b", "second", 121)),
        ];
        let fields = Schemas::with(&files)
            .unwrap()
            .fields(amber_proto::DeviceType(201));
        assert_eq!(fields, ["first", "second"]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let failure = Schemas::with(&["no/such.proto".into()]).unwrap_err();
        let missing = "no/such.proto: cannot read: No such file or directory (os error 2)";
        assert_eq!(failure, Error::new(missing));
    }

    #[test]
    fn a_file_of_amber_may_be_named() {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hokuyo.proto");
        Schemas::with(&[ours]).unwrap();
    }
}
