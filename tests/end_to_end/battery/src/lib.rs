//! The messages, clients and drivers of a battery gauge.

amber_proto::include_messages!("battery");
amber_client::include_client!("battery");
amber_driver::include_driver!("battery");
