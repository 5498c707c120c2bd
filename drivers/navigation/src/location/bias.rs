//! The bias of walls: how much farther or nearer each wall seems to be than it is. PURE.
//!
//! A scanner measures dark and shiny surfaces wrong, by up to some centimetres. In a room with two
//! opposite walls, such an error looks like a shift of the robot; but the bias is along the beam, and
//! a shift is not, so beams at different angles tell them apart. Each scan therefore fits the pose
//! together with the biases of the walls in sight (least squares with a prior: each bias is as before,
//! and at first 0). Beams meet walls by ray geometry, so this needs straight walls, and a pose that is
//! right within centimetres.

use amber_map::{Point, Pose, Segment};

/// The standard deviation of a bias that is not known: that of ±20 mm.
const UNKNOWN_M: f64 = 0.0115;
/// A bias may drift by this per scan: the scanner warms up, and walls are not straight.
const DRIFT_M: f64 = 0.0003;
/// The noise of a beam up to 1 m, and per metre beyond.
const SIGMA_M: f64 = 0.01;
/// Neighbouring beams have similar errors: so many count as one.
const ALIKE: f64 = 10.0;
/// A beam this far from the wall counts a quarter (Geman and McClure, 1987).
const WIDTH_M: f64 = 0.04;
/// A beam belongs to a wall if it ends this near to it...
const REACH_M: f64 = 0.08;
/// ...but not this near to its ends, where other walls begin...
const END_M: f64 = 0.04;
/// ...and not if it grazes the wall: the sine of the angle.
const GRAZING: f64 = 0.25;
/// A wall counts if so many beams belong to it.
const MIN_BEAMS: usize = 8;
/// At most so many walls: a limit for time.
const MAX_WALLS: usize = 24;
/// The pose is known before with these standard deviations.
const START_M: f64 = 0.03;
const START_RAD: f64 = 0.03;
/// A larger correction is an error.
const MAX_STEP_M: f64 = 0.05;
/// Beams are assigned to walls so often.
const ROUNDS: usize = 2;
/// The squares in which walls are looked up.
const SQUARE_M: f64 = 0.5;

/// The biases of all walls of a map.
#[derive(Clone, Debug, Default)]
pub struct Biases {
    walls: Vec<Wall>,
    low: Point,
    columns: usize,
    /// The walls near each square.
    squares: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug)]
struct Wall {
    line: Segment,
    bias_m: f64,
    variance: f64,
}

/// A beam that belongs to a wall.
struct Beam {
    wall: usize,
    /// How the distance changes with x, y and heading of the robot.
    slope: [f64; 3],
    /// The measured minus the expected distance, without the bias.
    error_m: f64,
    weight: f64,
}

impl Biases {
    /// Unknown biases of these walls.
    #[must_use]
    pub fn new(walls: &[Segment]) -> Self {
        let ends = || walls.iter().flat_map(|wall| [wall.from, wall.to]);
        let low = ends().fold(Point::new(f64::MAX, f64::MAX), |low, end| {
            Point::new(low.x.min(end.x), low.y.min(end.y))
        });
        let high = ends().fold(low, |high, end| {
            Point::new(high.x.max(end.x), high.y.max(end.y))
        });
        let low = low.minus(Point::new(REACH_M, REACH_M));
        let count = |from: f64, to: f64| ((to + REACH_M - from) / SQUARE_M) as usize + 1;
        if walls.is_empty() {
            return Self::default();
        }
        let (columns, rows) = (count(low.x, high.x), count(low.y, high.y));
        let mut squares = vec![Vec::new(); columns * rows];
        // The half diagonal of a square.
        let near_m = REACH_M + SQUARE_M * std::f64::consts::FRAC_1_SQRT_2;
        // Only the squares around a wall: a large map has many of both.
        let range = |from: f64, to: f64, count: usize| {
            let index = |at: f64| ((at / SQUARE_M) as usize).min(count - 1);
            index(from.min(to) - near_m)..=index(from.max(to) + near_m)
        };
        for (wall, line) in (0..).zip(walls) {
            let (from, to) = (line.from.minus(low), line.to.minus(low));
            for row in range(from.y, to.y, rows) {
                for column in range(from.x, to.x, columns) {
                    let corner = Point::new(column as f64 + 0.5, row as f64 + 0.5);
                    if line.distance(low.plus(corner.times(SQUARE_M))) <= near_m {
                        squares[row * columns + column].push(wall);
                    }
                }
            }
        }
        let wall = |line: &Segment| Wall {
            line: *line,
            bias_m: 0.0,
            variance: UNKNOWN_M * UNKNOWN_M,
        };
        Self {
            walls: walls.iter().map(wall).collect(),
            low,
            columns,
            squares,
        }
    }

