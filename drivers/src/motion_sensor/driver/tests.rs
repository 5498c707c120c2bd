//! Tests of the driver as the mediator sees it, with a fake bus.

use amber_driver::devices::ninedof;
use amber_driver::serve_on;
use amber_proto::{DriverHdr, FrameCodec, Packet};
use amber_sim::ninedof::{Errors, Motion};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_util::codec::Decoder;

use crate::i2c::fake::{Fake, RESTING};
use crate::ninedof::units::Numbers;
use crate::ninedof::{NineDof, Settings};
use crate::testing::check_bytes;
use std::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// The mediator's side; the chips use the test clock.
struct Bench {
    bus: Fake,
    to_driver: DuplexStream,
    from_driver: DuplexStream,
    input: BytesMut,
}

async fn serve(numbers: Numbers, scenario: impl AsyncFnOnce(&mut Bench)) {
    let bus = Fake::new(Errors::none());
    let (to_driver, reader) = duplex(4096);
    let (writer, from_driver) = duplex(64 * 1024);
    let mut bench = Bench {
        bus: bus.clone(),
        to_driver,
        from_driver,
        input: BytesMut::new(),
    };
    let start = now();
    let setup = Setup {
        settings: Settings {
            numbers,
            measures_bias: false,
        },
        calibration: None,
    };
    let place = move || Ok(Box::new(Timed(bus.clone(), start)) as Box<dyn Bus>);
    let driver = ninedof::driver(NineDof::new(setup, place));
    let (served, ()) = tokio::join!(serve_on(driver, reader, writer), async move {
        scenario(&mut bench).await;
    });
    served.unwrap();
}

/// A fake bus with a clock.
struct Timed(Fake, Instant);

impl Bus for Timed {
    fn transfer(
        &mut self,
        address: u8,
        written: &[u8],
        read: &mut [u8],
    ) -> Result<(), crate::i2c::BusError> {
        self.0.state().now = Instant::now() - self.1;
        self.0.transfer(address, written, read)
    }
}

impl Bench {
    async fn tell(&mut self, message: &[u8]) {
        let header = DriverHdr {
            client_ids: vec![5],
            ..DriverHdr::default()
        };
        let message = message.to_vec().into();
        let frame = Packet { header, message }.encode().unwrap();
        self.to_driver.write_all(&frame).await.unwrap();
    }

    async fn hear(&mut self) -> Packet {
        let hearing = async {
            loop {
                if let Some(packet) = FrameCodec.decode(&mut self.input).unwrap() {
                    return packet;
                }
                let read = self.from_driver.read_buf(&mut self.input).await.unwrap();
                assert_ne!(read, 0, "the driver has ended");
            }
        };
        tokio::time::timeout(PATIENCE, hearing)
            .await
            .expect("the driver sends a frame")
    }
}

/// The bytes listed in the hardware sheet.
#[tokio::test]
async fn the_bytes_match_the_original() {
    serve(Numbers::Compatible, async |bench| {
        bench.bus.state().truth = Motion {
            specific_force_g: [-0.128, 0.064, 1.024],
            turn_deg_s: [9.9925, -9.9925, 99.995],
            ..RESTING
        };
        bench
            .tell(b"\x10\x01\x18\x65\x5a\x06\x08\x01\x10\x01\x18\x00")
            .await;
        let reply = bench.hear().await;
        assert_eq!(
            reply.message[..],
            b"\x10\x01\x20\x65\x52\x13\x0a\x08\x08\xf9\x01\x10\x7c\x18\xd0\x0f\
              \x12\x07\x08\x10\x10\x0f\x18\xae\x01"[..]
        );
        assert_eq!(reply.header.client_ids, [5]);

        bench
            .tell(b"\x10\x01\x62\x08\x08\x64\x10\x01\x18\x01\x20\x01")
            .await;
        for _ in 0..3 {
            let published = bench.hear().await;
            // ackNum is present and 0.
            assert_eq!(published.message[..4], b"\x10\x01\x20\x00"[..]);
            assert_eq!(published.header.client_ids, [5]);
        }
        // A period of 0, and a PING that shows when the driver has processed it.
        bench.tell(b"\x10\x01\x62\x02\x08\x00").await;
        bench.tell(b"\x10\x02\x18\x09").await;
        while bench.hear().await.message[..] != b"\x10\x03\x20\x09"[..] {}
        // Only the reply follows.
        bench.tell(b"\x10\x01\x18\x66\x5a\x02\x08\x01").await;
        while !bench.hear().await.message.starts_with(b"\x10\x01\x20\x66") {}
        let silence = Duration::from_millis(400);
        assert!(tokio::time::timeout(silence, bench.hear()).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn one_message_may_subscribe_and_request() {
    serve(Numbers::Right, async |bench| {
        bench
            .tell(b"\x10\x01\x18\x07\x5a\x02\x08\x01\x62\x04\x08\x14\x18\x01")
            .await;
        let heard = [bench.hear().await, bench.hear().await, bench.hear().await];
        let answers = heard.iter().filter(|packet| packet.message[3] == 7);
        assert_eq!(answers.count(), 1, "{heard:?}");
    })
    .await;
}

#[tokio::test]
async fn an_empty_message_is_survived() {
    serve(Numbers::Right, async |bench| {
        for message in [
            &b"\x10\x01\x18\x09"[..],
            b"\x10\x01\x5a\x02\x08\x01",
            b"\x10\x01\x18\x09\x6a\x02\x08\x63",
            b"\x10\x01\x18\x09\x6a\x00",
        ] {
            bench.tell(message).await;
        }
        bench.tell(b"\x10\x02\x18\x0a").await;
        assert_eq!(bench.hear().await.message[..], b"\x10\x03\x20\x0a"[..]);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_sends_subscribe_gets_publications() {
    serve(Numbers::Right, async |bench| {
        bench.tell(b"\x10\x06").await;
        let published = bench.hear().await;
        assert_eq!(published.message[..4], b"\x10\x01\x20\x00"[..]);
        bench.tell(b"\x10\x07").await;
    })
    .await;
}

#[test]
fn messages_have_the_documented_bytes() {
    use amber_proto::ninedof::{AxisData, DataRequest, DriverMsg, SensorData, SubscribeAction};

    let axes = |[x_axis, y_axis, z_axis]: [i32; 3]| {
        Some(AxisData {
            x_axis,
            y_axis,
            z_axis,
        })
    };
    let data = DriverMsg {
        r#type: Some(1),
        ..DriverMsg::default()
    };
    check_bytes(
        "10 01 18 65 5A 06 08 01 10 01 18 00",
        DriverMsg {
            syn_num: Some(101),
            data_request: Some(DataRequest {
                accel: Some(true),
                gyro: Some(true),
                magnet: Some(false),
                extended: None,
            }),
            ..data.clone()
        },
    );
    check_bytes(
        "10 01 20 65 52 13 0A 08 08 F9 01 10 7C 18 D0 0F 12 07 08 10 10 0F 18 AE 01",
        DriverMsg {
            ack_num: Some(101),
            sensor_data: Some(SensorData {
                accel: axes([-125, 62, 1000]),
                gyro: axes([8, -8, 87]),
                ..SensorData::default()
            }),
            ..data.clone()
        },
    );
    check_bytes(
        "10 01 62 08 08 64 10 01 18 01 20 01",
        DriverMsg {
            subscribe_action: Some(SubscribeAction {
                freq: Some(100),
                accel: Some(true),
                gyro: Some(true),
                magnet: Some(true),
                extended: None,
            }),
            ..data.clone()
        },
    );
}
