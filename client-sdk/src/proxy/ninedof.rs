//! Accelerometer, gyroscope and magnetometer. IO.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use amber_proto::ninedof::service_request::Service;
use amber_proto::ninedof::{
    self as wire, AxisData, DataRequest, DriverMsg, SensorData, ServiceRequest, SubscribeAction,
};
use amber_proto::{Device, DeviceMessage};
use prost::Message;

use super::Proxy;
use crate::error::Result;
use crate::subscription::Subscription;
use crate::subscriptions::Terms;

/// How much longer than a service itself its answer may take.
const MARGIN: Duration = Duration::from_secs(2);

/// An accelerometer, a gyroscope and a magnetometer.
///
/// You may drop the future of any method: an unsent request is cancelled, and a
/// late answer is ignored.
#[derive(Clone, Debug)]
pub struct NineDof {
    proxy: Proxy,
}

/// Which of the sensors. As text, `accel,gyro,magnet` or some of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sensors {
    /// Acceleration.
    pub accel: bool,
    /// Turn rate.
    pub gyro: bool,
    /// Magnetic field.
    pub magnet: bool,
}

/// A number for each axis: x to the right, y ahead, z up, if the board is
/// mounted so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vector {
    /// To the right.
    pub x: f64,
    /// Ahead.
    pub y: f64,
    /// Up.
    pub z: f64,
}

/// The requested values, as far as they could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImuReading {
    /// Proper acceleration in thousandths of g: 1000 upwards at rest.
    pub acceleration_mg: Option<Vector>,
    /// Turn rate in degrees per second, counter-clockwise about each axis.
    /// Drivers of the original system send whole degrees only.
    pub rate_deg_s: Option<Vector>,
    /// Magnetic field in thousandths of gauss, of which 1 is 0.1 uT.
    pub field_mgauss: Option<Vector>,
    /// Heading and tilt, if you requested acceleration and field. Drivers of
    /// the original system do not send it.
    pub attitude: Option<Attitude>,
    /// Milliseconds since the driver started. Drivers of the original system do
    /// not send it.
    pub timestamp_ms: Option<u32>,
}

/// Heading and tilt of a robot at rest or at constant speed. Acceleration looks
/// like tilt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attitude {
    /// Degrees clockwise from magnetic north, in [0, 360). Wrong by tens of
    /// degrees unless `heading_calibrated`.
    pub heading_deg: f64,
    /// Whether the magnetometer has been calibrated on this robot, see
    /// [`NineDof::calibrate_magnetometer`]. `false` also if the driver does not
    /// report it. Pitch and roll need no calibration.
    pub heading_calibrated: bool,
    /// Degrees, positive when the front is up.
    pub pitch_deg: f64,
    /// Degrees, positive when the right side is down.
    pub roll_deg: f64,
}

/// One result of a test or a calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about: `accel`, `gyro`, `magnet` or `file`.
    pub about: String,
    /// Whether all is well.
    pub good: bool,
    /// More about it, for people.
    pub text: String,
}

impl NineDof {
    pub(crate) fn new(proxy: Proxy) -> Self {
        Self { proxy }
    }

    /// The address of this device.
    pub fn address(&self) -> Device {
        self.proxy.address()
    }

