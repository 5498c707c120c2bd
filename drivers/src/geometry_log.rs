//! Log lines about a wrong geometry of the robot. IO.

use amber_navigation::geometry::{Fault, Finding};

/// Logs each kind of fault once: findings may come and go while the robot drives.
#[derive(Debug, Default)]
pub(crate) struct GeometryLog {
    logged: Vec<Fault>,
}

impl GeometryLog {
    /// Logs what was not found before.
    pub(crate) fn note(&mut self, found: &[Finding]) {
        for finding in found {
            if self.logged.contains(&finding.fault) {
                continue;
            }
            self.logged.push(finding.fault);
            let lines = finding.lines.join(", ");
            tracing::warn!(lines, "wrong geometry: {}", finding.sentence);
        }
    }
}
