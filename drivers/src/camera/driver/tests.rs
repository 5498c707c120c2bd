//! Tests of the whole driver, between a mediator and an in-memory network camera. In real time: the
//! driver has a thread of its own, for which a test clock cannot wait.

use std::io;

use amber_driver::devices::camera;
use amber_driver::proto::{DeviceMessage, SynNum};
use amber_proto::camera::Format;
use jpeg_encoder::{ColorType, Encoder};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::sleep;

use super::*;
use crate::camera::jpeg::Jpeg;
use crate::camera::source::network::{NetworkCamera, Way};
use crate::connection::Connection;
use crate::testing::{self, Plug};

const PERIOD: Duration = Duration::from_millis(20);

/// A picture of 64 x 48 pixels; different for each number.
fn file(number: u8) -> Vec<u8> {
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 80);
    encoder
        .encode(&[number; 64 * 48], 64, 48, ColorType::Luma)
        .unwrap();
    file
}

/// Answers one request, and sends pictures until the driver has enough.
async fn serve(port: Plug<u8>, mut stream: DuplexStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    assert!(request.starts_with(b"GET /stream HTTP/1.1\r\nHost: cam\r\n"));
    let head =
        "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace;boundary=b\r\n\r\n--b\r\n";
    let mut sent = stream.write_all(head.as_bytes()).await;
    while sent.is_ok() {
        let number = port.with(|number| {
            *number = number.wrapping_add(1);
            *number
        });
        let part = [
            &b"Content-Type: image/jpeg\r\n\r\n"[..],
            &file(number),
            b"\r\n--b\r\n",
        ]
        .concat();
        sent = stream.write_all(&part).await;
        sleep(PERIOD).await;
    }
}

#[derive(Clone)]
struct ToPlug(Plug<u8>);

impl Way for ToPlug {
    type Connect = Box<dyn FnMut() -> io::Result<Box<dyn Connection>> + Send>;

    fn connect(&self) -> Self::Connect {
        let port = self.0.clone();
        Box::new(move || port.connect())
    }
}

type Mediator = testing::Mediator<u8>;

/// Runs a driver during the scenario, then shuts it down.
async fn check(scenario: impl AsyncFnOnce(&mut Mediator)) {
    let port = Plug::new(0, |port, stream| Box::pin(serve(port, stream)));
    let settings = Settings {
        idle: Some(Duration::from_secs(10)),
        timeout: Duration::from_secs(5),
        settle: Duration::ZERO,
        calibration: None,
    };
    let address = "http://cam/stream".parse().unwrap();
    let way = ToPlug(port.clone());
    let source = NetworkCamera::by(way, address, settings.timeout, PERIOD);
    let driver = camera::driver(CameraOf::new(settings, source));
    testing::run(port, driver, scenario).await;
}

async fn answer(mediator: &mut Mediator, mut request: DriverMsg) -> DriverMsg {
    request.set_syn(Some(SynNum(5)));
    mediator.tell(&request.encode_to_vec()).await;
    loop {
        let Some(message) = mediator.hear().await else {
            continue;
        };
        let message = DriverMsg::decode(&message[..]).unwrap();
        if message.ack() == Some(SynNum(5)) {
            return message;
        }
    }
}

async fn picture(mediator: &mut Mediator, request: PictureRequest) -> Picture {
    let request = DriverMsg {
        get_picture: Some(request),
        ..DriverMsg::data()
    };
    answer(mediator, request).await.picture.unwrap()
}

#[tokio::test]
async fn clients_ask_for_pictures() {
    check(async |mediator| {
        let whole = picture(mediator, PictureRequest::default()).await;
        assert_eq!(
            (whole.width(), whole.height(), whole.format()),
            (64, 48, Format::Jpeg)
        );
        assert!(Jpeg::read(whole.data()).is_ok_and(|jpeg| jpeg.bytes == whole.data()));
        assert!(whole.captured() > 1_600_000_000_000_000);
        let grey = PictureRequest {
            max_width: Some(20),
            format: Some(Format::Gray8.into()),
            ..PictureRequest::default()
        };
        let grey = picture(mediator, grey).await;
        assert_eq!(
            (grey.width(), grey.height(), grey.data().len()),
            (16, 12, 16 * 12)
        );
        assert!(grey.sequence() > whole.sequence());
        let request = DriverMsg {
            get_camera_info: Some(true),
            ..DriverMsg::data()
        };
        let info = answer(mediator, request).await.camera_info.unwrap();
        assert_eq!((info.source(), info.is_on()), ("http://cam/stream", true));
        let request = DriverMsg {
            set_control: Some(ControlValue::default()),
            ..DriverMsg::data()
        };
        let refused = answer(mediator, request).await;
        assert_eq!(refused.control_refused(), "this camera has no controls");
        mediator.expect_no_more_health();
    })
    .await;
}

#[tokio::test]
async fn a_stream_goes_on_when_the_camera_is_back() {
    check(async |mediator| {
        let stream = |period| DriverMsg {
            stream_pictures: Some(PictureStream {
                period: Some(period),
                max_width: Some(32),
                ..PictureStream::default()
            }),
            ..DriverMsg::data()
        };
        mediator.tell(&stream(1).encode_to_vec()).await;
        let mut last = 0;
        for _ in 0..5 {
            let message = mediator.hear().await.expect("a picture");
            let picture = DriverMsg::decode(&message[..]).unwrap().picture.unwrap();
            assert_eq!((picture.width(), picture.height()), (32, 24));
            assert!(picture.sequence() > last);
            last = picture.sequence();
        }
        mediator.port.plug(false);
        while mediator.health().await.as_deref() != Some("cam:80 does not exist") {}
        mediator.port.plug(true);
        mediator.expect_health(None).await;
        let message = mediator.hear().await.expect("a picture again");
        assert!(DriverMsg::decode(&message[..]).unwrap().picture.is_some());
        mediator.tell(&stream(0).encode_to_vec()).await;
        // What was on its way arrives.
        while mediator.hear().await.is_some() {}
    })
    .await;
}
