use amber_map::Map;

use super::*;

#[test]
fn scenarios_have_names() {
    for scenario in Scenario::ALL {
        assert_eq!(Scenario::named(scenario.name), Some(scenario));
    }
}

#[test]
fn the_lines_of_the_table_have_different_names() {
    let flat = Map::flat();
    let maps = matrix::Maps {
        lab: Some(flat.clone()),
        rooms: Some(flat.clone()),
        flat,
    };
    let cases = matrix::cases(&maps, || Duration::ZERO);
    let names: std::collections::HashSet<String> =
        cases.iter().map(|case| format!("{case:?}")).collect();
    assert_eq!(names.len(), cases.len());
    let silent = cases.iter().find(|case| case.name == "silent client");
    let result = silent.unwrap().measure(1);
    assert!(result.is_met, "{result:?}");
    assert_eq!(result.text, "0.505 s at most");
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
