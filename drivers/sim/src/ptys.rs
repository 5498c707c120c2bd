//! The pseudo-terminals of the devices that have one. IO.

use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};

use crate::device::Device;
use crate::first::first;
use crate::pty::Pty;

/// A pseudo-terminal for each device that is connected by a serial line or USB, unless it is
/// unplugged.
#[derive(Debug)]
pub(crate) struct Ptys {
    folder: PathBuf,
    ports: Vec<Port>,
}

#[derive(Debug)]
struct Port {
    device: Device,
    pty: Option<Pty>,
    buffer: [u8; 4_096],
}

impl Ptys {
    /// Creates those of these devices, plugged in.
    pub(crate) fn open(folder: &Path, devices: impl Iterator<Item = Device>) -> io::Result<Self> {
        let port = |device| {
            Ok(Port {
                device,
                pty: Some(Pty::open(&path(folder, device))?),
                buffer: [0; 4_096],
            })
        };
        Ok(Self {
            folder: folder.to_owned(),
            ports: devices.map(port).collect::<io::Result<_>>()?,
        })
    }

    /// Waits for bytes that a program wrote to a device.
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn read(&mut self) -> (Device, io::Result<Vec<u8>>) {
        // Rotates the order, so that one busy program cannot starve the others.
        self.ports.rotate_left(1);
        first(self.ports.iter_mut().map(Port::read)).await
    }

    /// Plugs a device in or out. Returns whether this changed its state.
    pub(crate) fn plug(&mut self, device: Device, plugged: bool) -> io::Result<bool> {
        let Some(port) = self.ports.iter_mut().find(|port| port.device == device) else {
            return Ok(false);
        };
        let is_new = port.pty.is_some() != plugged;
        if is_new {
            port.pty = match plugged {
                true => Some(Pty::open(&path(&self.folder, device))?),
                false => None,
            };
        }
        Ok(is_new)
    }

    /// Passes bytes to the program that has the port of a device open.
    pub(crate) fn write(&mut self, device: Device, bytes: &[u8]) -> io::Result<()> {
        let mut ports = self.ports.iter_mut();
        match ports.find(|port| port.device == device) {
            Some(Port { pty: Some(pty), .. }) => pty.write(bytes).map(|_| ()),
            _ => Ok(()),
        }
    }
}

impl Port {
    async fn read(&mut self) -> (Device, io::Result<Vec<u8>>) {
        let Some(pty) = &mut self.pty else {
            return pending().await;
        };
        let read = pty.read(&mut self.buffer).await;
        (self.device, read.map(|count| self.buffer[..count].to_vec()))
    }
}

fn path(folder: &Path, device: Device) -> PathBuf {
    folder.join(device.name())
}