    /// The memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let lists: usize = self.squares.iter().map(Vec::len).sum();
        self.walls.len() * size_of::<Wall>()
            + self.squares.len() * size_of::<Vec<u32>>()
            + lists * size_of::<u32>()
    }

    /// The pose at which the points fit the walls best, with what is known about biases; learns more
    /// about them. The points are in the frame of the robot, as the scanner at `laser` saw them.
    ///
    /// `None` if too little is in sight, or the fit is far from the start.
    pub fn fit(&mut self, start: Pose, laser: Point, points: &[Point]) -> Option<Pose> {
        let mut pose = start;
        let mut learned: Vec<(usize, f64, f64)> = Vec::new();
        for _ in 0..ROUNDS {
            let beams = self.beams(pose, laser, points);
            let seen = self.most_seen(&beams);
            let bias_m = |wall: usize| {
                let new = learned.iter().find(|(other, ..)| *other == wall);
                new.map_or(self.walls[wall].bias_m, |(_, bias_m, _)| *bias_m)
            };
            let mut system = System::new(3 + seen.len());
            let back = [
                start.at.x - pose.at.x,
                start.at.y - pose.at.y,
                start.heading - pose.heading,
            ];
            for (axis, (back, sigma)) in back
                .into_iter()
                .zip([START_M, START_M, START_RAD])
                .enumerate()
            {
                system.add(&[(axis, 1.0)], back, 1.0 / (sigma * sigma));
            }
            for (column, wall) in seen.iter().enumerate() {
                let Wall {
                    bias_m: before_m,
                    variance,
                    ..
                } = self.walls[*wall];
                let back_m = before_m - bias_m(*wall);
                system.add(&[(3 + column, 1.0)], back_m, 1.0 / variance);
            }
            for beam in &beams {
                let Some(column) = seen.iter().position(|wall| *wall == beam.wall) else {
                    continue;
                };
                let [x, y, heading] = beam.slope;
                let row = [(0, x), (1, y), (2, heading), (3 + column, 1.0)];
                system.add(&row, beam.error_m - bias_m(beam.wall), beam.weight);
            }
            let (step, variances) = system.solve()?;
            pose = Pose {
                at: pose.at.plus(Point::new(step[0], step[1])),
                heading: pose.heading + step[2],
            };
            learned = (seen.iter().enumerate())
                .map(|(column, wall)| {
                    let new_m = bias_m(*wall) + step[3 + column];
                    (*wall, new_m, variances[3 + column])
                })
                .collect();
        }
        if pose.at.minus(start.at).length() > MAX_STEP_M || learned.is_empty() {
            return None;
        }
        for (wall, bias_m, variance) in learned {
            let wall = &mut self.walls[wall];
            wall.bias_m = bias_m;
            wall.variance = (variance + DRIFT_M * DRIFT_M).min(UNKNOWN_M * UNKNOWN_M);
        }
        Some(pose)
    }

    /// The walls with the most beams.
    fn most_seen(&self, beams: &[Beam]) -> Vec<usize> {
        let mut counts: Vec<(usize, usize)> = Vec::new();
        for beam in beams {
            match counts.iter_mut().find(|(_, wall)| *wall == beam.wall) {
                Some((count, _)) => *count += 1,
                None => counts.push((1, beam.wall)),
            }
        }
        counts.retain(|(count, _)| *count >= MIN_BEAMS);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.truncate(MAX_WALLS);
        counts.into_iter().map(|(_, wall)| wall).collect()
    }

    fn beams(&self, pose: Pose, laser: Point, points: &[Point]) -> Vec<Beam> {
        let eye = pose.global(laser);
        let arm = eye.minus(pose.at);
        let beam = |point: &Point| {
            let end = pose.global(*point);
            let way = end.minus(eye);
            let distance_m = way.length();
            let direction = way.times(1.0 / distance_m.max(1e-6));
            let wall = self.nearest(end)?;
            let line = self.walls[wall].line;
            let along = line.to.minus(line.from);
            let along = along.times(1.0 / along.length());
            let normal = Point::new(-along.y, along.x);
            let sine = normal.dot(direction);
            if sine.abs() < GRAZING {
                return None;
            }
            let error_m = normal.dot(end.minus(line.from)) / sine;
            let expected_m = distance_m - error_m;
            // How the eye and the direction of the beam change with the heading.
            let turned = Point::new(-arm.y, arm.x);
            let swung = Point::new(-direction.y, direction.x).times(expected_m);
            let sigma_m = SIGMA_M * distance_m.max(1.0);
            let trust = (1.0 + (error_m / WIDTH_M).powi(2)).powi(-2);
            Some(Beam {
                wall,
                slope: [
                    -normal.x / sine,
                    -normal.y / sine,
                    -normal.dot(turned.plus(swung)) / sine,
                ],
                error_m,
                weight: trust / (sigma_m * sigma_m * ALIKE),
            })
        };
        points.iter().filter_map(beam).collect()
    }

    /// The wall at which a beam ends.
    fn nearest(&self, end: Point) -> Option<usize> {
        let way = end.minus(self.low).times(1.0 / SQUARE_M);
        if way.x < 0.0 || way.y < 0.0 || way.x as usize >= self.columns {
            return None;
        }
        let square = self
            .squares
            .get(way.y as usize * self.columns + way.x as usize)?;
        let walls = square.iter().map(|wall| *wall as usize);
        let distance_m = |wall: usize| self.walls[wall].line.distance(end);
        let (distance_m, wall) = walls
            .map(|wall| (distance_m(wall), wall))
            .min_by(|a, b| a.0.total_cmp(&b.0))?;
        let Segment { from, to } = self.walls[wall].line;
        let end_m = from.minus(end).length().min(to.minus(end).length());
        (distance_m <= REACH_M && end_m >= END_M).then_some(wall)
    }
}

