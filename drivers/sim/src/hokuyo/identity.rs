//! The identity of a scanner: version, parameters and state. PURE.

use super::DONE;
use super::model::Model;
use super::scip::Reply;

/// The reply to `VV`.
pub(super) fn version(model: Model, request: &str) -> Vec<u8> {
    let (product, firmware, serial) = match model {
        Model::Urg04Lx => (
            "SOKUIKI Sensor URG-04LX",
            "3.1.04(02/Aug./2007)",
            "H0706400",
        ),
        Model::Utm30Lx => (
            "SOKUIKI Sensor TOP-URG UTM-30LX",
            "1.18.01(16/Nov./2011)",
            "H1112345",
        ),
    };
    let reply = Reply::to(request)
        .line(DONE)
        .entry("VEND", "Hokuyo Automatic Co.,Ltd.")
        .entry("PROD", product)
        .entry("FIRM", firmware)
        .entry("PROT", "SCIP 2.0")
        .entry("SERI", serial);
    reply.end()
}

/// The reply to `PP`.
pub(super) fn parameters(model: Model, request: &str) -> Vec<u8> {
    let numbers = [
        ("DMIN", model.min_mm()),
        ("DMAX", model.max_mm()),
        ("ARES", model.steps_per_turn()),
        ("AMIN", model.first_step()),
        ("AMAX", model.last_step()),
        ("AFRT", model.front_step()),
        ("SCAN", model.rpm()),
    ];
    let reply = Reply::to(request)
        .line(DONE)
        .entry("MODL", &full_name(model));
    let reply = numbers.into_iter().fold(reply, |reply, (key, number)| {
        reply.entry(key, &number.to_string())
    });
    reply.end()
}

/// The current state of the scanner.
pub(super) struct ScannerState {
    pub(super) model: Model,
    pub(super) laser_on: bool,
    /// Set by the `CR` command.
    pub(super) speed: u32,
    pub(super) rpm: u32,
    pub(super) bits_per_s: u32,
    pub(super) time_stamp: u32,
}

impl ScannerState {
    /// The reply to `II`.
    pub(super) fn reply(&self, request: &str) -> Vec<u8> {
        let set_by = |changed: bool| {
            if changed {
                "<-Changed by user"
            } else {
                "<-Default setting by user"
            }
        };
        let laser = if self.laser_on { "ON" } else { "OFF" };
        let speed = format!("Initial({}[rpm]){}", self.rpm, set_by(self.speed != 0));
        let mode = if self.laser_on { "CLASSIC" } else { "IDLE" };
        let rate = match self.model {
            Model::Urg04Lx => {
                let changed = self.bits_per_s != 19_200;
                format!("{}[bps]{}", self.bits_per_s, set_by(changed))
            }
            Model::Utm30Lx => "USB Full Speed".to_owned(),
        };
        let reply = Reply::to(request)
            .line(DONE)
            .entry("MODL", &full_name(self.model))
            .entry("LASR", laser)
            .entry("SCSP", &speed)
            .entry("MESM", mode)
            .entry("SBPS", &rate)
            .entry("TIME", &format!("{:06X}", self.time_stamp))
            .entry("STAT", "Sensor works well.");
        reply.end()
    }
}

fn full_name(model: Model) -> String {
    format!("{}(Hokuyo Automatic Co.,Ltd.)", model.name())
}
