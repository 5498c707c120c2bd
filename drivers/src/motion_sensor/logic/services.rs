//! Tests and calibrations on request, and the bias measurement at the start. PURE.

use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin};
use amber_proto::DeviceMessage;
use amber_proto::ninedof::{DriverMsg, ServiceReport};

use super::super::model::Model;
use super::super::service::{self, Outcome, Service, ServiceKind};
use super::super::units::{Axes, Measured};
use super::{ImuLogic, Note, Output};

/// How long the gyroscope is observed for the bias measurement at the start.
const START_WATCH: Duration = Duration::from_secs(1);
/// The delay before the next try if the robot moved.
const START_PAUSE: Duration = Duration::from_secs(10);

/// A calibration that is being saved.
#[derive(Debug)]
pub(super) struct Storing {
    by: Cause,
    pub(super) is_begun: bool,
}

#[derive(Debug)]
enum Cause {
    /// A client has asked for it.
    Service(ServiceKind, Origin, Axes),
    /// The sensor has calibrated itself.
    Sensor,
}

impl<M: Model> ImuLogic<M> {
    /// A client requests a test or a calibration of the sensors.
    pub fn serve(
        &mut self,
        now: Instant,
        origin: Origin,
        kind: ServiceKind,
        time: Option<Duration>,
    ) {
        let is_asked_for = |service: &Service| service.origin.is_some();
        if self.storing.is_some() || self.service.as_ref().is_some_and(is_asked_for) {
            let report = service::refusal("a test or calibration is already running");
            return self.report(&origin, report);
        }
        if kind == ServiceKind::Magnet && self.lacking.magnet {
            let report = service::refusal("this sensor has no magnetometer");
            return self.report(&origin, report);
        }
        if let Some(found) = self.model.own_calibration(kind, self.latest) {
            return self.report(&origin, service::own_report(kind, found));
        }
        if self.service.is_some() {
            // The driver's own measurement resumes later, if still needed.
            self.measure_bias_at = Some(now + START_PAUSE);
        }
        self.service = Some(Service::new(now, kind, Some(origin), time));
    }

    /// Stops the service of a client that is gone.
    pub(super) fn stop_service_of(&mut self, client: ClientId) {
        let is_its = |origin: &Origin| origin.clients == [client];
        (self.service).take_if(|one| one.origin.as_ref().is_some_and(is_its));
    }

    /// The calibration was saved (with the name of the file) or could not be saved (with the
    /// reason). `None` if there is no file.
    pub fn stored(&mut self, stored: Option<Result<String, String>>) {
        let Some(storing) = self.storing.take() else {
            return;
        };
        match storing.by {
            Cause::Service(kind, origin, found) => {
                let report = service::calibration_report(kind, Ok(found), stored);
                self.report(&origin, report);
            }
            Cause::Sensor => self.outputs.push_back(Output::Say(Note::Learned(stored))),
        }
    }

    /// Stores what a sensor that calibrates itself has learned.
    pub(super) fn keep_learned(&mut self, raw: M::Raw) {
        if let Some(calibration) = self.model.learned(raw, &self.calibration) {
            self.calibration = calibration;
            self.storing = Some(Storing {
                by: Cause::Sensor,
                is_begun: false,
            });
        }
    }

    pub(super) fn proceed_with_service(&mut self, now: Instant) {
        let calibration = &self.calibration;
        let outcome = (self.service.as_ref()).and_then(|one| one.outcome(now, calibration));
        let Some((service, outcome)) = self.service.take_if(|_| outcome.is_some()).zip(outcome)
        else {
            return;
        };
        match (outcome, service.origin) {
            (Outcome::Findings(findings), Some(origin)) => {
                self.report(&origin, service::findings_report(findings, self.lacking));
            }
            (Outcome::Findings(_), None) => {}
            (Outcome::Measured(kind, Err(why)), Some(origin)) => {
                self.report(&origin, service::calibration_report(kind, Err(why), None));
            }
            (Outcome::Measured(_, Err(why)), None) => {
                self.measure_bias_at = Some(now + START_PAUSE);
                if !std::mem::replace(&mut self.has_warned_of_motion, true) {
                    self.outputs.push_back(Output::Say(Note::NoBias(why)));
                }
            }
            (Outcome::Measured(kind, Ok(found)), origin) => {
                let calibration = std::mem::take(&mut self.calibration);
                self.calibration = match kind {
                    ServiceKind::Magnet => calibration.with_magnet(found),
                    ServiceKind::Gyro | ServiceKind::SelfTest => calibration.with_gyro(found),
                };
                match origin {
                    // The bias is measured at each start, so it is not saved.
                    None => self.outputs.push_back(Output::Say(Note::Bias(found))),
                    Some(origin) => {
                        self.storing = Some(Storing {
                            by: Cause::Service(kind, origin, found),
                            is_begun: false,
                        });
                    }
                }
            }
        }
    }

    /// Starts the bias measurement as soon as the gyroscope works.
    pub(super) fn watch_for_bias(&mut self, now: Instant, measured: Measured) {
        let is_time = self.measure_bias_at.is_some_and(|time| time <= now);
        if is_time && measured.gyro_deg_s.is_some() && self.service.is_none() {
            self.measure_bias_at = None;
            if !self.calibration.knows_gyro() {
                self.service = Some(Service::new(
                    now,
                    ServiceKind::Gyro,
                    None,
                    Some(START_WATCH),
                ));
            }
        }
    }

    fn report(&mut self, origin: &Origin, report: ServiceReport) {
        let message = DriverMsg {
            service_report: Some(report),
            ..DriverMsg::data()
        };
        (self.outputs).push_back(Output::Answer(origin.clone(), message));
    }
}
