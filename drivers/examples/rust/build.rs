//! Makes Rust of the messages.

fn main() -> Result<(), amber_build::Error> {
    amber_build::compile(&["../thermometer.proto", "../follow_wall.proto"])
}
