//! The bytes of the Open Interface: commands, and the frames of the sensor stream. PURE.
//!
//! Numbers have the high byte first. The robot answers no command, and checks none: one that has lost a
//! byte takes the first byte of the next one. A frame is 19, its length, a packet with its id for each
//! that was requested, and a byte that makes the sum of all bytes 0.

/// The fastest speed of a wheel.
pub const MAX_MM_S: i32 = 500;

/// The first byte of a frame.
const HEADER: u8 = 19;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Passive mode: the motors are off, and the buttons and the charger work.
    Start,
    /// Safe mode: the robot obeys until a wheel drops, or it senses a cliff or a charger.
    Safe,
    /// Speeds of the wheels in mm/s, until the next command.
    Drive {
        /// The left wheel.
        left: i16,
        /// The right wheel.
        right: i16,
    },
    /// A frame with these packets every 15 ms.
    Stream(&'static [u8]),
    /// No more frames.
    Quiet,
}

impl Command {
    /// Both wheels stop.
    pub const STAND: Self = Self::Drive { left: 0, right: 0 };

    /// The bytes of the command.
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::Start => vec![128],
            Self::Safe => vec![131],
            Self::Drive { left, right } => {
                let [right, left] = [right, left].map(i16::to_be_bytes);
                [&[145], right.as_slice(), &left].concat()
            }
            Self::Stream(packets) => {
                let count = u8::try_from(packets.len()).unwrap_or(u8::MAX);
                [&[148, count], packets].concat()
            }
            Self::Quiet => vec![150, 0],
        }
    }
}

/// The length of the data of a packet, in bytes.
fn size(packet: u8) -> usize {
    match packet {
        19 | 20 | 22 | 23 | 25..=31 | 33 | 39..=44 | 46..=51 | 54..=57 => 2,
        _ => 1,
    }
}

/// Finds frames in what arrives.
#[derive(Clone, Debug)]
pub struct Frames {
    packets: &'static [u8],
    bytes: Vec<u8>,
    /// Bytes since the last frame that are in none.
    skipped: usize,
}

/// The data of a frame, in the order of the packets, as if they had no sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// A number per packet.
    pub values: Vec<u16>,
    /// How many frames there were between it and the last one that was intact.
    pub missed: u32,
}

impl Frames {
    /// Without bytes. Every frame has these packets.
    pub fn new(packets: &'static [u8]) -> Self {
        Self {
            packets,
            bytes: Vec::new(),
            skipped: 0,
        }
    }

    /// Forgets what has arrived.
    pub fn clear(&mut self) {
        *self = Self::new(self.packets);
    }

    /// Adds what has arrived.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Takes the next intact frame.
    pub fn pop(&mut self) -> Option<Frame> {
        let packets = self.packets.iter().map(|packet| 1 + size(*packet));
        let length = 3 + packets.sum::<usize>();
        loop {
            let header = self.bytes.iter().position(|byte| *byte == HEADER);
            self.skip(header.unwrap_or(self.bytes.len()));
            let bytes = self.bytes.get(..length)?;
            let Some(values) = values(self.packets, bytes) else {
                self.skip(1);
                continue;
            };
            self.bytes.drain(..length);
            let skipped = std::mem::take(&mut self.skipped);
            let missed = (skipped + length / 2) / length;
            return Some(Frame {
                values,
                missed: missed.try_into().unwrap_or(u32::MAX),
            });
        }
    }

    fn skip(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.skipped += count;
    }
}

/// The data of a frame, if it is one with these packets.
fn values(packets: &[u8], frame: &[u8]) -> Option<Vec<u16>> {
    let sum = frame.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let [HEADER, length, body @ .., _] = frame else {
        return None;
    };
    if sum != 0 || usize::from(*length) != body.len() {
        return None;
    }
    let mut body = body;
    let value = |packet: &u8| {
        let (found, rest) = body.split_first()?;
        let (data, rest) = rest.split_at_checked(size(*packet))?;
        body = rest;
        match data {
            _ if found != packet => None,
            [byte] => Some(u16::from(*byte)),
            [high, low] => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        }
    };
    packets.iter().map(value).collect()
}

