//! The lease of a device, for the commands that move it. IO.

use std::time::Duration;

use amber_client::lease::Terms;
use amber_client::{Error, Lease, Proxy};
use amber_terminal::Failure;

/// The device stops if this program gives no sign of life for this time.
const PERIOD: Duration = Duration::from_millis(500);
/// Drivers that keep leases answer sooner, also on a busy computer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lease of a device, or nothing if its driver keeps no leases.
pub(super) struct Hold {
    lease: Option<Lease>,
    hint: String,
}

/// Takes the lease of a device, so that it stops if this program freezes, and so that no other
/// program moves it. `name` says to people who drives, and `take_over` is the command that takes it from its
/// holder.
pub(super) async fn take(
    device: &Proxy,
    name: &str,
    by_force: bool,
    take_over: &str,
) -> Result<Hold, Failure> {
    let terms = Terms::new(name).with_period(PERIOD);
    let device = device.clone().with_deadline(PATIENCE);
    let taken = match by_force {
        true => terms.take_by_force(&device).await,
        false => terms.take(&device).await,
    };
    let hint = format!("wait until it has finished, or take over with `{take_over}`");
    let lease = match taken {
        Ok(lease) => Some(lease),
        // A driver without Amber's harness.
        Err(Error::TimedOut { .. }) => None,
        Err(error @ Error::Refused { .. }) => return Err(Failure::from(error).hint(hint)),
        Err(error) => return Err(error.into()),
    };
    Ok(Hold { lease, hint })
}

impl Hold {
    /// Resolves when the lease is lost, for example because another client took it.
    pub(super) async fn lost(&self) -> Failure {
        match &self.lease {
            Some(lease) => Failure::from(lease.lost().await).hint(self.hint.clone()),
            None => std::future::pending().await,
        }
    }
}
