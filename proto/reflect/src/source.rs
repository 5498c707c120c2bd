//! Descriptors as the text of a `.proto` file. PURE.

use std::fmt::Write as _;

use prost_reflect::{
    Cardinality, DynamicMessage, EnumDescriptor, FieldDescriptor, FileDescriptor, Kind,
    MessageDescriptor, MethodDescriptor, ServiceDescriptor, Syntax, Value,
};
use prost_types::FieldDescriptorProto;

/// A file as source text that compiles to the same descriptors. It keeps comments that stand
/// before the described element.
pub fn source(file: &FileDescriptor) -> String {
    let mut out = Out {
        file,
        text: String::new(),
    };
    out.file();
    out.text
}

struct Out<'a> {
    file: &'a FileDescriptor,
    text: String,
}

/// The paths of parts in `SourceCodeInfo` begin with the number of their field.
const SYNTAX: &[i32] = &[12];

impl Out<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "  ".repeat(depth));
    }

    fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") && !self.text.ends_with("{\n") {
            self.text.push('\n');
        }
    }

    fn file(&mut self) {
        let file = self.file;
        let proto = file.file_descriptor_proto();
        self.comment(0, SYNTAX);
        let syntax = match file.syntax() {
            Syntax::Proto2 => "proto2",
            Syntax::Proto3 => "proto3",
        };
        self.line(0, &format!("syntax = \"{syntax}\";"));
        if !file.package_name().is_empty() {
            self.blank();
            self.line(0, &format!("package {};", file.package_name()));
        }
        self.blank();
        self.options(0, &file.options());
        self.blank();
        for (index, name) in proto.dependency.iter().enumerate() {
            let index = i32::try_from(index).unwrap_or_default();
            let kind = if proto.public_dependency.contains(&index) {
                "public "
            } else if proto.weak_dependency.contains(&index) {
                "weak "
            } else {
                ""
            };
            self.line(0, &format!("import {kind}{};", quoted(name.as_bytes())));
        }
        self.extensions(0, file.extensions().collect());
        for service in file.services() {
            self.service(&service);
        }
        for message in file.messages() {
            self.message(0, &message);
        }
        for values in file.enums() {
            self.enumeration(0, &values);
        }
    }

    /// The comment before the element with this path.
    fn comment(&mut self, depth: usize, path: &[i32]) {
        let info = self.file.file_descriptor_proto().source_code_info.as_ref();
        let location = info.and_then(|info| info.location.iter().find(|it| it.path == path));
        let Some(location) = location else { return };
        let detached: Vec<_> = location.leading_detached_comments.clone();
        for text in &detached {
            self.comment_lines(depth, text);
            self.text.push('\n');
        }
        let leading = location.leading_comments.clone();
        // A comment after the element may belong to the next one.
        let trailing = location.trailing_comments.clone();
        if let Some(text) = leading.or(trailing) {
            self.comment_lines(depth, &text);
        }
    }

    fn comment_lines(&mut self, depth: usize, text: &str) {
        for line in text.trim_end_matches('\n').split('\n') {
            self.line(depth, &format!("//{}", line.trim_end()));
        }
    }

    /// Options as statements.
    fn options(&mut self, depth: usize, options: &DynamicMessage) {
        for (name, value, kind) in set_options(options) {
            let value = value_text(&value, &kind, depth);
            self.line(depth, &format!("option {name} = {value};"));
        }
    }

    fn extensions(&mut self, depth: usize, mut all: Vec<prost_reflect::ExtensionDescriptor>) {
        while let Some(first) = all.first() {
            let extended = first.containing_message();
            let name = extended.full_name().to_owned();
            let (these, others): (Vec<_>, Vec<_>) =
                (all.into_iter()).partition(|it| it.containing_message().full_name() == name);
            self.blank();
            self.line(depth, &format!("extend .{name} {{"));
            for field in &these {
                self.comment(depth + 1, field.path());
                let proto = field.field_descriptor_proto();
                let type_name = self.type_name(&field.kind(), None);
                self.field(depth + 1, proto, &type_name, &field.options(), true);
            }
            self.line(depth, "}");
            all = others;
        }
    }

    fn message(&mut self, depth: usize, message: &MessageDescriptor) {
        self.blank();
        self.comment(depth, message.path());
        self.line(depth, &format!("message {} {{", message.name()));
        self.options(depth + 1, &message.options());
        self.blank();
        for values in message.child_enums() {
            self.enumeration(depth + 1, &values);
        }
        for inner in message.child_messages().filter(|it| !it.is_map_entry()) {
            self.message(depth + 1, &inner);
        }
        self.extensions(depth + 1, message.child_extensions().collect());
        for index in 0..message.fields().len() {
            // In the order of the file.
            let Some(field) = (message.fields())
                .find(|it| it.path().last().is_some_and(|&last| last as usize == index))
            else {
                continue;
            };
            let oneof = field.containing_oneof().filter(|it| !it.is_synthetic());
            let Some(oneof) = oneof else {
                self.message_field(depth + 1, message, &field);
                continue;
            };
            let first = oneof.fields().map(|it| it.path().to_vec()).min();
            if first.as_deref() != Some(field.path()) {
                continue;
            }
            self.comment(depth + 1, oneof.path());
            self.line(depth + 1, &format!("oneof {} {{", oneof.name()));
            self.options(depth + 2, &oneof.options());
            let mut fields: Vec<_> = oneof.fields().collect();
            fields.sort_by_key(|it| it.path().to_vec());
            for field in fields {
                self.message_field(depth + 2, message, &field);
            }
            self.line(depth + 1, "}");
        }
        self.ranges(depth + 1, message);
        self.line(depth, "}");
    }

    fn ranges(&mut self, depth: usize, message: &MessageDescriptor) {
        let proto = message.descriptor_proto();
        let range = |start: i32, end: i32| match end - 1 {
            last if last == start => start.to_string(),
            536_870_911 => format!("{start} to max"),
            last => format!("{start} to {last}"),
        };
        for it in &proto.extension_range {
            let range = range(it.start(), it.end());
            self.line(depth, &format!("extensions {range};"));
        }
        for it in &proto.reserved_range {
            let range = range(it.start(), it.end());
            self.line(depth, &format!("reserved {range};"));
        }
        for name in &proto.reserved_name {
            self.line(depth, &format!("reserved {};", quoted(name.as_bytes())));
        }
    }

    fn message_field(
        &mut self,
        depth: usize,
        message: &MessageDescriptor,
        field: &FieldDescriptor,
    ) {
        self.comment(depth, field.path());
        let in_oneof = field
            .containing_oneof()
            .is_some_and(|it| !it.is_synthetic());
        let (proto, options) = (field.field_descriptor_proto(), field.options());
        if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
            let key = self.type_name(&entry.map_entry_key_field().kind(), None);
            let value = self.type_name(&entry.map_entry_value_field().kind(), Some(message));
            let type_name = format!("map<{key}, {value}>");
            return self.field(depth, proto, &type_name, &options, false);
        }
        let type_name = self.type_name(&field.kind(), Some(message));
        self.field(depth, proto, &type_name, &options, !in_oneof);
    }

    fn field(
        &mut self,
        depth: usize,
        proto: &FieldDescriptorProto,
        type_name: &str,
        options: &DynamicMessage,
        has_label: bool,
    ) {
        let is_implicit = self.file.syntax() == Syntax::Proto3 && !proto.proto3_optional();
        let label = match cardinality(proto) {
            _ if !has_label => "",
            Cardinality::Optional if is_implicit => "",
            Cardinality::Optional => "optional ",
            Cardinality::Required => "required ",
            Cardinality::Repeated => "repeated ",
        };
        let mut brackets = Vec::new();
        if let Some(default) = &proto.default_value {
            use prost_types::field_descriptor_proto::Type;
            let default = match proto.r#type() {
                Type::String => quoted(default.as_bytes()),
                // It is escaped already.
                Type::Bytes => format!("\"{default}\""),
                _ => default.clone(),
            };
            brackets.push(format!("default = {default}"));
        }
        if let Some(json) = &proto.json_name
            && *json != json_name(proto.name())
        {
            brackets.push(format!("json_name = {}", quoted(json.as_bytes())));
        }
        for (name, value, kind) in set_options(options) {
            brackets.push(format!("{name} = {}", value_text(&value, &kind, depth)));
        }
        let brackets = match brackets.is_empty() {
            true => String::new(),
            false => format!(" [{}]", brackets.join(", ")),
        };
        let (name, number) = (proto.name(), proto.number());
        self.line(
            depth,
            &format!("{label}{type_name} {name} = {number}{brackets};"),
        );
    }

    fn enumeration(&mut self, depth: usize, values: &EnumDescriptor) {
        self.blank();
        self.comment(depth, values.path());
        self.line(depth, &format!("enum {} {{", values.name()));
        self.options(depth + 1, &values.options());
        let mut all: Vec<_> = values.values().collect();
        all.sort_by_key(|value| value.path().to_vec());
        for value in all {
            self.comment(depth + 1, value.path());
            let options = set_options(&value.options()).into_iter();
            let options = options.map(|(name, value, kind)| {
                format!("{name} = {}", value_text(&value, &kind, depth))
            });
            let options: Vec<_> = options.collect();
            let brackets = match options.is_empty() {
                true => String::new(),
                false => format!(" [{}]", options.join(", ")),
            };
            let (name, number) = (value.name(), value.number());
            self.line(depth + 1, &format!("{name} = {number}{brackets};"));
        }
        for range in values.reserved_ranges() {
            let (start, end) = (range.start(), range.end());
            self.line(depth + 1, &format!("reserved {start} to {end};"));
        }
        for name in values.reserved_names() {
            self.line(depth + 1, &format!("reserved {};", quoted(name.as_bytes())));
        }
        self.line(depth, "}");
    }

    fn service(&mut self, service: &ServiceDescriptor) {
        self.blank();
        self.comment(0, service.path());
        self.line(0, &format!("service {} {{", service.name()));
        self.options(1, &service.options());
        for method in service.methods() {
            self.blank();
            self.method(&method);
        }
        self.line(0, "}");
    }

    fn method(&mut self, method: &MethodDescriptor) {
        self.comment(1, method.path());
        let stream = |is_stream| if is_stream { "stream " } else { "" };
        let (input, output) = (method.input(), method.output());
        let line = format!(
            "rpc {}({}.{}) returns ({}.{})",
            method.name(),
            stream(method.is_client_streaming()),
            input.full_name(),
            stream(method.is_server_streaming()),
            output.full_name()
        );
        let options = method.options();
        if set_options(&options).is_empty() {
            return self.line(1, &format!("{line};"));
        }
        self.line(1, &format!("{line} {{"));
        self.options(2, &options);
        self.line(1, "}");
    }

    /// The name of a type where a field of a message, or of the file, uses it.
    fn type_name(&self, kind: &Kind, user: Option<&MessageDescriptor>) -> String {
        let full = match kind {
            Kind::Message(message) => message.full_name().to_owned(),
            Kind::Enum(values) => values.full_name().to_owned(),
            Kind::Double => return "double".into(),
            Kind::Float => return "float".into(),
            Kind::Int32 => return "int32".into(),
            Kind::Int64 => return "int64".into(),
            Kind::Uint32 => return "uint32".into(),
            Kind::Uint64 => return "uint64".into(),
            Kind::Sint32 => return "sint32".into(),
            Kind::Sint64 => return "sint64".into(),
            Kind::Fixed32 => return "fixed32".into(),
            Kind::Fixed64 => return "fixed64".into(),
            Kind::Sfixed32 => return "sfixed32".into(),
            Kind::Sfixed64 => return "sfixed64".into(),
            Kind::Bool => return "bool".into(),
            Kind::String => return "string".into(),
            Kind::Bytes => return "bytes".into(),
        };
        let package = self.file.package_name();
        let short = full.strip_prefix(&format!("{package}."));
        let Some(short) = short.filter(|_| !package.is_empty()) else {
            return format!(".{full}");
        };
        // A name in an inner scope would hide it.
        let first = short.split('.').next().unwrap_or_default();
        let mut outer = user.cloned();
        while let Some(message) = outer {
            let is_hidden = message.fields().any(|it| it.name() == first)
                || message.oneofs().any(|it| it.name() == first)
                || message.child_messages().any(|it| it.name() == first)
                || message.child_enums().any(|it| it.name() == first);
            if is_hidden {
                return format!(".{full}");
            }
            outer = message.parent_message();
        }
        short.to_owned()
    }
}

