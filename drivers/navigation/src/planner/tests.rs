//! Tests of paths in rooms, in the flat and between random walls.

use amber_map::{Map, MapPose, Pose};
use proptest::prelude::*;

use super::*;

fn wall(from: (f64, f64), to: (f64, f64)) -> Segment {
    Segment {
        from: Point::new(from.0, from.1),
        to: Point::new(to.0, to.1),
    }
}

/// A room of 4 m x 2 m with a wall in its middle that leaves a gate at the top.
fn room(gate_m: f64) -> Vec<Segment> {
    vec![
        wall((0.0, 0.0), (4.0, 0.0)),
        wall((4.0, 0.0), (4.0, 2.0)),
        wall((4.0, 2.0), (0.0, 2.0)),
        wall((0.0, 2.0), (0.0, 0.0)),
        wall((2.0, 0.0), (2.0, 2.0 - gate_m)),
    ]
}

fn planner(walls: &[Segment]) -> Planner {
    Planner::new(Config::default(), walls).unwrap()
}

fn smallest_clearance_m(walls: &[Segment], path: &Path) -> f64 {
    let walls = Walls::new(walls.to_vec());
    let steps = (path.length_m() / 0.01).ceil();
    (0..=steps as u32)
        .map(|step| walls.clearance_m(path.at(path.length_m() * f64::from(step) / steps)))
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn a_path_leads_through_the_middle_of_a_gate() {
    let walls = room(0.51);
    let (start, goal) = (Point::new(1.0, 0.5), Point::new(3.0, 0.5));
    let path = planner(&walls).plan(start, goal, 0.25, &[]).unwrap();
    assert_eq!((path.at(0.0), path.end()), (start, goal));
    let clearance_m = smallest_clearance_m(&walls, &path);
    // Exact at the centres of cells only.
    assert!(clearance_m > 0.19, "{clearance_m}");
    assert!((2.0..4.5).contains(&path.length_m()), "{}", path.length_m());
    let gate = path
        .points()
        .iter()
        .min_by(|a, b| (a.x - 2.0).abs().total_cmp(&(b.x - 2.0).abs()));
    assert!(
        gate.is_some_and(|at| (at.y - 1.745).abs() < 0.03),
        "{gate:?}"
    );
}

#[test]
fn the_points_of_walls_near_a_position() {
    let planner = planner(&room(1.0));
    let at = Point::new(2.0, 1.5);
    let points: Vec<Point> = planner.wall_points(at, 0.6).collect();
    assert!(points.iter().all(|point| point.minus(at).length() < 0.601));
    // The upper wall is 0.5 m away, and the end of the middle one, too.
    let upper = points.iter().filter(|point| point.y == 2.0);
    let reach_m = upper.clone().map(|point| (point.x - 2.0).abs());
    assert!((reach_m.fold(0.0, f64::max) - 0.332).abs() < 0.001);
    assert!((66..70).contains(&upper.count()));
    let middle = points
        .iter()
        .filter(|point| point.x == 2.0 && point.y < 1.1);
    assert!((10..13).contains(&middle.count()));
    assert_eq!(planner.wall_points(at, 0.4).count(), 0);
}

#[test]
fn a_free_way_is_straight() {
    let walls = room(1.0);
    let (start, goal) = (Point::new(0.5, 0.5), Point::new(1.5, 1.5));
    let path = planner(&walls).plan(start, goal, 0.25, &[]).unwrap();
    assert!(
        (path.length_m() - 2.0_f64.sqrt()).abs() < 0.05,
        "{}",
        path.length_m()
    );
}

#[test]
fn without_a_path_the_reason_is_named() {
    let walls = room(0.38);
    let planner = planner(&walls);
    let left = Point::new(1.0, 1.0);
    for (start, goal, expected) in [
        (left, Point::new(3.0, 1.0), NoPath::Closed(0.4)),
        (left, Point::new(1.0, -0.05), NoPath::Goal),
        (left, Point::new(50.0, 1.0), NoPath::Goal),
        (Point::new(50.0, 1.0), left, NoPath::Start),
    ] {
        assert_eq!(planner.plan(start, goal, 0.1, &[]), Err(expected));
    }
    let text = NoPath::Closed(0.4).to_string();
    assert_eq!(text, "no passage to the target is at least 0.40 m wide");
}

#[test]
fn a_target_near_a_wall_is_reached_within_its_radius() {
    let planner = planner(&room(1.0));
    let (start, goal) = (Point::new(1.0, 1.0), Point::new(0.1, 1.0));
    let path = planner.plan(start, goal, 0.25, &[]).unwrap();
    let missing_m = path.end().minus(goal).length();
    assert!((0.05..=0.2).contains(&missing_m), "{missing_m}");
    assert_eq!(planner.plan(start, goal, 0.05, &[]), Err(NoPath::Goal));
}

#[test]
fn a_start_beside_a_wall_is_left_first() {
    let planner = planner(&room(1.0));
    let path = planner
        .plan(Point::new(0.17, 1.0), Point::new(1.0, 1.0), 0.1, &[])
        .unwrap();
    assert_eq!(path.at(0.0), Point::new(0.17, 1.0));
}

#[test]
fn obstacles_that_are_not_on_the_map_are_avoided() {
    let walls = room(1.5);
    let planner = planner(&walls);
    let (start, goal) = (Point::new(1.0, 1.2), Point::new(3.0, 1.2));
    let obstacle = Point::new(2.0, 1.2);
    let path = planner.plan(start, goal, 0.1, &[obstacle]).unwrap();
    let near = path.project(obstacle, 0.0, f64::INFINITY).left_m.abs();
    assert!(near >= 0.19, "{near}");
    let closed: Vec<Point> = (0..8)
        .map(|step| Point::new(2.0, 0.5 + 0.2 * f64::from(step)))
        .collect();
    let error = planner.plan(start, goal, 0.1, &closed).unwrap_err();
    assert_eq!(error, NoPath::Closed(0.4));
}

#[test]
fn all_rooms_of_the_flat_are_connected() {
    let map = Map::flat();
    let walls = map.faces();
    let planner = planner(&walls);
    for from in &map.nodes {
        for to in &map.nodes {
            let path = planner.plan(*from, *to, 0.25, &[]).unwrap();
            assert!(smallest_clearance_m(&walls, &path) > 0.19);
        }
    }
    // The outside is not.
    let outside = Pose::from(MapPose::new(-0.25, 1.0, 0.0)).at;
    assert!(planner.plan(map.nodes[0], outside, 0.1, &[]).is_err());
}

fn place() -> impl Strategy<Value = Point> {
    (0.3..3.7, 0.3..1.7).prop_map(|(x, y)| Point::new(x, y))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_path_keeps_its_clearance(
        extra in prop::collection::vec((place(), place()), 0..4),
        start in place(),
        goal in place(),
    ) {
        let mut walls = room(1.0);
        walls.extend(extra.into_iter().map(|(from, to)| Segment { from, to }));
        let planner = planner(&walls);
        if let Ok(path) = planner.plan(start, goal, 0.05, &[])
            && planner.clearance_m(start) > 0.2
        {
            // The field is exact at the centres of cells, at most 18 mm away.
            prop_assert!(smallest_clearance_m(&walls, &path) >= 0.2 - 0.02);
            prop_assert!(path.end().minus(goal).length() <= 0.05);
        }
    }

    #[test]
    fn a_path_back_exists_too(start in place(), goal in place(), gate_m in 0.3..0.6) {
        let planner = planner(&room(gate_m));
        let there = planner.plan(start, goal, 0.3, &[]).is_ok();
        let back = planner.plan(goal, start, 0.3, &[]).is_ok();
        // Start and goal have different rules near walls.
        if planner.clearance_m(start) > 0.2 && planner.clearance_m(goal) > 0.2 {
            prop_assert_eq!(there, back);
            // Close to 0.4 m it depends on where the cells are.
            let crosses = (start.x < 2.0) != (goal.x < 2.0);
            if !crosses || gate_m > 0.45 {
                prop_assert!(there, "{} {:?} {:?}", gate_m, start, goal);
            } else if gate_m < 0.36 {
                prop_assert!(!there, "{} {:?} {:?}", gate_m, start, goal);
            }
        }
    }
}
