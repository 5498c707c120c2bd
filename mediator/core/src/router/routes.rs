//! The configured drivers, by key, by device, and by the id of their process. PURE.

use std::collections::hash_map;

use amber_proto::{ClientId, Device};

use super::Route;
use crate::address::DriverKey;
use crate::hash::Map;

/// Every driver that is configured. A device belongs to one driver at most, and an id to one
/// running process.
#[derive(Debug, Default)]
pub(super) struct Routes {
    by_key: Map<DriverKey, Route>,
    by_device: Map<Device, DriverKey>,
    by_id: Map<ClientId, DriverKey>,
}

impl Routes {
    /// Adds a driver. It takes over its devices.
    pub(super) fn add(&mut self, key: DriverKey, route: Route) {
        for device in &route.devices {
            self.by_device.insert(*device, key);
        }
        self.by_key.insert(key, route);
    }

    /// Makes the devices of a driver available to others.
    pub(super) fn release_devices(&mut self, key: DriverKey) {
        self.by_device.retain(|_, driver| *driver != key);
    }

    /// Removes a driver and releases its devices.
    pub(super) fn remove(&mut self, key: DriverKey) -> Option<Route> {
        self.release_devices(key);
        let route = self.by_key.remove(&key)?;
        if let Some(id) = route.id {
            self.by_id.remove(&id);
        }
        Some(route)
    }

    /// The process of a driver has started.
    pub(super) fn started(&mut self, key: DriverKey, id: ClientId) {
        if let Some(route) = self.by_key.get_mut(&key) {
            route.id = Some(id);
            self.by_id.insert(id, key);
        }
    }

    /// The process of a driver has ended. Returns the id that it had.
    pub(super) fn ended(&mut self, key: DriverKey) -> Option<ClientId> {
        let id = self.by_key.get_mut(&key)?.id.take()?;
        self.by_id.remove(&id);
        Some(id)
    }

    /// The driver that serves a device.
    pub(super) fn of_device(&self, device: Device) -> Option<DriverKey> {
        self.by_device.get(&device).copied()
    }

    /// The driver whose process has an id.
    pub(super) fn of_id(&self, id: ClientId) -> Option<DriverKey> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn get(&self, key: DriverKey) -> Option<&Route> {
        self.by_key.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: DriverKey) -> Option<&mut Route> {
        self.by_key.get_mut(&key)
    }

    pub(super) fn all(&self) -> hash_map::Values<'_, DriverKey, Route> {
        self.by_key.values()
    }

    pub(super) fn all_with_keys(&self) -> impl Iterator<Item = (DriverKey, &Route)> {
        self.by_key.iter().map(|(key, route)| (*key, route))
    }

    pub(super) fn all_mut(&mut self) -> hash_map::ValuesMut<'_, DriverKey, Route> {
        self.by_key.values_mut()
    }
}
