//! The text format of SCIP 2.0: checksums, encoded numbers, lines. PURE.

/// The number of data characters in a line before the checksum.
const LINE: usize = 64;

/// The checksum character of a line.
#[must_use]
pub fn sum(text: &[u8]) -> u8 {
    let sum = text.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    (sum & 0x3F) + 0x30
}

/// Encodes a number in this many characters of six bits; the upper bits of larger numbers are lost.
#[must_use]
pub fn encode(value: u32, characters: usize) -> Vec<u8> {
    (0..characters)
        .rev()
        .map(|place| ((value >> (6 * place)) & 0x3F) as u8 + 0x30)
        .collect()
}

/// A reply under construction: lines with checksums after the echo of the request.
#[derive(Clone, Debug)]
pub(crate) struct Reply(Vec<u8>);

impl Reply {
    /// Starts with the echo.
    pub(crate) fn to(request: &str) -> Self {
        Self(format!("{request}\n").into_bytes())
    }

    /// Adds a line whose checksum covers all of it.
    pub(crate) fn line(mut self, text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        self.0.extend(text);
        self.0.extend([sum(text), b'\n']);
        self
    }

    /// Adds a line `KEY:value;` whose checksum excludes the semicolon.
    pub(crate) fn entry(mut self, key: &str, value: &str) -> Self {
        let text = format!("{key}:{value}");
        self.0.extend(text.as_bytes());
        self.0.extend([b';', sum(text.as_bytes()), b'\n']);
        self
    }

    /// Adds lines of data.
    pub(crate) fn data(self, characters: &[u8]) -> Self {
        characters.chunks(LINE).fold(self, Self::line)
    }

    /// Adds the empty line at the end.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.push(b'\n');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_characters() {
        for (value, characters, text) in [
            (1234, 2, "CB"),
            (5432, 3, "1Dh"),
            (16_000_000, 4, "m2@0"),
            (6_968_830, 4, "JUGn"),
            (392, 3, "068"),
            (0, 3, "000"),
        ] {
            assert_eq!(encode(value, characters), text.as_bytes(), "{value}");
        }
    }

    #[test]
    fn sums_of_recorded_lines() {
        for line in [
            "00P", "01Q", "02R", "03S", "04T", "10Q", "99b", "0Bb", "0Cc", "0Dd", "0Ee", "JUGnD",
        ] {
            let (text, expected) = line.split_at(line.len() - 1);
            assert_eq!([sum(text.as_bytes())], expected.as_bytes(), "{line}");
        }
    }

    #[test]
    fn entries_of_recorded_units() {
        for line in [
            "VEND:Hokuyo Automatic Co.,Ltd.;[",
            "PROD:SOKUIKI Sensor URG-04LX;[",
            "FIRM:3.1.04(02/Aug./2007);a",
            "PROT:SCIP 2.0;N",
            "SERI:H0706400;F",
            "MODL:URG-04LX(Hokuyo Automatic Co.,Ltd.);N",
            "DMIN:20;4",
            "DMAX:5600;_",
            "ARES:1024;\\",
            "AMIN:44;7",
            "AMAX:725;o",
            "AFRT:384;6",
            "SCAN:600;e",
            "LASR:ON;9",
            "LASR:OFF;7",
            "SCSP:Initial(600[rpm])<-Default setting by user;A",
            "MESM:CLASSIC;^",
            "MESM:IDLE;:",
            "SBPS:19200[bps]<-Default setting by user;A",
            "TIME:6A5404;]",
            "STAT:Sensor works well.;8",
            "DMIN:23;7",
            "DMAX:60000;J",
            "ARES:1440;^",
            "AMIN:0;?",
            "AMAX:1080;Z",
            "AFRT:540;0",
            "SCAN:2400;U",
            "SBPS:USB Full Speed;P",
        ] {
            let (entry, _) = line.rsplit_once(';').unwrap();
            let (key, value) = entry.split_once(':').unwrap();
            let reply = Reply::to("PP").entry(key, value).end();
            assert_eq!(String::from_utf8(reply).unwrap(), format!("PP\n{line}\n\n"));
        }
    }

    #[test]
    fn data_are_cut_into_lines_of_64_characters() {
        for (count, lines) in [(0, 0), (63, 1), (64, 1), (65, 2), (128, 2)] {
            let reply = Reply::to("GD").data(&vec![b'0'; count]).end();
            assert_eq!(reply.len(), 3 + count + 2 * lines + 1, "{count}");
        }
    }
}