fn cardinality(proto: &FieldDescriptorProto) -> Cardinality {
    use prost_types::field_descriptor_proto::Label;
    match proto.label() {
        Label::Optional => Cardinality::Optional,
        Label::Required => Cardinality::Required,
        Label::Repeated => Cardinality::Repeated,
    }
}

/// The name in JSON that a compiler derives.
fn json_name(name: &str) -> String {
    let mut out = String::new();
    let mut is_upper = false;
    for letter in name.chars() {
        match letter {
            '_' => is_upper = true,
            letter if is_upper => {
                out.push(letter.to_ascii_uppercase());
                is_upper = false;
            }
            letter => out.push(letter),
        }
    }
    out
}

/// The options that are set: name, value and type.
fn set_options(options: &DynamicMessage) -> Vec<(String, Value, Kind)> {
    let own = options.fields().map(|(field, value)| {
        let name = field.name().to_owned();
        (name, value.clone(), field.kind())
    });
    let custom = options.extensions().map(|(field, value)| {
        let name = format!("({})", field.full_name());
        (name, value.clone(), field.kind())
    });
    own.chain(custom).collect()
}

fn value_text(value: &Value, kind: &Kind, depth: usize) -> String {
    match value {
        Value::Bool(it) => it.to_string(),
        Value::I32(it) => it.to_string(),
        Value::I64(it) => it.to_string(),
        Value::U32(it) => it.to_string(),
        Value::U64(it) => it.to_string(),
        Value::F32(it) => it.to_string(),
        Value::F64(it) => it.to_string(),
        Value::String(it) => quoted(it.as_bytes()),
        Value::Bytes(it) => quoted(it),
        Value::EnumNumber(it) => {
            let name = kind.as_enum().and_then(|values| values.get_value(*it));
            name.map_or(it.to_string(), |value| value.name().to_owned())
        }
        Value::List(all) => {
            let all = all.iter().map(|value| value_text(value, kind, depth));
            format!("[{}]", all.collect::<Vec<_>>().join(", "))
        }
        Value::Message(message) => message_text(message, depth),
        // No option is a map.
        Value::Map(_) => "{}".to_owned(),
    }
}

/// A message in the text format, in one line if it is short.
fn message_text(message: &DynamicMessage, depth: usize) -> String {
    let own = message.fields().map(|(field, value)| {
        let text = value_text(value, &field.kind(), depth + 1);
        format!("{}: {text}", field.name())
    });
    let custom = message.extensions().map(|(field, value)| {
        let text = value_text(value, &field.kind(), depth + 1);
        format!("[{}]: {text}", field.full_name())
    });
    let fields: Vec<_> = own.chain(custom).collect();
    let line = fields.join(" ");
    match line.len() {
        0 => "{}".to_owned(),
        1..=60 => format!("{{ {line} }}"),
        _ => {
            let indent = "  ".repeat(depth + 1);
            let lines: String = fields.iter().map(|it| format!("{indent}{it}\n")).collect();
            format!("{{\n{lines}{}}}", "  ".repeat(depth))
        }
    }
}

fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' => out += "\\\"",
            b'\\' => out += "\\\\",
            b'\n' => out += "\\n",
            b' '..=b'~' => out.push(byte.into()),
            byte => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out + "\""
}
