//! Requests that change how the scanner works: speed, bit rate, time. PURE.

use std::time::Duration;

use super::part::digits;
use super::scip::Reply;
use super::{DONE, Hokuyo, Model, Status, Transport, encode};

impl Hokuyo {
    pub(super) fn reset(&mut self, now: Duration, whole: bool) {
        self.switch_laser_off();
        self.time_mode = false;
        self.timer_zero = now;
        if whole {
            self.set_speed(now, 0);
            self.bits_per_s = 19_200;
        }
    }

    pub(super) fn change_speed(&mut self, now: Duration, parameters: &str) -> Status {
        let Some(speed) = digits(parameters, 2) else {
            return "01";
        };
        let speed = match speed {
            _ if self.model == Model::Utm30Lx => return "04",
            99 => 0,
            0..=10 => speed,
            _ => return "02",
        };
        if speed == self.turns.speed() {
            return "03";
        }
        self.set_speed(now, speed);
        DONE
    }

    fn set_speed(&mut self, now: Duration, speed: u32) {
        if self.turns.set_speed(now, speed) {
            self.latest = None;
            self.served = None;
            // Turns are counted from zero again.
            let turn = self.turns.first_from(now);
            if let Some(stream) = &mut self.stream {
                stream.turn = turn;
            }
            for waiting in &mut self.waiting {
                waiting.turn = turn;
            }
        }
    }

    /// Firmware 3.1.04 of the URG does not support `HS` (3.2.00 does), and the UTM has only one
    /// sensitivity.
    pub(super) fn refuse_sensitivity(&self) -> Status {
        match self.model {
            Model::Urg04Lx => "0C",
            Model::Utm30Lx => "03",
        }
    }

    pub(super) fn change_bit_rate(&mut self, parameters: &str) -> Status {
        const RATES: [u32; 7] = [19_200, 38_400, 57_600, 115_200, 250_000, 500_000, 750_000];
        match digits(parameters, 6) {
            None => "01",
            Some(_) if self.link == Transport::Ethernet => "0F",
            Some(_) if self.model == Model::Utm30Lx => "04",
            Some(rate) if !RATES.contains(&rate) => "02",
            Some(rate) if rate == self.bits_per_s => "03",
            Some(rate) => {
                self.bits_per_s = rate;
                DONE
            }
        }
    }

    pub(super) fn time(&mut self, now: Duration, request: &str, parameters: &str) {
        let status = match (parameters, self.time_mode) {
            ("0", true) => "02",
            ("0", false) => {
                self.switch_laser_off();
                self.time_mode = true;
                DONE
            }
            ("1", true) => {
                let time = encode(self.time_stamp(now), 4);
                return self.push(Reply::to(request).line(DONE).line(time).end());
            }
            ("1", false) => "04",
            ("2", true) => {
                self.time_mode = false;
                DONE
            }
            ("2", false) => "03",
            _ => "01",
        };
        self.answer(request, status);
    }
}
