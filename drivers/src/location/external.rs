//! Poses that another system sends over UDP, such as a camera that sees markers on the robots. IO.
//!
//! A datagram is the `ArucoLocation` of the original system: robot number, x, y, heading and time.
//! Everything else is dropped and counted.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_map::Pose;
use amber_values::MapPose;
use prost::Message;
use tokio::net::UdpSocket;

use super::engine::{Engine, Input};

/// An older pose is dropped. The clocks of both computers must agree this well.
const MAX_AGE: Duration = Duration::from_secs(1);
/// A pose may come from the future by this much: clocks differ.
const SKEW_MS: i32 = 100;
/// A sender without a clock.
const UNKNOWN_TIME: i32 = 0;
/// The longest datagram: five numbers with their tags.
const MAX_DATAGRAM: usize = 128;

/// Settings of the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct External {
    pub listen: SocketAddr,
    pub robot_id: i32,
    /// The only accepted sender.
    pub from: Option<IpAddr>,
    pub sigma_m: f64,
    pub sigma_rad: f64,
}

/// A pose as the original system sends it. All fields are required.
#[derive(Clone, PartialEq, Message)]
struct ArucoLocation {
    #[prost(int32, optional, tag = "1")]
    robot_id: Option<i32>,
    #[prost(double, optional, tag = "2")]
    x: Option<f64>,
    #[prost(double, optional, tag = "3")]
    y: Option<f64>,
    #[prost(double, optional, tag = "4")]
    alfa: Option<f64>,
    /// The lower 32 bits of the milliseconds since 1970; 0 means now.
    #[prost(int32, optional, tag = "5")]
    time_stamp: Option<i32>,
}

/// The reason why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Dropped {
    #[error("the sender is not --external-from")]
    Sender,
    #[error("not a pose")]
    Malformed,
    #[error("the pose is of another robot")]
    OtherRobot,
    #[error("older than 1 s, or from the future: compare the clocks")]
    Age,
}

impl External {
    /// The pose in a datagram and its age. `unix_ms` is the time now. PURE.
    fn accept(
        &self,
        sender: IpAddr,
        datagram: &[u8],
        unix_ms: i64,
    ) -> Result<(Pose, Duration), Dropped> {
        if self.from.is_some_and(|from| from != sender) {
            return Err(Dropped::Sender);
        }
        let received = ArucoLocation::decode(datagram).map_err(|_| Dropped::Malformed)?;
        let ArucoLocation {
            robot_id: Some(robot_id),
            x: Some(x),
            y: Some(y),
            alfa: Some(alfa),
            time_stamp: Some(time_stamp),
        } = received
        else {
            return Err(Dropped::Malformed);
        };
        if ![x, y, alfa].into_iter().all(f64::is_finite) {
            return Err(Dropped::Malformed);
        }
        if robot_id != self.robot_id {
            return Err(Dropped::OtherRobot);
        }
        // The difference of the lower 32 bits is exact, because the age is short.
        let age_ms = match time_stamp {
            UNKNOWN_TIME => 0,
            time_stamp => (unix_ms as i32).wrapping_sub(time_stamp),
        };
        let age_ms = if (-SKEW_MS..0).contains(&age_ms) {
            0
        } else {
            age_ms
        };
        let age = u64::try_from(age_ms).map(Duration::from_millis);
        match age {
            Ok(age) if age <= MAX_AGE => {
                let pose = MapPose::new(x, y, alfa);
                Ok((pose.into(), age))
            }
            _ => Err(Dropped::Age),
        }
    }

    /// Receives poses endlessly. The error is that of the socket.
    pub(crate) async fn receive(
        self,
        engine: &Engine,
        unix_ms: impl Fn() -> i64,
    ) -> std::io::Error {
        let socket = match UdpSocket::bind(self.listen).await {
            Ok(socket) => socket,
            Err(error) => return error,
        };
        let take = |pose, age| {
            engine.send(Input::Pose {
                time: engine.now().saturating_sub(age),
                pose,
                sigma_m: self.sigma_m,
                sigma_rad: self.sigma_rad,
            });
        };
        self.receive_on(&socket, unix_ms, take).await
    }