    /// The same device with another deadline.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self {
            proxy: self.proxy.with_deadline(deadline),
        }
    }

    /// Measures the round-trip time of a PING to the driver.
    ///
    /// # Errors
    /// There is no answer within the deadline, or the mediator reports that
    /// none will come.
    pub async fn ping(&self) -> Result<Duration> {
        self.proxy.ping().await
    }

    /// One reading of some sensors.
    ///
    /// # Errors
    /// There is no answer within the deadline (also if none of these sensors
    /// can be read), or the mediator reports that none will come.
    pub async fn data(&self, sensors: Sensors) -> Result<ImuReading> {
        let answer = self.proxy.request(question(sensors)).await?;
        match answer.sensor_data {
            Some(data) => Ok(data.into()),
            None => Err(self.proxy.bad_answer("it has no sensor data")),
        }
    }

    /// Readings of some sensors, one each period: at least 5 ms, whole
    /// milliseconds. The first comes after one period.
    ///
    /// The device keeps one period and one set of sensors per client: the most
    /// recent subscription determines both for all subscriptions of this
    /// client.
    ///
    /// Resolves when the request has been sent; dropping the future cancels it.
    /// Values that cannot be read are missing; a reading without any value is
    /// skipped.
    ///
    /// # Errors
    /// The client is closed. A missing device is not an error: the subscription
    /// starts when the device appears.
    pub async fn subscribe(
        &self,
        period: Duration,
        sensors: Sensors,
    ) -> Result<Subscription<ImuReading>> {
        self.proxy
            .subscribe_by(terms(period, sensors), |bytes| {
                let message = DriverMsg::decode(bytes)?;
                Ok(message.sensor_data.map(ImuReading::from))
            })
            .await
    }

    /// The same with encoded messages, for the command line.
    #[cfg(feature = "cli")]
    pub(crate) async fn subscribe_raw(
        &self,
        period: Duration,
        sensors: Sensors,
    ) -> Result<Subscription<bytes::Bytes>> {
        let terms = terms(period, sensors);
        self.proxy
            .subscribe_by(terms, |bytes| Ok(Some(bytes)))
            .await
    }

    /// Tests whether the sensors respond with plausible values. The robot must
    /// stand still for a second.
    ///
    /// # Errors
    /// As [`NineDof::data`]. Drivers of the original system do not answer.
    pub async fn self_test(&self) -> Result<Vec<Finding>> {
        self.service(Service::SelfTest, Duration::from_secs(1))
            .await
    }

    /// Measures the bias of the gyroscope, which is subtracted from then on,
    /// and stores it in the driver's file. The robot must stand still for the
    /// whole time: 2 s are enough, 120 s are the maximum.
    ///
    /// # Errors
    /// As [`NineDof::data`]. Drivers of the original system do not answer.
    pub async fn calibrate_gyroscope(&self, time: Duration) -> Result<Vec<Finding>> {
        self.service(Service::CalibrateGyro, time).await
    }

    /// Measures the magnetic field of the robot itself, which is subtracted
    /// from then on, and stores it in the driver's file. The robot must make a
    /// full turn on level ground meanwhile. The answer comes after the turn or
    /// when the time (120 s at most) is over.
    ///
    /// # Errors
    /// As [`NineDof::data`]. Drivers of the original system do not answer.
    pub async fn calibrate_magnetometer(&self, time: Duration) -> Result<Vec<Finding>> {
        self.service(Service::CalibrateMagnet, time).await
    }

    async fn service(&self, service: Service, time: Duration) -> Result<Vec<Finding>> {
        let milliseconds = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let request = DriverMsg {
            service_request: Some(ServiceRequest {
                service: Some(service.into()),
                milliseconds: Some(milliseconds),
            }),
            ..DriverMsg::data()
        };
        let proxy = self.proxy.clone().with_deadline(time + MARGIN);
        match proxy.request(request).await?.service_report {
            Some(report) => Ok(report.findings.into_iter().map(Finding::from).collect()),
            None => Err(proxy.bad_answer("it has no report")),
        }
    }
}

impl Sensors {
    /// All three.
    pub const ALL: Self = Self {
        accel: true,
        gyro: true,
        magnet: true,
    };
}

/// Not the name of a sensor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown sensor '{0}': use accel, gyro and magnet")]
pub struct UnknownSensor(String);

impl FromStr for Sensors {
    type Err = UnknownSensor;

    fn from_str(text: &str) -> std::result::Result<Self, UnknownSensor> {
        let mut sensors = Self {
            accel: false,
            gyro: false,
            magnet: false,
        };
        for name in text.split(',') {
            match name.trim() {
                "accel" => sensors.accel = true,
                "gyro" => sensors.gyro = true,
                "magnet" => sensors.magnet = true,
                other => return Err(UnknownSensor(other.to_owned())),
            }
        }
        Ok(sensors)
    }
}

