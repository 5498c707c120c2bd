fn main() -> Result<(), amber_build::Error> {
    amber_build::compile(&["battery.proto"])
}
