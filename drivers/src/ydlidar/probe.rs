//! Recognizes a scanner by its answer to the question for its model, or by the packets that it sends,
//! and by the speed at which that works. IO.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;

use super::Product;
use super::logic::Identity as Answer;
use super::packet::{Form, INFO, Parser, STOP};
use crate::connection::{Connection, Endpoint};
use crate::probe::{Identity, NoAnswer, exchange, open};

/// How long a scanner may take to say what it is. It is asked twice. One that turns sends tens of
/// packets in this time.
const PATIENCE: Duration = Duration::from_millis(300);
/// Random bytes may look like a packet, but not as often.
const ENOUGH: usize = 3;
/// The models with one wire have speeds of their own.
const SPEEDS: [(u32, Product); 3] = [
    (115_200, Product::X2),
    (128_000, Product::X4Pro),
    (230_400, Product::TMini),
];

/// Looks for a scanner at all speeds. Blocks for up to two seconds.
///
/// # Errors
/// There is none, or the port cannot be used.
pub(crate) fn find(path: &Path) -> Result<Identity, NoAnswer> {
    for (baud, one_wire) in SPEEDS {
        let path = path.to_owned();
        let found = open(Endpoint::Serial { path, baud }, |port| ask(port, one_wire));
        if found != Err(NoAnswer::Silent) {
            return found;
        }
    }
    Err(NoAnswer::Silent)
}

/// Stops a scan, and asks for the model. `one_wire` is the model if it sends nevertheless.
///
/// # Errors
/// No scanner answers.
pub(crate) async fn ask(
    mut port: Box<dyn Connection>,
    one_wire: Product,
) -> Result<Identity, NoAnswer> {
    let request = [&STOP[..], &INFO].concat();
    let forms: [&[Form]; 2] = [&[Form::Plain], &[Form::Strength8]];
    let mut parsers = forms.map(Parser::new);
    let mut packets = [0; 2];
    let mut received = Vec::new();
    let read = |bytes: &[u8]| {
        received.extend_from_slice(bytes);
        for (parser, count) in parsers.iter_mut().zip(&mut packets) {
            parser.push(bytes);
            while parser.poll().is_some() {
                *count += 1;
            }
        }
        Answer::read(&received)
    };
    let answer = exchange(&mut *port, &request, PATIENCE, read).await;
    match answer {
        Err(NoAnswer::Silent) if packets.iter().any(|count| *count >= ENOUGH) => {
            Ok(one_wire_scanner(one_wire))
        }
        Err(why) => Err(why),
        Ok(answer) => Ok(identity(&answer)),
    }
}

fn one_wire_scanner(product: Product) -> Identity {
    let name = product.name();
    Identity {
        options: option(product),
        ..Identity::usable(format!("{name} or alike, which takes no commands"))
    }
}

fn identity(answer: &Answer) -> Identity {
    match answer.product {
        Some(product) => {
            let (name, firmware) = (product.name(), &answer.firmware);
            Identity {
                options: option(product),
                ..Identity::usable(format!("{name}, firmware {firmware}"))
            }
        }
        None => Identity {
            unusable: Some("it is no known model: configure it by hand, with --model".to_owned()),
            ..Identity::usable(format!("model {}", answer.model))
        },
    }
}

fn option(product: Product) -> Vec<String> {
    let value = product.to_possible_value();
    let value = value.iter().map(|value| value.get_name().to_owned());
    ["--model".to_owned()].into_iter().chain(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::device;
    use crate::scanner::options::Product as _;

    const PACKET: [u8; 16] = [
        0xAA, 0x55, 0, 3, 0xE5, 0x6F, 0xE5, 0x70, 0x4B, 0x59, 0xA0, 0x0F, 0x41, 0x1F, 0, 0,
    ];

    #[tokio::test(start_paused = true)]
    async fn a_scanner_says_what_it_is_also_while_it_scans() {
        let (port, heard) = device(|_| {
            let info = [
                0xA5, 0x5A, 20, 0, 0, 0, 4, 6, 5, 1, 1, 2, 0, 1, 8, 1, 0, 2, 0, 0, 0, 0, 0, 4, 0,
                1, 9,
            ];
            [&PACKET.repeat(4)[..], &info].concat()
        });
        let found = ask(port, Product::X4Pro).await.unwrap();
        assert_eq!(found.text, "X4, firmware 1.5");
        assert_eq!(found.options, ["--model", "x4"]);
        assert_eq!(*heard.lock().unwrap(), [0xA5, 0, 0xA5, 0x65, 0xA5, 0x90]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_scanner_with_one_wire_is_recognized_by_its_packets() {
        let (port, _) = device(|_| PACKET.repeat(2));
        let found = ask(port, Product::X2).await.unwrap();
        assert_eq!(found.text, "X2 or alike, which takes no commands");
        assert_eq!(found.options, ["--model", "x2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn another_speed_or_another_device_does_not_answer() {
        for sent in [&[][..], &[0x54, 0x2C, 0xA5, 0x5A, 1], &PACKET[1..]] {
            let sent = sent.to_vec();
            let (port, _) = device(move |_| sent.clone());
            assert_eq!(ask(port, Product::X2).await, Err(NoAnswer::Silent));
        }
    }

    #[test]
    fn each_speed_is_that_of_its_model() {
        for (baud, product) in SPEEDS {
            assert_eq!(product.baud(), baud);
        }
    }

    #[test]
    fn an_unknown_model_is_not_configured() {
        let mut bytes = vec![0xA5, 0x5A, 20, 0, 0, 0, 4, 99];
        bytes.resize(27, 0);
        let found = identity(&Answer::read(&bytes).unwrap());
        assert!(found.unusable.is_some() && found.options.is_empty());
    }
}
