//! What Feetech servos keep while they are switched off. PURE.

use super::registers::Model;
use crate::bus_servos::tool::Memory;
use crate::bus_servos::{Measured, Write};

/// 0: what is written to the registers below 40 is kept.
const LOCK: u16 = 55;
/// The same for SCS.
const SCS_LOCK: u16 = 48;
/// 128: the middle is where the servo stands.
const TORQUE: u16 = 40;

impl Memory for Model {
    /// The tables of the maker and those of others disagree about the slower ones.
    const BAUDS: &'static [(u32, u8)] = &[
        (1_000_000, 0),
        (500_000, 1),
        (250_000, 2),
        (128_000, 3),
        (115_200, 4),
    ];
    const ID: u16 = 5;
    const BAUD: u16 = 6;

    fn unlock(&self, is_open: bool) -> Vec<Write> {
        let lock = match self.is_scs() {
            true => SCS_LOCK,
            false => LOCK,
        };
        vec![(lock, vec![(!is_open).into()])]
    }

    fn center(&self, _found: &Measured) -> Result<Vec<Write>, String> {
        match self.is_scs() {
            true => Err(format!(
                "is an {self}, whose middle cannot be changed: turn its horn by some teeth instead"
            )),
            false => Ok(vec![(TORQUE, vec![128])]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::registers::tests::identity;
    use super::*;
    use crate::bus_servos::Model as _;

    #[test]
    fn memory_is_open_only_while_it_is_written() {
        let sts = Model::decode(&identity([0x09, 0x03], [0, 0, 0xFF, 0x0F], 0)).unwrap();
        let scs = Model::decode(&identity([0x05, 0x04], [0, 20, 0x03, 0xEB], 0)).unwrap();
        assert_eq!(sts.unlock(true), [(55, vec![0])]);
        assert_eq!(sts.unlock(false), [(55, vec![1])]);
        assert_eq!(scs.unlock(true), [(48, vec![0])]);
    }
}
