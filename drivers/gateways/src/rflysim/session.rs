//! The vehicles of one RflySim gateway, and their sockets. PURE.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_proto::Device;
use amber_proto::gateway::Vehicle as VehicleStatus;
use amber_robot::controls::Seat;
use amber_robot::robot::{RobotSetup, Topic, User};

use super::codec::{self, BadPacket};
use super::foreign::{Foreign, ForeignSettings};
use super::ports::{Port, Vehicle};
use super::shown::{Shown, ShownSettings};
use crate::shared::clock::Now;
use crate::shared::event::{Emulated, Event};
use crate::shared::machine::{Cast, Datagram, Machine, Output, Outputs, Session, Socket};

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of the interface to listen on.
    pub bind: IpAddr,
    /// Amber's robot.
    pub robot: RobotSetup,
    /// Whether other programs may drive it at the same time.
    pub seat: Seat,
    /// Amber's robot as a vehicle.
    pub shown: Option<ShownSettings>,
    /// Vehicles as Amber's devices.
    pub foreign: Vec<ForeignSettings>,
}

/// The session machine of RflySim.
#[derive(Debug)]
pub struct RflySim {
    settings: Settings,
    shown: Option<Shown>,
    foreign: Vec<Foreign>,
}

const USER: User = User(1);

impl RflySim {
    /// A gateway that has received nothing yet.
    pub fn new(settings: Settings) -> Self {
        let shown = settings
            .shown
            .map(|shown| Shown::new(shown, settings.robot, USER));
        Self {
            shown,
            foreign: settings.foreign.iter().copied().map(Foreign::new).collect(),
            settings,
        }
    }

    fn topics(&self) -> [Topic; 3] {
        let robot = &self.settings.robot;
        [
            Topic::Pose(robot.location),
            Topic::Wheels(robot.wheels),
            Topic::Imu(robot.imu),
        ]
    }

    /// The host that may send to a socket, and the port that it is.
    fn place(&self, socket: Socket) -> Option<(Port, IpAddr)> {
        let (index, port) = decoded(socket)?;
        let host = match index.checked_sub(1) {
            None => self.shown.as_ref()?.settings.peer,
            Some(index) => self.foreign.get(index)?.settings.host,
        };
        Some((port, host))
    }

    fn bind(&self, index: usize, vehicle: Vehicle, port: Port, out: &mut Outputs) {
        let address = SocketAddr::new(self.settings.bind, vehicle.port(port));
        out.push(Output::Bind(numbered(index, port), address, Cast::Unicast));
    }

    fn settle(&mut self, now: Now, out: &mut Outputs) {
        if let Some(shown) = &mut self.shown {
            shown.handle_timeout(now, numbered(0, Port::Control), out);
        }
        for (index, foreign) in (1..).zip(&mut self.foreign) {
            foreign.handle_timeout(now, numbered(index, Port::Estimate), out);
        }
    }
}

