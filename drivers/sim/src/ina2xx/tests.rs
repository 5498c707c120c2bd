//! Tests of the sensors through their registers, with a simulated time.

use super::*;

const MS: Duration = Duration::from_millis(1);

/// A sensor, and a time that advances.
struct Bench {
    sensor: Ina,
    now: Duration,
}

impl Bench {
    fn new(model: Model, volts: f64, amperes: f64) -> Self {
        let mut sensor = Ina::new(model);
        sensor.set_fixed(volts, amperes);
        Self {
            sensor,
            now: 10 * MS,
        }
    }

    fn transfer(&mut self, written: &[u8], read: u8) -> Reply {
        let transfer = Transfer {
            address: ADDRESS,
            written: written.to_vec(),
            read,
        };
        self.sensor.transfer(self.now, &transfer)
    }

    fn write(&mut self, register: u8, value: u16) {
        let [high, low] = value.to_be_bytes();
        let reply = self.transfer(&[register, high, low], 0);
        assert_eq!(reply, Reply::Ack(vec![]));
    }

    fn read(&mut self, register: u8) -> u16 {
        match self.transfer(&[register], 2) {
            Reply::Ack(bytes) => u16::from_be_bytes([bytes[0], bytes[1]]),
            Reply::Nak => panic!("no chip"),
        }
    }
}

#[test]
fn the_bytes_are_those_of_the_hardware_sheet() {
    // The current flows into the battery.
    let mut bench = Bench::new(Model::Ina219, 12.104, -0.32);
    assert_eq!((bench.read(0x00), bench.read(0x05)), (0x399F, 0));
    assert_eq!((bench.read(0x01), bench.read(0x02)), (0xF380, 0x5E92));
    assert_eq!(bench.read(0x04), 0, "without a calibration");
    bench.write(0x05, 0x1000);
    assert_eq!(bench.read(0x04), 0xF380);
    // 3.873 W in digits of 2 mW.
    assert_eq!(bench.read(0x03), 1_936);

    let mut bench = Bench::new(Model::Ina226, 14.8, -5.0);
    assert_eq!((bench.read(0xFE), bench.read(0xFF)), (0x5449, 0x2260));
    assert_eq!((bench.read(0x00), bench.read(0x01)), (0x4127, 0xF060));
    assert_eq!(bench.read(0x02), 0x2E40);
    bench.write(0x05, 0x0A00);
    assert_eq!(bench.read(0x04), 0xEC78);

    let mut bench = Bench::new(Model::Ina260, 10.0, 12.5);
    assert_eq!((bench.read(0xFE), bench.read(0xFF)), (0x5449, 0x2270));
    assert_eq!((bench.read(0x01), bench.read(0x02)), (10_000, 8_000));
    // 125 W in digits of 10 mW.
    assert_eq!(bench.read(0x03), 12_500);
}

#[test]
fn values_are_those_of_the_last_conversion() {
    // All means: 136 and 141 ms.
    for (model, config) in [(Model::Ina219, 0x3FFF), (Model::Ina226, 0x4727)] {
        let mut bench = Bench::new(model, 12.0, 1.0);
        bench.write(0x00, config);
        let ready = |bench: &mut Bench| match model {
            Model::Ina219 => bench.read(0x02) & 0x02 != 0,
            _ => bench.read(0x06) & 0x08 != 0,
        };
        let before = bench.read(0x01);
        bench.sensor.set_fixed(12.0, 2.0);
        bench.now += 130 * MS;
        assert_eq!((bench.read(0x01), ready(&mut bench)), (before, false));
        bench.now += 12 * MS;
        assert_eq!(bench.read(0x01), 2 * before);
        assert!(ready(&mut bench));
        // Asleep, it keeps them.
        bench.write(0x00, config & !7);
        bench.sensor.set_fixed(12.0, 3.0);
        bench.now += 1_000 * MS;
        assert_eq!(bench.read(0x01), 2 * before);
        // Awake for one conversion.
        bench.write(0x00, config & !4);
        bench.now += 1_000 * MS;
        assert_eq!(bench.read(0x01), 3 * before);
        bench.sensor.set_fixed(12.0, 1.0);
        bench.now += 1_000 * MS;
        assert_eq!(bench.read(0x01), 3 * before);
    }
}

#[test]
fn ranges_have_ends() {
    let mut bench = Bench::new(Model::Ina219, 20.0, 5.0);
    assert_eq!((bench.read(0x01), bench.read(0x02) >> 3), (32_000, 5_000));
    // 16 V and 40 mV.
    bench.write(0x00, 0x019F);
    bench.now += 10 * MS;
    assert_eq!((bench.read(0x01), bench.read(0x02) >> 3), (4_000, 4_000));
    bench.write(0x05, 0xFFFE);
    assert_eq!(bench.read(0x02) & 1, 1, "an overflow");
    let mut bench = Bench::new(Model::Ina226, 50.0, -50.0);
    assert_eq!((bench.read(0x01), bench.read(0x02)), (0x8001, 0x7FFF));
}

#[test]
fn a_reset_and_a_power_cycle_lose_all_settings() {
    let mut bench = Bench::new(Model::Ina219, 12.0, 0.1);
    for _ in 0..2 {
        bench.write(0x00, 0x3FFF);
        bench.write(0x05, 0x1001);
        assert_eq!((bench.read(0x00), bench.read(0x05)), (0x3FFF, 0x1000));
        bench.write(0x00, 0x8000);
        assert_eq!((bench.read(0x00), bench.read(0x05)), (0x399F, 0));
        bench.write(0x05, 0x1000);
        bench.sensor.restart(bench.now);
        assert_eq!((bench.read(0x00), bench.read(0x05)), (0x399F, 0));
    }
}

#[test]
fn only_its_address_answers() {
    let mut sensor = Ina::new(Model::Ina226);
    for address in 0..0x80 {
        let transfer = Transfer {
            address,
            written: vec![0xFE],
            read: 4,
        };
        let expected = match address {
            ADDRESS => Reply::Ack(vec![0x54, 0x49, 0xFF, 0xFF]),
            _ => Reply::Nak,
        };
        assert_eq!(sensor.transfer(Duration::ZERO, &transfer), expected);
    }
}
