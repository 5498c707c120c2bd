//! The options of `amber driver rflysim`. IO.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use amber_driver::options::{OptionsError, check};
use amber_navigation::kinematics::SkidSteer;
use amber_proto::Device;
use serde::Deserialize;

use super::foreign::ForeignSettings;
use super::limits::{HEIGHTS_M, MAX_VEHICLES, RATES_HZ, VEHICLE_RATE};
use super::mapping::{GpsOrigin, MapFrame};
use super::ports::{Port, Vehicle};
use super::session::{RflySim, Settings};
use super::shown::{Mode, ShownSettings, TruthPorts, Unlock};
use crate::limits::{LISTENER_RATE, SOURCE_RATE};
use crate::shared::options::{Network, NetworkOptions, RobotOptions, device, read};

/// The options of the command line.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
Example:
  amber mediator --driver 'gateway:0=amber driver rflysim --allow-arm'

The robot is vehicle 1: it sends its state to UDP ports 20101 and 30101 of the peer, and accepts
commands on 20100. Vehicle N has ports that are higher by 2 (N - 1).")]
pub struct Options {
    /// TOML file with these and more options: see docs/gateways/rflysim.md
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address of the interface to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// The vehicle number of Amber's robot [default: 1]
    #[arg(long, value_name = "N")]
    pub vehicle: Option<u16>,
    /// The host that sees and commands Amber's robot [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub peer: Option<IpAddr>,
    /// Length of the packets with the true state: 200 as published, or 168 as in newer versions of
    /// RflySim [default: 200]
    #[arg(long, value_name = "BYTES")]
    pub truth: Option<TruthForm>,
    /// Let the peer arm and move the robot
    #[arg(long)]
    pub allow_arm: bool,
    /// Let the peer move the robot without arming it first, for programs that arm over MAVLink
    #[arg(long)]
    pub unlock_by_command: bool,
    #[command(flatten)]
    network: NetworkOptions,
    #[command(flatten)]
    robot: RobotOptions,
}

/// The options of the file.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    bind: Option<IpAddr>,
    vehicle: Option<ShownOptions>,
    foreign: Vec<ForeignOptions>,
    network: NetworkOptions,
    robot: RobotOptions,
}

/// Amber's robot as a vehicle.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ShownOptions {
    number: Option<u16>,
    peer: Option<IpAddr>,
    rate_hz: Option<f64>,
    mode: ModeOption,
    truth: Option<TruthOption>,
    latitude_deg: Option<f64>,
    longitude_deg: Option<f64>,
    altitude_m: Option<f64>,
    allow_arm: bool,
    unlock_by_command: bool,
    messages: bool,
}

/// A vehicle as Amber's devices.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignOptions {
    number: u16,
    host: Option<IpAddr>,
    #[serde(default)]
    mode: ModeOption,
    #[serde(default)]
    frame: FrameOption,
    #[serde(default, deserialize_with = "device")]
    location: Option<Device>,
    #[serde(default, deserialize_with = "device")]
    imu: Option<Device>,
    #[serde(default, deserialize_with = "device")]
    wheels: Option<Device>,
    #[serde(default, deserialize_with = "device")]
    targets: Option<Device>,
    #[serde(default)]
    height_m: f64,
    #[serde(default)]
    arm: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModeOption {
    #[default]
    Full,
    Simple,
}

/// A form of the true state, by the length of its packets.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, clap::ValueEnum)]
pub enum TruthForm {
    /// The published format
    #[default]
    #[serde(rename = "200")]
    #[value(name = "200")]
    Bytes200,
    /// The format of newer versions
    #[serde(rename = "168")]
    #[value(name = "168")]
    Bytes168,
}

