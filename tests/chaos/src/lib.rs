//! Real processes under load and in trouble, and whether the promises hold.
//!
//! ```text
//!                            +-- hand --+   kills, freezes, floods, pulls plugs,
//!                            +-- hand --+   reloads, makes up addresses, vanishes
//!                                 |
//!   healthy clients --- UDP --- mediator --- pipes --- healthy drivers
//!   clients of victims ---------/       \------------- victims
//! ```
//!
//! - [`chaos`]: all of it, and the verdict. `cargo test` does it for seconds,
//!   `scripts/chaos` for minutes.
//! - [`soak`]: the same robot in everyday life, for hours, while its memory is
//!   measured: `scripts/soak`.
//! - [`site`] has the processes, [`fleet`] says which drivers there are.
//! - [`clients`] are those to whom promises were made. [`ledger`] keeps what
//!   became of their requests.
//! - [`trouble`] is what can happen, [`mischief`] makes it happen.
//! - [`process`] asks the system, [`accounts`] the counters, [`slope`] draws a line.
//!
//! Everything random comes from one seed. What happens is the same for the same
//! seed, when it happens is not: processes take their time.

use std::time::Duration;

pub mod accounts;
pub mod chaos;
pub mod clients;
pub mod fleet;
pub mod ledger;
pub mod mischief;
pub mod process;
pub mod site;
pub mod slope;
pub mod soak;
pub mod trouble;

/// Longer than anything takes, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Reads a time such as `90s`, `30m` or `2h`.
///
/// # Errors
/// It is none.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(format!("'{text}' is no time: try 90s, 30m or 2h")),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("'{text}' is no time: try 90s, 30m or 2h"))?;
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
