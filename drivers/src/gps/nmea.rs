//! Reads the sentences of NMEA 0183. PURE.
//!
//! A sentence is a line: `$`, the talker (`GP`, `GN`, `GL`, `GA`, `GB`, `BD`, ...), three letters for its
//! kind, fields with commas between them, `*`, and two hex digits: all bytes between `$` and `*`,
//! combined by exclusive or. An empty field is unknown, and not 0.
//!
//! Sentences without a sum or with a wrong one are dropped and counted, and so are those with an
//! impossible value: the sum does not notice all errors.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use amber_proto::gps::fix::Correction;

/// The standard allows 82 bytes; receivers for surveyors send longer ones.
const MAX_LENGTH: usize = 160;
/// The unit of speeds.
const KNOT_M_S: f64 = 1_852.0 / 3_600.0;
/// Receivers without a position tell a dilution of 99.99.
const NO_DILUTION: f64 = 99.0;

/// A sentence that the driver understands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sentence {
    /// The position, and how good it is.
    Gga(Gga),
    /// The position, speed and date.
    Rmc(Rmc),
    /// The satellites in use.
    Gsa(Gsa),
    /// The errors of the position.
    Gst(Gst),
    /// The state of the antenna.
    Antenna(Antenna),
    /// Another sentence with a right sum.
    Other,
}

/// What a receiver says of the quality of its position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quality {
    /// It has no position, or one that a person has told it.
    #[default]
    None,
    /// It has one from satellites.
    Satellites(Correction),
    /// It continues the last motion.
    DeadReckoning,
}

/// A place on the ellipsoid WGS 84, in degrees: north and east are positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// From -90 to 90.
    pub latitude_deg: f64,
    /// From -180 to 180.
    pub longitude_deg: f64,
}

/// GGA.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gga {
    /// Since midnight, UTC.
    pub time_ms: Option<u32>,
    /// Absent without a position.
    pub place: Option<Place>,
    pub quality: Quality,
    /// The number in use; many receivers count only to 12.
    pub satellites: Option<u32>,
    /// The horizontal dilution of precision.
    pub hdop: Option<f64>,
    /// Above the mean sea level.
    pub altitude_m: Option<f64>,
    /// The mean sea level above the ellipsoid.
    pub separation_m: Option<f64>,
}

/// RMC.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rmc {
    /// Since midnight, UTC.
    pub time_ms: Option<u32>,
    /// Absent without a position.
    pub place: Option<Place>,
    pub quality: Quality,
    pub speed_m_s: Option<f64>,
    /// Clockwise from true north.
    pub course_deg: Option<f64>,
    pub date: Option<Date>,
}

/// GSA: one for each system of satellites.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gsa {
    /// 2 or 3; `None` without a position.
    pub dimensions: Option<u8>,
    /// The vertical dilution of precision.
    pub vdop: Option<f64>,
}

/// GST: standard deviations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gst {
    /// Since midnight, UTC.
    pub time_ms: Option<u32>,
    pub latitude_m: Option<f64>,
    pub longitude_m: Option<f64>,
    pub altitude_m: Option<f64>,
}

/// What a receiver finds at the plug of its antenna.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Antenna {
    /// No current flows: nothing is connected, or an antenna without an amplifier.
    Open,
    /// A short circuit.
    Short,
    /// An antenna with an amplifier.
    Well,
}

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// All four digits.
    pub year: u32,
    /// From 1 to 12.
    pub month: u32,
    /// From 1 to 31.
    pub day: u32,
}

/// A sentence that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Broken;

/// Finds the sentences in a stream of bytes.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    /// What has arrived since a `$`.
    line: Option<Vec<u8>>,
    sentences: VecDeque<Sentence>,
    broken: u64,
}

impl Parser {
    /// Bytes from the receiver. Other protocols between the sentences are ignored.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (byte, &mut self.line) {
                (b'$', line) => {
                    // The end of the sentence before is lost.
                    self.broken += u64::from(line.replace(Vec::new()).is_some());
                }
                (b'\r' | b'\n', line) => {
                    if let Some(line) = line.take() {
                        self.end(&line);
                    }
                }
                (b' '..=b'~', Some(line)) if line.len() < MAX_LENGTH => line.push(*byte),
                (_, line) => self.broken += u64::from(line.take().is_some()),
            }
        }
    }

    /// The next sentence.
    pub fn poll(&mut self) -> Option<Sentence> {
        self.sentences.pop_front()
    }

    /// The number of sentences that were dropped.
    pub fn broken(&self) -> u64 {
        self.broken
    }

    /// Forgets what has arrived, as after a new connection.
    pub fn clear(&mut self) {
        self.line = None;
        self.sentences.clear();
    }

    fn end(&mut self, line: &[u8]) {
        match std::str::from_utf8(line).map_err(|_| Broken).and_then(read) {
            Ok(sentence) => self.sentences.push_back(sentence),
            Err(Broken) => self.broken += 1,
        }
    }
}

