//! The port of a bus whose adapter must not wait before it passes on an answer. IO.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use amber_driver::Guard;

use crate::connection::{Connect, Connection, Endpoint};

/// Where Linux has the settings of adapters.
const SETTINGS: &str = "/sys/bus/usb-serial/devices";

/// A serial port. An adapter of FTDI collects bytes for 16 ms, so an exchange takes as long. It is told
/// not to, if this user may do that; otherwise the log says what to do, once.
#[derive(Debug)]
pub(crate) struct QuickPort {
    endpoint: Endpoint,
    has_warned: bool,
}

impl QuickPort {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            has_warned: false,
        }
    }
}

impl Connect for QuickPort {
    async fn connect(&mut self) -> io::Result<Box<dyn Connection>> {
        let connection = self.endpoint.connect().await?;
        if let Endpoint::Serial { path, .. } = &self.endpoint
            && let Some(why) = quicken(Path::new(SETTINGS), path)
            && !std::mem::replace(&mut self.has_warned, true)
        {
            tracing::warn!("{why}");
        }
        Ok(connection)
    }

    fn place(&self) -> String {
        self.endpoint.place()
    }

    fn guard(&mut self) -> io::Result<Option<Guard>> {
        self.endpoint.guard()
    }
}

/// Tells the adapter of a port not to wait. Returns what to do if it cannot be told.
fn quicken(settings: &Path, port: &Path) -> Option<String> {
    let file = latency_timer(settings, port)?;
    let waits_ms = fs::read_to_string(&file).ok()?;
    let waits_ms: u32 = waits_ms.trim().parse().ok()?;
    if waits_ms <= 1 || fs::write(&file, "1").is_ok() {
        return None;
    }
    Some(format!(
        "the adapter at {} waits up to {waits_ms} ms before it passes on an answer. Run once after each \
         start of the system: echo 1 | sudo tee {}",
        port.display(),
        file.display()
    ))
}

/// The setting of an adapter that has it.
fn latency_timer(settings: &Path, port: &Path) -> Option<PathBuf> {
    // It may be a link, such as those in /dev/serial/by-id.
    let port = fs::canonicalize(port).ok()?;
    let file = settings.join(port.file_name()?).join("latency_timer");
    file.exists().then_some(file)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn an_adapter_that_waits_is_told_not_to() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("ttyUSB0"), "").unwrap();
        symlink(at("ttyUSB0"), at("by-id")).unwrap();
        let settings = at("devices");
        // An adapter without the setting.
        assert_eq!(quicken(&settings, &at("by-id")), None);
        fs::create_dir_all(settings.join("ttyUSB0")).unwrap();
        let timer = settings.join("ttyUSB0/latency_timer");
        fs::write(&timer, "16\n").unwrap();
        assert_eq!(quicken(&settings, &at("by-id")), None);
        assert_eq!(fs::read_to_string(&timer).unwrap(), "1");
        assert_eq!(quicken(&settings, &at("nowhere")), None);
        // Root may write everything.
        fs::write(&timer, "16\n").unwrap();
        fs::set_permissions(&timer, Permissions::from_mode(0o444)).unwrap();
        match quicken(&settings, &at("ttyUSB0")) {
            Some(why) => {
                let command = format!("echo 1 | sudo tee {}", timer.display());
                assert!(
                    why.contains("up to 16 ms") && why.ends_with(&command),
                    "{why}"
                );
            }
            None => assert_eq!(fs::read_to_string(&timer).unwrap(), "1"),
        }
    }
}
