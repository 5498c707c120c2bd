//! What the clients send and understand, byte by byte.

use std::time::Duration;

use amber_proto::DeviceMessage;
use prost::Message;

use super::*;
use crate::error::Error;
use crate::fake::Fake;

mod commands;
mod methods;

mod roboclaw {
    use amber_proto::roboclaw::DriverMsg;

    use super::*;

    /// Message bytes that the hardware sheet gives.
    const STRAIGHT_300: &[u8] =
        b"\x10\x01\xa2\x01\x0c\x08\xac\x02\x10\xac\x02\x18\xac\x02\x20\xac\x02";
    const LEFT_BACK_300: &[u8] = b"\x10\x01\xa2\x01\x1c\
        \x08\xd4\xfd\xff\xff\xff\xff\xff\xff\xff\x01\x10\xac\x02\
        \x18\xd4\xfd\xff\xff\xff\xff\xff\xff\xff\x01\x20\xac\x02";
    const ASK_100: &[u8] = b"\x10\x01\x18\x64\xa8\x01\x01";
    const ANSWER_100: &[u8] = b"\x10\x01\x20\x64\xb2\x01\x1c\
        \x08\xab\x02\x10\xab\x02\
        \x18\xd5\xfd\xff\xff\xff\xff\xff\xff\xff\x01\
        \x20\xd5\xfd\xff\xff\xff\xff\xff\xff\xff\x01";

    #[tokio::test]
    async fn commands_are_the_bytes_that_drivers_know() {
        let (client, mut fake) = Fake::new();
        let roboclaw = client.roboclaw(0);
        roboclaw.drive(WheelSpeeds::all(300)).await.unwrap();
        roboclaw.drive(WheelSpeeds::sides(-300, 300)).await.unwrap();
        roboclaw.stop().await.unwrap();
        for expected in [
            STRAIGHT_300,
            LEFT_BACK_300,
            b"\x10\x01\xa2\x01\x08\x08\0\x10\0\x18\0\x20\0",
        ] {
            let sent = fake.receive().await.unwrap();
            assert_eq!(sent.device.to_string(), "roboclaw:0");
            assert_eq!(sent.without_syn(), expected);
        }
    }

    #[tokio::test]
    async fn speeds_are_asked_for_and_read() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            fake.answer(&asked, ANSWER_100).await;
            (asked, fake)
        });
        let speeds = client.roboclaw(0).speeds().await.unwrap();
        let measured = WheelSpeeds {
            front_left_mm_s: 299,
            front_right_mm_s: 299,
            rear_left_mm_s: -299,
            rear_right_mm_s: -299,
        };
        assert_eq!(speeds, measured);
        let (asked, _fake) = device.await.unwrap();
        let mut expected = DriverMsg::decode(ASK_100).unwrap();
        expected.syn_num = Some(asked.syn());
        assert_eq!(DriverMsg::decode(asked.bytes).unwrap(), expected);
    }

    #[tokio::test]
    async fn an_absent_wheel_is_0_but_absent_speeds_are_an_error() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            for answer in [&b"\x10\x01\xb2\x01\x02\x08\x07"[..], b"\x10\x01"] {
                let asked = fake.receive().await.unwrap();
                fake.answer(&asked, answer).await;
            }
            fake
        });
        let roboclaw = client.roboclaw(0);
        let measured = WheelSpeeds {
            front_left_mm_s: 7,
            ..WheelSpeeds::STOP
        };
        assert_eq!(roboclaw.speeds().await.unwrap(), measured);
        match roboclaw.speeds().await {
            Err(Error::BadAnswer { device, .. }) => assert_eq!(device, roboclaw.address()),
            other => panic!("{other:?}"),
        }
        device.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_device_is_a_time_out() {
        let (client, _fake) = Fake::new();
        let deadline = Duration::from_millis(300);
        match client.roboclaw(0).with_deadline(deadline).speeds().await {
            Err(Error::TimedOut { waited, .. }) => assert!(waited >= deadline),
            other => panic!("{other:?}"),
        }
    }
}

mod hokuyo {
    use amber_proto::hokuyo::DriverMsg;

    use crate::scan::{Point, Scan};

    use super::*;