/// Reads what is between `$` and the end of the line.
fn read(line: &str) -> Result<Sentence, Broken> {
    let (body, sum) = line.split_once('*').ok_or(Broken)?;
    let is_hex = sum.len() == 2 && sum.bytes().all(|digit| digit.is_ascii_hexdigit());
    let sum = u8::from_str_radix(sum, 16).map_err(|_| Broken)?;
    if !is_hex || sum != body.bytes().fold(0, |sum, byte| sum ^ byte) {
        return Err(Broken);
    }
    let (address, fields) = body.split_once(',').ok_or(Broken)?;
    let fields = Fields(fields.split(',').collect());
    // Sentences of makers begin with P.
    if address.len() != 5 || address.starts_with('P') {
        return Ok(Sentence::Other);
    }
    Ok(match &address[2..] {
        "GGA" => Sentence::Gga(fields.gga()?),
        "RMC" => Sentence::Rmc(fields.rmc()?),
        "GSA" => Sentence::Gsa(fields.gsa()?),
        "GST" => Sentence::Gst(fields.gst()?),
        "TXT" => antenna(fields.text(3)).map_or(Sentence::Other, Sentence::Antenna),
        _ => Sentence::Other,
    })
}

/// u-blox: `ANTSTATUS=OPEN`; others: `ANTENNA OPEN`.
fn antenna(text: &str) -> Option<Antenna> {
    let rest = text.trim().strip_prefix("ANT")?;
    let states = [
        ("OPEN", Antenna::Open),
        ("SHORT", Antenna::Short),
        ("OK", Antenna::Well),
    ];
    let found = states.iter().find(|(word, _)| rest.ends_with(word));
    found.map(|(_, state)| *state)
}

/// The fields of a sentence. One that is absent is like an empty one.
struct Fields<'a>(Vec<&'a str>);

