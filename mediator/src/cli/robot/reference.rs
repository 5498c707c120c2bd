//! `amber reference`: generates the pages about commands and counters from their definitions. IO,
//! except for [`commands`] and [`counters`].
//!
//! Hidden, because it is for packages and for docs/reference: see `scripts/reference`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use amber_core::counters::{Count, DropReason};
use amber_terminal::Failure;
use clap::Command;

use super::failed;

#[derive(Clone, Debug, clap::Subcommand)]
pub(crate) enum Options {
    /// Write a man page for each command into a folder
    Man {
        /// The folder, which is created if it does not exist
        folder: PathBuf,
    },
    /// Print the help of all commands as Markdown
    Commands,
    /// Print all counters of the mediator as Markdown
    Counters,
}

impl Options {
    pub(crate) fn run(&self, amber: Command) -> Result<(), Failure> {
        match self {
            Self::Man { folder } => {
                let written = fs::create_dir_all(folder).and_then(|()| {
                    clap_mangen::generate_to(amber.disable_help_subcommand(true), folder)
                });
                let what = format!("cannot write to {}", folder.display());
                written.map_err(|error| failed(&what, &error))
            }
            Self::Commands => amber_terminal::print(commands(amber).as_bytes()),
            Self::Counters => amber_terminal::print(counters().as_bytes()),
        }
    }
}

/// The help of each visible command, in the order of the help of `amber`.
fn commands(amber: Command) -> String {
    // Without colours and with a fixed width, independent of the terminal.
    let mut amber = without_environment(amber)
        .term_width(98)
        .color(clap::ColorChoice::Never);
    amber.build();
    let mut page = String::new();
    section(&mut page, &mut amber);
    page
}

/// The same, with the names of environment variables and without their values.
fn without_environment(command: Command) -> Command {
    let command = command.mut_args(|argument| argument.hide_env_values(true));
    command.mut_subcommands(without_environment)
}

fn section(page: &mut String, command: &mut Command) {
    let name = command
        .get_bin_name()
        .unwrap_or(command.get_name())
        .to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<_> = help.lines().map(str::trim_end).collect();
    let _ = write!(
        page,
        "## {name}\n\n```text\n{}\n```\n\n",
        help.join("\n").trim_end()
    );
    for inner in command.get_subcommands_mut() {
        if !inner.is_hide_set() && inner.get_name() != "help" {
            section(page, inner);
        }
    }
}

/// All counters of the mediator with their meanings.
fn counters() -> String {
    let mut page = String::from("## Counters\n\n| counter | meaning |\n|---|---|\n");
    for count in Count::ALL {
        row(&mut page, count.name(), count.help());
    }
    page.push_str("\n## Drops by reason\n\n| reason | meaning |\n|---|---|\n");
    for reason in DropReason::ALL {
        row(&mut page, reason.name(), reason.help());
    }
    page
}

fn row(page: &mut String, name: &str, help: &str) {
    let _ = writeln!(page, "| `{name}` | {} |", help.trim());
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// What follows the line that separates the introduction.
    fn generated(page: &str) -> &str {
        let (_, rest) = page.split_once("<!-- generated -->\n\n").unwrap();
        rest
    }

    // Builds without all features lack commands.
    #[cfg(all(feature = "record", feature = "top", feature = "web"))]
    #[test]
    fn the_page_about_commands_is_up_to_date() {
        let page = include_str!("../../../../docs/reference/commands.md");
        assert_eq!(
            commands(Cli::command()).trim_end(),
            generated(page).trim_end(),
            "run scripts/reference"
        );
    }

    #[test]
    fn every_command_shows_an_example() {
        let page = commands(Cli::command());
        let sections: Vec<_> = page.split("## ").skip(1).collect();
        assert!(sections.len() > 30);
        for section in sections {
            let is_driver = section.starts_with("amber driver ");
            let is_group = section.contains("\nCommands:\n");
            assert!(
                is_driver || is_group || section.contains("Example"),
                "{section}"
            );
        }
    }

    #[test]
    fn the_page_about_counters_is_up_to_date() {
        let page = include_str!("../../../../docs/reference/counters.md");
        assert_eq!(
            counters().trim_end(),
            generated(page).trim_end(),
            "run scripts/reference"
        );
    }

    #[test]
    fn every_command_has_a_man_page() {
        let folder = tempfile::tempdir().unwrap();
        let man = Options::Man {
            folder: folder.path().join("man"),
        };
        man.run(Cli::command()).unwrap();
        let page = |name: &str| fs::read_to_string(folder.path().join("man").join(name)).unwrap();
        assert!(page("amber.1").contains(".TH amber 1"));
        assert!(page("amber-call.1").contains("timeout"));
        assert!(!folder.path().join("man/amber-guard.1").exists(), "hidden");
    }
}
