//! Units of measurement. PURE.

/// Points in time, which are no multiples of a unit.
const POINTS_IN_TIME: [&str; 2] = ["ms since 1970", "us since 1970"];

/// The symbols without a prefix. `gn` is standard gravity, `G` gauss, `B` byte.
const SYMBOLS: &[&str] = &[
    "%", "1", "A", "B", "C", "F", "G", "H", "Hz", "J", "K", "L", "N", "Ohm", "Pa", "S", "T", "V",
    "W", "Wb", "bar", "bit", "cd", "d", "deg", "degC", "g", "gn", "h", "lm", "lx", "m", "min",
    "mol", "rad", "rpm", "s",
];

/// From nano to tera; `u` is micro.
const PREFIXES: [&str; 10] = ["n", "u", "m", "c", "d", "h", "k", "M", "G", "T"];

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
}
