//! Why a device that a driver moves does not obey: commands that are repeated get no answer. PURE.

use amber_driver::ClientId;
use amber_proto::Device;
use amber_proto::motion::MotionState;

/// Why the device does not obey commands for these clients, by what it says of its motion. `None`: it
/// obeys them.
pub(crate) fn refusal(device: Device, state: &MotionState, clients: &[ClientId]) -> Option<String> {
    let is_ours = |id: i32| clients.iter().any(|client| client.0 == id);
    let held = state.holder.as_ref().filter(|holder| {
        let is_other = |id: Option<i32>| id.is_none_or(|id| !is_ours(id));
        is_other(Some(holder.client_id)) && is_other(holder.for_client)
    });
    match (&state.halt, held) {
        (Some(halt), _) => Some(format!("{device} was halted by {}", halt.by())),
        (None, Some(holder)) => Some(format!("{} holds the lease of {device}", holder.name())),
        (None, None) => None,
    }
}
