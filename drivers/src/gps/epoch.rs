//! Joins the sentences of one moment. PURE.
//!
//! A receiver tells what it has measured in several sentences with the same time, such as RMC and GGA.
//! Together they are an epoch.

use amber_proto::gps::Fix;
use amber_proto::gps::fix::{Correction, Kind};

use super::nmea::{Gga, Gst, Place, Quality, Rmc, Sentence};

/// RMC and GGA have the same position, but one of them may have fewer digits: 3 m.
const SAME_DEG: f64 = 3e-5;
/// A slower robot has no course.
const MIN_SPEED_M_S: f64 = 0.5;
/// The counter of weeks of old receivers has overflowed, so they tell dates of 20 years ago.
const FIRST_YEAR: u32 = 2_024;

/// What the sentences of one moment say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Epoch {
    gga: Option<Gga>,
    rmc: Option<Rmc>,
    gst: Option<Gst>,
    dimensions: Option<u8>,
    vdop: Option<f64>,
}

/// Why an epoch says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Useless {
    /// RMC and GGA are both missing.
    Empty,
    /// RMC and GGA have different positions: one of them is damaged.
    Contradiction,
}

/// Collects the sentences of an epoch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Joiner {
    epoch: Epoch,
    time_ms: Option<u32>,
    /// Sentences with a time have arrived that nobody was told of.
    is_new: bool,
}

impl Joiner {
    /// Takes a sentence. If a new epoch begins with it, returns the one before.
    pub fn push(&mut self, sentence: &Sentence) -> Option<Epoch> {
        let Some(time_ms) = sentence.time_ms() else {
            if let Sentence::Gsa(gsa) = sentence {
                // Each system of satellites has its own.
                self.epoch.dimensions = self.epoch.dimensions.max(gsa.dimensions);
                self.epoch.vdop = self.epoch.vdop.or(gsa.vdop);
            }
            return None;
        };
        // Without a clock, receivers tell no time.
        let begins = time_ms != self.time_ms || self.epoch.has_kind_of(sentence);
        let before = if begins { self.end() } else { None };
        if begins {
            (self.epoch, self.time_ms) = (Epoch::default(), time_ms);
        }
        match sentence {
            Sentence::Gga(gga) => self.epoch.gga = Some(*gga),
            Sentence::Rmc(rmc) => self.epoch.rmc = Some(*rmc),
            Sentence::Gst(gst) => self.epoch.gst = Some(*gst),
            Sentence::Gsa(_) | Sentence::Antenna(_) | Sentence::Other => {}
        }
        self.is_new = true;
        before
    }

    /// Whether [`Joiner::end`] has something to tell.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// No further sentence follows for now. Returns the epoch, unless it was told before. If more of its
    /// sentences follow nevertheless, it is told again with them.
    pub fn end(&mut self) -> Option<Epoch> {
        std::mem::take(&mut self.is_new).then_some(self.epoch)
    }
}

impl Epoch {
    /// Whether it has the position twice.
    pub fn is_pair(&self) -> bool {
        self.gga.is_some() && self.rmc.is_some()
    }

    /// The year, if the receiver tells one that is over for long.
    pub fn old_year(&self) -> Option<u32> {
        let year = self.rmc?.date?.year;
        (year < FIRST_YEAR).then_some(year)
    }

    /// What it says to clients. `error_m` is the error of a position with a dilution of 1.
    pub fn fix(&self, error_m: f64) -> Result<Fix, Useless> {
        let (kind, correction) = match self.quality().ok_or(Useless::Empty)? {
            Quality::None => (Kind::None, None),
            Quality::DeadReckoning => (Kind::DeadReckoning, None),
            Quality::Satellites(correction) => (self.dimensions(), Some(correction)),
        };
        let gga = self.gga.unwrap_or_default();
        let bare = Fix {
            kind: Some(kind.into()),
            satellites: gga.satellites,
            time: self.unix_ms(),
            ..Fix::default()
        };
        let place = self.place()?.filter(|_| kind != Kind::None);
        let Some(place) = place else {
            let kind = Some(Kind::None.into());
            return Ok(Fix { kind, ..bare });
        };
        let rmc = self.rmc.unwrap_or_default();
        let is_moving = rmc.speed_m_s.is_some_and(|it| it >= MIN_SPEED_M_S);
        // Without the third dimension, receivers repeat the last altitude.
        let altitude = gga.altitude_m.filter(|_| kind != Kind::TwoD);
        let height = altitude.zip(gga.separation_m);
        let errors = self.errors(error_m);
        Ok(Fix {
            latitude: Some(place.latitude_deg),
            longitude: Some(place.longitude_deg),
            altitude,
            height: height.map(|(altitude, separation)| altitude + separation),
            horizontal_accuracy: errors.horizontal_m,
            vertical_accuracy: errors.vertical_m.filter(|_| altitude.is_some()),
            accuracy_is_estimated: errors.horizontal_m.map(|_| errors.are_estimated),
            correction: correction.map(Into::into),
            hdop: gga.hdop,
            speed: rmc.speed_m_s,
            course: rmc.course_deg.filter(|_| is_moving),
            ..bare
        })
    }

