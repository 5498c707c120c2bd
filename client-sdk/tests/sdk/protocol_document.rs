//! docs/PROTOCOL.md says what the code says.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::path::Path;

use amber_proto::limits::MAX_PART;
use amber_proto::{DESCRIPTORS, DeviceType};
use amber_reflect::{Schemas, explain};
use prost_reflect::DescriptorPool;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/PROTOCOL.md");
    std::fs::read_to_string(path).unwrap()
}

/// The blocks that begin with an offset and hex.
fn blocks(document: &str) -> Vec<String> {
    let fenced = document.split("```\n").skip(1).step_by(2);
    fenced
        .filter(|block| block.starts_with("     0  "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_worked_frame_is_what_the_code_makes_of_its_bytes() {
    // Fences with a language open with something else than a bare line.
    let document = document().replace("```proto\n", "```\n");
    let blocks = blocks(&document);
    assert!(blocks.len() >= 11, "only {} frames found", blocks.len());
    for block in blocks {
        let hex: String = block.lines().map(|line| &line[8..34]).collect();
        let bytes = amber_reflect::read_hex(&hex).unwrap();
        let (frames, error) = Schemas::built_in().explain(&bytes);
        assert_eq!((frames.len(), error), (1, None), "{block}");
        assert_eq!(explain::table(&bytes, &frames[0].lines), block);
        assert_eq!(frames[0].message_error, None, "{block}");
    }
}

#[test]
fn its_numbers_are_those_of_the_code() {
    let document = document();
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    for (kind, name) in DeviceType::NAMES {
        let row = document
            .lines()
            .find(|line| line.starts_with(&format!("| {} | {name} | ", kind.0)));
        let row = row.unwrap_or_else(|| panic!("{name} is missing"));
        let numbers = row.rsplit(" | ").next().unwrap().trim_end_matches(" |");
        let said: Vec<u32> = numbers
            .split(", ")
            .flat_map(|range| {
                let (from, to) = range.split_once('-').unwrap_or((range, range));
                from.parse().unwrap()..=to.parse::<u32>().unwrap()
            })
            .collect();
        let package = format!("amber.{}_proto", name.replace('-', "_"));
        let ours = pool
            .all_extensions()
            .filter(|field| field.package_name() == package);
        for field in ours {
            assert!(
                said.contains(&field.number()),
                "{} of {name}",
                field.number()
            );
        }
    }
    let grouped = format!("{} {:03}", MAX_PART / 1000, MAX_PART % 1000);
    assert!(document.contains(&format!("**{grouped} bytes**")));
}
