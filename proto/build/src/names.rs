//! Rust names in the form of `prost-build`, because generated code uses its structs. PURE.

use heck::{ToSnakeCase, ToUpperCamelCase};
use prost_reflect::{EnumDescriptor, FileDescriptor, MessageDescriptor};

/// The name of a field, method or module.
pub(crate) fn snake(name: &str) -> String {
    sanitized(&name.to_snake_case())
}

/// The name of a type or of a variant.
pub(crate) fn camel(name: &str) -> String {
    sanitized(&name.to_upper_camel_case())
}

fn sanitized(name: &str) -> String {
    match name {
        "as" | "break" | "const" | "continue" | "else" | "enum" | "false" | "fn" | "for" | "if"
        | "impl" | "in" | "let" | "loop" | "match" | "mod" | "move" | "mut" | "pub" | "ref"
        | "return" | "static" | "struct" | "trait" | "true" | "type" | "unsafe" | "use"
        | "where" | "while" | "dyn" | "abstract" | "become" | "box" | "do" | "final" | "macro"
        | "override" | "priv" | "typeof" | "unsized" | "virtual" | "yield" | "async" | "await"
        | "try" | "gen" => format!("r#{name}"),
        // These cannot be raw identifiers.
        "_" | "super" | "self" | "Self" | "extern" | "crate" => format!("{name}_"),
        _ if name.starts_with(|c: char| c.is_numeric()) => format!("_{name}"),
        _ => name.to_owned(),
    }
}

/// The path of a message in code that belongs to a package. Paths within the user's own packages
/// begin with `self::`.
pub(crate) fn message(message: &MessageDescriptor, package: &str) -> String {
    path(&message.parent_file(), message.full_name(), package)
}

/// The path of an enum, as [`message`].
pub(crate) fn enumeration(values: &EnumDescriptor, package: &str) -> String {
    path(&values.parent_file(), values.full_name(), package)
}

/// The path of the enum that holds a oneof of a message, as [`message`].
pub(crate) fn oneof(owner: &MessageDescriptor, oneof: &str, package: &str) -> String {
    let owner = message(owner, package);
    let (parents, name) = owner.rsplit_once("::").unwrap_or(("", &owner));
    format!("{parents}::{}::{}", snake(name), camel(oneof))
}

/// The path of `DriverMsg` with the extensions of a package.
pub(crate) fn driver_msg(package: &str) -> String {
    match package.strip_prefix("amber.") {
        Some(ours) => format!(
            "::amber_proto::{}::DriverMsg",
            ours.trim_end_matches("_proto")
        ),
        None => "self::DriverMsg".to_owned(),
    }
}

fn path(file: &FileDescriptor, full_name: &str, package: &str) -> String {
    let theirs = file.package_name();
    let inner = full_name[theirs.len()..].trim_start_matches('.');
    let mut parts: Vec<String> = inner.split('.').map(snake).collect();
    if let (Some(last), Some(name)) = (parts.last_mut(), inner.rsplit('.').next()) {
        *last = camel(name);
    }
    let root = match theirs {
        "amber" => "::amber_proto".to_owned(),
        "google.protobuf" => "::prost_types".to_owned(),
        _ => match theirs.strip_prefix("amber.") {
            Some(ours) => format!("::amber_proto::{}", ours.trim_end_matches("_proto")),
            None => between(package, theirs),
        },
    };
    format!("{root}::{}", parts.join("::"))
}

/// The way from one package of the user to another.
fn between(from: &str, to: &str) -> String {
    let (from, to): (Vec<_>, Vec<_>) = (from.split('.').collect(), to.split('.').collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut way = vec!["self".to_owned()];
    way.extend(from[common..].iter().map(|_| "super".to_owned()));
    way.extend(to[common..].iter().map(|part| snake(part)));
    way.join("::")
}

/// The name of an argument or of a member of an answer: with its unit, as Rust names have it.
pub(crate) fn with_unit(name: &str, unit: Option<&str>) -> String {
    let name = name.to_snake_case();
    match unit.and_then(suffix) {
        Some(suffix) if name != suffix && !name.ends_with(&format!("_{suffix}")) => {
            sanitized(&format!("{name}_{suffix}"))
        }
        _ => sanitized(&name),
    }
}

fn suffix(unit: &str) -> Option<String> {
    // "25 us/s" has no short name.
    let unit = match unit {
        "%" => "percent",
        "ms since 1970" => "ms",
        "us since 1970" => "us",
        other => other,
    };
    let suffix = unit.replace('/', "_").replace('^', "").to_lowercase();
    let is_name = |suffix: &String| {
        suffix.starts_with(|c: char| c.is_ascii_lowercase())
            && (suffix.chars()).all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    Some(suffix).filter(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_prost() {
        for (name, expected) in [
            ("servoAddress", "servo_address"),
            ("markerID", "marker_id"),
            ("getSpeedAndScan", "get_speed_and_scan"),
            ("SetAngle", "set_angle"),
            ("type", "r#type"),
            ("self", "self_"),
            ("gen", "r#gen"),
            ("yaw2", "yaw2"),
        ] {
            assert_eq!(snake(name), expected);
        }
        for (name, expected) in [
            ("list_drivers", "ListDrivers"),
            ("SELF_TEST", "SelfTest"),
            ("LocationService", "LocationService"),
            ("HTTPServer", "HttpServer"),
            ("self", "Self_"),
        ] {
            assert_eq!(camel(name), expected);
        }
    }

    #[test]
    fn names_end_with_their_unit() {
        for (name, unit, expected) in [
            ("angle", Some("deg"), "angle_deg"),
            ("speed", Some("mm/s"), "speed_mm_s"),
            ("acceleration", Some("m/s^2"), "acceleration_m_s2"),
            ("level", Some("%"), "level_percent"),
            ("timeStamp", Some("ms since 1970"), "time_stamp_ms"),
            ("lostMs", Some("ms"), "lost_ms"),
            ("speed", Some("25 us/s"), "speed"),
            ("scale", Some("1/m"), "scale"),
            ("type", None, "r#type"),
            ("type", Some("mm"), "type_mm"),
        ] {
            assert_eq!(with_unit(name, unit), expected);
        }
    }

    #[test]
    fn packages_find_each_other() {
        assert_eq!(between("lamp", "lamp"), "self");
        assert_eq!(between("acme.lamp", "acme.units"), "self::super::units");
        assert_eq!(between("lamp", "acme.units"), "self::super::acme::units");
    }
}
