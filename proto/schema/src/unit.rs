//! Units of measurement. PURE.

use std::collections::BTreeMap;
use std::f64::consts::PI;

/// Points in time, which are not multiples of a unit.
const POINTS_IN_TIME: [&str; 2] = ["ms since 1970", "us since 1970"];

/// The symbols without a prefix. `gn` is standard gravity, `G` gauss, `B` byte.
const SYMBOLS: &[&str] = &[
    "%", "1", "A", "B", "C", "F", "G", "H", "Hz", "J", "K", "L", "N", "Ohm", "Pa", "S", "T", "V",
    "W", "Wb", "bar", "bit", "cd", "d", "deg", "degC", "g", "gn", "h", "lm", "lx", "m", "min",
    "mol", "rad", "rpm", "s",
];

/// From nano to tera; `u` is micro.
const PREFIXES: [&str; 10] = ["n", "u", "m", "c", "d", "h", "k", "M", "G", "T"];
const PREFIX_SIZES: [f64; 10] = [1e-9, 1e-6, 1e-3, 1e-2, 1e-1, 1e2, 1e3, 1e6, 1e9, 1e12];

/// Whether a text is a unit: `mm/s`, `deg`, `m/s^2`, `1/m`, `25 us/s`, `N*m`, `ms since 1970`.
///
/// A unit is an optional number, then symbols with an optional prefix and exponent, joined by `*`
/// and `/`.
pub fn is_unit(text: &str) -> bool {
    if POINTS_IN_TIME.contains(&text) {
        return true;
    }
    let symbols = match text.split_once(' ') {
        Some((factor, symbols)) if is_factor(factor) => symbols,
        Some(_) => return false,
        None => text,
    };
    symbols.split(['*', '/']).all(is_power)
}

fn is_factor(text: &str) -> bool {
    text.parse()
        .is_ok_and(|factor: f64| factor.is_finite() && factor > 0.0)
}

fn is_power(text: &str) -> bool {
    match text.split_once('^') {
        Some((symbol, exponent)) => is_symbol(symbol) && matches!(exponent, "2" | "3" | "4"),
        None => is_symbol(text),
    }
}

fn is_symbol(text: &str) -> bool {
    let has_prefix = |prefix: &&str| {
        let rest = text.strip_prefix(prefix);
        rest.is_some_and(|rest| SYMBOLS.contains(&rest) && !matches!(rest, "1" | "%"))
    };
    SYMBOLS.contains(&text) || PREFIXES.iter().any(has_prefix)
}

/// The factor from one unit to another: 0.001 from `ms` to `s`. `None` if they measure different
/// quantities, or one of them is not a multiple of a unit.
pub fn conversion(from: &str, to: &str) -> Option<f64> {
    let ((from, times), (to, per)) = (size(from)?, size(to)?);
    (from == to).then_some(times / per)
}

/// The quantity of a unit, as powers of base units, and its size in them.
fn size(unit: &str) -> Option<(BTreeMap<&'static str, i32>, f64)> {
    if !is_unit(unit) || POINTS_IN_TIME.contains(&unit) {
        return None;
    }
    let (mut size, symbols) = match unit.split_once(' ') {
        Some((factor, symbols)) => (factor.parse().ok()?, symbols),
        None => (1.0, unit),
    };
    let mut powers = BTreeMap::new();
    let mut sign = 1;
    for part in symbols.split_inclusive(['*', '/']) {
        let power = part.trim_end_matches(['*', '/']);
        let (symbol, exponent) = power.split_once('^').unwrap_or((power, "1"));
        let exponent = sign * exponent.parse::<i32>().ok()?;
        let (base, factor) = symbol_size(symbol)?;
        size *= factor.powi(exponent);
        for (name, of_symbol) in base {
            *powers.entry(*name).or_insert(0) += of_symbol * exponent;
        }
        sign = if part.ends_with('/') { -1 } else { 1 };
    }
    powers.retain(|_, power| *power != 0);
    Some((powers, size))
}