/// The packets of [`Sensors`]. Their frame has 26 bytes, so that one fits into 15 ms even at 19200 baud.
pub const PACKETS: &[u8] = &[7, 9, 10, 11, 12, 22, 34, 35, 43, 44];

/// What the robot senses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sensors {
    /// Whether the left and the right half of the bumper are pressed.
    pub bumps: [bool; 2],
    /// Whether the left and the right wheel hang in the air.
    pub drops: [bool; 2],
    /// Whether it sees no floor in front of it: from the left to the right.
    pub cliffs: [bool; 4],
    /// The voltage of the battery.
    pub battery_mv: u16,
    /// Whether a charger is plugged in.
    pub charger: bool,
    /// Whether it stands on its dock.
    pub docked: bool,
    /// Whether it obeys commands for the wheels: in the modes safe and full.
    pub obeys: bool,
    /// The counts of the left and the right encoder, which wrap.
    pub counts: [u16; 2],
}

impl Sensors {
    /// Reads the data of [`PACKETS`].
    pub fn of(values: &[u16]) -> Option<Self> {
        let [
            touch,
            cliff_left,
            cliff_front_left,
            cliff_front_right,
            cliff_right,
            battery_mv,
            sources,
            mode,
            left,
            right,
        ] = *values
        else {
            return None;
        };
        let cliffs = [cliff_left, cliff_front_left, cliff_front_right, cliff_right];
        Some(Self {
            bumps: [touch & 0b0010 != 0, touch & 0b0001 != 0],
            drops: [touch & 0b1000 != 0, touch & 0b0100 != 0],
            cliffs: cliffs.map(|cliff| cliff != 0),
            battery_mv,
            charger: sources & 0b01 != 0,
            docked: sources & 0b10 != 0,
            // Some robots were seen to report 4 instead of 3.
            obeys: (2..=4).contains(&mode),
            counts: [left, right],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of the manual's examples, and all those that programs usually ask for.
    const EXAMPLE: &[u8] = &[29, 13];
    const MANY: &[u8] = &[
        7, 8, 9, 10, 11, 12, 14, 21, 22, 23, 24, 25, 26, 34, 35, 43, 44, 45, 58,
    ];

    fn hex(text: &str) -> Vec<u8> {
        let bytes = text.split_ascii_whitespace();
        bytes
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect()
    }

    /// A frame with our packets.
    fn frame(counts: [u16; 2]) -> Vec<u8> {
        let mut frame = hex("13 17 07 00 09 00 0A 00 0B 00 0C 00 16 3D B8 22 00 23 02");
        for (packet, count) in [43, 44].into_iter().zip(counts) {
            frame.push(packet);
            frame.extend(count.to_be_bytes());
        }
        let sum = frame.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        frame.push(sum.wrapping_neg());
        frame
    }

    #[test]
    fn commands_have_the_bytes_of_the_open_interface() {
        let drive = |left, right| Command::Drive { left, right };
        for (command, bytes) in [
            (Command::Start, "80"),
            (Command::Safe, "83"),
            (drive(200, 200), "91 00 C8 00 C8"),
            (drive(200, -56), "91 FF C8 00 C8"),
            // To the left on the spot: the right wheel comes first.
            (drive(-200, 200), "91 00 C8 FF 38"),
            (Command::STAND, "91 00 00 00 00"),
            (
                Command::Stream(MANY),
                "94 13 07 08 09 0A 0B 0C 0E 15 16 17 18 19 1A 22 23 2B 2C 2D 3A",
            ),
            (Command::Quiet, "96 00"),
        ] {
            assert_eq!(command.encode(), hex(bytes), "{command:?}");
        }
    }

    #[test]
    fn worked_frames_are_read() {
        let many = "13 2C 07 00 08 00 09 00 0A 00 0B 00 0C 00 0E 00 15 00 16 3D B8 17 FE C0 18 1B 19 08 34 \
                    1A 0A 88 22 00 23 02 2B FF FA 2C 00 04 2D 00 3A 01 4E";
        let (mv, ma) = (15_800, (-320_i16).cast_unsigned());
        let of_many = vec![
            0, 0, 0, 0, 0, 0, 0, 0, mv, ma, 27, 2100, 2696, 0, 2, 65530, 4, 0, 1,
        ];
        for (packets, bytes, values) in [
            (EXAMPLE, "13 05 1D 02 19 0D 00 A3", vec![0x219, 0]),
            (MANY, many, of_many),
        ] {
            let mut frames = Frames::new(packets);
            frames.extend(&hex(bytes));
            let frame = Frame { values, missed: 0 };
            assert_eq!(frames.pop(), Some(frame));
            assert_eq!(frames.pop(), None);
        }
    }

    #[test]
    fn frames_are_found_however_they_are_cut_and_behind_garbage() {
        let lone = frame([1, 2]);
        assert_eq!(lone.len(), 26);
        // At 19200 baud, 15 ms are 28 bytes.
        let mut wrong = lone.clone();
        wrong[20] ^= 1;
        let torn = &lone[7..];
        let noise = [HEADER; 5];
        for (garbage, missed) in [
            (&[][..], 0),
            (&wrong[..], 1),
            (torn, 1),
            (&noise[..], 0),
            (&b"bl-start\r\n"[..], 0),
        ] {
            let bytes = [garbage, &lone[..], &frame([3, 65_535])[..]].concat();
            for cut in 0..bytes.len() {
                let mut frames = Frames::new(PACKETS);
                let mut found = Vec::new();
                for part in [&bytes[..cut], &bytes[cut..]] {
                    frames.extend(part);
                    found.extend(std::iter::from_fn(|| frames.pop()));
                }
                let counts: Vec<_> = found
                    .iter()
                    .map(|it| Sensors::of(&it.values).unwrap().counts)
                    .collect();
                assert_eq!(counts, [[1, 2], [3, 65_535]], "{garbage:?} {cut}");
                assert_eq!((found[0].missed, found[1].missed), (missed, 0));
            }
        }
        let mut frames = Frames::new(PACKETS);
        frames.extend(&[HEADER; 10_000]);
        assert_eq!(frames.pop(), None);
        assert!(frames.bytes.len() < 26);
    }

    #[test]
    fn bits_are_those_of_the_open_interface() {
        let usual = Sensors {
            battery_mv: 15_800,
            obeys: true,
            counts: [10, 20],
            ..Sensors::default()
        };
        let read = |changes: &[(usize, u16)]| {
            let mut values = [0, 0, 0, 0, 0, 15_800, 0, 2, 10, 20];
            for (index, value) in changes {
                values[*index] = *value;
            }
            Sensors::of(&values).unwrap()
        };
        assert_eq!(read(&[]), usual);
        for (touch, bumps, drops) in [
            (1, [false, true], [false; 2]),
            (2, [true, false], [false; 2]),
            (4, [false; 2], [false, true]),
            (8, [false; 2], [true, false]),
            (15, [true; 2], [true; 2]),
        ] {
            let expected = Sensors {
                bumps,
                drops,
                ..usual
            };
            assert_eq!(read(&[(0, touch)]), expected);
        }
        for index in 0..4 {
            let mut expected = usual;
            expected.cliffs[index] = true;
            assert_eq!(read(&[(index + 1, 1)]), expected);
        }
        let charger = Sensors {
            charger: true,
            ..usual
        };
        let docked = Sensors {
            docked: true,
            ..usual
        };
        assert_eq!((read(&[(6, 1)]), read(&[(6, 2)])), (charger, docked));
        for (mode, obeys) in [(0, false), (1, false), (3, true), (4, true), (32, false)] {
            assert_eq!(read(&[(7, mode)]), Sensors { obeys, ..usual });
        }
        assert_eq!(Sensors::of(&[0; 9]), None);
    }
}
