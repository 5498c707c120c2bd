//! docs/PROTOCOL.md says what the code says, and so do the numbers in docs/devices.md.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

use std::path::Path;

use amber_proto::limits::MAX_PART;
use amber_proto::{DESCRIPTORS, DeviceType};
use amber_reflect::{Schemas, explain};
use prost_reflect::DescriptorPool;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::read_to_string(path.join(name)).unwrap()
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
    let document = document("PROTOCOL.md").replace("```proto\n", "```\n");
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
fn the_numbers_of_devices_are_those_of_the_code() {
    let document = document("devices.md");
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    for (kind, name) in DeviceType::NAMES {
        let mut names = vec![name];
        let second = DeviceType::ALIASES.iter().find(|(other, _)| *other == kind);
        names.extend(second.map(|(_, alias)| alias));
        let start = format!("| {} | {} | ", kind.0, names.join(", "));
        let row = document.lines().find(|line| line.starts_with(&start));
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
}

#[test]
fn its_limit_is_that_of_the_code() {
    let document = document("PROTOCOL.md");
    let grouped = format!("{} {:03}", MAX_PART / 1000, MAX_PART % 1000);
    assert!(document.contains(&format!("**{grouped} bytes**")));
}
