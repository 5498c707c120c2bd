use proptest::prelude::*;

use super::*;

fn layout(columns: usize, rows: usize) -> Layout {
    let low = Point::new(-1.0, 2.0);
    let cell_m = 0.05;
    Layout {
        low,
        cell_m,
        columns,
        rows,
    }
}

fn wall(from: (f64, f64), to: (f64, f64)) -> Segment {
    let [from, to] = [from, to].map(|(x, y)| Point::new(x, y));
    Segment { from, to }
}

#[test]
fn without_walls_all_distances_are_the_limit() {
    let empty = Occupancy::from_walls(layout(5, 5), &[]);
    let field = DistanceField::from_occupancy(&empty, 1.0);
    assert_eq!(field.distance_m(field.layout().centre(2, 2)), 1.0);
    assert_eq!(field.distance_m(Point::new(99.0, 99.0)), 1.0);
}

#[test]
fn the_limit_fits_the_storage() {
    let field = DistanceField::from_walls(layout(3, 3), &[], 1e9);
    assert_eq!(field.limit_m(), MAX_DISTANCE_M);
    assert!((field.distance_m(Point::default()) - MAX_DISTANCE_M).abs() < 1e-9);
}

#[test]
fn a_coarse_field_has_the_mean_distances_and_covers_the_same_area() {
    let walls = [wall((-1.0, 2.0), (-1.0, 4.0))];
    let field = DistanceField::from_walls(layout(7, 5), &walls, 1.0);
    let coarse = field.coarse(4);
    let layout = coarse.layout();
    assert_eq!((layout.columns, layout.rows), (2, 2));
    assert_eq!((layout.low, layout.cell_m), (field.layout().low, 0.2));
    // The distances are 25, 75, 125... mm; the last column has three cells.
    for row in 0..2 {
        assert!((coarse.distance_of_cell_m(0, row) - 0.1).abs() < UNIT_M);
        assert!((coarse.distance_of_cell_m(1, row) - 0.275).abs() < UNIT_M);
    }
    assert_eq!(field.coarse(1), field);
    assert_eq!(coarse.limit_m(), field.limit_m());
}

fn ends() -> impl Strategy<Value = Segment> {
    let end = || (-1.5..1.5, 1.5..4.5);
    (end(), end()).prop_map(|(from, to)| wall(from, to))
}

proptest! {
    #[test]
    fn the_offset_from_a_straight_wall_is_exact(
        angle in 0.0..6.3f64, x in -0.3..0.3, y in -0.3..0.3,
    ) {
        let along = Point::new(angle.cos(), angle.sin());
        let wall = Segment { from: along.times(-3.0), to: along.times(3.0) };
        let (low, high) = (Point::new(-0.5, -0.5), Point::new(0.5, 0.5));
        let layout = Layout::around(low, high, 0.0, 0.02).unwrap();
        let field = DistanceField::from_walls(layout, &[wall], 1.0);
        let normal = Point::new(-along.y, along.x);
        let expected = normal.times(normal.x * x + normal.y * y);
        let found = field.offset_m(Point::new(x, y)).unwrap();
        prop_assert!(found.minus(expected).length() < 1e-3, "{found:?} {expected:?}");
    }

    #[test]
    fn the_transform_equals_brute_force(
        occupied in prop::collection::vec(prop::bool::weighted(0.1), 17 * 11),
    ) {
        let layout = layout(17, 11);
        let cells = occupied
            .iter()
            .map(|occupied| if *occupied { Cell::Occupied } else { Cell::Free })
            .collect();
        let occupancy = Occupancy::from_cells(layout, cells).unwrap();
        let field = DistanceField::from_occupancy(&occupancy, 4.0);
        for row in 0..11 {
            for column in 0..17 {
                let at = layout.centre(column, row);
                let expected = (0..17 * 11)
                    .filter(|index| occupied[*index])
                    .map(|index| layout.centre(index % 17, index / 17).minus(at).length())
                    .fold(4.0, f64::min);
                let found = field.distance_of_cell_m(column, row);
                prop_assert!((found - expected).abs() <= UNIT_M, "{found} {expected}");
            }
        }
    }

    #[test]
    fn the_distances_to_walls_equal_brute_force(
        walls in prop::collection::vec(ends(), 0..6),
        limit_m in 0.1..2.0,
    ) {
        let layout = layout(40, 30);
        let field = DistanceField::from_walls(layout, &walls, limit_m);
        for row in 0..30 {
            for column in 0..40 {
                let at = layout.centre(column, row);
                let expected = walls.iter().map(|wall| wall.distance(at)).fold(limit_m, f64::min);
                let found = field.distance_of_cell_m(column, row);
                prop_assert!((found - expected).abs() <= UNIT_M, "{found} {expected}");
            }
        }
    }

    #[test]
    fn a_wall_occupies_the_cells_that_it_crosses(walls in prop::collection::vec(ends(), 1..3)) {
        let layout = layout(40, 30);
        let occupancy = Occupancy::from_walls(layout, &walls);
        // No point of a wall is in a free cell, up to rounding.
        for wall in &walls {
            for step in 0..=1000 {
                let way = wall.to.minus(wall.from).times(f64::from(step) / 1000.0);
                let at = wall.from.plus(way);
                let corner = |dx, dy| layout.cell_at(at.plus(Point::new(dx, dy)));
                let near = [corner(1e-9, 1e-9), corner(-1e-9, -1e-9), corner(1e-9, -1e-9), corner(-1e-9, 1e-9)];
                let inside: Vec<_> = near.into_iter().flatten().collect();
                let occupied = |cell: &(usize, usize)| occupancy.is_occupied(cell.0, cell.1);
                prop_assert!(inside.is_empty() || inside.iter().any(occupied));
            }
        }
        // All occupied cells are at a wall.
        for row in 0..30 {
            for column in 0..40 {
                let at = layout.centre(column, row);
                let nearest = walls.iter().map(|wall| wall.distance(at)).fold(9.0, f64::min);
                let near = nearest <= layout.cell_m * 0.7072;
                prop_assert!(near || !occupancy.is_occupied(column, row));
            }
        }
    }
}