    /// Message bytes that the hardware sheet gives.
    const ASK_100: &[u8] = b"\x10\x01\x18\x64\xc0\x02\x01";
    const ANSWER_100: &[u8] = b"\x10\x01\x20\x64\xca\x02\x18\x0a\x10\
        \x71\x3d\x0a\xd7\xa3\xf8\x5d\xc0\x00\xd2\x6c\x3b\x90\x88\xc6\x3f\
        \x12\x04\x88\x03\xe8\x07\x88\x03\xfb\xa0\x9a\x9c\x92\x2a";
    /// One angle and no distance.
    const UNEQUAL: &[u8] = b"\x10\x01\xca\x02\x0a\x0a\x08\0\0\0\0\0\0\0\0";
    /// NaN and 1000 mm.
    const NAN: &[u8] = b"\x10\x01\xca\x02\x0e\x0a\x08\0\0\0\0\0\0\xf8\x7f\x12\x02\xe8\x07";

    fn check_sheet_scan(scan: &Scan) {
        let [left, ahead] = scan.points() else {
            panic!("{scan:?}");
        };
        assert_eq!((left.angle_deg, left.distance_mm), (-119.885, 392));
        assert!((ahead.angle_deg - 0.176_042_584_347_38).abs() < 1e-9);
        assert_eq!(ahead.distance_mm, 1000);
        assert_eq!(scan.timestamp_ms(), Some(1_448_000_000_123));
    }

    #[tokio::test]
    async fn a_scan_is_asked_for_and_read() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            fake.answer(&asked, ANSWER_100).await;
            (asked, fake)
        });
        check_sheet_scan(&client.hokuyo(0).scan().await.unwrap());
        let (asked, _fake) = device.await.unwrap();
        assert_eq!(asked.device.to_string(), "hokuyo:0");
        let mut expected = DriverMsg::decode(ASK_100).unwrap();
        expected.syn_num = Some(asked.syn());
        assert_eq!(DriverMsg::decode(asked.bytes).unwrap(), expected);
    }

    #[tokio::test]
    async fn an_invalid_scan_is_an_error_with_the_reason() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            for answer in [UNEQUAL, NAN, b"\x10\x01"] {
                let asked = fake.receive().await.unwrap();
                fake.answer(&asked, answer).await;
            }
            fake
        });
        for why in [
            "1 angles but 0 distances",
            "angle 0 is NaN",
            "there is no scan in it",
        ] {
            match client.hokuyo(0).scan().await {
                Err(Error::BadAnswer { message, .. }) => assert_eq!(message, why),
                other => panic!("{other:?}"),
            }
        }
        device.await.unwrap();
    }

    #[tokio::test]
    async fn published_scans_come_and_broken_ones_are_counted() {
        let (client, mut fake) = Fake::new();
        let hokuyo = client.hokuyo(0);
        let mut scans = hokuyo.scans().await.unwrap();
        let asked = fake.receive().await.unwrap();
        assert_eq!(asked.without_syn(), b"\x10\x06", "SUBSCRIBE");
        let mut published = ANSWER_100.to_vec();
        // ackNum 0: published data.
        published.extend(b"\x20\0");
        for bytes in [UNEQUAL, NAN, &published] {
            fake.say(hokuyo.address(), bytes).await;
        }
        let update = scans.next().await.unwrap();
        check_sheet_scan(&update.message);
        assert_eq!((update.undecodable, update.missed), (2, 0));
        let first: Point = update.message.points()[0];
        assert!(first.is_valid());
    }
}

mod ninedof {
    use amber_proto::ninedof::{self as wire, AxisData, DriverMsg, SensorData};

    use super::*;

    /// Message bytes that the hardware sheet gives.
    const ANSWER: &[u8] = b"\x10\x01\x20\x65\x52\x13\x0a\x08\x08\xf9\x01\x10\x7c\x18\xd0\x0f\
        \x12\x07\x08\x10\x10\x0f\x18\xae\x01";

    const ACCEL_GYRO: Sensors = Sensors {
        magnet: false,
        ..Sensors::ALL
    };

