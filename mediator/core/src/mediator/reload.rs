//! Adds drivers from a configuration, and applies a changed configuration. PURE.

use std::collections::BTreeSet;
use std::time::Instant;

use amber_proto::mediator::Event as Notice;
use amber_proto::mediator::event::Kind;
use amber_proto::mediator::log_line::Level;
use tracing::info;

use super::health::Health;
use super::motion::Motion;
use super::words::Words;
use super::{Core, Driver, notice};
use crate::address::DriverKey;
use crate::config::{Config, DriverConfig};
use crate::supervise::{Event, State, Supervisor};

impl Core {
    /// Whether a configuration would remove all drivers without saying that it means to. Editors
    /// empty a file for a moment before they write it.
    pub fn would_lose_all_drivers(&self, config: &Config) -> bool {
        let has_drivers = self.drivers.values().any(|driver| !driver.obsolete);
        has_drivers && config.drivers.is_empty() && !config.no_drivers
    }

    /// Applies another configuration. Unchanged drivers are not affected. Returns a summary.
    pub fn apply(&mut self, now: Instant, config: &Config) -> String {
        self.take_rules(now, config);
        let (mut changed, mut unchanged, mut added) = (0, 0, 0);
        let mut keep = BTreeSet::new();
        for driver in &config.drivers {
            let known = driver
                .devices
                .iter()
                .find_map(|device| self.router.driver_of(*device));
            let same_devices = known.filter(|key| {
                self.drivers
                    .get(key)
                    .is_some_and(|known| known.config.devices == driver.devices && !known.obsolete)
            });
            let Some(key) = same_devices else { continue };
            keep.insert(key);
            let Some(known) = self.drivers.get_mut(&key) else {
                continue;
            };
            let current = known.next_config.as_ref().unwrap_or(&known.config);
            if current == driver {
                unchanged += 1;
                // A reload usually means that the cause of the failure was fixed.
                if matches!(known.supervisor.state(), State::Failed { .. }) {
                    self.driver_event(now, key, Event::Start);
                }
            } else {
                changed += 1;
                known.next_config = Some(driver.clone());
                // A driver that was stopped stays stopped.
                if known.supervisor.is_wanted() {
                    let text = "restarting, because its configuration has changed";
                    self.log_about(now, key, Level::Info, text);
                    self.driver_event(now, key, Event::Restart);
                }
            }
        }
        let obsolete: Vec<_> = self
            .keys()
            .into_iter()
            .filter(|key| !keep.contains(key) && !self.drivers[key].obsolete)
            .collect();
        for key in &obsolete {
            self.log_about(now, *key, Level::Info, "no longer in the configuration");
            self.driver_event(now, *key, Event::Stop);
            if let Some(driver) = self.drivers.get_mut(key) {
                driver.obsolete = true;
            }
            // Its devices are free at once for a driver that takes them over.
            self.router.release_devices(*key);
            self.forget_if_at_rest(now, *key);
        }
        for driver in &config.drivers {
            if driver
                .devices
                .iter()
                .all(|device| self.router.driver_of(*device).is_none())
            {
                added += 1;
                let key = self.add_driver(now, driver.clone());
                self.driver_event(now, key, Event::Start);
            }
        }
        let removed = obsolete.len();
        let text = format!(
            "configuration read; drivers unchanged: {unchanged}, restarted: {changed}, \
             added: {added}, removed: {removed}"
        );
        info!("{text}");
        self.notify(Notice {
            text: Some(text.clone()),
            ..notice(Kind::ConfigurationReloaded)
        });
        self.tend(now);
        text
    }

    pub(super) fn add_driver(&mut self, now: Instant, config: DriverConfig) -> DriverKey {
        let key = DriverKey(self.next_key);
        self.next_key += 1;
        self.router.add_driver(key, config.devices.clone());
        let supervisor = Supervisor::new(now, config.policy);
        let health = config.devices.iter().map(|_| Health::new(now)).collect();
        let descriptions = vec![None; config.devices.len()];
        let motions = config.devices.iter().map(|_| Motion::default()).collect();
        let driver = Driver {
            config,
            supervisor,
            words: Words::default(),
            health,
            descriptions,
            motions,
            gone: false,
            hint: None,
            last_exit_hint: None,
            obsolete: false,
            next_config: None,
            waits: false,
        };
        self.drivers.insert(key, driver);
        key
    }

    /// Whether drivers that are no longer configured still run and hold hardware that this one
    /// needs. There may be several: one driver of two devices can replace two drivers.
    pub(super) fn must_wait(&self, key: DriverKey) -> bool {
        let Some(devices) = self.drivers.get(&key).map(|driver| &driver.config.devices) else {
            return false;
        };
        let holds = |other: &Driver| {
            let held = &other.config.devices;
            other.obsolete && held.iter().any(|device| devices.contains(device))
        };
        let others = self.drivers.iter().filter(|(other, _)| **other != key);
        others.map(|(_, other)| other).any(holds)
    }

    pub(super) fn forget_if_at_rest(&mut self, now: Instant, key: DriverKey) {
        let forget = |driver: &Driver| driver.obsolete && driver.supervisor.is_at_rest();
        if !self.drivers.get(&key).is_some_and(forget) {
            return;
        }
        self.drivers.remove(&key);
        self.router.remove_driver(key);
        for next in self.keys() {
            if self.stopping || !self.drivers[&next].waits || self.must_wait(next) {
                continue;
            }
            if let Some(driver) = self.drivers.get_mut(&next) {
                driver.waits = false;
            }
            self.driver_event(now, next, Event::Start);
        }
    }

    /// Applies the settings that can change while the mediator runs.
    pub(super) fn take_rules(&mut self, now: Instant, config: &Config) {
        self.admin = config.admin;
        self.limits = config.limits;
        self.forget_at(now);
        self.router
            .set_datagram_rate(config.limits.datagrams_per_second);
        self.router
            .set_clients_per_host(config.limits.clients_per_host);
        self.router.set_stream_rates(config.limits.streams);
        self.router
            .set_access(config.access.clone(), &mut self.outbox);
    }
}