impl fmt::Display for Sensors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            (self.accel, "accel"),
            (self.gyro, "gyro"),
            (self.magnet, "magnet"),
        ];
        let names = all.iter().filter(|(is_wanted, _)| *is_wanted);
        let names: Vec<_> = names.map(|(_, name)| *name).collect();
        f.write_str(&names.join(","))
    }
}

impl From<SensorData> for ImuReading {
    fn from(data: SensorData) -> Self {
        let fine = data.gyro_milli.map(|milli| vector(milli, 1000.0));
        Self {
            acceleration_mg: data.accel.map(|axes| vector(axes, 1.0)),
            rate_deg_s: fine.or(data.gyro.map(|axes| vector(axes, 1.0))),
            field_mgauss: data.magnet.map(|axes| vector(axes, 1.0)),
            attitude: data.attitude.map(Attitude::from),
            timestamp_ms: data.timestamp,
        }
    }
}

impl From<wire::Attitude> for Attitude {
    fn from(attitude: wire::Attitude) -> Self {
        Self {
            heading_deg: attitude.heading_deg().into(),
            heading_calibrated: attitude.heading_calibrated(),
            pitch_deg: attitude.pitch_deg().into(),
            roll_deg: attitude.roll_deg().into(),
        }
    }
}

impl From<wire::Finding> for Finding {
    fn from(finding: wire::Finding) -> Self {
        Self {
            good: finding.good(),
            about: finding.about.unwrap_or_default(),
            text: finding.text.unwrap_or_default(),
        }
    }
}

fn vector(axes: AxisData, per_unit: f64) -> Vector {
    let value = |digits: i32| f64::from(digits) / per_unit;
    Vector {
        x: value(axes.x_axis),
        y: value(axes.y_axis),
        z: value(axes.z_axis),
    }
}

/// The message that asks for one reading.
pub(crate) fn question(sensors: Sensors) -> DriverMsg {
    DriverMsg {
        data_request: Some(DataRequest {
            accel: Some(sensors.accel),
            gyro: Some(sensors.gyro),
            magnet: Some(sensors.magnet),
            extended: Some(true),
        }),
        ..DriverMsg::data()
    }
}

fn terms(period: Duration, sensors: Sensors) -> Terms {
    // 0 would end it, and the field has 32 bits.
    let period_ms = u32::try_from(period.as_millis()).unwrap_or(u32::MAX);
    Terms {
        join: subscribe_action(period_ms.max(1), sensors),
        leave: subscribe_action(0, Sensors::ALL),
        period,
    }
}

/// A DATA message, since the drivers of the original know no other.
fn subscribe_action(period_ms: u32, sensors: Sensors) -> bytes::Bytes {
    let message = DriverMsg {
        subscribe_action: Some(SubscribeAction {
            freq: Some(period_ms),
            accel: Some(sensors.accel),
            gyro: Some(sensors.gyro),
            magnet: Some(sensors.magnet),
            extended: Some(true),
        }),
        ..DriverMsg::data()
    };
    message.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

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
        let mut readings = ninedof.subscribe(period, ACCEL_GYRO).await.unwrap();
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
        assert_eq!(ended.without_syn(), action(0, 1));
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
        let findings = ninedof.calibrate_gyroscope(Duration::from_secs(3)).await;
        let expected = Finding {
            about: "gyro".into(),
            good: true,
            text: "fine".into(),
        };
        assert_eq!(findings.unwrap(), [expected]);
    }

    #[test]
    fn sensors_are_read_as_they_are_written() {
        for text in ["accel", "gyro,magnet", "accel,gyro,magnet"] {
            assert_eq!(text.parse::<Sensors>().unwrap().to_string(), text);
        }
        assert_eq!(
            "magnet, accel".parse::<Sensors>().unwrap().to_string(),
            "accel,magnet"
        );
        for text in ["", "sonar", "accel,"] {
            assert!(text.parse::<Sensors>().is_err(), "{text}");
        }
    }
}
