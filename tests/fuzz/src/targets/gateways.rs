//! Datagrams of other robot systems. PURE.

use amber_gateways::rflysim::codec::{self as rflysim_codec};
use amber_gateways::rflysim::ports::Port;

use crate::input::Input;

/// A packet of RflySim: what is understood is written again in the same length, and means the
/// same.
pub(super) fn rflysim(data: &[u8]) {
    let mut input = Input(data);
    let port = Port::ALL[usize::from(input.byte()) % Port::ALL.len()];
    if let Ok(packet) = rflysim_codec::decode(port, input.0) {
        assert_eq!(packet.port(), port);
        let again = packet.encode();
        assert_eq!(again.len(), input.0.len());
        // A NaN is not equal to itself.
        if packet.is_finite() {
            assert_eq!(rflysim_codec::decode(port, &again), Ok(packet));
        }
    }
}
