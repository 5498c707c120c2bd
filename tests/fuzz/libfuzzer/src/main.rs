//! One target under libFuzzer: the one that `AMBER_FUZZ` names. IO.

#![no_main]

use std::sync::OnceLock;

use amber_fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("AMBER_FUZZ").expect("AMBER_FUZZ names a target");
        Target::named(&name).expect("a target of this name")
    });
    (target.run)(data);
});