    fn check_sheet_reading(reading: ImuReading) {
        let vector = |x, y, z| Some(Vector { x, y, z });
        let expected = ImuReading {
            acceleration_mg: vector(-125.0, 62.0, 1000.0),
            rate_deg_s: vector(8.0, -8.0, 87.0),
            ..ImuReading::default()
        };
        assert_eq!(reading, expected);
    }

    #[tokio::test]
    async fn a_reading_is_asked_for_and_read() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            fake.answer(&asked, ANSWER).await;
            (asked, fake)
        });
        let reading = client.ninedof(0).data(ACCEL_GYRO).await.unwrap();
        check_sheet_reading(reading);
        let (asked, _fake) = device.await.unwrap();
        assert_eq!(asked.device.to_string(), "ninedof:0");
        // That of the sheet, and `extended`.
        let request = b"\x10\x01\x5a\x08\x08\x01\x10\x01\x18\x00\x20\x01";
        assert_eq!(asked.without_syn(), request);
    }

    #[tokio::test]
    async fn values_of_new_drivers_are_finer() {
        let (client, mut fake) = Fake::new();
        let data = SensorData {
            gyro: Some(AxisData {
                x_axis: 0,
                y_axis: 1,
                z_axis: -40,
            }),
            gyro_milli: Some(AxisData {
                x_axis: 18,
                y_axis: 735,
                z_axis: -40_250,
            }),
            attitude: Some(wire::Attitude {
                heading_deg: Some(359.5),
                pitch_deg: Some(-1.0),
                heading_calibrated: Some(true),
                roll_deg: Some(2.0),
            }),
            timestamp: Some(7),
            ..SensorData::default()
        };
        let message = DriverMsg {
            sensor_data: Some(data),
            ..DriverMsg::data()
        };
        tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            fake.answer(&asked, &message.encode_to_vec()).await;
            fake
        });
        let reading = client.ninedof(0).data(Sensors::ALL).await.unwrap();
        let rate = reading.rate_deg_s.unwrap();
        assert_eq!((rate.x, rate.y, rate.z), (0.018, 0.735, -40.25));
        let attitude = reading.attitude.unwrap();
        assert_eq!(attitude.heading_deg, 359.5);
        assert!(attitude.heading_calibrated);
        assert_eq!(reading.timestamp_ms, Some(7));
    }

    #[tokio::test]
    async fn a_subscription_begins_and_ends_as_the_original_wants_it() {
        let (client, mut fake) = Fake::new();
        let ninedof = client.ninedof(0);
        let period = Duration::from_millis(100);
        let mut readings = ninedof.readings(period, ACCEL_GYRO).await.unwrap();
        let asked = fake.receive().await.unwrap();
        let action = |freq: u8, magnet: u8| {
            let groups = [0x10, 1, 0x18, 1, 0x20, magnet, 0x28, 1];
            [&[0x10, 1, 0x62, 10, 8, freq], &groups[..]].concat()
        };
        assert_eq!(asked.without_syn(), action(100, 0));

        let mut published = ANSWER.to_vec();
        // ackNum 0: published data.
        published.extend(b"\x20\0");
        fake.say(ninedof.address(), &published).await;
        check_sheet_reading(readings.next().await.unwrap().message);
        drop(readings);
        let ended = fake.receive().await.unwrap();
        // A period of 0 ends it, whatever the sensors.
        assert_eq!(ended.without_syn(), action(0, 0));
    }

    #[tokio::test]
    async fn a_report_is_asked_for_and_read() {
        let (client, mut fake) = Fake::new();
        let report = DriverMsg {
            service_report: Some(wire::ServiceReport {
                findings: vec![wire::Finding {
                    about: Some("gyro".into()),
                    good: Some(true),
                    text: Some("fine".into()),
                }],
            }),
            ..DriverMsg::data()
        };
        tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            // Calibrate the gyroscope, 3000 ms.
            assert_eq!(asked.without_syn(), b"\x10\x01\x6a\x05\x08\x02\x10\xb8\x17");
            fake.answer(&asked, &report.encode_to_vec()).await;
            fake
        });
        let ninedof = client.ninedof(0);
        let findings = ninedof.calibrate_gyro(Some(Duration::from_secs(3))).await;
        let expected = Finding {
            about: "gyro".into(),
            good: true,
            text: "fine".into(),
        };
        assert_eq!(findings.unwrap(), [expected]);
    }
}

