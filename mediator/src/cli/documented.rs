//! Checks that this program accepts every command in a page or a help text. Tests only;
//! tests/end_to_end/documented.rs runs those that can be run.

mod pages;

use std::fs;

use amber_proto::DeviceType;
use clap::Parser;
use clap::error::ErrorKind;

use self::pages::{commands, pages};
use super::Cli;

// Builds without all features lack commands.
#[cfg(all(
    feature = "discovery",
    feature = "record",
    feature = "top",
    feature = "web"
))]
#[test]
fn every_command_in_the_documentation_is_accepted() {
    // The device of docs/write-a-driver.md.
    amber_terminal::learn_names(|| [("lamp".into(), DeviceType(201))].into());
    let mut checked = 0;
    let mut failed = String::new();
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for (line, words) in commands(&page) {
            checked += 1;
            let Err(error) = Cli::try_parse_from(&words) else {
                continue;
            };
            if !matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) {
                failed += &format!("{}:{line}: {words:?}\n{error}\n", path.display());
            }
        }
    }
    assert!(checked > 100, "only {checked} commands were found");
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn commands_are_found_in_code_blocks() {
    let page = "amber text\n\
                ```sh\n\
                amber devices   # all of them\n\
                $ amber call dummy message 'a # b | c' | cat\n\
                cargo build\n\
                amber mediator \\\n  --config x > log &\n\
                ```\n\
                amber text\n";
    let found: Vec<_> = commands(page)
        .into_iter()
        .map(|(line, words)| (line, words.join("+")))
        .collect();
    let expected = [
        (3, "amber+devices"),
        (4, "amber+call+dummy+message+a # b | c"),
        (6, "amber+mediator+--config+x"),
    ];
    assert_eq!(
        found,
        expected.map(|(line, words)| (line, words.to_owned()))
    );
}
