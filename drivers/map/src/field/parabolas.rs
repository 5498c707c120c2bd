//! The exact Euclidean distance transform in linear time. PURE.
//!
//! Felzenszwalb and Huttenlocher, "Distance Transforms of Sampled Functions", Theory of Computing
//! 8 (2012), algorithm 1: along a row, the squared distance is the lower envelope of one parabola
//! per cell.

use super::{Cell, Occupancy};

/// No occupied cell in this column.
const NONE: u16 = u16::MAX;

/// Computes the distance in metres from each cell to the nearest occupied one, and passes it on
/// with the index of the cell. Does nothing if no cell is occupied.
pub(super) fn transform(occupancy: &Occupancy, mut store: impl FnMut(usize, f64)) {
    let layout = occupancy.layout();
    let vertical = vertical_distances(occupancy);
    let mut envelope = Envelope::default();
    for row in 0..layout.rows {
        envelope.clear();
        let heights = &vertical[row * layout.columns..][..layout.columns];
        for (column, cells) in heights
            .iter()
            .enumerate()
            .filter(|(_, cells)| **cells != NONE)
        {
            envelope.add(column as f64, f64::from(*cells).powi(2));
        }
        envelope.read(layout.columns, |column, square| {
            store(layout.index(column, row), square.sqrt() * layout.cell_m);
        });
    }
}

/// The distance to the nearest occupied cell in the same column, in cells.
fn vertical_distances(occupancy: &Occupancy) -> Vec<u16> {
    let layout = occupancy.layout();
    let mut distances = vec![NONE; layout.cells()];
    for column in 0..layout.columns {
        let mut pass = |rows: &mut dyn Iterator<Item = usize>| {
            let mut distance = NONE;
            for row in rows {
                distance = match occupancy.cell(column, row) {
                    Cell::Occupied => 0,
                    Cell::Free | Cell::Unknown => distance.saturating_add(1),
                };
                let stored = &mut distances[layout.index(column, row)];
                *stored = (*stored).min(distance);
            }
        };
        pass(&mut (0..layout.rows));
        pass(&mut (0..layout.rows).rev());
    }
    distances
}

/// The lower envelope of parabolas `(x - centre)² + height`.
#[derive(Default)]
struct Envelope {
    parabolas: Vec<Parabola>,
}

struct Parabola {
    centre: f64,
    height: f64,
    /// From here on it is the lowest.
    from: f64,
}

impl Envelope {
    fn clear(&mut self) {
        self.parabolas.clear();
    }

    /// Adds a parabola to the right of all others.
    fn add(&mut self, centre: f64, height: f64) {
        let mut from = f64::NEG_INFINITY;
        while let Some(last) = self.parabolas.last() {
            let difference = (height + centre * centre) - (last.height + last.centre * last.centre);
            from = difference / (2.0 * (centre - last.centre));
            if from > last.from {
                break;
            }
            self.parabolas.pop();
            from = f64::NEG_INFINITY;
        }
        self.parabolas.push(Parabola {
            centre,
            height,
            from,
        });
    }

    /// Reads the envelope at 0, 1, 2, ...
    fn read(&self, count: usize, mut store: impl FnMut(usize, f64)) {
        let mut index = 0;
        if self.parabolas.is_empty() {
            return;
        }
        for column in 0..count {
            let x = column as f64;
            while self
                .parabolas
                .get(index + 1)
                .is_some_and(|next| next.from <= x)
            {
                index += 1;
            }
            let parabola = &self.parabolas[index];
            store(column, (x - parabola.centre).powi(2) + parabola.height);
        }
    }
}