impl Fields<'_> {
    fn gga(&self) -> Result<Gga, Broken> {
        let quality = match self.text(5) {
            "" | "0" | "7" => Quality::None,
            // 3 is for soldiers, and 8 for simulators.
            "1" | "3" | "8" => Quality::Satellites(Correction::NoCorrection),
            "2" => Quality::Satellites(Correction::Differential),
            "4" => Quality::Satellites(Correction::RtkFixed),
            "5" => Quality::Satellites(Correction::RtkFloat),
            "6" => Quality::DeadReckoning,
            _ => return Err(Broken),
        };
        Ok(Gga {
            time_ms: self.time(0)?,
            place: self.place(1, quality)?,
            quality,
            satellites: self.number(6, 0.0..=99.0)?.map(|number| number as u32),
            hdop: self.dilution(7)?,
            altitude_m: self.number(8, -10_000.0..=100_000.0)?,
            separation_m: self.number(10, -200.0..=200.0)?,
        })
    }

    fn rmc(&self) -> Result<Rmc, Broken> {
        let is_valid = match self.text(1) {
            "A" => true,
            "" | "V" => false,
            _ => return Err(Broken),
        };
        // Old receivers have no mode.
        let quality = match self.text(11) {
            _ if !is_valid => Quality::None,
            "N" | "M" => Quality::None,
            "E" => Quality::DeadReckoning,
            "D" => Quality::Satellites(Correction::Differential),
            "F" => Quality::Satellites(Correction::RtkFloat),
            "R" => Quality::Satellites(Correction::RtkFixed),
            "" | "A" | "P" | "S" => Quality::Satellites(Correction::NoCorrection),
            _ => return Err(Broken),
        };
        let speed_kn = self.number(6, 0.0..=2_000.0)?;
        Ok(Rmc {
            time_ms: self.time(0)?,
            place: self.place(2, quality)?,
            quality,
            speed_m_s: speed_kn.map(|knots| knots * KNOT_M_S),
            course_deg: self.number(7, 0.0..=360.0)?,
            date: self.date(8)?,
        })
    }

    fn gsa(&self) -> Result<Gsa, Broken> {
        let dimensions = match self.text(1) {
            "" | "1" => None,
            "2" => Some(2),
            "3" => Some(3),
            _ => return Err(Broken),
        };
        let vdop = self.dilution(16)?;
        Ok(Gsa { dimensions, vdop })
    }

    fn gst(&self) -> Result<Gst, Broken> {
        let deviation = |index| self.number(index, 0.0..=1e7);
        Ok(Gst {
            time_ms: self.time(0)?,
            latitude_m: deviation(5)?,
            longitude_m: deviation(6)?,
            altitude_m: deviation(7)?,
        })
    }

    fn text(&self, index: usize) -> &str {
        self.0.get(index).copied().unwrap_or_default()
    }

    fn number(&self, index: usize, range: RangeInclusive<f64>) -> Result<Option<f64>, Broken> {
        let text = self.text(index);
        if text.is_empty() {
            return Ok(None);
        }
        // Not "inf", nor "1e5".
        let is_plain = text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
        let number: f64 = text.parse().map_err(|_| Broken)?;
        let is_valid = is_plain && range.contains(&number);
        is_valid.then_some(Some(number)).ok_or(Broken)
    }

    fn dilution(&self, index: usize) -> Result<Option<f64>, Broken> {
        let dilution = self.number(index, 0.0..=1e4)?;
        Ok(dilution.filter(|it| (f64::MIN_POSITIVE..NO_DILUTION).contains(it)))
    }

    /// `hhmmss.ss` as milliseconds. A leap second is the second 60.
    fn time(&self, index: usize) -> Result<Option<u32>, Broken> {
        let Some(number) = self.number(index, 0.0..=235_960.999)? else {
            return Ok(None);
        };
        let whole = number as u32;
        let [hour, minute, second] = [whole / 10_000, whole / 100 % 100, whole % 100];
        if minute >= 60 || second > 60 {
            return Err(Broken);
        }
        let ms = (number.fract() * 1_000.0).round() as u32;
        Ok(Some(((hour * 60 + minute) * 60 + second) * 1_000 + ms))
    }

    /// `ddmmyy`.
    fn date(&self, index: usize) -> Result<Option<Date>, Broken> {
        let Some(number) = self.number(index, 10_100.0..=311_299.0)? else {
            return Ok(None);
        };
        let number = number as u32;
        let [day, month, year] = [number / 10_000, number / 100 % 100, number % 100];
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(Broken);
        }
        // Satellites for navigation exist since 1980.
        let century = if year < 80 { 2_000 } else { 1_900 };
        Ok(Some(Date {
            year: century + year,
            month,
            day,
        }))
    }

    /// Latitude and longitude, if there is a position.
    fn place(&self, index: usize, quality: Quality) -> Result<Option<Place>, Broken> {
        let latitude_deg = self.angle(index, ["N", "S"], 90.0)?;
        let longitude_deg = self.angle(index + 2, ["E", "W"], 180.0)?;
        let both = latitude_deg.zip(longitude_deg);
        let place = both.map(|(latitude_deg, longitude_deg)| Place {
            latitude_deg,
            longitude_deg,
        });
        // Some receivers repeat the last position, or 0.
        Ok(place.filter(|_| quality != Quality::None))
    }

    /// `dddmm.mmmm` and the letter behind it, in degrees.
    fn angle(
        &self,
        index: usize,
        [positive, negative]: [&str; 2],
        limit_deg: f64,
    ) -> Result<Option<f64>, Broken> {
        let Some(number) = self.number(index, 0.0..=limit_deg * 100.0)? else {
            return Ok(None);
        };
        let side = self.text(index + 1);
        let sign = match side {
            "" => return Ok(None),
            _ if side == positive => 1.0,
            _ if side == negative => -1.0,
            _ => return Err(Broken),
        };
        let whole_deg = (number / 100.0).trunc();
        let minutes = number - whole_deg * 100.0;
        let degrees = whole_deg + minutes / 60.0;
        let is_valid = minutes < 60.0 && degrees <= limit_deg;
        is_valid.then_some(Some(sign * degrees)).ok_or(Broken)
    }
}

impl Sentence {
    /// The time since midnight in it, or that it has none yet; `None` if sentences of this kind have no
    /// time.
    pub(super) fn time_ms(&self) -> Option<Option<u32>> {
        match self {
            Self::Gga(it) => Some(it.time_ms),
            Self::Rmc(it) => Some(it.time_ms),
            Self::Gst(it) => Some(it.time_ms),
            Self::Gsa(_) | Self::Antenna(_) | Self::Other => None,
        }
    }
}

impl Date {
    /// Milliseconds since 1970 at a time of this day, for the years until 2099.
    pub(super) fn unix_ms(self, time_ms: u32) -> i64 {
        const DAYS_BEFORE: [u32; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let Self { year, month, day } = self;
        let leap_day = u32::from(year.is_multiple_of(4) && month > 2);
        let month = month.clamp(1, 12) as usize;
        let leap_days = (year - 1_969) / 4 + leap_day;
        let days = (year - 1_970) * 365 + leap_days + DAYS_BEFORE[month - 1] + day - 1;
        i64::from(days) * 86_400_000 + i64::from(time_ms)
    }
}

#[cfg(test)]
mod tests;
