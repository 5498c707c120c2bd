//! `amber arm`: calibrates an arm. IO.

use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use amber_client::Client;
use amber_client::proxy::BusServos;
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, Human, note, show, table};
use clap::Subcommand;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::timeout;

use self::sweep::Sweep;
use crate::file;

mod sweep;

const HELP: &str = "\
The driver of the servos must run, and their motors must be off: `amber call arm set-torque false`,
or `amber call bus-servos set-torque false 1,2,3,4,5,6`. Hold the arm, because it falls. Nothing is
written to the servos. If a joint passes the end of the turn of its servo, `amber servo center` makes
its place the middle of the turn.

Examples:
  amber arm calibrate my_arm.json
  amber arm calibrate my_arm.json --replace --servos bus-servos:1";

/// Servos that say nothing for so long are gone.
const SILENCE: Duration = Duration::from_secs(5);

/// Options of `amber arm`.
#[derive(Clone, Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct Options {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// Write the calibration file of an arm whose joints you move by hand, as LeRobot has it
    #[command(after_help = HELP)]
    Calibrate(Calibrate),
}

/// Options of `amber arm calibrate`.
#[derive(Clone, Debug, clap::Args)]
struct Calibrate {
    /// File to write
    file: PathBuf,
    /// The servos of the arm
    #[arg(long, value_name = "DEVICE", default_value = "bus-servos:0")]
    servos: Device,
    /// The joints, whose servos have the ids from 1 on
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "shoulder_pan,shoulder_lift,elbow_flex,wrist_flex,wrist_roll,gripper"
    )]
    joints: Vec<String>,
    /// Replace the file, should it exist
    #[arg(long)]
    replace: bool,
}

impl Options {
    /// Checks the options before anything is asked.
    ///
    /// # Errors
    /// A value is invalid, or the file exists.
    pub(super) fn checked(self) -> Result<Self, Failure> {
        let Verb::Calibrate(calibrate) = &self.verb;
        let path = &calibrate.file;
        if calibrate.servos.device_type != DeviceType::BUS_SERVOS {
            let text = format!("{} has no servos on a bus", calibrate.servos);
            return Err(Failure::wrong(text).hint("try --servos bus-servos:0"));
        }
        if path.exists() && !calibrate.replace {
            let text = format!("{} exists", path.display());
            return Err(Failure::wrong(text).hint("choose another name, or add --replace"));
        }
        file::check("FILE", path)?;
        Ok(self)
    }
}

pub(super) async fn run(client: &Client, options: Options, json: bool) -> Result<(), Failure> {
    let Verb::Calibrate(calibrate) = options.verb;
    let (lines, enters) = mpsc::channel(1);
    // This thread ends with the program: it may wait for a line.
    thread::spawn(move || {
        let mut line = String::new();
        while io::stdin().read_line(&mut line).is_ok_and(|read| read > 0) {
            if lines.blocking_send(()).is_err() {
                return;
            }
        }
    });
    calibrate.run(client, enters, json).await
}

impl Calibrate {
    /// Measures until a person has pressed Enter and all joints were moved.
    async fn run(
        &self,
        client: &Client,
        mut enters: mpsc::Receiver<()>,
        json: bool,
    ) -> Result<(), Failure> {
        let device = self.servos;
        let servos = BusServos::new(client.device(device));
        let mut sweep = Sweep::new(&self.joints);
        let release =
            "their motors must be off, and all must answer: `amber call bus-servos servos`";
        let refused = |why: String| Failure::new(why).hint(release);
        sweep.handle(&servos.servos().await?).map_err(refused)?;
        let mut updates = servos.servo_updates().await?;
        note("Move each joint by hand from one end to the other, then press Enter.");
        let text = loop {
            tokio::select! {
                update = timeout(SILENCE, updates.next()) => match update {
                    Ok(Some(update)) => sweep.handle(&update.message).map_err(refused)?,
                    Ok(None) | Err(_) => {
                        let text = format!("{device} does not say where its servos are any more");
                        return Err(Failure::new(text).hint(format!("`amber status {device}` says more")));
                    }
                },
                enter = enters.recv() => match (sweep.file(), enter) {
                    (Ok(text), _) => break text,
                    (Err(why), Some(())) => note(format!("{why}; then press Enter again")),
                    (Err(why), None) => return Err(Failure::new(why).hint("nothing was written")),
                },
            }
        };
        file::write(&self.file, text.as_bytes())?;
        file::wrote(&self.file);
        show(&Calibrated::of(&sweep), json)
    }
}

