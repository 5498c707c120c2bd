//! Recognizes servos on a bus by what they say of themselves. IO.

use std::path::Path;
use std::time::Duration;

use super::options::{Options, Preset};
use super::tool::{FoundServo, Memory, ServoTool, ToolError, block_on};
use super::{Maker, Rules};
use crate::connection::Endpoint;
use crate::presence::{Presence, Remark};
use crate::probe::{Identity, NoAnswer};

/// The ids that are asked, those of small robots.
const IDS: std::ops::RangeInclusive<u8> = 1..=12;
/// How long an answer may take. A busy computer reads it late.
const PATIENCE: Duration = Duration::from_millis(150);

/// Asks for servos at a port, with each speed that robots of this maker have. Blocks for some seconds.
///
/// # Errors
/// There are none, or the port cannot be used.
pub(crate) fn find<P: Preset>(path: &Path) -> Result<Identity, NoAnswer>
where
    <P::Maker as Maker>::Model: Memory,
{
    let presets = P::value_variants();
    let mut bauds = vec![P::BAUD.0];
    bauds.extend(presets.iter().map(|preset| preset.baud()));
    bauds.dedup();
    let asked = block_on(async {
        for baud in bauds {
            let found = ask::<P::Maker>(path, baud, PATIENCE, IDS.collect()).await?;
            if !found.is_empty() {
                return Ok(identity::<P>(baud, &found));
            }
        }
        Err(NoAnswer::Silent)
    });
    asked.unwrap_or_else(|error| Err(NoAnswer::Failed(format!("cannot start: {error}"))))
}

/// Asks the servos of a configured driver. Blocks for some seconds.
///
/// # Errors
/// None of them answers, or the port cannot be used.
pub(crate) fn look<P: Preset>(options: Options<P>) -> Result<Presence, NoAnswer>
where
    <P::Maker as Maker>::Model: Memory,
{
    let settings = options.complete().and_then(Options::settings);
    let (rules, endpoint) = settings.map_err(|error| NoAnswer::Failed(error.to_string()))?;
    let Rules { servos, baud, .. } = rules;
    let Endpoint::Serial { path, .. } = endpoint else {
        return Err(NoAnswer::Silent);
    };
    let ids = || servos.iter().map(|(id, _)| *id);
    let patience = rules.reply_timeout.max(PATIENCE);
    let asked = block_on(ask::<P::Maker>(&path, baud, patience, ids().collect()));
    let found = asked.map_err(|error| NoAnswer::Failed(format!("cannot start: {error}")))??;
    if found.is_empty() {
        return Err(NoAnswer::Silent);
    }
    let missing = ids().filter(|id| found.iter().all(|(other, _)| other != id));
    let missing: Vec<_> = missing.map(|id| id.to_string()).collect();
    let mut remarks: Vec<_> = damaged(&found).into_iter().collect();
    if !missing.is_empty() {
        remarks.push(Remark {
            text: format!("no answer from: servo {}", missing.join(", servo ")),
            hint: "check its cable, its supply and its id: `amber servo scan`".to_owned(),
        });
    }
    Ok(Presence {
        text: words(&found),
        remarks,
    })
}

/// A servo that has answered: its id, and what it is, or `None` if the answer was damaged.
type Answer = (u8, Option<String>);

async fn ask<M: Maker>(
    path: &Path,
    baud: u32,
    patience: Duration,
    ids: Vec<u8>,
) -> Result<Vec<Answer>, NoAnswer>
where
    M::Model: Memory,
{
    let failed = |error: ToolError| match error {
        ToolError::Busy(_) => NoAnswer::Busy,
        error => NoAnswer::Failed(error.to_string()),
    };
    let opened = ServoTool::<M>::open(path, baud, patience).await;
    let mut tool = opened.map_err(failed)?;
    let (mut found, mut asked) = (Vec::new(), ids);
    // A port that was just opened may lose the first question.
    for _ in 0..2 {
        let mut silent = Vec::new();
        for id in asked {
            match tool.look(id).await {
                Ok(None) => silent.push(id),
                Ok(Some(FoundServo { model, .. })) => found.push((id, Some(model.to_string()))),
                Err(ToolError::Damaged(id)) => found.push((id, None)),
                Err(error) => return Err(failed(error)),
            }
        }
        if found.is_empty() {
            silent.truncate(1);
        }
        asked = silent;
    }
    found.sort_by_key(|(id, _)| *id);
    Ok(found)
}

