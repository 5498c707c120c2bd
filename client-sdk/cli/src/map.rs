//! `amber map`: commands that make and show maps. IO.

use amber_terminal::Failure;
use clap::Subcommand;

use super::session::Session;

mod laser;
mod make;
mod show;

pub(crate) use self::make::Measured;
pub use self::make::{LogMapper, LoggedMap, NewLogMapper};

/// Options of `amber map`.
#[derive(Clone, Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Options {
    #[command(subcommand)]
    verb: Verb,
}

/// The subcommands for maps.
#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// Make a map from laser scans and wheel speeds while the robot drives
    #[command(after_help = make::HELP)]
    Make(make::Options),
    /// Draw the map, and the robot on it: pose, laser scan, particles and path
    #[command(after_help = show::HELP)]
    Show(show::Options),
}

pub(super) async fn run(
    session: &mut Session<'_>,
    options: Options,
    json: bool,
    new_mapper: NewLogMapper,
) -> Result<(), Failure> {
    match options.verb {
        Verb::Make(options) => {
            let (options, files) = options.checked(json)?;
            match options.log() {
                Some(log) => make::of_log(&options, &files, log, json, new_mapper),
                None => make::run(session.client().await?, (options, files), json).await,
            }
        }
        Verb::Show(options) => {
            let options = options.checked(json)?;
            show::run(session, options, json).await
        }
    }
}
