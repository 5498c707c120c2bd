//! Locates fields of a description in the Rust message: expressions that read and set them. PURE.

use prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, FileDescriptor, Kind};

use crate::names;

/// A field of `DriverMsg`, or of a message in it.
#[derive(Debug)]
pub(crate) struct FieldPath {
    /// The fields that lead to it, itself the last.
    parts: Vec<Part>,
    kind: Kind,
}

#[derive(Debug)]
struct Part {
    name: String,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Optional,
    Required,
    Repeated,
    /// A variant of an enum.
    Oneof {
        variant: String,
    },
}

impl FieldPath {
    /// Finds a field by its path in a description; code next to the messages of `package` will
    /// use it.
    ///
    /// # Errors
    /// The field does not belong to the `DriverMsg` of this package, or is out of reach.
    pub(crate) fn find(pool: &DescriptorPool, path: &str, package: &str) -> Result<Self, String> {
        let mut ends = path.match_indices('.').map(|(end, _)| end);
        let lengths = std::iter::from_fn(|| ends.next()).chain([path.len()]);
        let found = lengths
            .filter_map(|end| Some((end, pool.get_extension_by_name(&path[..end])?)))
            .last();
        let (end, extension) = found.ok_or_else(|| format!("no field '{path}'"))?;
        if !is_within_reach(pool, &extension.parent_file(), package) {
            return Err(format!(
                "'{path}' is a field of another package\n\
                 hint: declare a field of the same type in this file, or import its file with \
                 `import public`"
            ));
        }
        let mut place = Self {
            parts: vec![Part {
                name: names::snake(extension.name()),
                shape: shape(extension.cardinality()),
            }],
            kind: extension.kind(),
        };
        for name in path[end..].split('.').filter(|name| !name.is_empty()) {
            let field = match &place.kind {
                Kind::Message(message) => message.get_field_by_name(name),
                _ => None,
            };
            let field = field.ok_or_else(|| format!("no field '{path}'"))?;
            if let Some(Part {
                shape: Shape::Repeated,
                ..
            }) = place.parts.last()
            {
                return Err(format!("field '{path}' is inside a repeated field"));
            }
            place.parts.push(part(&field, package));
            place.kind = field.kind();
        }
        Ok(place)
    }

    /// Checks that [`Self::set`] can reach it.
    ///
    /// # Errors
    /// It is inside a variant.
    pub(crate) fn settable(self) -> Result<Self, String> {
        let (last, outer) = self.parts.split_last().unzip();
        let is_variant = |part: &Part| matches!(part.shape, Shape::Oneof { .. });
        match outer.is_some_and(|outer: &[Part]| outer.iter().any(is_variant)) {
            true => Err(format!(
                "field '{}' of an answer is inside a oneof",
                last.map_or("", |part: &Part| &part.name)
            )),
            false => Ok(self),
        }
    }

    /// The type of the field if it is present.
    pub(crate) fn value_type(&self, package: &str) -> String {
        let one = value_type(&self.kind, package);
        match self.is_repeated() {
            true => format!("::std::vec::Vec<{one}>"),
            false => one,
        }
    }

    /// The type of the field if it may be absent.
    pub(crate) fn maybe_type(&self, package: &str) -> String {
        let value = self.value_type(package);
        match self.is_repeated() {
            true => value,
            false => format!("::core::option::Option<{value}>"),
        }
    }

    /// An expression of the type `Option<&T>` for a reference to the field in a message.
    pub(crate) fn get(&self, message: &str) -> String {
        let mut expression = format!("::core::option::Option::Some(&{message})");
        for Part { name, shape } in &self.parts {
            expression += &match shape {
                Shape::Optional => format!(".and_then(|it| it.{name}.as_ref())"),
                Shape::Required => format!(".map(|it| &it.{name})"),
                Shape::Repeated => {
                    format!(".map(|it| &it.{name}).filter(|it| !it.is_empty())")
                }
                Shape::Oneof { variant } => format!(
                    ".and_then(|it| match &it.{name} {{ \
                     ::core::option::Option::Some({variant}(it)) => ::core::option::Option::Some(it), \
                     _ => ::core::option::Option::None }})"
                ),
            };
        }
        expression
    }

    /// A statement that sets the field in a message to a value.
    pub(crate) fn set(&self, message: &str, value: &str) -> String {
        let mut target = message.to_owned();
        let Some((last, outer)) = self.parts.split_last() else {
            return String::new();
        };
        for Part { name, shape } in outer {
            target += &match shape {
                Shape::Optional => format!(".{name}.get_or_insert_default()"),
                // `find` and `part` let nothing else be outside of another field.
                _ => format!(".{name}"),
            };
        }
        let name = &last.name;
        match &last.shape {
            Shape::Optional => format!("{target}.{name} = ::core::option::Option::Some({value});"),
            Shape::Required | Shape::Repeated => format!("{target}.{name} = {value};"),
            Shape::Oneof { variant } => {
                format!("{target}.{name} = ::core::option::Option::Some({variant}({value}));")
            }
        }
    }

