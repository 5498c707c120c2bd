//! The parameters of a StarGazer: factory values and valid values. PURE.

use std::collections::BTreeMap;

use crate::ceiling::MarkType;

/// The values of all parameters.
pub(super) type Parameters = BTreeMap<&'static str, String>;

/// The stored values of a new device.
pub(super) fn factory(version: &str, mark_type: MarkType) -> Parameters {
    [
        ("Version", version),
        ("BaudRate", "115200"),
        ("IDNum", "4"),
        ("RefID", "2"),
        ("HeightFix", "No"),
        ("MarkHeight", "2400"),
        ("MarkType", mark_type.name()),
        ("MarkMode", "Alone"),
        ("ThrVal", "210"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

/// Whether a value is valid for a parameter; some ranges depend on the type of mark.
pub(super) fn takes(parameters: &Parameters, name: &str, value: &str) -> bool {
    let is_digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<u32> = is_digits.then(|| value.parse().ok()).flatten();
    let within = |low: u32, high: u32| number.is_some_and(|number| (low..=high).contains(&number));
    // S has 3 x 3 dots, L has 4 x 4.
    let has_16_dots = parameters["MarkType"].ends_with('L');
    match name {
        "BaudRate" => ["9600", "19200", "38400", "57600", "115200"].contains(&value),
        "IDNum" => within(1, if has_16_dots { 4_095 } else { 31 }),
        "RefID" => within(2, if has_16_dots { 28_662 } else { 626 }),
        "HeightFix" => ["Yes", "No"].contains(&value),
        // From the lowest HLD1 to the highest HLD3.
        "MarkHeight" => within(1_100, 6_000),
        "MarkType" => ["HLD1S", "HLD1L", "HLD2S", "HLD2L", "HLD3S", "HLD3L"].contains(&value),
        "MarkMode" => ["Alone", "Map"].contains(&value),
        "ThrVal" => within(0, 255),
        _ => false,
    }
}
