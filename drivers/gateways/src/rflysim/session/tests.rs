//! Both directions on a virtual clock.

use std::f32::consts::FRAC_PI_2;

use amber_proto::{ClientId, DeviceType};
use amber_robot::robot::{Measurement, OrderNumber};
use amber_values::{ImuReading, MapPose, Target, Vector, WheelSpeeds};

use super::*;
use crate::rflysim::codec::{
    FRAME_LOCAL_NED, FullCommand, NO_COLLISION, Packet, Restart, ShortCommand, SimpleKind, ignored,
};
use crate::rflysim::mapping::{GpsOrigin, MapFrame};
use crate::rflysim::shown::{Mode, TruthPorts, Unlock};
use crate::shared::event::Asked;
use crate::testing::Bench;
use crate::testing::robot;

mod foreign;
mod shown;
mod targets;

const PEER: &str = "127.0.0.1:5000";
const CONTROL: u32 = 0;

trait Autopilot {
    fn packet(&mut self, packet: &Packet);
    fn short(&mut self, mode: i32, controls: [f32; 4]);
    fn packets(&mut self) -> Vec<(u16, Packet)>;
}

impl Autopilot for Bench<RflySim> {
    fn packet(&mut self, packet: &Packet) {
        let port = Port::ALL
            .iter()
            .position(|port| *port == packet.port())
            .unwrap() as u32;
        let socket = if port == 0 { CONTROL } else { 5 + port };
        self.datagram(socket, PEER, &packet.encode());
    }

    fn short(&mut self, mode: i32, controls: [f32; 4]) {
        self.packet(&Packet::ShortCommand(ShortCommand { mode, controls }));
    }

    /// Port and content of all datagrams.
    fn packets(&mut self) -> Vec<(u16, Packet)> {
        let sent = self.take_sent().into_iter();
        sent.map(|(to, bytes)| {
            let (port, _) = Port::from_number(to.port()).unwrap();
            (to.port(), codec::decode(port, &bytes).unwrap())
        })
        .collect()
    }
}

const LOCATION: Device = Device::new(DeviceType::LOCATION, 1);
const IMU: Device = Device::new(DeviceType::NINEDOF, 1);
const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 1);
const TARGETS: Device = Device::new(DeviceType::DRIVE_TO_POINT, 1);

fn foreign_with(change: impl FnOnce(&mut ForeignSettings)) -> Bench<RflySim> {
    let mut foreign = ForeignSettings {
        vehicle: Vehicle::new(2).unwrap(),
        host: "127.0.0.1".parse().unwrap(),
        mode: Mode::Simple,
        frame: MapFrame::Enu,
        location: Some(LOCATION),
        imu: Some(IMU),
        wheels: Some(WHEELS),
        targets: Some(TARGETS),
        height_m: 2.5,
        drive: robot().drive,
        arm: false,
    };
    change(&mut foreign);
    let settings = Settings {
        bind: "127.0.0.1".parse().unwrap(),
        robot: robot(),
        seat: Seat::Exclusive,
        shown: None,
        foreign: vec![foreign],
    };
    Bench::new(RflySim::new(settings))
}

fn truth(copter_id: i32) -> codec::Truth200 {
    codec::Truth200 {
        copter_id,
        vehicle_type: 3,
        time_s: 12.5,
        velocity_m_s: [0.0, 0.3, 0.0],
        position_m: [1.0, 2.0, -10.0],
        angles_rad: [0.0, 0.0, FRAC_PI_2],
        quaternion: [1.0, 0.0, 0.0, 0.0],
        motors_rpm: [0.0; 8],
        acceleration_m_s2: [0.0, 0.0, -9.806_65],
        rates_rad_s: [0.0, 0.0, -0.5],
        padding: codec::Padding,
        gps_position: [0.0; 3],
    }
}

/// What is shown, but for the progress.
fn shows(bench: &mut Bench<RflySim>) -> Vec<(Device, Measurement)> {
    let outputs = bench.take().into_iter();
    let shows = outputs.filter_map(|(_, output)| match output {
        Output::Show(device, measurement) if device != TARGETS => Some((device, measurement)),
        _ => None,
    });
    shows.collect()
}

fn drive(speeds: WheelSpeeds) -> Event {
    Event::Asked(WHEELS, Asked::Drive(ClientId(7), speeds))
}
