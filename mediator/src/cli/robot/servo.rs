//! `amber servo`: finds servos on a bus, and gives them ids, a speed and a middle. IO.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use amber_drivers::bus_servos::tool::{self, FoundServo, IDS, Memory, ServoTool, ToolError};
use amber_drivers::bus_servos::{self, Model};
use amber_drivers::dynamixel::Dynamixel;
use amber_drivers::feetech::Feetech;
use amber_terminal::{Failure, Human, note, show, table};
use clap::builder::RangedU64ValueParser;
use serde::Serialize;

use super::failed;

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber servo scan                    (which servos are on the bus?)
  amber servo id 1 6                  (the new servo becomes number 6)
  amber servo center 6                (where it stands now is the middle of its turn)
  amber servo baud 6 500000
  amber servo scan --maker dynamixel --port /dev/ttyUSB0 --ids 1-20

New servos all have the id 1: connect one at a time, and give it its id. `amber servo` writes what a
servo keeps while it is switched off, and only what you say; nothing moves. A driver that uses the
port must be stopped first. Next, try `amber driver feetech --help`.")]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    line: Line,
}

#[derive(Clone, Debug, clap::Args)]
struct Line {
    /// Serial port of the bus
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        default_value = "/dev/ttyACM0"
    )]
    port: PathBuf,
    /// The maker of the servos
    #[arg(long, global = true, value_enum, default_value = "feetech")]
    maker: Maker,
    /// Bits per second [default: that of new servos]
    #[arg(long, global = true, value_parser = RangedU64ValueParser::<u32>::new().range(9_600..=4_500_000))]
    baud: Option<u32>,
    /// How long an answer may take
    #[arg(long, global = true, value_name = "MS", default_value_t = 20,
        value_parser = RangedU64ValueParser::<u64>::new().range(2..=2_000))]
    reply_timeout_ms: u64,
    /// Switch the motor of the servo off, should it be on
    #[arg(long, global = true)]
    release: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Maker {
    /// STS, SMS and SCS, as in the arms SO-100 and SO-101, and in LeKiwi
    Feetech,
    /// The series X, as in the arm Koch v1.1
    Dynamixel,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Find the servos on the bus, and show what they are
    #[command(after_help = "\
Examples:
  amber servo scan
  amber servo scan --maker dynamixel --port /dev/ttyUSB0 --ids 1-20
  amber servo scan --all-speeds --json")]
    Scan {
        /// Look for these ids only, such as 1-20 or 6
        #[arg(long, value_name = "FIRST-LAST", value_parser = ids, default_value = "0-252")]
        ids: RangeInclusive<u8>,
        /// Go on with other speeds after servos were found at one
        #[arg(long)]
        all_speeds: bool,
    },
    /// Give a servo another id
    #[command(after_help = "\
Example:
  amber servo id 1 6        (the servo with the id 1 gets the id 6)

New servos all have the id 1: connect one at a time.")]
    Id {
        /// Its id
        #[arg(value_parser = id)]
        id: u8,
        /// The id that it gets
        #[arg(value_parser = id)]
        new: u8,
    },
    /// Give a servo another speed of the line
    #[command(after_help = "\
Example:
  amber servo baud 6 500000

It answers only at this speed then: say `--baud 500000` in the next command.")]
    Baud {
        /// Its id
        #[arg(value_parser = id)]
        id: u8,
        /// The speed that it gets, in bits per second
        #[arg(value_name = "BITS_PER_SECOND")]
        new: u32,
    },
    /// Make the angle at which a servo stands the middle of its turn: 180 degrees
    #[command(after_help = "\
Example:
  amber servo center 6 --release    (hold what the servo carries)")]
    Center {
        /// Its id
        #[arg(value_parser = id)]
        id: u8,
    },
}

fn id(text: &str) -> Result<u8, String> {
    let id = text.parse().ok().filter(|id| IDS.contains(id));
    id.ok_or_else(|| format!("an id is a number from {} to {}", IDS.start(), IDS.end()))
}

fn ids(text: &str) -> Result<RangeInclusive<u8>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (id(first)?, id(last)?);
    match first <= last {
        true => Ok(first..=last),
        false => Err(format!("{first} is behind {last}")),
    }
}

/// The servos that were found.
#[derive(Debug, Serialize)]
struct Servos {
    servos: Vec<Row>,
}

/// A servo.
#[derive(Debug, Serialize)]
struct Row {
    id: u8,
    baud: u32,
    #[serde(flatten)]
    is: Is,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Is {
    Known {
        model: String,
        angle_deg: f64,
        torque: bool,
        voltage_v: f64,
        temperature_c: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        alarm: Option<&'static str>,
    },
    /// Something answers.
    Unknown { problem: String },
}

impl Human for Servos {
    fn human(&self) -> String {
        let rows: Vec<_> = self.servos.iter().map(Row::cells).collect();
        table(
            [
                "ID", "MODEL", "BIT/S", "ANGLE", "MOTOR", "SUPPLY", "WARMTH", "PROBLEM",
            ],
            &rows,
        )
    }
}

impl Row {
    fn cells(&self) -> [String; 8] {
        let (id, baud) = (self.id.to_string(), self.baud.to_string());
        let none = String::new;
        match &self.is {
            Is::Known {
                model,
                angle_deg,
                torque,
                voltage_v,
                temperature_c,
                alarm,
            } => [
                id,
                model.clone(),
                baud,
                format!("{angle_deg:.1} deg"),
                if *torque { "on" } else { "off" }.to_owned(),
                format!("{voltage_v:.1} V"),
                format!("{temperature_c} C"),
                alarm.map(|alarm| format!("it {alarm}")).unwrap_or_default(),
            ],
            Is::Unknown { problem } => [
                id,
                "?".to_owned(),
                baud,
                none(),
                none(),
                none(),
                none(),
                problem.clone(),
            ],
        }
    }
}

/// What a servo is now.
#[derive(Debug, Serialize)]
struct Done {
    id: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    baud: Option<u32>,
    #[serde(skip)]
    text: String,
}

impl Human for Done {
    fn human(&self) -> String {
        format!("{}\n", self.text)
    }
}

impl Options {
    pub(crate) fn run(&self, options: &amber_cli::Options) -> Result<(), Failure> {
        let json = options.json;
        let done = match self.line.maker {
            Maker::Feetech => tool::block_on(self.act::<Feetech>(json)),
            Maker::Dynamixel => tool::block_on(self.act::<Dynamixel>(json)),
        };
        done.map_err(|error| failed("cannot start", &error))?
    }

