//! Minimal controllers for tests: a packet in, a reply out. PURE.

use super::protocol::{Check, crc16, sum7};
use super::units::Unit;

/// Both controllers on their bus.
#[derive(Clone, Debug)]
pub(super) struct FakePair {
    pub(super) check: Check,
    /// The number of status bytes.
    pub(super) status_bytes: usize,
    pub(super) status: [u32; 2],
    /// Pulses per second of M1 and M2.
    pub(super) speeds: [[i32; 2]; 2],
    /// P, I, D and pulses per second at full power, of M1 and M2.
    pub(super) pid: [[[u32; 4]; 2]; 2],
    pub(super) temperature: i16,
    pub(super) mood: [Mood; 2],
    /// Commands that this firmware does not support.
    pub(super) unknown: Vec<u8>,
    /// All valid packets: controller, command, data.
    pub(super) heard: Vec<(Unit, u8, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    Silent,
    /// Every reply has a wrong bit.
    Garbled,
    /// Every reply lacks its last bytes.
    Half,
}

impl FakePair {
    pub(super) fn new(check: Check) -> Self {
        Self {
            check,
            status_bytes: if check == Check::Crc16 { 4 } else { 1 },
            status: [0; 2],
            speeds: [[0; 2]; 2],
            pid: [[[65_536, 32_768, 16_384, 44_000]; 2]; 2],
            temperature: 250,
            mood: [Mood::Well; 2],
            unknown: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// Takes the packets with this command since the last call, with their data.
    pub(super) fn take(&mut self, command: u8) -> Vec<(Unit, Vec<u8>)> {
        let heard = std::mem::take(&mut self.heard);
        heard
            .into_iter()
            .filter(|(_, number, _)| *number == command)
            .map(|(unit, _, data)| (unit, data))
            .collect()
    }

    pub(super) fn reply(&mut self, packet: &[u8]) -> Vec<u8> {
        let (unit, mood) = match packet[0] {
            0x81 => (Unit::Front, self.mood[0]),
            0x80 => (Unit::Rear, self.mood[1]),
            _ => return Vec::new(),
        };
        if mood == Mood::Silent || self.unknown.contains(&packet[1]) {
            return Vec::new();
        }
        let mut reply = self.understand(unit, packet);
        match mood {
            Mood::Garbled => reply.iter_mut().take(1).for_each(|byte| *byte ^= 0x10),
            Mood::Half => reply.truncate(reply.len() / 2),
            Mood::Well | Mood::Silent => {}
        }
        reply
    }

    fn understand(&mut self, unit: Unit, packet: &[u8]) -> Vec<u8> {
        let (address, command) = (packet[0], packet[1]);
        let i = unit.index();
        let answer = match command {
            21 => b"USB Roboclaw 2x30a v4.2.8\n\0".to_vec(),
            18 | 19 => {
                let speed = self.speeds[i][usize::from(command - 18)];
                [&speed.to_be_bytes()[..], &[u8::from(speed < 0)]].concat()
            }
            24 | 25 => vec![0, 0x79],
            55 | 56 => {
                let pid = self.pid[i][usize::from(command - 55)];
                pid.map(u32::to_be_bytes).concat()
            }
            // The last byte says how the upper limit is found.
            59 => vec![0, 105, 1, 84, 0],
            135 | 136 => vec![0, 0, 1, 244, 0, 0, 0, 0],
            82 => self.temperature.to_be_bytes().to_vec(),
            90 => self.status[i].to_be_bytes()[4 - self.status_bytes..].to_vec(),
            _ => {
                let (body, check) = packet.split_at(packet.len() - self.check_length());
                assert_eq!(check, self.tail(body), "{packet:02X?}");
                let data = body[2..].to_vec();
                let number = |at: usize| [data[at], data[at + 1], data[at + 2], data[at + 3]];
                match command {
                    37 => self.speeds[i] = [0, 4].map(|at| i32::from_be_bytes(number(at))),
                    28 | 29 => {
                        let [d, p, integral, qpps] =
                            [0, 4, 8, 12].map(|at| u32::from_be_bytes(number(at)));
                        self.pid[i][usize::from(command - 28)] = [p, integral, d, qpps];
                    }
                    _ => {}
                }
                self.heard.push((unit, command, data));
                return match self.check {
                    Check::Legacy => Vec::new(),
                    _ => vec![0xFF],
                };
            }
        };
        self.heard.push((unit, command, Vec::new()));
        let mut tail = self.tail(&[&[address, command], &answer[..]].concat());
        if self.check == Check::LegacyAck {
            tail[0] &= 0x7F;
        }
        [answer, tail].concat()
    }

    fn check_length(&self) -> usize {
        if self.check == Check::Crc16 { 2 } else { 1 }
    }

    fn tail(&self, body: &[u8]) -> Vec<u8> {
        match self.check {
            Check::Crc16 => crc16(body).to_be_bytes().to_vec(),
            Check::Legacy => vec![sum7(body)],
            Check::LegacyAck => vec![sum7(body) | 0x80],
        }
    }
}
