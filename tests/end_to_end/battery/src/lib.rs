//! The messages, clients and drivers of a battery gauge.

amber_sdk::device!("battery.proto");
