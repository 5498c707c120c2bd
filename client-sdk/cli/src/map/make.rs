//! `amber map make`: a map from scans and wheel speeds. IO.

use std::path::PathBuf;

use amber_client::Client;
use amber_terminal::Failure;

use super::laser::LaserOptions;

pub(super) const HELP: &str = "\
Examples:
  amber map make -o flat";

/// Options of `amber map make`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Write NAME.pgm and NAME.yaml (for ROS map_server), and NAME.roson
    #[arg(short, long, value_name = "NAME")]
    output: PathBuf,
    #[command(flatten)]
    laser: LaserOptions,
}

impl Options {
    /// Checks the options before anything is sent.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        self.laser.check()?;
        Ok(self)
    }
}

pub(super) async fn run(client: &Client, options: Options, _json: bool) -> Result<(), Failure> {
    let mount = options.laser.mount(client).await?;
    Err(Failure::new(format!(
        "cannot make {} yet: the laser is at {mount:?}",
        options.output.display()
    )))
}
