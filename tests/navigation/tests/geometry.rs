//! Wrong geometry is found in a simulated drive, and nothing else: one seed of the matrix.

use std::time::Duration;

use amber_map::Map;
use amber_scenarios::Course;
use amber_scenarios::geometry::{Wrong, check};

const LENGTH: Duration = Duration::from_secs(30);

#[test]
fn each_fault_is_found_and_nothing_else() {
    let map = Map::flat();
    let course = Course::new(&map, map.faces()).unwrap().by_hand(1);
    for wrong in Wrong::ALL {
        let checked = check(&course, LENGTH, &wrong, 1).unwrap();
        assert_eq!(
            checked.false_alarms,
            [],
            "{}: {:?}",
            wrong.name,
            checked.last
        );
        let is_found = checked.found_s.is_some();
        assert_eq!(
            is_found,
            wrong.fault.is_some(),
            "{}: {:?}",
            wrong.name,
            checked.last
        );
    }
}
