//! The files of the npm package `amber-robot` that a page needs, for servers of pages: the program has
//! them inside, so a page can import the package from the robot. PURE.

/// The example of a page of one file.
pub const DRIVE: &str = include_str!("examples/drive.html");

/// The descriptions of Amber's devices, which the modules load.
pub const SCHEMAS: Module = ("schemas.binpb", include_bytes!("src/schemas.binpb"));

/// The name of a file, and its contents.
pub type Module = (&'static str, &'static [u8]);

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        /// The modules. A page imports `index.js`.
        pub const MODULES: &[Module] = &[
            $(($name, include_bytes!(concat!("src/", $name)))),*
        ];
    };
}

// Without those that only Node has.
modules! {
    "address.js",
    "browser.js",
    "claims.js",
    "convert.js",
    "device.js",
    "errors.js",
    "extras.js",
    "frame.js",
    "index.js",
    "interface.js",
    "lease.js",
    "liveness.js",
    "motion.js",
    "ours.js",
    "pause.js",
    "pieces.js",
    "platform.js",
    "protobuf.js",
    "robot.js",
    "schemas.js",
    "subscription.js",
    "upload.js",
    "values.js",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_that_is_imported_is_there() {
        let mut imported = 0;
        for (name, bytes) in MODULES {
            let text = std::str::from_utf8(bytes).unwrap();
            // Comments import types, by `import(`.
            for part in text.split("from \"").skip(1) {
                let module = part.split('"').next().unwrap();
                let module = module.strip_prefix("./");
                let is_there = MODULES.iter().any(|(other, _)| Some(*other) == module);
                assert!(is_there, "{name}: {module:?}");
                imported += 1;
            }
        }
        assert!(imported > 30, "{imported}");
    }

    #[test]
    fn a_page_loads_a_bounded_number_of_bytes() {
        let all = MODULES.iter().chain([&SCHEMAS]);
        let bytes: usize = all.map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes < 250_000, "{bytes}");
    }
}
