//! The bytes of packets and answers. PURE.

/// How points are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// 1/4 mm.
    Plain,
    /// Whole mm, and two bits that are 0 unless something disturbs the measurement.
    Whole,
    /// A byte for the strength, and whole mm.
    Strength,
}

/// A packet of points: millimetres, and 0 without an echo. `kind` is 0, or 1 for the first one of a
/// turn plus twice the turns in ten seconds. The angles are those of the first point and the last.
#[must_use]
pub fn packet(form: Form, kind: u8, degrees: [f64; 2], points: &[f64]) -> Vec<u8> {
    // At most 80.
    let count = points.len() as u8;
    let mut body = Vec::new();
    let mut sum = 0x55AA ^ u16::from_le_bytes([kind, count]);
    for mm in points {
        let word = match form {
            Form::Plain => (mm * 4.0).round() as u16,
            Form::Whole | Form::Strength => (mm.round() as u16) << 2,
        };
        if form == Form::Strength {
            let strength = if *mm > 0.0 { 200 } else { 0 };
            body.push(strength);
            sum ^= u16::from(strength);
        }
        body.extend(word.to_le_bytes());
        sum ^= word;
    }
    let [first, last] = degrees.map(|deg| {
        // Below 23040.
        let angle = (deg.rem_euclid(360.0) * 64.0).round() as u32 % 23_040;
        ((angle as u16) << 1) | 1
    });
    sum ^= first ^ last;
    let angles = [first, last, sum].map(u16::to_le_bytes).concat();
    [&[0xAA, 0x55, kind, count][..], &angles, &body].concat()
}

/// The time of a newer scanner.
pub(super) fn time(ms: u32) -> Vec<u8> {
    let mut bytes = [&[0xAA, 0x66, 0][..], &ms.to_le_bytes(), &[0]].concat();
    bytes[2] = bytes.iter().fold(0, |sum, byte| sum ^ byte);
    bytes
}
