//! Compiles the messages of other robot systems to Rust without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=src/apollo/messages.proto");
    let messages = protox::compile(["messages.proto"], ["src/apollo"])?;
    prost_build::Config::new().compile_fds(messages)?;
    Ok(())
}
