//! Log lines about a wrong geometry of the robot. IO.

use amber_navigation::geometry::Finding;

/// Logs what was not found before.
pub(crate) fn log_new(before: &[Finding], now: &[Finding]) {
    let is_known = |finding: &Finding| before.iter().any(|it| it.fault == finding.fault);
    for finding in now.iter().filter(|finding| !is_known(finding)) {
        let lines = finding.lines.join(", ");
        tracing::warn!(lines, "{}", finding.sentence);
    }
}