#[derive(Debug, Serialize)]
struct Calibrated {
    joints: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    servo: String,
    lowest_step: String,
    last_step: String,
    highest_step: String,
}

impl Calibrated {
    fn of(sweep: &Sweep) -> Self {
        let row = |[name, servo, lowest_step, last_step, highest_step]: [String; 5]| Row {
            name,
            servo,
            lowest_step,
            last_step,
            highest_step,
        };
        Self {
            joints: sweep.rows().into_iter().map(row).collect(),
        }
    }
}

impl Human for Calibrated {
    fn human(&self) -> String {
        let row = |row: &Row| {
            [
                row.name.clone(),
                row.servo.clone(),
                row.lowest_step.clone(),
                row.last_step.clone(),
                row.highest_step.clone(),
            ]
        };
        let rows: Vec<_> = self.joints.iter().map(row).collect();
        table(["JOINT", "SERVO", "LOWEST", "NOW", "HIGHEST"], &rows)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use amber_client::fake::Fake;
    use amber_proto::DeviceMessage;
    use amber_proto::bus_servos::{DriverMsg, ServoState, ServoStates};
    use prost::Message;
    use tokio::time::sleep;

    use super::*;

    fn calibrate(file: PathBuf) -> Calibrate {
        Calibrate {
            file,
            servos: Device::new(DeviceType::BUS_SERVOS, 0),
            joints: vec!["pan".to_owned()],
            replace: false,
        }
    }

    fn states(step: f64) -> Vec<u8> {
        let servo = ServoState {
            id: Some(1),
            angle: Some(step * 360.0 / 4096.0),
            torque: Some(false),
            homing_offset: Some(0.0),
            ..ServoState::default()
        };
        let servos = ServoStates {
            servos: vec![servo],
            time: None,
        };
        DriverMsg {
            bus_servos: Some(servos),
            ..DriverMsg::data()
        }
        .encode_to_vec()
    }

    /// The servos answer, then the joint is at these places, then Enter is pressed.
    async fn servos(mut fake: Fake, enter: mpsc::Sender<()>, places: &[f64]) {
        let asked = fake.receive().await.unwrap();
        fake.answer(&asked, &states(places[0])).await;
        let subscribed = fake.receive().await.unwrap();
        for place in places {
            fake.say(subscribed.device, &states(*place)).await;
        }
        sleep(Duration::from_millis(100)).await;
        enter.send(()).await.unwrap();
        drop(enter);
        sleep(Duration::from_millis(100)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_is_written_when_all_joints_were_moved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arm.json");
        let (client, fake) = Fake::new();
        let (enter, enters) = mpsc::channel(1);
        let calibrate = calibrate(path.clone());
        let (done, ()) = tokio::join!(
            calibrate.run(&client, enters, true),
            servos(fake, enter, &[2048.0, 1000.0, 3000.0])
        );
        done.unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("\"range_min\": 1000") && text.contains("\"range_max\": 3000"),
            "{text}"
        );
        let again = Options {
            verb: Verb::Calibrate(calibrate),
        };
        assert!(again.checked().unwrap_err().text().contains("exists"));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_if_a_joint_was_not_moved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arm.json");
        let (client, fake) = Fake::new();
        let (enter, enters) = mpsc::channel(1);
        let calibrate = calibrate(path.clone());
        let (done, ()) = tokio::join!(
            calibrate.run(&client, enters, true),
            servos(fake, enter, &[2048.0, 2060.0])
        );
        let failure = done.unwrap_err();
        let why = failure.text();
        assert!(why.contains("was moved by 12 steps only"), "{why}");
        assert!(!path.exists());
    }
}