mod maestro {

    use super::Fake;

    /// Message bytes that the hardware sheet gives.
    #[tokio::test]
    async fn commands_are_the_bytes_that_drivers_know() {
        let (client, mut fake) = Fake::new();
        let maestro = client.maestro(0);
        maestro.set_angle(2, 90).await.unwrap();
        maestro.set_same_angle(&[0, 1], 45).await.unwrap();
        maestro.set_angles(&[(0, 45), (1, 135)]).await.unwrap();
        maestro.set_speed(2, 20).await.unwrap();
        for expected in [
            &b"\x10\x01\xb2\x04\x04\x08\x02\x10\x5a"[..],
            b"\x10\x01\xba\x04\x06\x0a\x02\x00\x01\x10\x2d",
            b"\x10\x01\xc2\x04\x09\x0a\x02\x00\x01\x12\x03\x2d\x87\x01",
            b"\x10\x01\xca\x04\x04\x08\x02\x10\x14",
        ] {
            let sent = fake.receive().await.unwrap();
            assert_eq!(sent.device.to_string(), "maestro:0");
            assert_eq!(sent.without_syn(), expected);
        }
    }
}

mod software {
    //! Devices whose drivers are programs: location and what drives by it.

    use super::*;
    use crate::scan::Scan;

    const ONE: [u8; 8] = 1_f64.to_le_bytes();
    const TWO: [u8; 8] = 2_f64.to_le_bytes();

    fn bytes(parts: &[&[u8]]) -> Vec<u8> {
        parts.concat()
    }

    #[tokio::test]
    async fn targets_are_columns_and_x_is_the_longitude() {
        let (client, mut fake) = Fake::new();
        let robot = client.drive_to_point(0);
        let target = Target {
            radius_m: 1.0,
            ..Target::new(1.0, 2.0)
        };
        robot.set_targets(&[target]).await.unwrap();
        robot.stop().await.unwrap();
        let columns = bytes(&[b"\x0a\x08", &ONE, b"\x12\x08", &TWO, b"\x1a\x08", &ONE]);
        let sent = fake.receive().await.unwrap();
        assert_eq!(sent.device.to_string(), "drive-to-point:0");
        let expected = bytes(&[b"\x10\x01\x80\x05\x01\xaa\x05\x1e", &columns]);
        assert_eq!(sent.without_syn(), expected);
        let stop = fake.receive().await.unwrap();
        assert_eq!(stop.without_syn(), b"\x10\x01\x80\x05\x01\xaa\x05\x00");

        let pose = bytes(&[b"\x09", &ONE, b"\x11", &TWO, b"\x19", &ONE]);
        let answer = bytes(&[
            b"\x10\x01\x90\x05\x01\xaa\x05\x1e",
            &columns,
            b"\xb2\x05\x1b",
            &pose,
        ]);
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            assert_eq!(asked.without_syn(), b"\x10\x01\x90\x05\x01");
            fake.answer(&asked, &answer).await;
            let asked = fake.receive().await.unwrap();
            // A longitude without a latitude.
            let unequal = b"\x10\x01\xaa\x05\x0a\x0a\x08\0\0\0\0\0\0\0\0\xb2\x05\x00";
            fake.answer(&asked, unequal).await;
            fake
        });
        let next = robot.next_targets().await.unwrap();
        assert_eq!(next.targets, [target]);
        assert_eq!(next.location, MapPose::new(1.0, 2.0, 0.0));
        match robot.next_targets().await {
            Err(Error::BadAnswer { message, .. }) => {
                assert_eq!(message, "the columns have 1, 0, 0 values");
            }
            other => panic!("{other:?}"),
        }
        device.await.unwrap();
    }

    #[tokio::test]
    async fn a_trajectory_goes_with_its_configuration_and_x_is_the_latitude() {
        let (client, mut fake) = Fake::new();
        let robot = client.pid_follow_trajectory(0);
        let point = TrajectoryPoint {
            x_m: 1.0,
            y_m: 2.0,
            time_ms: 3,
        };
        let configuration = amber_proto::pid_follow_trajectory::Configuration {
            loop_sleep_time: Some(20),
            ..Default::default()
        };
        robot.set_targets(&[point], configuration).await.unwrap();
        robot.start().await.unwrap();
        let sent = fake.receive().await.unwrap();
        let expected = bytes(&[
            b"\x10\x01\xa0\x06\x01\xba\x06\x17\x0a\x08",
            &TWO,
            b"\x12\x08",
            &ONE,
            b"\x1a\x01\x03\xc2\x06\x02\x38\x14",
        ]);
        assert_eq!(sent.without_syn(), expected);
        let start = fake.receive().await.unwrap();
        assert_eq!(start.without_syn(), b"\x10\x01\xd0\x06\x01");
    }

    #[tokio::test]
    async fn a_pose_is_unknown_while_all_is_0() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            assert_eq!(asked.device.to_string(), "location:0");
            assert_eq!(asked.without_syn(), b"\x10\x01\xe0\x03\x01");
            fake.answer(&asked, b"\x10\x01\xea\x03\x00").await;
            let asked = fake.receive().await.unwrap();
            fake.answer(&asked, b"\x10\x01").await;
            fake
        });
        let location = client.location(0);
        assert!(!location.pose().await.unwrap().is_known());
        match location.pose().await {
            Err(Error::BadAnswer { message, .. }) => {
                assert_eq!(message, "the field currentLocation is missing");
            }
            other => panic!("{other:?}"),
        }
        device.await.unwrap();
    }

    #[tokio::test]
    async fn speeds_and_scan_come_together() {
        let (client, mut fake) = Fake::new();
        let device = tokio::spawn(async move {
            let asked = fake.receive().await.unwrap();
            assert_eq!(asked.without_syn(), b"\x10\x01\xe0\x05\x01");
            let scan = bytes(&[b"\x0a\x08", &ONE, b"\x12\x01\x64"]);
            let answer = bytes(&[b"\x10\x01\xf2\x05\x02\x08\x07\xfa\x05\x0d", &scan]);
            fake.answer(&asked, &answer).await;
            fake
        });
        let wheels = client.collision_avoidance(0);
        let both = wheels.speeds_and_scan().await.unwrap();
        assert_eq!(both.motors_speed.front_left_mm_s, 7);
        assert_eq!(both.scan, Scan::new(&[1.0], &[100], None).unwrap());
        let mut fake = device.await.unwrap();
        wheels.stop().await.unwrap();
        let stop = fake.receive().await.unwrap();
        let expected = b"\x10\x01\xd0\x05\x01\xf2\x05\x08\x08\0\x10\0\x18\0\x20\0";
        assert_eq!(stop.without_syn(), expected);
    }
}

