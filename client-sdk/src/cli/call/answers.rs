//! Results of requests, for people and programs. PURE.

use serde::Serialize;

use super::super::output::{Human, fields};
use crate::proxy::{DummyStatus, WheelSpeeds};

/// The requests of a device.
#[derive(Debug, Serialize)]
pub(super) struct Requests {
    pub(super) requests: Vec<RequestShown>,
    /// The fields of its schema, for FIELD=VALUE.
    pub(super) fields: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct RequestShown {
    pub(super) name: String,
    pub(super) args: String,
}

impl Human for Requests {
    fn human(&self) -> String {
        let mut out = String::new();
        for request in &self.requests {
            out += format!("{} {}", request.name, request.args).trim_end();
            out += "\n";
        }
        for field in &self.fields {
            out += &format!("{field}=VALUE\n");
        }
        out
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Sent {
    pub(super) sent: bool,
}

impl Human for Sent {
    fn human(&self) -> String {
        String::new()
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Status {
    pub(super) enable: bool,
    pub(super) message: String,
}

impl From<DummyStatus> for Status {
    fn from(status: DummyStatus) -> Self {
        Self {
            enable: status.enable,
            message: status.message,
        }
    }
}

impl Human for Status {
    fn human(&self) -> String {
        fields(&[
            ("enable", Some(self.enable.to_string())),
            ("message", Some(self.message.clone())),
        ])
    }
}

/// Wheel speeds for people and programs.
#[derive(Debug, Serialize)]
pub(super) struct Speeds {
    pub(super) front_left_mm_s: i32,
    pub(super) front_right_mm_s: i32,
    pub(super) rear_left_mm_s: i32,
    pub(super) rear_right_mm_s: i32,
}

impl From<WheelSpeeds> for Speeds {
    fn from(speeds: WheelSpeeds) -> Self {
        Self {
            front_left_mm_s: speeds.front_left_mm_s,
            front_right_mm_s: speeds.front_right_mm_s,
            rear_left_mm_s: speeds.rear_left_mm_s,
            rear_right_mm_s: speeds.rear_right_mm_s,
        }
    }
}

impl Human for Speeds {
    fn human(&self) -> String {
        let mm_s = |speed: i32| Some(format!("{speed:>5} mm/s"));
        fields(&[
            ("front left", mm_s(self.front_left_mm_s)),
            ("front right", mm_s(self.front_right_mm_s)),
            ("rear left", mm_s(self.rear_left_mm_s)),
            ("rear right", mm_s(self.rear_right_mm_s)),
        ])
    }
}