    fn has_kind_of(&self, sentence: &Sentence) -> bool {
        match sentence {
            Sentence::Gga(_) => self.gga.is_some(),
            Sentence::Rmc(_) => self.rmc.is_some(),
            Sentence::Gst(_) => self.gst.is_some(),
            Sentence::Gsa(_) | Sentence::Antenna(_) | Sentence::Other => false,
        }
    }

    /// What both say: a position that one of them denies is none. GGA knows more of corrections.
    fn quality(&self) -> Option<Quality> {
        let gga = self.gga.map(|it| it.quality);
        let rmc = self.rmc.map(|it| it.quality);
        match (gga, rmc) {
            (Some(Quality::None), Some(_)) | (Some(_), Some(Quality::None)) => Some(Quality::None),
            (Some(_), Some(Quality::DeadReckoning)) => rmc,
            _ => gga.or(rmc),
        }
    }

    fn place(&self) -> Result<Option<Place>, Useless> {
        let gga = self.gga.and_then(|it| it.place);
        let rmc = self.rmc.and_then(|it| it.place);
        match gga.zip(rmc) {
            Some((one, other)) if !one.is_near(other) => Err(Useless::Contradiction),
            _ => Ok(gga.or(rmc)),
        }
    }

    fn dimensions(&self) -> Kind {
        let has_altitude = self.gga.is_some_and(|gga| gga.altitude_m.is_some());
        match self.dimensions {
            Some(2) => Kind::TwoD,
            Some(_) => Kind::ThreeD,
            // The receiver does not tell it.
            None if has_altitude => Kind::ThreeD,
            None => Kind::TwoD,
        }
    }

    fn unix_ms(&self) -> Option<i64> {
        let rmc = self.rmc?;
        let date = rmc.date.filter(|date| date.year >= FIRST_YEAR)?;
        Some(date.unix_ms(rmc.time_ms?))
    }

    fn errors(&self, error_m: f64) -> Errors {
        let told = self.gst.and_then(|gst| {
            let horizontal_m = gst.latitude_m?.hypot(gst.longitude_m?);
            Some((horizontal_m, gst.altitude_m))
        });
        match told {
            Some((horizontal_m, vertical_m)) => Errors {
                horizontal_m: Some(horizontal_m),
                vertical_m,
                are_estimated: false,
            },
            None => Errors {
                horizontal_m: self.gga.and_then(|gga| gga.hdop).map(|it| it * error_m),
                vertical_m: self.vdop.map(|it| it * error_m),
                are_estimated: true,
            },
        }
    }
}

/// Standard deviations.
struct Errors {
    horizontal_m: Option<f64>,
    vertical_m: Option<f64>,
    are_estimated: bool,
}

impl Place {
    fn is_near(self, other: Self) -> bool {
        let north_deg = (self.latitude_deg - other.latitude_deg).abs();
        let east_deg = (self.longitude_deg - other.longitude_deg).abs();
        north_deg <= SAME_DEG && east_deg.min(360.0 - east_deg) <= SAME_DEG
    }
}

/// The correction that a fix tells, for people.
pub fn in_words(fix: &Fix) -> &'static str {
    match (fix.kind(), fix.correction()) {
        (Kind::None, _) => "no position",
        (Kind::DeadReckoning, _) => "a position by dead reckoning",
        (_, Correction::RtkFixed) => "a position, RTK fixed",
        (_, Correction::RtkFloat) => "a position, RTK float",
        (_, Correction::Differential) => "a position, with differential corrections",
        (_, Correction::NoCorrection) => "a position",
    }
}

#[cfg(test)]
mod tests;
