//! New inputs from old ones. PURE.

use fastrand::Rng;

/// The longest input that is made.
pub const MAX_BYTES: usize = 4096;

/// What length fields, numbers and text are often wrong about.
const INTERESTING: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\x7f\xff",
    b"\x80\0",
    b"\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\n",
    b"\n\n",
    b"'",
    b"\"",
    b"[[driver]]\n",
    b"99999999999999999999",
    b"-1",
];

/// An input like one of the corpus, changed a few times.
pub fn mutated(random: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.choice(corpus).cloned().unwrap_or_default();
    for _ in 0..random.usize(1..=8) {
        change(random, corpus, &mut bytes);
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

fn change(random: &mut Rng, corpus: &[Vec<u8>], bytes: &mut Vec<u8>) {
    let at = random.usize(0..=bytes.len());
    let end = random.usize(at..=bytes.len().min(at + 32));
    match random.u8(0..7) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.u8(0..8),
        1 if at < bytes.len() => bytes[at] = random.u8(..),
        2 => {
            bytes.drain(at..end);
        }
        3 => bytes.extend_from_within(at..end),
        4 => {
            let piece: Vec<u8> = (at..end).map(|_| random.u8(..)).collect();
            insert(bytes, at, &piece);
        }
        5 => insert(bytes, at, random.choice(INTERESTING).unwrap_or(&&b"\0"[..])),
        _ => {
            // The beginning of this one, the end of another.
            let other = random.choice(corpus).map_or(&[][..], Vec::as_slice);
            let from = random.usize(0..=other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}
