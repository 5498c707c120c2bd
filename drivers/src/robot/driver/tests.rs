//! Tests of the whole driver between a fake mediator and its file.

use amber_driver::devices::robot::{self, DriverMsg};
use amber_driver::proto::{DeviceMessage, MsgType, SynNum};
use amber_values::WheelSpeeds;
use prost::Message;
use tokio::time::{sleep, timeout};

use super::*;
use crate::moving::testing::{Fake, run};
use crate::robot::Options;

fn message(kind: MsgType, set: impl FnOnce(&mut DriverMsg)) -> Vec<u8> {
    let mut message = DriverMsg::of_kind(kind);
    set(&mut message);
    message.encode_to_vec()
}

async fn shape(fake: &mut Fake) -> Shape {
    let ask = message(MsgType::Data, |message| {
        message.set_syn(Some(SynNum(3)));
        message.get_shape = Some(true);
    });
    let answer = answered(fake, &ask).await;
    assert_eq!(answer.ack(), Some(SynNum(3)));
    answer.shape.unwrap()
}

/// The answer to a request, after any published messages.
async fn answered(fake: &mut Fake, request: &[u8]) -> DriverMsg {
    fake.tell(request);
    loop {
        let heard = DriverMsg::decode(&*fake.hear().await).unwrap();
        if heard.ack().is_some_and(|ack| ack != SynNum(0)) {
            return heard;
        }
    }
}

async fn published(fake: &mut Fake) -> Shape {
    let heard = timeout(Duration::from_secs(10), fake.hear()).await;
    DriverMsg::decode(&*heard.unwrap()).unwrap().shape.unwrap()
}

/// The modification time of the file is that of the real clock, so its length must change.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_file_is_published_and_an_error_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robot.toml");
    let write = |text: &str| fs::write(&path, text).unwrap();
    write("laser_offset_mm = 120\n");
    let options = Options {
        config: Some(path.clone()),
        ..Options::default()
    };
    run(options.driver().unwrap(), async |fake| {
        fake.tell(&message(MsgType::Subscribe, |_| {}));
        let first = published(fake).await;
        assert_eq!(first.laser.as_ref().map(robot::Place::x), Some(0.12));
        assert_eq!(shape(fake).await, first);
        // It is repeated.
        assert_eq!(published(fake).await, first);
        write("laser_offset_mm = 120\nlength_mm = 500\n");
        let mut second = published(fake).await;
        while second == first {
            second = published(fake).await;
        }
        assert_eq!(second.length, Some(0.5));
        write("laser_ofset_mm = 12\n");
        let said = |world: &crate::moving::testing::World| {
            let trouble = world.trouble.as_deref().unwrap_or_default();
            trouble.contains("laser_ofset_mm")
        };
        fake.until("the error is reported", said).await;
        assert_eq!(shape(fake).await, second);
        write("laser_offset_mm = 120\nlength_mm = 500\n# mended\n");
        fake.until("it recovers", |world| world.trouble.is_none())
            .await;
        assert_eq!(shape(fake).await, second);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn without_a_file_the_place_of_the_laser_is_unknown() {
    run(Options::default().driver().unwrap(), async |fake| {
        let shape = shape(fake).await;
        assert_eq!((shape.laser, shape.length), (None, Some(0.37)));
        let ask = message(MsgType::Data, |message| {
            message.set_syn(Some(SynNum(4)));
            message.get_urdf = Some(true);
        });
        let answer = answered(fake, &ask).await;
        let text = answer.urdf.unwrap();
        assert!(text.starts_with("<?xml") && text.ends_with("</robot>\n"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_odometry_is_published_and_continues_when_clients_come_and_go() {
    let ask = message(MsgType::Data, |message| {
        message.set_syn(Some(SynNum(4)));
        message.get_odometry = Some(true);
    });
    let subscribe = |period| {
        message(MsgType::Data, |message| {
            message.subscribe_odometry = Some(OdometryRequest {
                period: Some(period),
            });
        })
    };
    run(Options::default().driver().unwrap(), async |fake| {
        let answer = answered(fake, &ask).await;
        assert!(answer.odometry_refused.is_some(), "{answer:?}");
        fake.world().speeds = WheelSpeeds::sides(200, 200);
        fake.tell(&subscribe(100));
        let odometry = async |fake: &mut Fake| {
            let heard = DriverMsg::decode(&*fake.hear().await).unwrap();
            heard.odometry.unwrap()
        };
        let mut last = odometry(fake).await;
        for _ in 0..20 {
            let next = odometry(fake).await;
            let way_m = next.x() - last.x();
            assert!((way_m - 0.02).abs() < 0.011, "{last:?} {next:?}");
            assert!(next.time() > last.time());
            last = next;
        }
        fake.tell(&subscribe(0));
        sleep(Duration::from_secs(2)).await;
        let answer = answered(fake, &ask).await;
        let later = answer.odometry.unwrap();
        assert!(later.x() > last.x() + 0.3, "{last:?} {later:?}");
        let covariance = later.covariance.unwrap();
        assert!(covariance.xx() > 0.0 && covariance.yy() > 0.0);
        // Old speeds are no odometry.
        fake.world().wheels_on = false;
        sleep(Duration::from_secs(3)).await;
        let answer = answered(fake, &ask).await;
        let why = answer.odometry_refused.unwrap();
        assert!(why.starts_with("no wheel speeds from roboclaw:0"), "{why}");
    })
    .await;
}
