//! The checksum of packets of several makers. PURE.

/// The CRC16 of RoboClaw and VESC packets: polynomial 0x1021, initial value 0, not reflected.
pub(crate) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc: u16, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_of_the_standard_test_text() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }
}
