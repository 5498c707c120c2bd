//! Tests of the chips on a fake bus, with a simulated time, and of the options.

use std::time::Duration;

use amber_driver::{ClientId, Origin};
use amber_proto::SynNum;
use amber_proto::ninedof::DataRequest;
use amber_sim::mpu::{Model as Product, MpuChips};

use super::*;
use crate::i2c::fake::RESTING;
use crate::i2c::{Bus, BusError};
use crate::motion_sensor::board::Board;
use crate::motion_sensor::fake::{self, MS, check_strangers, near};
use crate::motion_sensor::inertia::Ranges;
use crate::motion_sensor::logic::{ImuAction, ImuLogic, Output};
use crate::motion_sensor::sensors::Sensors;
use crate::motion_sensor::service::ServiceKind;

type Bench = fake::Bench<Settings, MpuChips>;

fn new(product: Product) -> Bench {
    Bench::new(Settings::default(), product)
}

/// A sensor that already measures.
fn ready(product: Product) -> Bench {
    Bench::ready(Settings::default(), product)
}

#[test]
fn each_sensor_is_set_up_and_read() {
    for (product, name, has_compass) in [
        (Product::Mpu6050, "MPU-6050", false),
        (Product::Mpu6500, "MPU-6500", false),
        (Product::Mpu9250, "MPU-9250", true),
        (Product::Mpu9255, "MPU-9255", true),
        (Product::Copy, "ICM-20689", false),
    ] {
        let mut bench = new(product);
        let first = bench.read();
        assert_eq!(first.raw, Measured::default());
        assert!(first.settling.accel && first.settling.gyro);
        bench.bus.state().truth.turn_deg_s = [10.0, -10.0, 100.0];
        let reading = bench.read_for(400 * MS);
        assert_eq!(reading.settling, Sensors::default());
        assert_eq!(reading.lacking.magnet, !has_compass, "{name}");
        near(reading.raw.accel_mg, [0.0, 0.0, 1000.0], 0.13);
        near(reading.raw.gyro_deg_s, [10.0, -10.0, 100.0], 0.016);
        match has_compass {
            true => near(reading.raw.magnet_mgauss, [0.0, 200.0, -450.0], 1.0),
            false => assert_eq!(reading.raw.magnet_mgauss, None),
        }
        let mut notes = vec![format!("ready: accelerometer and gyroscope {name} at 0x68")];
        notes.extend(has_compass.then(|| "ready: magnetometer AK8963 at 0x0c".to_owned()));
        assert_eq!(bench.notes(), notes);
        assert_eq!(bench.board.trouble(), None);
    }
}

#[test]
fn the_set_up_is_that_of_the_hardware_sheet() {
    let mut bench = new(Product::Mpu9250);
    bench.read_for(400 * MS);
    let written = bench.written(0x68);
    assert_eq!(written[..2], [vec![0x6B, 0x80], vec![0x6B, 0x01]]);
    assert!(written.contains(&vec![0x37, 0x02]) && written.contains(&vec![0x1D, 0x03]));
    let modes = [0x00, 0x0F, 0x00, 0x16].map(|mode| vec![0x0A, mode]);
    assert_eq!(bench.written(0x0C), modes);
    // A second driver with the same settings changes nothing, except to read the adjustment.
    bench.bus.state().written.clear();
    bench.board = Board::of(Settings::default().chips(), bench.now);
    assert!(bench.read_for(200 * MS).raw.magnet_mgauss.is_some());
    assert_eq!(bench.written(0x68), Vec::<Vec<u8>>::new());
    assert_eq!(bench.written(0x0C), modes);
}

#[test]
fn ranges_and_mount_are_used() {
    let text = "axes = \"-y,x,z\"\naccel_g = 16\ngyro_deg_s = 2000\n";
    let options: Options = toml::from_str(text).unwrap();
    let settings = options.setup().unwrap().0.settings;
    let mut bench = Bench::new(settings, Product::Mpu9250);
    bench.bus.state().truth.specific_force_g = [1.0, 12.0, 3.0];
    bench.bus.state().truth.turn_deg_s = [100.0, 1_500.0, 0.0];
    let reading = bench.read_for(400 * MS).raw;
    near(reading.accel_mg, [-12_000.0, 1_000.0, 3_000.0], 0.5);
    near(reading.gyro_deg_s, [-1_500.0, 100.0, 0.0], 0.1);
    near(reading.magnet_mgauss, [-200.0, 0.0, -450.0], 1.0);
}

#[test]
fn the_heading_rises_as_the_robot_turns_to_the_right() {
    ready(Product::Mpu9250).check_headings();
}