mod deadlines {
    //! How long a request waits.

    use super::*;

    async fn waited<T>(request: impl Future<Output = Result<T>>) -> Duration {
        match request.await {
            Err(Error::TimedOut { waited, .. }) => waited,
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("there is no device"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_has_the_deadline_of_its_description() {
        let (client, _fake) = Fake::new();
        let (ms, ninedof) = (Duration::from_millis, client.ninedof(0));
        let usual = waited(client.roboclaw(0).speeds()).await;
        assert!((ms(1000)..ms(1100)).contains(&usual), "{usual:?}");
        let scan = waited(client.hokuyo(0).scan()).await;
        assert!((ms(3000)..ms(3100)).contains(&scan), "{scan:?}");
        let described = waited(ninedof.self_test(None)).await;
        assert!((ms(122_000)..ms(122_100)).contains(&described));
        let longer = waited(ninedof.self_test(Some(ms(3000)))).await;
        assert!((ms(9000)..ms(9100)).contains(&longer), "{longer:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_of_the_caller_counts_in_any_case() {
        let (client, _fake) = Fake::new();
        let ms = Duration::from_millis;
        let ninedof = client.ninedof(0).with_deadline(ms(300));
        let own = waited(ninedof.self_test(Some(ms(3000)))).await;
        assert!((ms(300)..ms(400)).contains(&own), "{own:?}");
        // That of the client is only the usual one.
        let patient = client.with_deadline(ms(12_000)).ninedof(0);
        let longer = waited(patient.self_test(Some(ms(3000)))).await;
        assert!((ms(12_000)..ms(12_100)).contains(&longer), "{longer:?}");
    }
}