    async fn act<M: bus_servos::Maker>(&self, json: bool) -> Result<(), Failure>
    where
        M::Model: Memory,
    {
        let releases = self.line.release;
        let done = match &self.action {
            Action::Scan { ids, all_speeds } => {
                let servos = self.scan::<M>(ids.clone(), *all_speeds).await?;
                return show(&servos, json);
            }
            Action::Id { id, new } => {
                let changed = self.open::<M>().await?.set_id(*id, *new, releases).await;
                changed.map_err(shown)?;
                let text = match id == new {
                    true => format!("servo {id} has this id already"),
                    false => format!("servo {id} is servo {new} now"),
                };
                let (id, baud) = (*new, None);
                Done { id, baud, text }
            }
            Action::Baud { id, new } => {
                let tool = self.open::<M>().await?;
                tool.set_baud(&self.line.port, *id, *new, releases)
                    .await
                    .map_err(shown)?;
                let text = format!("servo {id} has {new} bits per second now");
                let (id, baud) = (*id, Some(*new));
                Done { id, baud, text }
            }
            Action::Center { id } => {
                let changed = self.open::<M>().await?.center(*id, releases).await;
                changed.map_err(shown)?;
                let text = format!("servo {id} stands at 180 degrees now: the middle of its turn");
                let (id, baud) = (*id, None);
                Done { id, baud, text }
            }
        };
        show(&done, json)
    }

    /// Looks for servos at the given speed, or at all until there are some.
    async fn scan<M: bus_servos::Maker>(
        &self,
        ids: RangeInclusive<u8>,
        all_speeds: bool,
    ) -> Result<Servos, Failure>
    where
        M::Model: Memory,
    {
        let usual = || M::Model::BAUDS.iter().map(|(baud, _)| *baud).collect();
        let bauds: Vec<_> = self.line.baud.map_or_else(usual, |baud| vec![baud]);
        let mut servos = Vec::new();
        for baud in &bauds {
            note(format_args!(
                "looking for the ids {} to {} at {baud} bits per second",
                ids.start(),
                ids.end()
            ));
            let mut tool = self.open_at::<M>(*baud).await?;
            for id in ids.clone() {
                let is = match tool.look(id).await {
                    Ok(None) => continue,
                    Ok(Some(found)) => known(found),
                    Err(error @ ToolError::Damaged(_)) => Is::Unknown {
                        problem: format!("its answers are damaged: {}", error.hint().unwrap_or("")),
                    },
                    Err(error) => return Err(shown(error)),
                };
                servos.push(Row {
                    id,
                    baud: *baud,
                    is,
                });
            }
            if !servos.is_empty() && !all_speeds {
                break;
            }
        }
        match servos.is_empty() {
            false => Ok(Servos { servos }),
            true => Err(Failure::new(format!(
                "no servo has answered at {}",
                self.line.port.display()
            ))
            .hint(
                "do they have a supply of their own? Check the cable, its first plug, and whether the \
                 adapter has a jumper that must be set to USB",
            )),
        }
    }

    async fn open<M: bus_servos::Maker>(&self) -> Result<ServoTool<M>, Failure>
    where
        M::Model: Memory,
    {
        let usual = M::Model::BAUDS.first().map_or(1_000_000, |(baud, _)| *baud);
        self.open_at(self.line.baud.unwrap_or(usual)).await
    }

    async fn open_at<M: bus_servos::Maker>(&self, baud: u32) -> Result<ServoTool<M>, Failure>
    where
        M::Model: Memory,
    {
        let patience = Duration::from_millis(self.line.reply_timeout_ms);
        let opened = ServoTool::open(&self.line.port, baud, patience).await;
        opened.map_err(shown)
    }
}

fn known<M: Model>(found: FoundServo<M>) -> Is {
    let measured = found.measured;
    Is::Known {
        model: found.model.to_string(),
        angle_deg: measured.angle_deg,
        torque: measured.torque,
        voltage_v: measured.voltage_v,
        temperature_c: measured.temperature_c,
        alarm: measured.alarm,
    }
}

fn shown(error: ToolError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new(error.to_string());
    hint.into_iter().fold(failure, Failure::hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_or_a_range() {
        assert_eq!(ids("1-20"), Ok(1..=20));
        assert_eq!(ids("6"), Ok(6..=6));
        for wrong in ["", "20-1", "1-", "0-253", "x"] {
            assert!(ids(wrong).is_err(), "{wrong}");
        }
    }
}
