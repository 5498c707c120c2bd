//! Tools that show and judge bytes. PURE.

use std::sync::OnceLock;

use amber_proto::DeviceType;
use amber_reflect::explain::table;
use amber_reflect::{Schemas, source};

/// Every byte is explained once, in its order, or there is an error within.
pub(super) fn explain(data: &[u8]) {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(Schemas::built_in);
    let (frames, error) = schemas.explain(data);
    let explained: usize = frames.iter().map(|frame| frame.length).sum();
    assert!(error.is_some() || explained == data.len());
    for frame in &frames {
        assert!(!table(data, &frame.lines).is_empty());
    }
    assert!(error.is_none_or(|error| error.offset <= data.len()));
    let (lines, error) = schemas.explain_message(data);
    assert!(
        lines
            .iter()
            .all(|line| line.offset + line.length <= data.len())
    );
    let readable = schemas.values(data).is_some();
    // What protobuf reads we can explain; groups are only named.
    assert!(!readable || error.is_none(), "{error:?}");
    assert!(!schemas.brief_message(data).is_empty());
}

/// The description of a device that a driver hands over: an error, or an interface that can be
/// shown and used.
pub(super) fn descriptors(data: &[u8]) {
    let Ok(schemas) = Schemas::from_descriptors(data) else {
        return;
    };
    assert!(schemas.own_interfaces().next().is_some());
    for interface in schemas.own_interfaces() {
        let own = schemas.for_device(Some(DeviceType(interface.device_type)));
        assert!(
            !own.brief_message(b"\x10\x01\xf9\x06\0\0\0\0\0\0\x49\x40")
                .is_empty()
        );
        own.fields(DeviceType(interface.device_type));
    }
    for file in schemas.pool().files() {
        assert!(!source(&file).is_empty());
    }
}

/// A diagnosis of anything.
pub(super) fn noise(data: &[u8]) {
    let mistake = amber_check::diagnose::noise(data);
    assert!(!mistake.summary().is_empty() && !mistake.fix().is_empty());
}
