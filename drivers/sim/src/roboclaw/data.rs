//! The data of requests and replies, big-endian. PURE.

/// The data of a request, read from the front. The length of the packet was checked before; missing
/// bytes read as 0.
pub(super) struct Data<'a>(pub(super) &'a [u8]);

impl Data<'_> {
    pub(super) fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((taken, rest)) = self.0.split_first_chunk() else {
            self.0 = &[];
            return [0; N];
        };
        self.0 = rest;
        *taken
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.0 = self.0.get(bytes..).unwrap_or_default();
    }

    pub(super) fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    pub(super) fn i8(&mut self) -> i8 {
        i8::from_be_bytes(self.take())
    }

    pub(super) fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.take())
    }

    pub(super) fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    pub(super) fn duty(&mut self) -> f64 {
        (f64::from(i16::from_be_bytes(self.take())) / 32_767.0).clamp(-1.0, 1.0)
    }
}

pub(super) fn speed_report(qpps: i32) -> Vec<u8> {
    [qpps.to_be_bytes().as_slice(), &[u8::from(qpps < 0)]].concat()
}

/// 64 is the centre.
pub(super) fn centred(value: u8) -> f64 {
    ((f64::from(value.min(127)) - 64.0) / 63.0).clamp(-1.0, 1.0)
}

pub(super) fn tenths(value: f64) -> u16 {
    (value * 10.0).round() as u16
}

pub(super) fn words<const N: usize>(values: [u16; N]) -> Vec<u8> {
    values.into_iter().flat_map(u16::to_be_bytes).collect()
}

pub(super) fn longs<const N: usize>(values: [u32; N]) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_be_bytes).collect()
}
