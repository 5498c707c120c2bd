//! Linear equations with a sparse symmetric matrix of 3x3 blocks. PURE.
//!
//! A block Cholesky decomposition. The unknown with the fewest neighbours is eliminated first
//! (minimum degree: George and Liu, "The evolution of the minimum degree ordering algorithm", SIAM
//! Review 31, 1989), which keeps the factors sparse. On a tie, the smaller index comes first, so
//! the result is the same each time.

use std::collections::{BTreeMap, BTreeSet};

use crate::location::refine::Matrix;

/// A vector of one unknown.
pub(super) type Vector = [f64; 3];

/// A symmetric positive definite matrix of blocks.
#[derive(Clone, Debug)]
pub(super) struct BlockMatrix {
    diagonal: Vec<Matrix>,
    /// For each column, the blocks in rows below the diagonal.
    below: Vec<BTreeMap<usize, Matrix>>,
}

impl BlockMatrix {
    pub(super) fn new(size: usize) -> Self {
        Self {
            diagonal: vec![[[0.0; 3]; 3]; size],
            below: vec![BTreeMap::new(); size],
        }
    }

    /// Adds a block to the entry and, transposed, to its mirror image.
    pub(super) fn add(&mut self, row: usize, column: usize, block: &Matrix) {
        if row == column {
            add(&mut self.diagonal[row], block, 1.0);
        } else if row > column {
            add(self.below[column].entry(row).or_default(), block, 1.0);
        } else {
            let turned = transposed(block);
            add(self.below[row].entry(column).or_default(), &turned, 1.0);
        }
    }

    /// Multiplies the diagonal by `1 + factor` and adds a little.
    pub(super) fn damp(&mut self, factor: f64) {
        for block in &mut self.diagonal {
            for (index, row) in block.iter_mut().enumerate() {
                row[index] += factor * row[index] + f64::EPSILON;
            }
        }
    }

    /// The solution; `None` if the matrix is not positive definite.
    pub(super) fn solve(&self, right: &[Vector]) -> Option<Vec<Vector>> {
        let order = self.order();
        let mut places = vec![0; order.len()];
        for (place, index) in order.iter().enumerate() {
            places[*index] = place;
        }
        let mut sorted = Self::new(order.len());
        for (column, entries) in self.below.iter().enumerate() {
            sorted.add(places[column], places[column], &self.diagonal[column]);
            for (row, block) in entries {
                sorted.add(places[*row], places[column], block);
            }
        }
        let rights = order.iter().map(|index| right[*index]).collect();
        let solution = sorted.eliminate(rights)?;
        Some(places.iter().map(|place| solution[*place]).collect())
    }

    /// The order of elimination.
    fn order(&self) -> Vec<usize> {
        let count = self.diagonal.len();
        let mut neighbours = vec![BTreeSet::new(); count];
        for (column, entries) in self.below.iter().enumerate() {
            for row in entries.keys() {
                neighbours[column].insert(*row);
                neighbours[*row].insert(column);
            }
        }
        let mut queue: BTreeSet<(usize, usize)> = (0..count)
            .map(|index| (neighbours[index].len(), index))
            .collect();
        let mut order = Vec::with_capacity(count);
        while let Some((_, index)) = queue.pop_first() {
            order.push(index);
            let around = std::mem::take(&mut neighbours[index]);
            for one in &around {
                queue.remove(&(neighbours[*one].len(), *one));
                neighbours[*one].remove(&index);
                neighbours[*one].extend(around.iter().filter(|other| *other != one));
                queue.insert((neighbours[*one].len(), *one));
            }
        }
        order
    }

    /// Decomposes the matrix and solves the equations, in the order of the unknowns.
    fn eliminate(mut self, mut right: Vec<Vector>) -> Option<Vec<Vector>> {
        let count = self.diagonal.len();
        for pivot in 0..count {
            let lower = cholesky(&self.diagonal[pivot])?;
            right[pivot] = forward(&lower, right[pivot]);
            let entries = std::mem::take(&mut self.below[pivot]);
            let mut factors: Vec<(usize, Matrix)> = Vec::with_capacity(entries.len());
            for (row, block) in entries {
                // A row of the factor solves `factor * lowerᵀ = block`.
                factors.push((row, block.map(|line| forward(&lower, line))));
            }
            for (place, (row, factor)) in factors.iter().enumerate() {
                let part = times(factor, right[pivot]);
                (0..3).for_each(|index| right[*row][index] -= part[index]);
                for (column, other) in &factors[..=place] {
                    let product = times_transposed(factor, other);
                    let target = if row == column {
                        &mut self.diagonal[*row]
                    } else {
                        self.below[*column].entry(*row).or_default()
                    };
                    add(target, &product, -1.0);
                }
            }
            self.diagonal[pivot] = lower;
            self.below[pivot] = factors.into_iter().collect();
        }
        for pivot in (0..count).rev() {
            let mut rest = right[pivot];
            for (row, factor) in &self.below[pivot] {
                let part = times(&transposed(factor), right[*row]);
                (0..3).for_each(|index| rest[index] -= part[index]);
            }
            right[pivot] = backward(&self.diagonal[pivot], rest);
        }
        Some(right)
    }
}

