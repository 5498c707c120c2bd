//! The options for starting a simulation. IO: it reads the map.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Failure, PoseArgument, read_map};
use crate::hokuyo::{Model, Quirks};
use crate::maestro;
use crate::roboclaw::Firmware;
use crate::robot::Variants;
use crate::simulator;
use crate::stargazer::Guide;

#[derive(Args, Clone, Debug)]
pub(super) struct Start {
    /// Map: a .roson file, the YAML file of a map of ROS map_server, or one of the program: flat or
    /// maze
    #[arg(long, value_name = "FILE", default_value = "flat")]
    map: PathBuf,
    /// Start position in map coordinates: metres with y down, degrees clockwise
    #[arg(long, value_name = "X,Y,HEADING", allow_hyphen_values = true)]
    start: Option<PoseArgument>,
    /// Seed of the noise
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Protocol of the motor controllers
    #[arg(long, value_enum, default_value_t = RoboclawKind::Crc16)]
    roboclaw: RoboclawKind,
    /// Model of the laser scanner
    #[arg(long, value_enum, default_value_t = HokuyoKind::Urg04Lx)]
    hokuyo: HokuyoKind,
    /// Add a laser scanner that listens on TCP
    #[arg(long, value_name = "ADDRESS:PORT")]
    hokuyo_tcp: Option<SocketAddr>,
    /// Start the laser scanner in SCIP 1.1, like units with older firmware
    #[arg(long)]
    hokuyo_scip1: bool,
    /// Laser scanners do not support single scans (GD), like some Ethernet models
    #[arg(long)]
    hokuyo_without_gd: bool,
    /// Version of the maker's guide that the StarGazer follows when it builds a map
    #[arg(long, value_enum, default_value_t = StargazerGuide::Newer)]
    stargazer: StargazerGuide,
    /// Device number of the servo controller in the Pololu protocol
    #[arg(long, value_name = "NUMBER", default_value_t = maestro::Config::default().device,
        value_parser = clap::value_parser!(u8).range(..=127))]
    maestro_device: u8,
    /// The servo controller requires a CRC after each packet
    #[arg(long)]
    maestro_crc: bool,
    /// The servo controller waits for the byte AA first, to detect the baud rate of a serial line
    #[arg(long)]
    maestro_detect_baud: bool,
    /// Speed of the simulation relative to real time
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    speed: f64,
    /// Exit when stdin ends; for programs that start the simulation
    #[arg(long)]
    pub(super) until_eof: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoboclawKind {
    /// 7-bit checksums, writes are not acknowledged
    Legacy,
    /// 7-bit checksums, writes are acknowledged if bit 7 of the checksum is set
    LegacyAck,
    /// CRC16, two status bytes as in firmware 4.1.x
    Crc16Short,
    /// CRC16, four status bytes
    Crc16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HokuyoKind {
    /// 240 degrees, 5.6 m, 10 scans per second
    #[value(name = "urg-04lx")]
    Urg04Lx,
    /// 270 degrees, 60 m, 40 scans per second
    #[value(name = "utm-30lx")]
    Utm30Lx,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StargazerGuide {
    /// Builds the map from MapMode|Start, ends with MapDataSave
    Older,
    /// Builds the map from CalcStart, ends with ParameterUpdate (02.0904.16)
    Newer,
}

impl Start {
    fn variants(&self) -> Variants {
        Variants {
            scanner: Quirks {
                starts_in_scip_1: self.hokuyo_scip1,
                lacks_gd: self.hokuyo_without_gd,
            },
            maestro: maestro::Config {
                device: self.maestro_device,
                crc: self.maestro_crc,
                detects_baud: self.maestro_detect_baud,
                ..maestro::Config::default()
            },
            stargazer: match self.stargazer {
                StargazerGuide::Older => Guide::Older,
                StargazerGuide::Newer => Guide::Newer,
            },
        }
    }

    /// The configuration for a folder, with the map loaded.
    pub(super) fn config(&self, folder: PathBuf) -> Result<simulator::Config, Failure> {
        Ok(simulator::Config {
            map: read_map(&self.map)?,
            folder,
            start: self
                .start
                .map(|place| (place.x_m, place.y_m, place.heading_deg)),
            seed: self.seed,
            speed: self.speed,
            roboclaw: match self.roboclaw {
                RoboclawKind::Legacy => Firmware::Legacy,
                RoboclawKind::LegacyAck => Firmware::LegacyAck,
                RoboclawKind::Crc16Short => Firmware::Crc16Short,
                RoboclawKind::Crc16 => Firmware::Crc16,
            },
            hokuyo: match self.hokuyo {
                HokuyoKind::Urg04Lx => Model::Urg04Lx,
                HokuyoKind::Utm30Lx => Model::Utm30Lx,
            },
            hokuyo_tcp: self.hokuyo_tcp,
            variants: self.variants(),
        })
    }
}
