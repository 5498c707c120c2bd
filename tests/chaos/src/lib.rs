//! Real processes under load and with faults, and checks of the promises.
//!
//! ```text
//!                            +-- thread --+   kills, freezes, floods, unplugs,
//!                            +-- thread --+   reloads, spoofs addresses, vanishes
//!                                  |
//!   healthy clients --- UDP --- mediator --- pipes --- healthy drivers
//!   clients of victims ---------/       \------------- victims
//! ```
//!
//! - [`chaos`]: the whole test and its verdict. `cargo test` runs it for seconds, `scripts/chaos`
//!   for minutes.
//! - [`soak`]: the same robot in normal operation, for hours, with measurements of its memory:
//!   `scripts/soak`.
//! - [`site`] manages the processes, [`fleet`] defines the drivers.
//! - [`clients`] are the clients to which promises apply. [`ledger`] records the outcome of their
//!   requests.
//! - [`trouble`] lists the faults, [`mischief`] injects them.
//! - [`accounts`] checks counters, [`slope`] fits a line.
//!
//! Everything random comes from one seed. A seed reproduces the same faults, but not their exact
//! times, because real processes vary.

use std::time::Duration;

pub mod accounts;
pub mod chaos;
pub mod clients;
pub mod fleet;
pub mod ledger;
pub mod mischief;
pub mod site;
pub mod slope;
pub mod soak;
pub mod trouble;

/// Parses a duration such as `90s`, `30m` or `2h`. (The parser of the command line has no minutes.)
///
/// # Errors
/// The text is invalid.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => {
            return Err(format!(
                "'{text}' is not a duration; use a form such as 90s, 30m or 2h"
            ));
        }
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("'{text}' is not a duration; use a form such as 90s, 30m or 2h"))?;
    Ok(Duration::from_secs(number * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "90", "m", "1.5h", "3d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
