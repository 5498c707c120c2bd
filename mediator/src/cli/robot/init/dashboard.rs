//! The address of the dashboard, before it runs. IO.

use std::path::Path;

use amber_terminal::Failure;

use super::report::Report;

/// All addresses of this computer, so that a phone can open it.
const LISTEN: &str = "0.0.0.0:8026";

/// Adds the command of the dashboard to the report. Its tokens are kept in a file, so that the address
/// is known before it runs, and is the same whenever it runs.
///
/// # Errors
/// The file cannot be written.
pub(super) fn add(report: &mut Report, tokens: &Path, is_for_service: bool) -> Result<(), Failure> {
    let what = "the robot in a browser, also on a phone in the same network";
    let command = format!("amber dashboard --listen {LISTEN}");
    // The user of the service is another one than that of the dashboard, which prints its address.
    if is_for_service {
        report.add(&command, what);
        return Ok(());
    }
    let command = format!(
        "{command} --tokens {}",
        shell_words::quote(&tokens.to_string_lossy())
    );
    report.add(&command, what);
    let listen = LISTEN
        .parse()
        .map_err(|_| Failure::new("no address for the dashboard"))?;
    let (address, code) = amber_dashboard::future_address(listen, tokens)?;
    report.dashboard = Some(address);
    report.code = code;
    Ok(())
}
