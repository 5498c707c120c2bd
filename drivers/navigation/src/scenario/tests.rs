use amber_map::Map;

use super::*;

#[test]
fn scenarios_have_names() {
    for scenario in Scenario::ALL {
        assert_eq!(Scenario::named(scenario.name), Some(scenario));
    }
}

#[test]
fn the_tour_of_the_flat_is_free() {
    let map = Map::flat();
    let course = Course::new(&map, map.faces()).unwrap();
    assert!(
        (15.0..60.0).contains(&course.length_m()),
        "{}",
        course.length_m()
    );
    let walls = Walls::new(course.walls.clone());
    for at in &course.path {
        assert!(walls.clearance_m(*at) > 0.14, "{at:?}");
    }
}
