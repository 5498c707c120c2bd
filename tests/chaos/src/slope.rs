//! Fits a straight line to points, in constant memory. PURE.

/// Sums of points, for a line by least squares.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slope {
    count: f64,
    mean_x: f64,
    mean_y: f64,
    spread_x: f64,
    together: f64,
}

impl Slope {
    /// Adds a point.
    pub fn add(&mut self, x: f64, y: f64) {
        // Uses differences from the running means; sums of squares would lose precision.
        self.count += 1.0;
        let dx = x - self.mean_x;
        self.mean_x += dx / self.count;
        self.mean_y += (y - self.mean_y) / self.count;
        self.spread_x += dx * (x - self.mean_x);
        self.together += dx * (y - self.mean_y);
    }

    /// Whether there is no point yet.
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
    }

    /// The slope; `None` without two different x.
    pub fn value(&self) -> Option<f64> {
        (self.spread_x > 0.0).then(|| self.together / self.spread_x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_minimizes_the_squared_errors() {
        let mut slope = Slope::default();
        assert_eq!(slope.value(), None);
        slope.add(1e9, 5.0);
        assert_eq!(slope.value(), None);
        // Around 3 x, alternately above and below.
        for (x, noise) in [(1.0, 1.0), (2.0, -1.0), (3.0, -1.0), (4.0, 1.0)] {
            slope.add(1e9 + x, 5.0 + 3.0 * x + noise);
        }
        let value = slope.value().unwrap();
        assert!((value - 3.0).abs() < 0.1, "{value}");
    }
}
