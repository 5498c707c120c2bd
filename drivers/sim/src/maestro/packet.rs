//! Assembles packets of the Maestro protocols from bytes. PURE.
//!
//! A byte with bit 7 set starts a packet, even if the previous packet is incomplete.

use super::{ERROR_CRC, ERROR_PROTOCOL};

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// Targets in quarters of a microsecond, from this channel upwards.
    Targets(u8, Vec<u16>),
    Speed(u8, u16),
    Acceleration(u8, u16),
    Position(u8),
    IsMoving,
    Errors,
    GoHome,
    ScriptStatus,
    /// A command that is not simulated, or for another device.
    Ignored,
}

/// Assembles packets.
#[derive(Clone, Debug)]
pub(super) struct Parser {
    device: u8,
    crc: bool,
    packet: Vec<u8>,
}

/// Starts a packet of the Pololu protocol, and shows the baud rate.
pub(super) const POLOLU: u8 = 0xAA;
const MINI_SSC: u8 = 0xFF;

impl Parser {
    pub(super) fn new(device: u8, crc: bool) -> Self {
        Self {
            device,
            crc,
            packet: Vec::new(),
        }
    }

    /// Whether a byte interrupts an incomplete packet. The packet is then dropped, and the byte
    /// starts a new one.
    pub(super) fn interrupt(&mut self, byte: u8) -> bool {
        let is_ssc = self.packet.first() == Some(&MINI_SSC);
        let interrupts = byte & 0x80 != 0 && !is_ssc && !self.packet.is_empty();
        if interrupts {
            self.packet.clear();
        }
        interrupts
    }

    /// Adds a byte after [`Parser::interrupt`]. Returns the packet that it completes, if any.
    ///
    /// # Errors
    /// The error bit of the device.
    pub(super) fn push(&mut self, byte: u8) -> Result<Option<Packet>, u16> {
        if self.packet.is_empty() && byte & 0x80 == 0 {
            // Data without a command byte.
            return Err(ERROR_PROTOCOL);
        }
        self.packet.push(byte);
        let length = match self.length() {
            Ok(Some(length)) => length + usize::from(self.crc),
            Ok(None) => return Ok(None),
            Err(error) => {
                self.packet.clear();
                return Err(error);
            }
        };
        if self.packet.len() < length {
            return Ok(None);
        }
        let mut packet = std::mem::take(&mut self.packet);
        if self.crc {
            let given = packet.pop();
            if given != Some(crc7(&packet)) {
                return Err(ERROR_CRC);
            }
        }
        Ok(Some(self.read(&packet)))
    }

    /// The length of the packet without its CRC, if known.
    fn length(&self) -> Result<Option<usize>, u16> {
        let (before, rest) = match self.packet[..] {
            [MINI_SSC, ..] => return Ok(Some(3)),
            [POLOLU] | [POLOLU, _] => return Ok(None),
            [POLOLU, ..] => (2, &self.packet[2..]),
            _ => (0, &self.packet[..]),
        };
        let data = match rest[0] & 0x7F {
            0x04 | 0x07 | 0x09 | 0x28 => 3,
            0x0A => 4,
            0x10 | 0x27 => 1,
            0x13 | 0x21 | 0x22 | 0x24 | 0x2E => 0,
            0x1F => match rest.get(1) {
                None => return Ok(None),
                Some(count) => 2 + 2 * usize::from(*count),
            },
            _ => return Err(ERROR_PROTOCOL),
        };
        Ok(Some(before + 1 + data))
    }

    fn read(&self, packet: &[u8]) -> Packet {
        let rest = match packet {
            [MINI_SSC, channel, value] => return ssc(*channel, *value),
            [POLOLU, device, ..] if *device != self.device => return Packet::Ignored,
            [POLOLU, _, rest @ ..] => rest,
            rest => rest,
        };
        let number = |low: &u8, high: &u8| u16::from(*low) | u16::from(*high) << 7;
        match (rest[0] & 0x7F, &rest[1..]) {
            (0x04, [channel, low, high]) => Packet::Targets(*channel, vec![number(low, high)]),
            (0x1F, [_, first, targets @ ..]) => {
                let targets = targets.chunks_exact(2);
                let targets = targets.map(|pair| number(&pair[0], &pair[1]));
                Packet::Targets(*first, targets.collect())
            }
            (0x07, [channel, low, high]) => Packet::Speed(*channel, number(low, high)),
            (0x09, [channel, low, high]) => Packet::Acceleration(*channel, number(low, high)),
            (0x10, [channel]) => Packet::Position(*channel),
            (0x13, []) => Packet::IsMoving,
            (0x21, []) => Packet::Errors,
            (0x22, []) => Packet::GoHome,
            (0x2E, []) => Packet::ScriptStatus,
            _ => Packet::Ignored,
        }
    }
}

/// 127 is 1500 us, and each step is 3.75 us.
fn ssc(channel: u8, value: u8) -> Packet {
    let target = 6_000 + (i32::from(value.min(254)) - 127) * 15;
    let target = u16::try_from(target).unwrap_or_default();
    Packet::Targets(channel, vec![target])
}

/// The optional checksum of a packet.
#[must_use]
pub fn crc7(bytes: &[u8]) -> u8 {
    let mut crc = 0;
    for byte in bytes {
        crc ^= byte;
        for _ in 0..8 {
            if crc & 1 != 0 {
                crc ^= 0x91;
            }
            crc >>= 1;
        }
    }
    crc
}
