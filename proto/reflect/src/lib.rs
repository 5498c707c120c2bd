//! The descriptions of devices at run time: those of Amber's own devices, and of yours.
//!
//! ```
//! let interfaces = amber_reflect::built_in();
//! let hokuyo = interfaces.iter().find(|interface| interface.name == "hokuyo").unwrap();
//! let scan = hokuyo.method("scan").unwrap();
//! assert_eq!(scan.answer[0].fields[0].unit.as_deref(), Some("deg"));
//! ```

use std::sync::LazyLock;

use amber_proto::DESCRIPTORS;
use amber_schema::Interface;
use prost_reflect::DescriptorPool;

/// The descriptors of Amber's own devices.
pub fn built_in_pool() -> &'static DescriptorPool {
    static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
        DescriptorPool::decode(DESCRIPTORS)
            .expect("amber-proto has the descriptors it was built of")
    });
    &POOL
}

/// The interfaces of Amber's own devices, by device type.
pub fn built_in() -> &'static [Interface] {
    static INTERFACES: LazyLock<Vec<Interface>> = LazyLock::new(|| {
        amber_schema::read_all(built_in_pool(), &[]).expect("the build has checked every rule")
    });
    &INTERFACES
}