fn identity<P: Preset>(baud: u32, found: &[Answer]) -> Identity {
    let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
    let mut presets = P::value_variants().iter();
    let preset = presets.find(|preset| {
        let all = [preset.joints(), preset.wheels()].concat();
        preset.baud() == baud && all == ids
    });
    let name = preset.and_then(|preset| preset.to_possible_value());
    let options = match name {
        Some(name) => vec![format!("--preset={}", name.get_name())],
        None => {
            let ids: Vec<_> = ids.iter().map(u8::to_string).collect();
            let speed = (baud != P::BAUD.0).then(|| format!("--baud={baud}"));
            let mut options = vec![format!("--ids={}", ids.join(","))];
            options.extend(speed);
            options
        }
    };
    Identity {
        text: words(found),
        options,
        unusable: damaged(found).map(|Remark { text, hint }| format!("{text}: {hint}")),
    }
}

/// Such as `servos 1 to 6, STS3215`.
fn words(found: &[Answer]) -> String {
    let mut ids = found.iter().map(|(id, _)| *id);
    let (first, last) = (ids.next().unwrap_or_default(), ids.next_back());
    let is_row = |last: u8| usize::from(last - first) + 1 == found.len();
    let which = match last {
        None => format!("servo {first}"),
        Some(last) if is_row(last) => format!("servos {first} to {last}"),
        Some(_) => {
            let all: Vec<_> = found.iter().map(|(id, _)| id.to_string()).collect();
            format!("servos {}", all.join(", "))
        }
    };
    let mut models: Vec<_> = found
        .iter()
        .filter_map(|(_, model)| model.clone())
        .collect();
    models.sort();
    models.dedup();
    format!("{which}, {}", models.join(" and "))
}

fn damaged(found: &[Answer]) -> Option<Remark> {
    let (id, _) = found.iter().find(|(_, model)| model.is_none())?;
    Some(Remark {
        text: format!("the answers of servo {id} are damaged"),
        hint: "two servos may have the same id, as new ones do: `amber servo id` gives another one"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dynamixel, feetech};

    fn answers(ids: &[u8], model: &str) -> Vec<Answer> {
        ids.iter().map(|id| (*id, Some(model.to_owned()))).collect()
    }

    #[test]
    fn known_robots_are_recognized_by_their_ids() {
        for (ids, baud, text, options) in [
            (
                &[1, 2, 3, 4, 5, 6][..],
                1_000_000,
                "servos 1 to 6, STS3215",
                &["--preset=so101"][..],
            ),
            (
                &[1, 2, 3, 4, 5, 6, 7, 8, 9],
                1_000_000,
                "servos 1 to 9, STS3215",
                &["--preset=lekiwi"],
            ),
            (&[3], 1_000_000, "servo 3, STS3215", &["--ids=3"]),
            (
                &[1, 2, 7],
                500_000,
                "servos 1, 2, 7, STS3215",
                &["--ids=1,2,7", "--baud=500000"],
            ),
        ] {
            let found = identity::<feetech::Robot>(baud, &answers(ids, "STS3215"));
            assert_eq!((found.text.as_str(), found.unusable), (text, None));
            assert_eq!(found.options, options);
        }
        let mut koch = answers(&[1, 2], "XL430");
        koch.extend(answers(&[3, 4, 5, 6], "XL330"));
        let found = identity::<dynamixel::Robot>(1_000_000, &koch);
        assert_eq!(found.text, "servos 1 to 6, XL330 and XL430");
        assert_eq!(found.options, ["--preset=koch"]);
    }

    #[test]
    fn two_servos_with_one_id_cannot_be_used() {
        let found = identity::<feetech::Robot>(1_000_000, &[(1, None)]);
        let why = found.unusable.unwrap();
        assert!(
            why.contains("servo 1 are damaged: two servos may have"),
            "{why}"
        );
    }
}
