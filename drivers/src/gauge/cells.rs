//! The cells of a battery: how full it is by their voltage, and when it is low. PURE.

use amber_proto::battery_state::battery_state;

use crate::options::{OptionsError, check};

/// The chemistry of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chemistry {
    /// Lithium ion, such as cells of the size 18650
    LiIon,
    /// Lithium polymer
    LiPo,
    /// Lithium iron phosphate
    LiFe,
    /// Nickel metal hydride
    NiMh,
    /// Lead acid
    LeadAcid,
}

/// The cells of a battery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// How many are in series.
    pub number: u32,
    /// Their chemistry.
    pub chemistry: Chemistry,
}

/// What is known of a battery in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pack {
    /// Its cells.
    pub cells: Option<Cells>,
    /// It is low below this voltage.
    pub low_mv: Option<u32>,
    /// Its resistance with its wires: without load, its voltage is higher by this times the current.
    pub resistance_mohm: u32,
}

impl Pack {
    /// The battery of these options. Cells and chemistry say when it is low, unless `low_mv` does.
    ///
    /// # Errors
    /// A value is invalid or missing.
    pub(crate) fn of(
        cells: Option<u32>,
        chemistry: Option<Chemistry>,
        low_mv: Option<u32>,
    ) -> Result<Self, OptionsError> {
        let missing = |name, problem: &str| OptionsError::Value {
            name,
            problem: problem.to_owned(),
        };
        let cells = match (cells, chemistry) {
            (Some(number), Some(chemistry)) => Some(Cells {
                number: check("cells", number, 1..=50)?,
                chemistry,
            }),
            (None, None) => None,
            (Some(_), None) => return Err(missing("chemistry", "must be given with cells")),
            (None, Some(_)) => return Err(missing("cells", "must be given with chemistry")),
        };
        let low_mv = low_mv.map(|mv| check("low_mv", mv, 500..=200_000));
        Ok(Self {
            low_mv: low_mv.transpose()?.or(cells.map(Cells::low_mv)),
            cells,
            resistance_mohm: 0,
        })
    }
}

/// Millivolts of a cell, and percent: usual values of a cell at rest, descending.
type Curve = &'static [(f64, f64)];

const LI_ION: Curve = &[
    (4200.0, 100.0),
    (4060.0, 90.0),
    (3980.0, 80.0),
    (3870.0, 60.0),
    (3790.0, 40.0),
    (3740.0, 20.0),
    (3680.0, 10.0),
    (3000.0, 0.0),
];
const LI_PO: Curve = &[
    (4200.0, 100.0),
    (4110.0, 90.0),
    (4020.0, 80.0),
    (3870.0, 60.0),
    (3800.0, 40.0),
    (3730.0, 20.0),
    (3690.0, 10.0),
    (3300.0, 0.0),
];
const LI_FE: Curve = &[
    (3400.0, 100.0),
    (3320.0, 80.0),
    (3270.0, 50.0),
    (3200.0, 20.0),
    (3000.0, 10.0),
    (2500.0, 0.0),
];
const NI_MH: Curve = &[
    (1400.0, 100.0),
    (1300.0, 80.0),
    (1250.0, 50.0),
    (1200.0, 20.0),
    (1000.0, 0.0),
];
const LEAD_ACID: Curve = &[
    (2120.0, 100.0),
    (2070.0, 80.0),
    (2010.0, 50.0),
    (1960.0, 20.0),
    (1880.0, 0.0),
];

impl Chemistry {
    fn curve(self) -> Curve {
        match self {
            Self::LiIon => LI_ION,
            Self::LiPo => LI_PO,
            Self::LiFe => LI_FE,
            Self::NiMh => NI_MH,
            Self::LeadAcid => LEAD_ACID,
        }
    }

    /// The voltage of a cell below which it should be charged, under the load of a robot.
    fn low_mv(self) -> u32 {
        match self {
            Self::LiIon => 3_300,
            Self::LiPo => 3_500,
            Self::LiFe => 2_900,
            Self::NiMh => 1_050,
            Self::LeadAcid => 1_900,
        }
    }

    /// The same in messages.
    pub(crate) fn told(self) -> battery_state::Chemistry {
        match self {
            Self::LiIon => battery_state::Chemistry::LiIon,
            Self::LiPo => battery_state::Chemistry::LiPo,
            Self::LiFe => battery_state::Chemistry::LiFe,
            Self::NiMh => battery_state::Chemistry::NiMh,
            Self::LeadAcid => battery_state::Chemistry::LeadAcid,
        }
    }
}

impl Cells {
    /// The voltage below which the battery should be charged.
    pub(crate) fn low_mv(self) -> u32 {
        self.number * self.chemistry.low_mv()
    }

    /// How full the battery is, in whole percent. It is a rough estimate, because the voltage also
    /// depends on load, age and temperature.
    pub(crate) fn charge_percent(self, battery_mv: f64) -> f64 {
        let cell_mv = battery_mv / f64::from(self.number.max(1));
        let curve = self.chemistry.curve();
        for pair in curve.windows(2) {
            let [(above_mv, more), (below_mv, less)] = [pair[0], pair[1]];
            if cell_mv >= above_mv {
                return more;
            }
            if cell_mv > below_mv {
                let share = (cell_mv - below_mv) / (above_mv - below_mv);
                return (less + share * (more - less)).round();
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn a_battery_of_three_cells_empties() {
        let cells = Cells {
            number: 3,
            chemistry: Chemistry::LiPo,
        };
        for (mv, percent) in [
            (13_000.0, 100.0),
            (12_600.0, 100.0),
            (12_060.0, 80.0),
            (11_835.0, 70.0),
            (11_190.0, 20.0),
            (9_900.0, 0.0),
            (0.0, 0.0),
        ] {
            assert_eq!(cells.charge_percent(mv), percent, "{mv} mV");
        }
        assert_eq!(cells.low_mv(), 10_500);
    }

    #[test]
    fn every_curve_falls_and_is_low_before_it_is_empty() {
        for chemistry in Chemistry::value_variants() {
            let curve = chemistry.curve();
            let falls = |pair: &[(f64, f64)]| pair[0].0 > pair[1].0 && pair[0].1 > pair[1].1;
            assert!(curve.windows(2).all(falls), "{chemistry:?}");
            assert_eq!(curve.first().unwrap().1, 100.0);
            assert_eq!(curve.last().unwrap().1, 0.0);
            let cells = Cells {
                number: 4,
                chemistry: *chemistry,
            };
            let at_low = cells.charge_percent(cells.low_mv().into());
            assert!((0.1..20.0).contains(&at_low), "{chemistry:?}: {at_low}");
        }
    }
}
