//! Exploration on the simulated robot. `cargo run --release -p amber-scenarios --example explore`
//! makes many more runs.

use std::io::{self, Write};
use std::path::Path;

use amber_map::Map;
use amber_navigation::explore::State;
use amber_scenarios::Scanner;
use amber_scenarios::exploring::{explore, start};

#[test]
fn the_robot_finds_all_of_the_flat_and_returns() {
    let map = Map::flat();
    let walls = map.faces();
    let start = start(&map, &walls).unwrap();
    // In this run, the robot got wedged in a narrow corner and did not return.
    let run = explore(&walls, start, Scanner::Urg04Lx, 3, 400).unwrap();
    assert_eq!((run.end, run.contacts), (State::Finished, 0), "{run:?}");
    assert!(run.found > 0.98, "{run:?}");
    let quality = &run.quality;
    assert!(quality.rms_m < 0.03 && quality.wrong < 0.03, "{run:?}");
}

#[test]
fn the_robot_goes_through_the_gates_of_the_lab() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/maps");
    let Ok(text) = std::fs::read_to_string(folder.join("MazeRoboLabSplitIntoRooms8.roson")) else {
        let _ = writeln!(io::stderr(), "SKIP maps: ../shared/maps does not exist");
        return;
    };
    let map = Map::parse(&text).unwrap();
    let start = start(&map, &map.walls).unwrap();
    // In this run, the robot looked into a gate, did not go into it, and ended with half of the lab.
    let run = explore(&map.walls, start, Scanner::Urg04Lx, 1, 200).unwrap();
    assert_eq!((run.end, run.contacts), (State::Finished, 0), "{run:?}");
    assert!(run.found > 0.98, "{run:?}");
}