    async fn receive_on(
        self,
        socket: &UdpSocket,
        unix_ms: impl Fn() -> i64,
        mut take: impl FnMut(Pose, Duration),
    ) -> std::io::Error {
        let mut buffer = [0; MAX_DATAGRAM + 1];
        let (mut accepted, mut dropped) = (0_u64, 0_u64);
        loop {
            let (length, sender) = match socket.recv_from(&mut buffer).await {
                Ok(received) => received,
                Err(error) => return error,
            };
            match self.accept(sender.ip(), &buffer[..length], unix_ms()) {
                Ok((pose, age)) => {
                    accepted += 1;
                    if accepted == 1 {
                        tracing::info!(%sender, "receiving poses");
                    }
                    take(pose, age);
                }
                Err(why) => {
                    dropped += 1;
                    if dropped.is_power_of_two() {
                        tracing::warn!(%sender, dropped, accepted, "dropped a pose: {why}");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_123;
    const CAMERA: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7));

    fn external(from: Option<IpAddr>) -> External {
        External {
            listen: ([127, 0, 0, 1], 0).into(),
            robot_id: 3,
            from,
            sigma_m: 0.05,
            sigma_rad: 0.05,
        }
    }

    fn datagram(robot_id: i32, x: f64, age_ms: i64) -> Vec<u8> {
        ArucoLocation {
            robot_id: Some(robot_id),
            x: Some(x),
            y: Some(2.0),
            alfa: Some(0.5),
            time_stamp: Some((NOW_MS - age_ms) as i32),
        }
        .encode_to_vec()
    }

    #[tokio::test]
    async fn poses_arrive_over_udp_and_invalid_datagrams_do_no_harm() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        for bytes in [
            Vec::new(),
            vec![0; 60_000],
            datagram(4, 1.0, 0),
            datagram(3, 7.0, 0),
        ] {
            sender.send_to(&bytes, address).await.unwrap();
        }
        let (taken, mut poses) = tokio::sync::mpsc::unbounded_channel();
        let take = |pose: Pose, _| taken.send(pose).unwrap();
        let pose = tokio::select! {
            error = external(None).receive_on(&socket, || NOW_MS, take) => panic!("{error}"),
            pose = poses.recv() => pose.unwrap(),
        };
        assert_eq!(pose.at.x, 7.0);
    }

    #[test]
    fn a_pose_of_this_robot_is_accepted_with_its_age() {
        let camera = external(Some(CAMERA));
        let (pose, age) = camera
            .accept(CAMERA, &datagram(3, 1.0, 250), NOW_MS)
            .unwrap();
        assert_eq!(pose, Pose::new(1.0, -2.0, -0.5));
        assert_eq!(age, Duration::from_millis(250));
        let (_, age) = camera
            .accept(CAMERA, &datagram(3, 1.0, -50), NOW_MS)
            .unwrap();
        assert_eq!(age, Duration::ZERO);
    }

    #[test]
    fn sender_number_age_and_form_are_checked() {
        let other = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        let camera = external(Some(CAMERA));
        for (sender, bytes, why) in [
            (other, datagram(3, 1.0, 0), Dropped::Sender),
            (CAMERA, datagram(4, 1.0, 0), Dropped::OtherRobot),
            (CAMERA, datagram(3, 1.0, 1_001), Dropped::Age),
            (CAMERA, datagram(3, 1.0, -500), Dropped::Age),
            (CAMERA, datagram(3, f64::NAN, 0), Dropped::Malformed),
            (CAMERA, vec![0xff; 9], Dropped::Malformed),
            (CAMERA, Vec::new(), Dropped::Malformed),
        ] {
            assert_eq!(camera.accept(sender, &bytes, NOW_MS), Err(why));
        }
        assert!(
            external(None)
                .accept(other, &datagram(3, 1.0, 0), NOW_MS)
                .is_ok()
        );
    }
}
