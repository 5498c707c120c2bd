//! Generates Rust code from the message schemas.

fn main() -> Result<(), amber_build::Error> {
    amber_build::compile(&["../thermometer.proto", "../follow_wall.proto"])
}
