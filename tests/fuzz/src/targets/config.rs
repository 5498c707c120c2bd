//! User input: configuration files and commands. PURE.

use std::path::Path;

use amber_core::config::Config;
use amber_mediator::import;

/// A file: read, shown, read again; or an error that says where.
pub(super) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Config::parse(text, Path::new("amber.toml"), &|_| None) {
        Ok(config) => again(&config),
        Err(error) => {
            let (shown, _) = (error.to_string(), error.hint());
            assert!(
                shown.starts_with("amber.toml") || shown.starts_with("device"),
                "{shown}"
            );
        }
    }
}

/// What stands behind `--driver`.
pub(super) fn command(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut config = Config::default();
    match config.add_driver(text) {
        Ok(()) => {
            let command = &config.drivers[0].command;
            let joined = shell_words::join(command);
            assert_eq!(shell_words::split(&joined).as_ref(), Ok(command));
            again(&config);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Settings of the original: what comes of them can be read.
pub(super) fn import(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(imported) = import::import(text, None) {
        let config = Config::parse(&imported.toml, Path::new("amber.toml"), &|_| None);
        let config = config.unwrap_or_else(|error| panic!("{error} in\n{}", imported.toml));
        assert_eq!(config.drivers.len(), imported.drivers);
    }
}

fn again(config: &Config) {
    let shown = config.to_toml();
    let again = Config::parse(&shown, Path::new("amber.toml"), &|_| None);
    let mut again = again.unwrap_or_else(|error| panic!("{error} in\n{shown}"));
    again.path.clone_from(&config.path);
    assert_eq!(again, *config, "{shown}");
}