#[test]
fn a_sensor_that_was_reset_or_put_to_sleep_is_set_up_again_and_logged() {
    let write = |register, value| move |bench: &mut Bench| bench.write(0x68, &[register, value]);
    type Fault<'a> = &'a dyn Fn(&mut Bench);
    let faults: [(Fault<'_>, &str); 5] = [
        (&Bench::restart, "it has lost its settings: "),
        (&write(0x6B, 0x80), "it has lost its settings: "),
        (
            &write(0x6B, 0x41),
            "another program has changed register 0x6b",
        ),
        (
            &write(0x1B, 0x18),
            "another program has changed register 0x1b",
        ),
        (
            &write(0x37, 0x22),
            "another program has changed register 0x37",
        ),
    ];
    for product in [Product::Mpu6050, Product::Mpu9250] {
        for (fault, text) in faults {
            let mut bench = ready(product);
            bench.check_recovery(fault);
            assert_eq!(
                bench.read().raw.magnet_mgauss.is_some(),
                product == Product::Mpu9250
            );
            let notes = bench.notes();
            assert_eq!(notes.len(), 1, "{notes:?}");
            let start = format!("accelerometer and gyroscope: {text}");
            assert!(notes[0].starts_with(&start), "{notes:?}");
            bench.read_for(3_000 * MS);
            assert_eq!(bench.board.trouble(), None);
        }
    }
}

/// A bus with a wrong bit in the identity.
struct Wrong<'a>(&'a mut dyn Bus);

impl Bus for Wrong<'_> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        self.0.transfer(address, written, read)?;
        if written == [0x75] {
            read[0] ^= 0x08;
        }
        Ok(())
    }
}

#[test]
fn a_wrong_bit_is_no_lasting_problem_of_a_magnetometer_that_is_not_there() {
    let mut bench = ready(Product::Mpu6050);
    // It is looked for every five seconds.
    bench.pass(6_000 * MS);
    let (board, bus) = (&mut bench.board, &mut bench.bus);
    let reading = board.read(bench.now, &mut Wrong(bus), Sensors::ALL);
    assert!(reading.unwrap().raw.gyro_deg_s.is_some());
    let trouble = "magnetometer: unexpected chip at 0x68, with identity 0x60";
    assert_eq!(bench.board.trouble().as_deref(), Some(trouble));
    bench.read_for(1_000 * MS);
    assert_eq!(bench.board.trouble(), None);
}

#[test]
fn a_missing_sensor_is_one_problem_that_says_what_to_check() {
    let mut bench = ready(Product::Mpu9250);
    bench.bus.state().missing = vec![0x68, 0x0C];
    assert_eq!(bench.read_for(5_000 * MS).raw, Measured::default());
    let trouble = "accelerometer and gyroscope: no answer at 0x68 and 0x69: check its power, the \
                   wires SDA and SCL, and --bus";
    assert_eq!(bench.board.trouble().as_deref(), Some(trouble));
    assert_eq!(bench.notes().len(), 2);
    bench.restart();
    bench.bus.state().missing.clear();
    let reading = bench.read_for(5_000 * MS).raw;
    assert!(reading.accel_mg.is_some() && reading.magnet_mgauss.is_some());
    let notes = bench.notes();
    assert!(
        notes.len() == 1 && notes[0].contains("works again after "),
        "{notes:?}"
    );
    assert_eq!(bench.board.trouble(), None);
}

#[test]
fn a_missing_magnetometer_is_a_problem_only_of_sensors_that_have_one() {
    let mut bench = ready(Product::Mpu9255);
    bench.bus.state().missing = vec![0x0C];
    let reading = bench.read_for(1_000 * MS);
    assert!(reading.raw.accel_mg.is_some() && reading.raw.magnet_mgauss.is_none());
    assert!(!reading.lacking.magnet);
    let trouble = bench.board.trouble().unwrap();
    let start = "magnetometer: no answer at 0x0c, although an MPU-9255 has it: ";
    assert!(trouble.starts_with(start), "{trouble}");
    bench.bus.state().missing.clear();
    assert!(bench.read_for(5_000 * MS).raw.magnet_mgauss.is_some());
    assert_eq!(bench.board.trouble(), None);
}

#[test]
fn a_field_beyond_the_range_is_not_a_reading() {
    let mut bench = ready(Product::Mpu9250);
    bench.bus.state().truth.field_gauss = [0.0, 50.0, 0.0];
    assert_eq!(bench.read_for(100 * MS).raw.magnet_mgauss, None);
    assert_eq!(
        bench.notes(),
        ["magnetometer: the magnetic field is out of range; retrying"]
    );
    bench.bus.state().truth = RESTING;
    assert!(bench.read_for(100 * MS).raw.magnet_mgauss.is_some());
}

#[test]
fn a_copy_that_measures_nothing_is_not_a_sensor() {
    let mut bench = new(Product::Copy);
    bench.bus.state().truth.specific_force_g = [0.0; 3];
    for _ in 0..300 {
        assert_eq!(bench.read_for(10 * MS).raw, Measured::default());
    }
    let trouble = "accelerometer and gyroscope: does not start measuring";
    assert_eq!(bench.board.trouble().as_deref(), Some(trouble));
}

