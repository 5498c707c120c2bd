//! The values of six unknowns that explain measurements best, by Levenberg and Marquardt. PURE.

/// The number of unknowns.
pub(super) const N: usize = 6;
/// A change of the unknowns.
pub(super) type Step = [f64; N];

const ROUNDS: usize = 30;
/// A small change, to see its effect.
const SMALL: f64 = 1e-6;
/// It ends when the sum of the squares falls by less than this part.
const ENOUGH: f64 = 1e-9;

/// The best values.
#[derive(Clone, Debug)]
pub(super) struct Fit<T> {
    pub(super) best: T,
    /// Half of what the squares of the residuals sum up to grows by, for each two unknowns: the inverse
    /// of their covariance if a residual has the standard deviation 1.
    pub(super) normal: [Step; N],
    /// The sum of the squares of the residuals.
    pub(super) cost: f64,
}

/// Begins at `start`. `residuals` are the differences between model and measurements, divided by their
/// standard deviations, and `changed` is a value after a step.
pub(super) fn fit<T: Clone>(
    start: T,
    residuals: impl Fn(&T) -> Vec<f64>,
    changed: impl Fn(&T, &Step) -> T,
) -> Fit<T> {
    let sum = |values: &[f64]| values.iter().map(|it| it * it).sum::<f64>();
    let mut best = start;
    let mut errors = residuals(&best);
    let mut cost = sum(&errors);
    let mut damping = 1e-3;
    let mut normal = [[0.0; N]; N];
    for _ in 0..ROUNDS {
        let slopes: Vec<Vec<f64>> = (0..N)
            .map(|index| {
                let mut step = [0.0; N];
                step[index] = SMALL;
                let after = residuals(&changed(&best, &step));
                let pairs = after.iter().zip(&errors);
                pairs
                    .map(|(after, before)| (after - before) / SMALL)
                    .collect()
            })
            .collect();
        let product =
            |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
        let right = std::array::from_fn(|row| -product(&slopes[row], &errors));
        normal = std::array::from_fn(|row| {
            std::array::from_fn(|column| product(&slopes[row], &slopes[column]))
        });
        let mut is_better = false;
        while damping < 1e9 && !is_better {
            let mut damped = normal;
            for (index, row) in damped.iter_mut().enumerate() {
                row[index] *= 1.0 + damping;
                row[index] += 1e-12;
            }
            let next = solve(damped, right).map(|step| changed(&best, &step));
            let after = next.map(|next| (residuals(&next), next));
            match after {
                Some((after, next)) if sum(&after) < cost => {
                    is_better = cost - sum(&after) > ENOUGH * cost;
                    (best, cost) = (next, sum(&after));
                    errors = after;
                    damping *= 0.2;
                    if !is_better {
                        return Fit { best, normal, cost };
                    }
                }
                _ => damping *= 5.0,
            }
        }
        if !is_better {
            break;
        }
    }
    Fit { best, normal, cost }
}

/// The solution of a system with a symmetric matrix; `None` if it has none.
fn solve(mut matrix: [Step; N], mut right: Step) -> Option<Step> {
    for pivot in 0..N {
        let largest = (pivot..N).max_by(|a, b| {
            let size = |row: usize| matrix[row][pivot].abs();
            size(*a).total_cmp(&size(*b))
        })?;
        matrix.swap(pivot, largest);
        right.swap(pivot, largest);
        let of_pivot = matrix[pivot];
        let divisor = of_pivot[pivot];
        if !divisor.is_finite() || divisor.abs() < 1e-300 {
            return None;
        }
        for row in 0..N {
            if row != pivot {
                let factor = matrix[row][pivot] / divisor;
                for (value, above) in matrix[row].iter_mut().zip(of_pivot) {
                    *value -= factor * above;
                }
                right[row] -= factor * right[pivot];
            }
        }
    }
    let mut solution = [0.0; N];
    for (row, value) in solution.iter_mut().enumerate() {
        *value = right[row] / matrix[row][row];
    }
    solution.iter().all(|it| it.is_finite()).then_some(solution)
}

/// The inverse of a symmetric matrix; `None` if it has none.
pub(super) fn invert(matrix: &[Step; N]) -> Option<[Step; N]> {
    let mut inverse = [[0.0; N]; N];
    for (index, row) in inverse.iter_mut().enumerate() {
        let mut right = [0.0; N];
        right[index] = 1.0;
        *row = solve(*matrix, right)?;
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_fitted() {
        let truth = [1.0, -2.0, 0.5, 0.1, 3.0, -0.7];
        let curve = |values: &Step, x: f64| {
            let [a, b, c, d, e, f] = *values;
            a + b * x + c * x * x + d * (e * x).sin() + (f * x).exp()
        };
        let residuals = |values: &Step| -> Vec<f64> {
            let places = (0..60).map(|index| f64::from(index) * 0.05);
            places
                .map(|x| curve(values, x) - curve(&truth, x))
                .collect()
        };
        let changed = |values: &Step, step: &Step| std::array::from_fn(|it| values[it] + step[it]);
        let start = [0.8, -1.5, 0.4, 0.15, 3.1, -0.5];
        let found = fit(start, residuals, changed);
        assert!(found.cost < 1e-6, "{found:?}");
    }

    #[test]
    fn inverses_are_found_or_missing() {
        let mut matrix = [[0.0; N]; N];
        for (index, row) in matrix.iter_mut().enumerate() {
            row[index] = 2.0;
            row[(index + 1) % N] += 0.5;
            row[(index + N - 1) % N] += 0.5;
        }
        let inverse = invert(&matrix).unwrap();
        for (row, values) in matrix.iter().enumerate() {
            for column in 0..N {
                let pairs = values.iter().zip(&inverse);
                let product: f64 = pairs.map(|(one, other)| one * other[column]).sum();
                let expected = f64::from(u8::from(row == column));
                assert!((product - expected).abs() < 1e-9);
            }
        }
        assert_eq!(invert(&[[0.0; N]; N]), None);
        assert_eq!(invert(&[[f64::NAN; N]; N]), None);
    }
}
