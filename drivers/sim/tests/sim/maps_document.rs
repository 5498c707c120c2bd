//! Checks that the example in docs/maps.md is a valid map.

use amber_sim::map::{Map, to_map};

#[test]
fn the_example_in_the_documentation_loads() {
    let page = include_str!("../../../../docs/maps.md");
    let (_, rest) = page.split_once("```json\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let map = Map::parse(example).unwrap();
    assert_eq!(map.name, "room");
    assert_eq!((map.walls.len(), map.gates.len()), (4, 1));
    assert_eq!(to_map(map.robots[0]), (1.5, 1.5, 0.0));
}