/// Another program that reads the sensor clears its bit for new samples.
#[test]
fn two_programs_can_read_the_sensor() {
    let mut bench = ready(Product::Mpu9250);
    for step in 0..100 {
        // Real values always change.
        let noise = f64::from(step % 2) * 0.01;
        bench.bus.state().truth.specific_force_g = [0.0, noise, 1.0];
        bench.bus.state().truth.field_gauss = [0.0, 0.2 + noise, -0.45];
        bench.pass(10 * MS);
        let mut byte = [0];
        bench.bus.transfer(0x68, &[0x3A], &mut byte).unwrap();
        bench.bus.transfer(0x0C, &[0x09], &mut byte).unwrap();
        let reading = bench.read().raw;
        assert!(
            reading.accel_mg.is_some() && reading.magnet_mgauss.is_some(),
            "{step}"
        );
    }
    assert_eq!(bench.notes(), Vec::<String>::new());
}

/// What the driver answers in this time, with a reading every 5 ms at most.
fn answers(
    bench: &mut Bench,
    logic: &mut ImuLogic<Settings>,
    time: Duration,
) -> Vec<amber_proto::ninedof::DriverMsg> {
    let end = bench.now + time;
    let mut answers = Vec::new();
    while bench.now < end {
        while let Some(action) = logic.poll_action(bench.now) {
            match action {
                ImuAction::Open => logic.opened(bench.now),
                ImuAction::Read(wanted) => {
                    let reading = bench.board.read(bench.now, &mut bench.bus, wanted);
                    logic.read(bench.now, reading.unwrap(), bench.board.trouble());
                }
                ImuAction::Close | ImuAction::Store(_) => panic!("{action:?}"),
            }
        }
        while let Some(output) = logic.poll_output() {
            if let Output::Answer(_, message) = output {
                answers.push(message);
            }
        }
        bench.pass(5 * MS);
    }
    answers
}

#[test]
fn what_a_sensor_lacks_is_missing_and_not_a_fault() {
    for (product, has_compass) in [(Product::Mpu6050, false), (Product::Mpu9250, true)] {
        let mut bench = new(product);
        let settings = Settings::default();
        let mut logic = ImuLogic::new(settings, Calibration::default(), bench.now);
        let origin = Origin {
            clients: vec![ClientId(7)],
            syn: Some(SynNum(1)),
            ..Origin::default()
        };
        let all = DataRequest {
            accel: Some(true),
            gyro: Some(true),
            magnet: Some(true),
            extended: Some(true),
        };
        logic.ask(bench.now, origin.clone(), all);
        let [message] = &answers(&mut bench, &mut logic, 500 * MS)[..] else {
            panic!("no answer")
        };
        let data = message.sensor_data.unwrap();
        assert!(data.accel.is_some() && data.gyro.is_some() && data.gyro_milli.is_some());
        let parts = [data.magnet.is_some(), data.attitude.is_some()];
        assert_eq!(parts, [has_compass; 2]);
        assert_eq!(logic.trouble(), None);

        let now = bench.now;
        logic.serve(now, origin.clone(), ServiceKind::SelfTest, None);
        let tested = answers(&mut bench, &mut logic, 1_500 * MS);
        let findings = &tested[0].service_report.as_ref().unwrap().findings;
        assert!(findings.iter().all(|one| one.good()), "{findings:?}");
        assert_eq!(findings.len(), if has_compass { 3 } else { 2 });

        let now = bench.now;
        logic.serve(now, origin, ServiceKind::Magnet, None);
        let refused = answers(&mut bench, &mut logic, 100 * MS);
        assert_eq!(refused.is_empty(), has_compass);
        for message in refused {
            let text = message.service_report.unwrap().findings[0]
                .text()
                .to_owned();
            assert_eq!(text, "this sensor has no magnetometer");
        }
    }
}

#[test]
fn other_chips_and_garbage_are_not_sensors() {
    for address in [None, Some(0x69)] {
        let mut settings = Settings::default();
        settings.placement.address = address;
        check_strangers(&settings, 1);
    }
}

#[test]
fn the_defaults_are_those_of_a_raspberry_pi() {
    let (setup, location) = Options::default().setup().unwrap();
    assert_eq!(location.to_string(), "/dev/i2c-1");
    let expected = Settings {
        measures_bias: true,
        ..Settings::default()
    };
    assert_eq!(setup.settings, expected);
    assert_eq!(setup.calibration, None);
}

#[test]
fn the_command_line_wins_over_the_file_and_wrong_values_are_refused() {
    let text = "bus = \"sim:/tmp/x\"\naddress = \"0x68\"\naccel_g = 8\nmeasure_bias = false\n";
    let file: Options = toml::from_str(text).unwrap();
    let mut flags = Options::default();
    flags.board.address = Some("69".into());
    let (setup, location) = flags.or(file).setup().unwrap();
    assert_eq!(location, BusLocation::Simulated("/tmp/x".into()));
    assert_eq!(setup.settings.placement.address, Some(0x69));
    let ranges = Ranges::default().with_accel_g(8).unwrap();
    assert_eq!(setup.settings.scale, Scale::with(ranges));
    assert!(!setup.settings.measures_bias);
    let wrong: Options = toml::from_str("low_pass_hz = 260").unwrap();
    let said = wrong.setup().unwrap_err().to_string();
    assert!(
        said.starts_with("low_pass_hz: 260 is none of 184, "),
        "{said}"
    );
    let unknown = toml::from_str::<Options>("low_pass = 44").unwrap_err();
    assert!(unknown.to_string().contains("low_pass"), "{unknown}");
}