fn add(sum: &mut Matrix, block: &Matrix, factor: f64) {
    for (sum, row) in sum.iter_mut().zip(block) {
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += factor * value;
        }
    }
}

pub(super) fn transposed(block: &Matrix) -> Matrix {
    [0, 1, 2].map(|row| [0, 1, 2].map(|column| block[column][row]))
}

pub(super) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let dot = |row: usize, column: usize| (0..3).map(|k| a[row][k] * b[k][column]).sum();
    [0, 1, 2].map(|row| [0, 1, 2].map(|column| dot(row, column)))
}

fn times_transposed(a: &Matrix, b: &Matrix) -> Matrix {
    a.map(|row| [0, 1, 2].map(|column| (0..3).map(|k| row[k] * b[column][k]).sum()))
}

pub(super) fn times(a: &Matrix, vector: Vector) -> Vector {
    a.map(|row| (0..3).map(|k| row[k] * vector[k]).sum())
}

fn cholesky(block: &Matrix) -> Option<Matrix> {
    let mut lower = [[0.0; 3]; 3];
    for row in 0..3 {
        for column in 0..=row {
            let sum: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest = block[row][column] - sum;
            lower[row][column] = if row != column {
                rest / lower[column][column]
            } else if rest > 0.0 {
                rest.sqrt()
            } else {
                return None;
            };
        }
    }
    Some(lower)
}

/// Solves `lower * x = right`.
fn forward(lower: &Matrix, right: Vector) -> Vector {
    let mut x = [0.0; 3];
    for row in 0..3 {
        let sum: f64 = (0..row).map(|k| lower[row][k] * x[k]).sum();
        x[row] = (right[row] - sum) / lower[row][row];
    }
    x
}

/// Solves `lowerᵀ * x = right`.
fn backward(lower: &Matrix, right: Vector) -> Vector {
    let mut x = [0.0; 3];
    for row in (0..3).rev() {
        let sum: f64 = (row + 1..3).map(|k| lower[k][row] * x[k]).sum();
        x[row] = (right[row] - sum) / lower[row][row];
    }
    x
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_solution_solves_the_equations(
            size in 1..12usize,
            links in prop::collection::vec((0..12usize, 0..12usize), 0..20),
            values in prop::collection::vec(-1.0..1.0f64, 9),
            seed in 0..1000u64,
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            let block: Matrix = [0, 1, 2].map(|row| [0, 1, 2].map(|column| values[row * 3 + column]));
            let mut matrix = BlockMatrix::new(size);
            let mut entries: Vec<(usize, usize, Matrix)> = Vec::new();
            for index in 0..size {
                // Larger than all others together, so the matrix is positive definite.
                entries.push((index, index, [[200.0, 1.0, 0.0], [1.0, 200.0, 2.0], [0.0, 2.0, 200.0]]));
            }
            for (row, column) in links {
                if row < size && column < size && row != column {
                    entries.push((row, column, block));
                }
            }
            for (row, column, block) in &entries {
                matrix.add(*row, *column, block);
            }
            let right: Vec<Vector> = (0..size).map(|_| [0; 3].map(|_| random.f64())).collect();
            let solution = matrix.solve(&right).unwrap();
            let mut left = vec![[0.0; 3]; size];
            let mut multiply = |row: usize, column: usize, block: &Matrix| {
                let part = times(block, solution[column]);
                (0..3).for_each(|index| left[row][index] += part[index]);
            };
            for (row, column, block) in &entries {
                multiply(*row, *column, block);
                if row != column {
                    multiply(*column, *row, &transposed(block));
                }
            }
            for (left, right) in left.iter().flatten().zip(right.iter().flatten()) {
                prop_assert!((left - right).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_singular_matrix_has_no_solution() {
        let matrix = BlockMatrix::new(2);
        assert_eq!(matrix.solve(&[[1.0; 3]; 2]), None);
    }
}
