//! Who gives an order or ends one, for the bookkeeping of orders. PURE.

use amber_driver::orders::Author;
use amber_driver::{Link, Origin};
use amber_proto::DeviceMessage;

/// The sender of a request. If it says nothing about itself and holds the lease, it has the name that it
/// gave for the lease.
pub(crate) fn author<M: DeviceMessage>(
    link: &Link<M>,
    origin: &Origin,
    name: Option<&str>,
) -> Author {
    let holder = link.holder();
    let holder = holder.borrow();
    let of_holder = (holder.as_ref())
        .filter(|holder| origin.client() == Some(holder.client))
        .map(|holder| &*holder.name);
    Author::of(origin, name.or(of_holder))
}
