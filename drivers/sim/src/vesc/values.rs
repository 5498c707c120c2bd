//! What a VESC tells of its motor. PURE.

/// Its measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) transistors_c: f64,
    pub(super) motor_c: f64,
    pub(super) motor_a: f64,
    pub(super) battery_a: f64,
    /// The voltage at the motor as a fraction of that of the battery, -1 to 1.
    pub(super) duty: f64,
    /// Electrical turns per minute.
    pub(super) erpm: i32,
    pub(super) battery_v: f64,
    /// Steps of the motor.
    pub(super) tachometer: i32,
    pub(super) fault: u8,
    /// Its number on the CAN bus.
    pub(super) id: u8,
}

impl Measured {
    /// The fields that are chosen by these bits, in the order of the firmware.
    pub(super) fn encode(&self, mask: u32) -> Vec<u8> {
        let short =
            |value: f64, scale: f64| ((value * scale).round() as i16).to_be_bytes().to_vec();
        let long = |value: f64, scale: f64| ((value * scale).round() as i32).to_be_bytes().to_vec();
        let fields = [
            short(self.transistors_c, 10.0),
            short(self.motor_c, 10.0),
            long(self.motor_a, 100.0),
            long(self.battery_a, 100.0),
            // The current along the field and across it.
            long(0.0, 100.0),
            long(self.motor_a, 100.0),
            short(self.duty, 1_000.0),
            long(self.erpm.into(), 1.0),
            short(self.battery_v, 10.0),
            // Charge and energy, out of the battery and into it: not simulated.
            vec![0; 4],
            vec![0; 4],
            vec![0; 4],
            vec![0; 4],
            self.tachometer.to_be_bytes().to_vec(),
            self.tachometer.wrapping_abs().to_be_bytes().to_vec(),
            vec![self.fault],
            // A position that is not controlled.
            vec![0; 4],
            vec![self.id],
            [short(self.transistors_c, 10.0), vec![0; 4]].concat(),
            // Voltages along the field and across it.
            vec![0; 4],
            long(self.duty * self.battery_v, 1_000.0),
            // Neither a time limit that has passed nor a kill switch.
            vec![0],
        ];
        let chosen = fields.into_iter().enumerate();
        let chosen = chosen.filter(|(bit, _)| mask & (1 << bit) != 0);
        chosen.flat_map(|(_, field)| field).collect()
    }
}
