//! All targets.

mod config;
mod core;
mod gateways;
mod pieces;
mod queue;
mod recording;
mod ros2;
mod rosbridge;
mod tools;
mod wire;

use crate::Target;

/// Everything that reads foreign bytes.
pub fn targets() -> impl Iterator<Item = Target> {
    let devices = amber_drivers::FUZZ_TARGETS.iter().copied().flatten();
    let devices = devices.map(|&(name, run)| target(name, run));
    OWN.iter().copied().chain(devices)
}

/// All but those of devices, which lie beside the drivers.
const OWN: &[Target] = &[
    // From clients and drivers, byte by byte.
    target("frame", wire::frame),
    target("stream", wire::stream),
    target("header", wire::header),
    target("session", wire::session),
    target("pieces", pieces::pieces),
    Target {
        cost: 20,
        ..target("descriptors", tools::descriptors)
    },
    // To the mediator.
    target("control", core::control),
    Target {
        cost: 10,
        ..target("core", core::world)
    },
    target("queue", queue::queue),
    // From people.
    target("config", config::config),
    target("command", config::command),
    target("import", config::import),
    Target {
        cost: 10,
        ..target("recording", recording::recording)
    },
    // To those who look at the wire.
    target("explain", tools::explain),
    target("noise", tools::noise),
    // From programs of other robot systems.
    target("gateway_apollo", gateways::apollo),
    target("gateway_galileo", gateways::galileo),
    target("gateway_galileo_proxy", gateways::galileo_proxy),
    target("gateway_json_relay", gateways::json_relay),
    target("gateway_rflysim", gateways::rflysim),
    target("gateway_rosbridge", rosbridge::session),
    target("gateway_http", rosbridge::request),
    target("ros2_messages", ros2::messages),
    target("ros2_names", ros2::names),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, cost: 1 }
}