/// Normal equations of a least squares problem.
struct System {
    size: usize,
    /// Row by row; only the lower half is used.
    matrix: Vec<f64>,
    right: Vec<f64>,
}

impl System {
    fn new(size: usize) -> Self {
        Self {
            size,
            matrix: vec![0.0; size * size],
            right: vec![0.0; size],
        }
    }

    /// Adds an equation with a weight.
    fn add(&mut self, row: &[(usize, f64)], value: f64, weight: f64) {
        for (index, (column, factor)) in row.iter().enumerate() {
            self.right[*column] += weight * factor * value;
            for (other, other_factor) in &row[..=index] {
                let place = column.max(other) * self.size + column.min(other);
                self.matrix[place] += weight * factor * other_factor;
            }
        }
    }

    /// The solution and its variances (Cholesky). `None` if the matrix is singular.
    fn solve(mut self) -> Option<(Vec<f64>, Vec<f64>)> {
        let size = self.size;
        let at = |row: usize, column: usize| row * size + column;
        for row in 0..size {
            for column in 0..=row {
                let sum: f64 = (0..column)
                    .map(|k| self.matrix[at(row, k)] * self.matrix[at(column, k)])
                    .sum();
                let rest = self.matrix[at(row, column)] - sum;
                self.matrix[at(row, column)] = if row == column {
                    if rest <= 0.0 || !rest.is_finite() {
                        return None;
                    }
                    rest.sqrt()
                } else {
                    rest / self.matrix[at(column, column)]
                };
            }
        }
        let lower = self.matrix;
        let forward = |right: &[f64]| {
            let mut half = vec![0.0; size];
            for row in 0..size {
                let sum: f64 = (0..row).map(|k| lower[at(row, k)] * half[k]).sum();
                half[row] = (right[row] - sum) / lower[at(row, row)];
            }
            half
        };
        let mut solution = forward(&self.right);
        for row in (0..size).rev() {
            let sum: f64 = (row + 1..size)
                .map(|k| lower[at(k, row)] * solution[k])
                .sum();
            solution[row] = (solution[row] - sum) / lower[at(row, row)];
        }
        let variances = (0..size).map(|index| {
            let mut unit = vec![0.0; size];
            unit[index] = 1.0;
            forward(&unit).iter().map(|value| value * value).sum()
        });
        Some((solution, variances.collect()))
    }
}

#[cfg(test)]
mod tests {
    use amber_map::Walls;
    use proptest::prelude::*;

    use super::*;
    use crate::random::gaussian;

    /// A room of 3 m x 2 m.
    fn room() -> Vec<Segment> {
        let corners = [(0.0, 0.0), (3.0, 0.0), (3.0, 2.0), (0.0, 2.0), (0.0, 0.0)];
        let point = |(x, y)| Point::new(x, y);
        corners
            .windows(2)
            .map(|pair| Segment {
                from: point(pair[0]),
                to: point(pair[1]),
            })
            .collect()
    }

    /// The ends of beams in the frame of the robot. Each wall seems farther by its bias.
    fn scan(truth: Pose, laser: Point, biases_m: &[f64], random: &mut fastrand::Rng) -> Vec<Point> {
        let walls = Walls::new(room());
        let eye = truth.global(laser);
        let beam = |index: u32| {
            let angle = (f64::from(index) * 0.704 - 120.0).to_radians();
            let distance_m = walls.cast(eye, truth.heading + angle, 9.0)?;
            let end = eye.plus(Point::new(distance_m, 0.0).turned(truth.heading + angle));
            let distances = walls.segments().iter().map(|wall| wall.distance(end));
            let wall = distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?.0;
            let measured_m = distance_m + biases_m[wall] + 0.01 * gaussian(random);
            Some(laser.plus(Point::new(measured_m, 0.0).turned(angle)))
        };
        (0..341).filter_map(beam).collect()
    }

