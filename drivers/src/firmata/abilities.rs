//! What the pins of a board can do, and where those of the configuration are. PURE.

use std::collections::BTreeSet;

use amber_proto::board::Ability;

use super::protocol::{Abilities, code};
use crate::board::{Mode, Pin, Place, Spot, told_mode};

/// The resolution of a pin in a mode, in bits, if it can be used so.
pub(super) fn resolution(modes: &[(u8, u8)], mode: Mode) -> Option<u8> {
    let mut modes = modes.iter();
    let found = modes.find(|(number, _)| *number == code(mode));
    found.map(|(_, bits)| *bits)
}

/// The modes of a pin that this driver knows.
fn modes_of(modes: &[(u8, u8)]) -> impl Iterator<Item = Mode> {
    let can = move |mode: &Mode| resolution(modes, *mode).is_some();
    Mode::ALL.into_iter().filter(can)
}

/// All pins of a board, for clients.
pub(super) fn described(abilities: &[Abilities], channels: &[Option<u8>]) -> Vec<Ability> {
    let pins = abilities.iter().zip(0_u8..).map(|(modes, number)| {
        let channel = channels.get(usize::from(number)).copied().flatten();
        Ability {
            number: Some(number.into()),
            label: channel.map(|channel| Place::Analog(channel).to_string()),
            modes: modes_of(modes).map(|mode| told_mode(mode).into()).collect(),
        }
    });
    pins.collect()
}

/// Where these pins are.
pub(super) fn spots<'a>(
    pins: impl Iterator<Item = &'a Pin>,
    abilities: &[Abilities],
    channels: &[Option<u8>],
) -> Vec<Spot> {
    let mut numbers = BTreeSet::new();
    let spots = pins.map(|pin| {
        let mut spot = spot(pin, abilities, channels);
        // A number and a label may be the same pin.
        if spot.problem.is_none() && spot.number.is_some_and(|number| !numbers.insert(number)) {
            let text = format!("{pin} is configured twice, by its number and its label");
            spot.problem = Some(text);
        }
        spot
    });
    spots.collect()
}

/// Where a pin is, and whether it can be used as it is configured.
fn spot(pin: &Pin, abilities: &[Abilities], channels: &[Option<u8>]) -> Spot {
    let number = match pin.place {
        Place::Number(number) => Some(number),
        Place::Analog(channel) => {
            let number = channels.iter().position(|it| *it == Some(channel));
            number.and_then(|number| u8::try_from(number).ok())
        }
    };
    let index = number.map(usize::from);
    let channel = index.and_then(|index| channels.get(index).copied().flatten());
    let modes = index.and_then(|index| abilities.get(index));
    let problem = match modes {
        None => Some(format!("{pin}: this board has no such pin")),
        Some(modes) if resolution(modes, pin.mode).is_none() => {
            let can_be: Vec<_> = modes_of(modes).map(Mode::word).collect();
            let can_be = match can_be.is_empty() {
                true => "nothing, as it belongs to the board".to_owned(),
                false => can_be.join(", "),
            };
            let mode = pin.mode;
            Some(format!(
                "{pin} cannot be {mode} on this board; it can be {can_be}"
            ))
        }
        Some(_) if pin.mode == Mode::Analog && channel.is_none() => {
            Some(format!("{pin} has no analog input on this board"))
        }
        Some(_) => None,
    };
    Spot {
        number,
        channel,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{PinOptions, Pins};

    const DIGITAL: [(u8, u8); 3] = [(0, 1), (11, 1), (1, 1)];

    fn pins(words: &[&str]) -> Vec<Pin> {
        let options: Vec<_> = words
            .iter()
            .map(|text| text.parse::<PinOptions>().unwrap())
            .collect();
        Pins::new(&options).unwrap().into_vec()
    }

    /// A serial pin, a digital one, one with PWM, and an analog one with the label A0.
    fn board() -> (Vec<Abilities>, Vec<Option<u8>>) {
        let with = |more: (u8, u8)| [&DIGITAL[..], &[more]].concat();
        let abilities = vec![vec![], DIGITAL.to_vec(), with((3, 8)), with((2, 10))];
        (abilities, vec![None, None, None, Some(0)])
    }

    #[test]
    fn pins_are_found_by_number_and_label() {
        let (abilities, channels) = board();
        let pins = pins(&["1:input", "2:pwm", "A0:analog"]);
        let found = spots(pins.iter(), &abilities, &channels);
        let numbers: Vec<_> = found.iter().map(|it| (it.number, it.channel)).collect();
        let expected = [(Some(1), None), (Some(2), None), (Some(3), Some(0))];
        assert_eq!(numbers, expected);
        assert!(found.iter().all(|it| it.problem.is_none()), "{found:?}");
        assert_eq!(resolution(&abilities[2], Mode::Pwm), Some(8));
        assert_eq!(resolution(&abilities[1], Mode::Pwm), None);
    }

    #[test]
    fn what_a_pin_cannot_do_is_said() {
        let (abilities, channels) = board();
        for (words, problem) in [
            (
                &["1:pwm"][..],
                "pin 1 cannot be a PWM output on this board; it can be input, input-pull-up, output",
            ),
            (
                &["0:input"],
                "pin 0 cannot be a digital input on this board; it can be nothing, as it belongs to the board",
            ),
            (&["4:input"], "pin 4: this board has no such pin"),
            (&["A1:analog"], "pin A1: this board has no such pin"),
            (
                &["A0:analog", "3:input"],
                "pin 3 is configured twice, by its number and its label",
            ),
        ] {
            let pins = pins(words);
            let found = spots(pins.iter(), &abilities, &channels).pop().unwrap();
            assert_eq!(found.problem.as_deref(), Some(problem));
        }
        // The board says so, but not which input it is.
        let pins = pins(&["3:analog"]);
        let found = spots(pins.iter(), &abilities, &[]);
        let problem = "pin 3 has no analog input on this board";
        assert_eq!(found[0].problem.as_deref(), Some(problem));
    }

    #[test]
    fn clients_are_told_all_pins() {
        use amber_proto::board::pin::Mode as Told;
        let (abilities, channels) = board();
        let found = described(&abilities, &channels);
        assert_eq!(found.len(), 4);
        assert!(found[0].modes.is_empty());
        assert_eq!((found[3].label(), found[3].number()), ("A0", 3));
        let modes: Vec<_> = found[3].modes().collect();
        let digital = [Told::Input, Told::InputPullUp, Told::Output];
        assert_eq!(modes, [&digital[..], &[Told::Analog]].concat());
    }
}
