//! A device as a user would describe it: `battery.proto`.

amber_sdk::device!("battery.proto");

#[cfg(test)]
mod tests;