    /// A statement that sets the field in a message if the value is present.
    pub(crate) fn set_maybe(&self, message: &str, value: &str) -> String {
        match self.is_repeated() {
            true => self.set(message, value),
            false => format!(
                "if let ::core::option::Option::Some(it) = {value} {{ {} }}",
                self.set(message, "it")
            ),
        }
    }

    /// An expression that says whether the field in a message has a value, written as in a
    /// description. If the field is absent, it has the value of `absent`, if there is one.
    pub(crate) fn has(&self, message: &str, value: &str, absent: Option<&str>) -> String {
        let get = self.get(message);
        let literal = self.literal(value);
        match absent.is_some_and(|absent| self.literal(absent) == literal) {
            true => format!("{get}.is_none_or(|it| *it == {literal})"),
            false => format!("{get}.is_some_and(|it| *it == {literal})"),
        }
    }

    /// A statement that sets the field in a message to a value, written as in a description.
    pub(crate) fn set_literal(&self, message: &str, value: &str) -> String {
        let literal = self.literal(value);
        self.set(
            message,
            &match self.kind {
                Kind::String => format!("::std::borrow::ToOwned::to_owned({literal})"),
                _ => literal,
            },
        )
    }

    /// An expression that says whether the field is absent, or a message without content.
    pub(crate) fn is_empty(&self, message: &str) -> String {
        let get = self.get(message);
        match (&self.kind, self.is_repeated()) {
            (Kind::Message(_), false) => format!(
                "{get}.is_none_or(|it| ::amber_proto::prost::Message::encoded_len(it) == 0)"
            ),
            _ => format!("{get}.is_none()"),
        }
    }

    /// A value, written as in a description, in Rust.
    fn literal(&self, value: &str) -> String {
        match &self.kind {
            Kind::Enum(values) => {
                let number = values.get_value_by_name(value).map(|it| it.number());
                number.unwrap_or_default().to_string()
            }
            Kind::String => format!("{value:?}"),
            Kind::Double | Kind::Float => {
                format!("{:?}", value.parse::<f64>().unwrap_or_default())
            }
            _ => value.to_owned(),
        }
    }

    /// The value of an absent field of this type in protobuf.
    pub(crate) fn zero(&self) -> String {
        match &self.kind {
            Kind::Enum(values) => values.default_value().name().to_owned(),
            Kind::String => String::new(),
            Kind::Bool => "false".to_owned(),
            _ => "0".to_owned(),
        }
    }

    fn is_repeated(&self) -> bool {
        matches!(
            self.parts.last(),
            Some(Part {
                shape: Shape::Repeated,
                ..
            })
        )
    }
}

/// Whether the `DriverMsg` of a package has the extensions of a file: its own and those of files that
/// it imports publicly.
pub(crate) fn is_within_reach(pool: &DescriptorPool, file: &FileDescriptor, package: &str) -> bool {
    let imports = |own: &FileDescriptor| own.public_dependencies().any(|it| it == *file);
    file.package_name() == package
        || pool
            .files()
            .any(|own| own.package_name() == package && own.extensions().len() > 0 && imports(&own))
}

/// The type of one value of a field.
fn value_type(kind: &Kind, package: &str) -> String {
    let scalar = match kind {
        Kind::Message(message) => return names::message(message, package),
        Kind::Double => "f64",
        Kind::Float => "f32",
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 | Kind::Enum(_) => "i32",
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => "i64",
        Kind::Uint32 | Kind::Fixed32 => "u32",
        Kind::Uint64 | Kind::Fixed64 => "u64",
        Kind::Bool => "bool",
        Kind::String => "::std::string::String",
        Kind::Bytes => "::amber_proto::prost::bytes::Bytes",
    };
    scalar.to_owned()
}

fn part(field: &FieldDescriptor, package: &str) -> Part {
    match field.containing_oneof() {
        Some(group) => {
            let path = names::oneof(field.parent_message(), group.name(), package);
            Part {
                name: names::snake(group.name()),
                shape: Shape::Oneof {
                    variant: format!("{path}::{}", names::camel(field.name())),
                },
            }
        }
        None => Part {
            name: names::snake(field.name()),
            shape: shape(field.cardinality()),
        },
    }
}

fn shape(cardinality: Cardinality) -> Shape {
    match cardinality {
        Cardinality::Optional => Shape::Optional,
        Cardinality::Required => Shape::Required,
        Cardinality::Repeated => Shape::Repeated,
    }
}
