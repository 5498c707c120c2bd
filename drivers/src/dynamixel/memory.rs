//! What Dynamixel servos keep while they are switched off. It can be written while the motor is off. PURE.

use super::registers::Model;
use crate::bus_servos::tool::Memory;
use crate::bus_servos::{Measured, Write};

/// What is added to what it counts.
const OFFSET: u16 = 20;
const MIDDLE: i32 = 2048;
/// So far from what it counts its middle may be, unless it counts several turns: a quarter of a turn.
const FARTHEST: i32 = 1024;

impl Memory for Model {
    const BAUDS: &'static [(u32, u8)] = &[
        (57_600, 1),
        (1_000_000, 3),
        (115_200, 2),
        (2_000_000, 4),
        (3_000_000, 5),
        (4_000_000, 6),
        (9_600, 0),
    ];
    const ID: u16 = 7;
    const BAUD: u16 = 8;

    fn unlock(&self, _is_open: bool) -> Vec<Write> {
        Vec::new()
    }

    fn center(&self, found: &Measured) -> Result<Vec<Write>, String> {
        let offset = MIDDLE - (found.position - self.offset());
        match self.has_one_turn() && offset.abs() > FARTHEST {
            true => Err(
                "stands more than a quarter of a turn from its own middle: turn its horn by some teeth"
                    .to_owned(),
            ),
            false => Ok(vec![(OFFSET, offset.to_le_bytes().to_vec())]),
        }
    }
}
