//! A device as a user would describe it: `battery.proto`.

/// The messages and the clients of the battery.
#[deny(missing_docs)]
pub mod battery {
    #[allow(missing_docs)]
    mod messages {
        amber_proto::include_messages!("acme.battery");
    }
    pub use messages::*;

    amber_client::include_client!("acme.battery");
}

#[cfg(test)]
mod tests;
