//! Exploration on the simulated robot. `cargo run --release -p amber-navigation --example explore`
//! makes many more runs.

use amber_map::Map;

#[path = "../driving/robot.rs"]
#[allow(dead_code)]
mod robot;
// The example uses more of it than the test.
#[allow(dead_code)]
mod run;

#[test]
fn the_robot_finds_all_of_the_flat_and_returns() {
    let map = Map::flat();
    let walls = map.faces();
    let start = run::start(&map, &walls).unwrap();
    let run = run::explore(&walls, start, 1, 400);
    assert_eq!((run.end, run.contacts), ("finished", 0), "{run:?}");
    assert!(run.found > 0.98, "{run:?}");
    assert!(
        run.quality.rms_m < 0.03 && run.quality.wrong < 0.03,
        "{run:?}"
    );
}