/// One form, to the usual port; or the port of each form that is sent.
#[derive(Clone, Copy, Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"200\", \"168\", or ports such as { 200 = 30101, 168 = 30201 }"
)]
enum TruthOption {
    Form(TruthForm),
    Ports(PortOptions),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortOptions {
    #[serde(rename = "200")]
    of_200_bytes: Option<u16>,
    #[serde(rename = "168")]
    of_168_bytes: Option<u16>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FrameOption {
    #[default]
    Enu,
    Ned,
}

impl Options {
    /// Creates the gateway.
    ///
    /// # Errors
    /// A value or the file is invalid.
    pub fn setup(self) -> Result<(RflySim, Network), OptionsError> {
        let (settings, network) = self.checked()?;
        Ok((RflySim::new(settings), network))
    }

    /// Reads the file and checks all values.
    fn checked(self) -> Result<(Settings, Network), OptionsError> {
        let mut file: File = read(self.config.as_deref())?;
        let vehicles = u32::try_from(file.foreign.len()).unwrap_or(u32::MAX);
        let telemetry = vehicles.saturating_mul(VEHICLE_RATE);
        let rates = &mut file.network;
        (rates.source_rate).get_or_insert(SOURCE_RATE.saturating_add(telemetry));
        (rates.listener_rate).get_or_insert(LISTENER_RATE.saturating_add(telemetry));
        let mut network = self.network.checked(file.network)?;
        let (robot, seat) = self.robot.checked(file.robot, network.shape().as_ref())?;
        let flags = self.vehicle.is_some()
            || self.peer.is_some()
            || self.truth.is_some()
            || self.allow_arm
            || self.unlock_by_command;
        let wanted = flags || file.vehicle.is_some() || file.foreign.is_empty();
        let shown = wanted.then(|| {
            let mut shown = file.vehicle.unwrap_or_default();
            shown.number = self.vehicle.or(shown.number);
            shown.peer = self.peer.or(shown.peer);
            shown.truth = self.truth.map(TruthOption::Form).or(shown.truth);
            shown.allow_arm |= self.allow_arm;
            shown.unlock_by_command |= self.unlock_by_command;
            shown.checked()
        });
        let shown = shown.transpose()?;
        check("foreign", file.foreign.len(), 0..=MAX_VEHICLES)?;
        let foreign = file.foreign.into_iter().map(|it| it.checked(robot.drive));
        let settings = Settings {
            bind: self.bind.or(file.bind).unwrap_or(LOOPBACK),
            robot,
            seat,
            shown,
            foreign: foreign.collect::<Result<_, _>>()?,
        };
        // The configured hosts may send.
        let hosts = settings.foreign.iter().map(|foreign| foreign.host);
        let hosts = hosts.chain(settings.shown.map(|shown| shown.peer));
        network.allowed.extend(hosts.map(ipnet::IpNet::from));
        Ok((settings, network))
    }
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl ShownOptions {
    fn checked(self) -> Result<ShownSettings, OptionsError> {
        let rate_hz = check("rate_hz", self.rate_hz.unwrap_or(20.0), RATES_HZ)?;
        let vehicle = vehicle(self.number.unwrap_or(1))?;
        let usual = GpsOrigin::default();
        let latitude_deg = self.latitude_deg.unwrap_or(usual.latitude_deg);
        let longitude_deg = self.longitude_deg.unwrap_or(usual.longitude_deg);
        let altitude_m = self.altitude_m.unwrap_or(usual.altitude_m);
        Ok(ShownSettings {
            vehicle,
            peer: self.peer.unwrap_or(LOOPBACK),
            period: Duration::from_secs_f64(1.0 / rate_hz),
            mode: self.mode.into(),
            truth: truth(self.truth, vehicle)?,
            origin: GpsOrigin {
                latitude_deg: check("latitude_deg", latitude_deg, -89.0..=89.0)?,
                longitude_deg: check("longitude_deg", longitude_deg, -180.0..=180.0)?,
                altitude_m: check("altitude_m", altitude_m, -1_000.0..=10_000.0)?,
            },
            unlock: match (self.unlock_by_command, self.allow_arm) {
                (true, _) => Unlock::FirstCommand,
                (false, true) => Unlock::Arm,
                (false, false) => Unlock::Never,
            },
            messages: self.messages,
        })
    }
}

impl ForeignOptions {
    fn checked(self, drive: SkidSteer) -> Result<ForeignSettings, OptionsError> {
        Ok(ForeignSettings {
            vehicle: vehicle(self.number)?,
            host: self.host.unwrap_or(LOOPBACK),
            mode: self.mode.into(),
            frame: match self.frame {
                FrameOption::Enu => MapFrame::Enu,
                FrameOption::Ned => MapFrame::Ned,
            },
            location: self.location,
            imu: self.imu,
            wheels: self.wheels,
            targets: self.targets,
            height_m: check("height_m", self.height_m, HEIGHTS_M)?,
            drive,
            arm: self.arm,
        })
    }
}

impl From<ModeOption> for Mode {
    fn from(mode: ModeOption) -> Self {
        match mode {
            ModeOption::Full => Self::Full,
            ModeOption::Simple => Self::Simple,
        }
    }
}

fn truth(option: Option<TruthOption>, vehicle: Vehicle) -> Result<TruthPorts, OptionsError> {
    let port = vehicle.port(Port::Truth);
    let checked = |port: Option<u16>| {
        let checked = port.map(|port| check("truth", port, 1..=u16::MAX));
        checked.transpose()
    };
    Ok(
        match option.unwrap_or(TruthOption::Form(TruthForm::default())) {
            TruthOption::Form(TruthForm::Bytes200) => TruthPorts {
                of_200_bytes: Some(port),
                of_168_bytes: None,
            },
            TruthOption::Form(TruthForm::Bytes168) => TruthPorts {
                of_200_bytes: None,
                of_168_bytes: Some(port),
            },
            TruthOption::Ports(ports) => TruthPorts {
                of_200_bytes: checked(ports.of_200_bytes)?,
                of_168_bytes: checked(ports.of_168_bytes)?,
            },
        },
    )
}

fn vehicle(number: u16) -> Result<Vehicle, OptionsError> {
    let number = check("number", number, 1..=Vehicle::MAX)?;
    Vehicle::new(number).ok_or(OptionsError::Value {
        name: "number",
        problem: "this vehicle does not exist".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use amber_robot::controls::Seat;

    use super::*;
    use crate::shared::machine::Machine;
    use crate::testing::with_file;

    fn setup(text: &str) -> Result<(Settings, Network), OptionsError> {
        with_file(text, |file| {
            let options = Options {
                config: Some(file),
                ..Options::default()
            };
            options.checked()
        })
    }

    #[test]
    fn shared_controls_reach_the_machine() {
        let seat = |text| Machine::seat(&RflySim::new(setup(text).unwrap().0));
        assert_eq!(seat("[robot]\nshared_controls = true\n"), Seat::Shared);
        assert_eq!(seat(""), Seat::Exclusive);
    }

    #[test]
    fn by_default_the_robot_is_vehicle_1_for_this_machine_and_locked() {
        let (settings, network) = Options::default().checked().unwrap();
        let shown = settings.shown.unwrap();
        assert_eq!((shown.vehicle.number(), shown.unlock), (1, Unlock::Never));
        assert_eq!(shown.truth, ports(Some(30_101), None));
        // Clients take a home of 0, 0 for an absent one.
        assert!(shown.origin.latitude_deg > 1.0 && shown.origin.longitude_deg > 1.0);
        assert!(shown.peer.is_loopback() && settings.bind.is_loopback());
        assert!(network.allowed.iter().all(|it| it.addr().is_loopback()));
    }

    #[test]
    fn the_file_has_all_options() {
        let (settings, network) = setup(
            r#"
            bind = "0.0.0.0"
            [vehicle]
            number = 2
            peer = "10.0.0.5"
            rate_hz = 50
            mode = "simple"
            truth = { 200 = 30103, 168 = 30203 }
            latitude_deg = 50.06
            longitude_deg = 19.92
            altitude_m = 219.5
            allow_arm = true
            unlock_by_command = true
            messages = true
            [[foreign]]
            number = 3
            host = "10.0.0.6"
            mode = "full"
            frame = "ned"
            location = "location:1"
            imu = "ninedof:1"
            wheels = "roboclaw:1"
            targets = "drive-to-point:1"
            height_m = 2.5
            arm = true
            "#,
        )
        .unwrap();
        let shown = settings.shown.unwrap();
        assert_eq!(shown.mode, Mode::Simple);
        assert_eq!(shown.truth, ports(Some(30_103), Some(30_203)));
        assert_eq!(shown.unlock, Unlock::FirstCommand);
        assert!((shown.origin.latitude_deg - 50.06).abs() < 1e-9);
        assert_eq!(shown.period, Duration::from_millis(20));
        assert!(shown.messages);
        let foreign = &settings.foreign[0];
        assert_eq!((foreign.frame, foreign.arm), (MapFrame::Ned, true));
        assert_eq!(foreign.targets, Some("drive-to-point:1".parse().unwrap()));
        assert!((foreign.height_m - 2.5).abs() < 1e-9);
        for host in ["10.0.0.5", "10.0.0.6"] {
            let host: IpAddr = host.parse().unwrap();
            assert!(network.allowed.iter().any(|it| it.contains(&host)));
        }
    }

    fn ports(of_200_bytes: Option<u16>, of_168_bytes: Option<u16>) -> TruthPorts {
        TruthPorts {
            of_200_bytes,
            of_168_bytes,
        }
    }

    #[test]
    fn the_true_state_has_a_form_or_a_port_for_each_form() {
        let truth = |text: &str| {
            let (settings, _) = setup(&format!("[vehicle]\nnumber = 2\ntruth = {text}")).unwrap();
            settings.shown.unwrap().truth
        };
        assert_eq!(truth("\"200\""), ports(Some(30_103), None));
        assert_eq!(truth("\"168\""), ports(None, Some(30_103)));
        assert_eq!(truth("{ 168 = 30201 }"), ports(None, Some(30_201)));
        let options = Options {
            truth: Some(TruthForm::Bytes168),
            ..Options::default()
        };
        let (settings, _) = options.checked().unwrap();
        assert_eq!(settings.shown.unwrap().truth, ports(None, Some(30_101)));
        let error = setup("[vehicle]\ntruth = \"112\"").err().unwrap();
        assert!(error.to_string().contains("{ 200 = 30101"), "{error}");
        let error = setup("[vehicle]\ntruth = { 200 = 0 }").err().unwrap();
        assert_eq!(error.to_string(), "truth: 0 is not within 1 to 65535");
    }

    #[test]
    fn the_telemetry_of_all_vehicles_may_come_from_one_source() {
        let vehicle = |number| format!("[[foreign]]\nnumber = {number}\n");
        let vehicles: String = (1..=10).map(vehicle).collect();
        let (_, network) = setup(&vehicles).unwrap();
        assert!(network.limits.source_per_s >= 500 + 10 * 300);
        assert!(network.limits.listener_per_s >= 2_000 + 10 * 300);
        let (_, network) = setup(&format!("{vehicles}[network]\nsource_rate = 70")).unwrap();
        assert_eq!(network.limits.source_per_s, 70);
        let (_, network) = Options::default().checked().unwrap();
        assert_eq!(network.limits, Default::default());
    }

    #[test]
    fn with_foreign_vehicles_only_the_robot_is_not_shown() {
        let (settings, _) = setup("[[foreign]]\nnumber = 1\nlocation = \"location:1\"").unwrap();
        assert_eq!((settings.shown, settings.foreign.len()), (None, 1));
    }

    #[test]
    fn invalid_values_are_explained() {
        for (text, expected) in [
            ("[vehicle]\nnumber = 0", "number: 0 is not within 1 to 4500"),
            (
                "[vehicle]\nrate_hz = 51",
                "rate_hz: 51 is not within 1 to 50",
            ),
        ] {
            assert_eq!(setup(text).err().unwrap().to_string(), expected);
        }
    }
}