type Base = [(&'static str, i32)];

/// The base units of a symbol with its prefix, and its size in them.
fn symbol_size(text: &str) -> Option<(&'static Base, f64)> {
    if let Some(symbol) = SYMBOLS.iter().find(|symbol| **symbol == text) {
        return Some(bare_size(symbol));
    }
    PREFIXES
        .iter()
        .zip(PREFIX_SIZES)
        .find_map(|(prefix, times)| {
            let rest = text.strip_prefix(prefix)?;
            let (base, size) = bare_size(SYMBOLS.iter().find(|symbol| **symbol == rest)?);
            Some((base, times * size))
        })
}

fn bare_size(symbol: &&'static str) -> (&'static Base, f64) {
    const DERIVED: &[(&str, &Base, f64)] = &[
        ("1", &[], 1.0),
        ("B", &[("bit", 1)], 8.0),
        ("G", &[("T", 1)], 1e-4),
        ("Hz", &[("s", -1)], 1.0),
        ("L", &[("m", 3)], 1e-3),
        ("bar", &[("Pa", 1)], 1e5),
        ("d", &[("s", 1)], 86_400.0),
        ("deg", &[("rad", 1)], PI / 180.0),
        ("gn", &[("m", 1), ("s", -2)], 9.806_65),
        ("h", &[("s", 1)], 3_600.0),
        ("min", &[("s", 1)], 60.0),
    ];
    const BASE: &[&Base] = &[
        &[("%", 1)],
        &[("A", 1)],
        &[("C", 1)],
        &[("F", 1)],
        &[("H", 1)],
        &[("J", 1)],
        &[("K", 1)],
        &[("N", 1)],
        &[("Ohm", 1)],
        &[("Pa", 1)],
        &[("S", 1)],
        &[("T", 1)],
        &[("V", 1)],
        &[("W", 1)],
        &[("Wb", 1)],
        &[("bit", 1)],
        &[("cd", 1)],
        &[("degC", 1)],
        &[("g", 1)],
        &[("lm", 1)],
        &[("lx", 1)],
        &[("m", 1)],
        &[("mol", 1)],
        &[("rad", 1)],
        &[("rpm", 1)],
        &[("s", 1)],
    ];
    let derived = DERIVED.iter().find(|(name, ..)| name == symbol);
    match derived {
        Some((_, base, size)) => (base, *size),
        None => {
            let base = BASE.iter().find(|base| base[0].0 == *symbol);
            (base.expect("every symbol is in one of the tables"), 1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_told_from_other_words() {
        let units = [
            "mm",
            "mm/s",
            "m/s^2",
            "deg",
            "mdeg/s",
            "mgn",
            "mG",
            "25 us/s",
            "0.1 V",
            "1/m",
            "N*m",
            "%",
            "kg",
            "degC",
            "rpm",
            "ms since 1970",
            "MB",
            "lx",
        ];
        for unit in units {
            assert!(is_unit(unit), "{unit}");
        }
        let others = [
            "",
            " ",
            "furlong",
            "mm/",
            "m^s",
            "m^9",
            "-1 m",
            "x m",
            "mm s",
            "k1",
            "m%",
            "seconds",
            "s since 1970",
        ];
        for other in others {
            assert!(!is_unit(other), "{other}");
        }
    }

    #[test]
    fn units_of_one_kind_are_converted() {
        for (from, to, expected) in [
            ("s", "ms", 1000.0),
            ("ms", "s", 0.001),
            ("m/s", "mm/s", 1000.0),
            ("km/h", "m/s", 1.0 / 3.6),
            ("rad", "deg", 180.0 / PI),
            ("mgn", "m/s^2", 0.009_806_65),
            ("uT", "mG", 10.0),
            ("mm^2", "m^2", 1e-6),
            ("25 us/s", "us/s", 25.0),
            ("Hz", "1/s", 1.0),
            ("min", "s", 60.0),
        ] {
            let found = conversion(from, to).unwrap();
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{from} {to}: {found}"
            );
        }
        for (from, to) in [
            ("s", "m"),
            ("deg", "deg/s"),
            ("degC", "K"),
            ("ms", "ms since 1970"),
        ] {
            assert_eq!(conversion(from, to), None, "{from} {to}");
        }
        // Every symbol has a size.
        for symbol in SYMBOLS {
            assert_eq!(conversion(symbol, symbol), Some(1.0), "{symbol}");
        }
    }
}
