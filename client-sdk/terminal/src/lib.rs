//! Output of results and errors, and input of times, for the commands of `amber`. All packages with
//! commands use it: the mediator, its clients and `amber check`.
//!
//! Data goes to stdout and everything else to stderr. A [`Failure`] becomes an `error:` line, a
//! `hint:` line and an exit code.

mod failure;
mod names;
mod output;
mod time;

pub use failure::{Failure, exit_code};
pub use names::{Names, device, learn_names, usual};
pub use output::{
    Human, fields, has_colours, note, prepare_terminal, print, print_json, print_over, print_text,
    show, table, terminal_columns,
};
pub use time::{duration, local_time, millis, seconds, since, utc_time};
