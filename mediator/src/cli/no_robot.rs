//! What takes the place of `robot` in a program without drivers. PURE.

use amber_cli::LogMapper;
use amber_proto::mapping::StartMap;
use amber_proto::robot::Shape;
use amber_terminal::Failure;

/// Only the driver `mapping` knows how to make a map.
///
/// # Errors
/// Always.
pub(super) fn new_log_map(_: &StartMap, _: Option<&Shape>) -> Result<Box<dyn LogMapper>, Failure> {
    Err(
        Failure::new("this `amber` was built without the driver that makes maps of logs")
            .hint(super::usage::without("cli")),
    )
}