    #[test]
    fn biases_of_opposite_walls_are_learned_and_no_longer_shift_the_pose() {
        let (laser, biases_m) = (Point::new(0.1, 0.0), [0.0, 0.018, 0.012, -0.018]);
        let mut random = fastrand::Rng::with_seed(1);
        let mut biases = Biases::new(&room());
        let mut errors_m = Vec::new();
        for step in 0..60 {
            // It drives through the room and turns.
            let way = f64::from(step) / 60.0;
            let truth = Pose::new(0.6 + 1.6 * way, 1.0, 3.0 * way - 1.5);
            // What a fit without biases finds: the shift that explains the walls left and right.
            let start = Pose::new(truth.at.x + 0.015, truth.at.y, truth.heading);
            let points = scan(truth, laser, &biases_m, &mut random);
            let found = biases.fit(start, laser, &points).unwrap();
            errors_m.push(found.at.minus(truth.at).length());
        }
        let mean_m = errors_m[40..].iter().sum::<f64>() / 20.0;
        assert!(mean_m < 0.006, "{errors_m:?}");
        for (wall, bias_m) in biases.walls.iter().zip(biases_m) {
            assert!((wall.bias_m - bias_m).abs() < 0.008, "{wall:?} {bias_m}");
            assert!(wall.variance < UNKNOWN_M * UNKNOWN_M);
        }
    }

    #[test]
    fn without_walls_in_sight_nothing_is_learned() {
        let start = Pose::new(1.0, 1.0, 0.0);
        let points = [Point::new(0.3, 0.1); 100];
        assert_eq!(Biases::new(&[]).fit(start, Point::default(), &points), None);
        let mut biases = Biases::new(&room());
        assert_eq!(biases.fit(start, Point::default(), &points), None);
        assert_eq!(
            biases.fit(Pose::new(90.0, -90.0, 0.0), Point::default(), &points),
            None
        );
        assert!(biases.walls.iter().all(|wall| wall.bias_m == 0.0));
    }

    proptest! {
        #[test]
        fn the_nearest_of_many_walls_is_found(
            ends in prop::collection::vec((-4.0..4.0f64, -4.0..4.0f64, -4.0..4.0f64, -4.0..4.0f64), 1..20),
            (wall, along, aside_m) in (0..20usize, 0.0..1.0f64, -0.1..0.1f64),
        ) {
            let walls: Vec<Segment> = ends
                .into_iter()
                .map(|(x, y, to_x, to_y)| Segment { from: Point::new(x, y), to: Point::new(to_x, to_y) })
                .collect();
            let Segment { from, to } = walls[wall % walls.len()];
            let place = from.plus(to.minus(from).times(along)).plus(Point::new(aside_m, aside_m));
            let distances_m = || walls.iter().map(|wall| wall.distance(place));
            let nearest_m = distances_m().fold(f64::MAX, f64::min);
            match Biases::new(&walls).nearest(place) {
                Some(found) => prop_assert_eq!(walls[found].distance(place), nearest_m),
                None => {
                    let near_an_end = walls.iter().any(|wall| {
                        [wall.from, wall.to].iter().any(|end| end.minus(place).length() < END_M)
                    });
                    prop_assert!(nearest_m > REACH_M || near_an_end);
                }
            }
        }

        #[test]
        fn the_system_is_solved(values in prop::collection::vec(-2.0..2.0f64, 12), weight in 0.1..9.0f64) {
            let mut system = System::new(3);
            for (index, value) in values.iter().enumerate() {
                system.add(&[(index % 3, 1.0 + value.abs()), ((index + 1) % 3, *value)], *value, weight);
            }
            let full = |row: usize, column: usize| {
                let (low, high) = (row.min(column), row.max(column));
                system.matrix[high * 3 + low]
            };
            let matrix: Vec<Vec<f64>> = (0..3).map(|row| (0..3).map(|column| full(row, column)).collect()).collect();
            let right = system.right.clone();
            let (solution, variances) = system.solve().unwrap();
            for row in 0..3 {
                let sum: f64 = (0..3).map(|column| matrix[row][column] * solution[column]).sum();
                prop_assert!((sum - right[row]).abs() < 1e-6 * (1.0 + right[row].abs()));
                prop_assert!(variances[row] >= 1.0 / matrix[row][row] - 1e-12);
            }
        }
    }
}