impl Machine for RflySim {
    fn protocol(&self) -> &'static str {
        "rflysim"
    }

    fn seat(&self) -> Seat {
        self.settings.seat
    }

    fn emulated(&self) -> Vec<(Device, Emulated)> {
        self.foreign.iter().flat_map(Foreign::emulated).collect()
    }

    fn start(&mut self, now: Now, out: &mut Outputs) {
        if let Some(shown) = &self.shown {
            self.bind(0, shown.settings.vehicle, Port::Control, out);
            out.push(Output::Open(USER, None));
            for topic in self.topics() {
                out.push(Output::Watch(topic));
            }
        }
        for (index, foreign) in (1..).zip(&self.foreign) {
            for port in [Port::Estimate, Port::Truth, Port::External] {
                self.bind(index, foreign.settings.vehicle, port, out);
            }
        }
        self.settle(now, out);
    }

    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        let from = datagram.from;
        let Some((port, host)) = self.place(datagram.socket) else {
            return;
        };
        if from.ip().to_canonical() != host.to_canonical() {
            return out
                .tally
                .dropped(now.elapsed, "not from the configured host", from);
        }
        let packet = match codec::decode(port, datagram.bytes) {
            Ok(packet) => packet,
            Err(error) => return out.tally.bad(now.elapsed, reason(error), from),
        };
        if !packet.is_finite() {
            return out.tally.bad(now.elapsed, "number is not finite", from);
        }
        let index = decoded(datagram.socket).map_or(0, |(index, _)| index);
        match (index.checked_sub(1), &mut self.shown) {
            (None, Some(shown)) => shown.handle_packet(now, from, &packet, out),
            (Some(index), _) => {
                if let Some(foreign) = self.foreign.get_mut(index) {
                    foreign.handle_packet(now, from, &packet, out);
                    foreign.handle_timeout(now, numbered(index + 1, Port::Estimate), out);
                }
            }
            _ => {}
        }
    }

    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outputs) {
        match event {
            Event::Measured(_, measurement) => {
                if let Some(shown) = &mut self.shown {
                    shown.measured(now, &measurement);
                }
            }
            Event::Asked(device, asked) => {
                let mut foreign = self.foreign.iter_mut();
                let is_of = |it: &&mut Foreign| {
                    let ForeignSettings {
                        wheels, targets, ..
                    } = it.settings;
                    [wheels, targets].contains(&Some(device))
                };
                if let Some(foreign) = foreign.find(is_of) {
                    foreign.asked(now, device, &asked, out);
                }
                self.settle(now, out);
            }
            Event::Message(..)
            | Event::Image(_)
            | Event::Refused(..)
            | Event::Trip(..)
            | Event::Saved(..) => {}
        }
    }

    fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        self.settle(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        let shown = self.shown.as_ref().and_then(Shown::next_timeout);
        let foreign = self.foreign.iter().filter_map(Foreign::next_timeout);
        foreign.chain(shown).min()
    }

    fn stop(&mut self, now: Now, out: &mut Outputs) {
        if let Some(shown) = &mut self.shown {
            shown.halt(now, out);
        }
        for (index, foreign) in (1..).zip(&mut self.foreign) {
            foreign.stop(now, numbered(index, Port::Estimate), out);
        }
    }

    fn knows(&self, socket: Socket, from: SocketAddr) -> bool {
        let place = self.place(socket);
        place.is_some_and(|(_, host)| from.ip().to_canonical() == host.to_canonical())
    }

    fn sessions(&self, now: Now) -> Vec<Session> {
        let session = |heard: Option<Duration>, host, port, purpose, user, drives| {
            heard.map(|heard| Session {
                address: SocketAddr::new(host, port),
                user,
                purpose,
                age: now.elapsed,
                silence: now.since(heard),
                drives,
            })
        };
        let shown = self.shown.as_ref().and_then(|shown| {
            let ShownSettings { vehicle, peer, .. } = shown.settings;
            let state = if shown.is_armed() { "armed" } else { "locked" };
            let purpose = format!("commands for vehicle {vehicle}, {state}");
            session(
                shown.heard,
                peer,
                vehicle.port(Port::Control),
                purpose,
                Some(USER),
                shown.drives(),
            )
        });
        let foreign = self.foreign.iter().filter_map(|foreign| {
            let ForeignSettings { vehicle, host, .. } = foreign.settings;
            let purpose = format!("vehicle {vehicle}");
            session(
                foreign.heard,
                host,
                vehicle.port(Port::Control),
                purpose,
                None,
                foreign.drives(),
            )
        });
        shown.into_iter().chain(foreign).collect()
    }

    fn vehicles(&self, now: Now) -> Vec<VehicleStatus> {
        let foreign = self.foreign.iter().map(|foreign| foreign.status(now));
        foreign.collect()
    }
}

/// The number of a socket: 0 for the robot that is shown, then the foreign vehicles.
fn numbered(index: usize, port: Port) -> Socket {
    let ports = Port::ALL.iter().position(|other| *other == port);
    let number = index * Port::ALL.len() + ports.unwrap_or(0);
    Socket(u32::try_from(number).unwrap_or(u32::MAX))
}

fn decoded(socket: Socket) -> Option<(usize, Port)> {
    let number = usize::try_from(socket.0).ok()?;
    Some((
        number / Port::ALL.len(),
        Port::ALL[number % Port::ALL.len()],
    ))
}

fn reason(error: BadPacket) -> &'static str {
    match error {
        BadPacket::Length(_) => "unknown packet length",
        BadPacket::Magic { .. } => "wrong magic number",
        BadPacket::BodyLength { .. } => "wrong body length",
        BadPacket::Mavlink => "MAVLink; use the mode UDP_Full or UDP_Simple of the simulator",
    }
}

#[cfg(test)]
mod tests;
