//! Lists all robots of the fleet. IO.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_terminal::{Human, millis, table};
use serde::Serialize;
use zenoh::Session;
use zenoh::sample::SampleKind;

use crate::health::{Info, State};
use crate::keys::{ALL_DEVICES_ALIVE, ALL_ROBOTS_ALIVE, RobotKeys, parse_alive};
use crate::names::Name;
use crate::ros::clock::in_words;

/// The robots of the fleet at one time.
#[derive(Clone, Debug, Serialize)]
pub struct Fleet {
    /// The robots in the order of their names.
    pub robots: Vec<RobotRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct RobotRow {
    pub robot: Name,
    /// The number of programs that claim to be this robot: more than one is an error.
    pub starts: usize,
    /// The round-trip time of the query.
    pub round_trip_us: Option<u64>,
    /// The clock of the robot minus that of this machine, as far as the round trip allows.
    pub clock_ms: Option<i64>,
    /// Its report about itself; absent if it has not answered.
    pub info: Option<Info>,
}

/// Queries all robots that have a token. Those that do not answer in time are listed without facts.
///
/// # Errors
/// Zenoh fails.
pub async fn look(session: &Session, deadline: Duration) -> Result<Fleet, zenoh::Error> {
    let mut starts: BTreeMap<Name, usize> = BTreeMap::new();
    for key in tokens(session, ALL_ROBOTS_ALIVE, deadline).await? {
        if let Some((robot, _)) = parse_alive(&key) {
            *starts.entry(robot).or_default() += 1;
        }
    }
    let mut asked = tokio::task::JoinSet::new();
    for (robot, starts) in starts {
        let session = session.clone();
        asked.spawn(async move { ask(&session, robot, starts, deadline).await });
    }
    let mut robots = Vec::new();
    while let Some(row) = asked.join_next().await {
        robots.extend(row.ok());
    }
    robots.sort_by(|a, b| a.robot.cmp(&b.robot));
    Ok(Fleet { robots })
}

/// Whether a robot is in the fleet, or joins it in time.
///
/// # Errors
/// Zenoh fails.
pub async fn awaited(
    session: &Session,
    robot: &Name,
    deadline: Duration,
) -> Result<bool, zenoh::Error> {
    let (sender, mut found) = tokio::sync::mpsc::unbounded_channel();
    let _tokens = (session.liveliness())
        .declare_subscriber(RobotKeys::new(robot).alive("*"))
        .history(true)
        .callback(move |sample| {
            if sample.kind() == SampleKind::Put {
                let _ = sender.send(());
            }
        })
        .await?;
    Ok(tokio::time::timeout(deadline, found.recv()).await.is_ok())
}

/// The keys of the tokens of all devices in the fleet.
///
/// # Errors
/// Zenoh fails.
pub async fn devices(session: &Session, deadline: Duration) -> Result<Vec<String>, zenoh::Error> {
    tokens(session, ALL_DEVICES_ALIVE, deadline).await
}

async fn tokens(
    session: &Session,
    key: &str,
    deadline: Duration,
) -> Result<Vec<String>, zenoh::Error> {
    // A channel with an end would block Zenoh's threads when it is full.
    let (sender, mut found) = tokio::sync::mpsc::unbounded_channel();
    let asked = session.liveliness().get(key).timeout(deadline);
    asked
        .callback(move |reply| {
            if let Ok(sample) = reply.result() {
                let _ = sender.send(sample.key_expr().as_str().to_owned());
            }
        })
        .await?;
    let mut keys = Vec::new();
    // The callback is dropped after the last answer.
    while let Some(key) = found.recv().await {
        keys.push(key);
    }
    Ok(keys)
}

async fn ask(session: &Session, robot: Name, starts: usize, deadline: Duration) -> RobotRow {
    let key = RobotKeys::new(&robot).own("info");
    let began = Instant::now();
    let info = match session.get(&key).timeout(deadline).await {
        Ok(replies) => match replies.recv_async().await {
            Ok(reply) => (reply.result().ok())
                .and_then(|sample| serde_json::from_slice(&sample.payload().to_bytes()).ok()),
            Err(_) => None,
        },
        Err(_) => None,
    };
    let round_trip = began.elapsed();
    let clock_ms = info.as_ref().map(|info: &Info| {
        let here_ms = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |now| now.as_millis() as i64);
        info.time_ms as i64 - (here_ms - round_trip.as_millis() as i64 / 2)
    });
    RobotRow {
        robot,
        starts,
        round_trip_us: (info.is_some())
            .then(|| u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX)),
        clock_ms,
        info,
    }
}

impl Human for Fleet {
    fn human(&self) -> String {
        if self.robots.is_empty() {
            return "no robots\n".to_owned();
        }
        let rows = self.robots.iter().flat_map(rows);
        let rows: Vec<_> = rows.collect();
        table(
            ["ROBOT", "DEVICE", "STATE", "UP FOR", "ROUND TRIP", "REMARK"],
            &rows,
        )
    }
}

/// One row for the robot, and one for each device.
fn rows(row: &RobotRow) -> Vec<[String; 6]> {
    let robot = row.robot.to_string();
    let Some(info) = &row.info else {
        let state = "silent".to_owned();
        let remark = "it has a token, but does not answer".to_owned();
        let none = String::new;
        return vec![[robot, none(), state, none(), none(), remark]];
    };
    let mut remarks = Vec::new();
    if row.starts > 1 {
        remarks.push(format!("{} programs have this name", row.starts));
    }
    if let Some(driver) = info.operators.iter().find(|it| it.drives) {
        remarks.push(format!("{} drives", driver.who));
    }
    for (topic, ahead_ms) in &info.clocks {
        remarks.push(format!("{topic}: a clock is {}", in_words(*ahead_ms)));
    }
    let state = if info.mediator { "up" } else { "no mediator" };
    let trip_us = row.round_trip_us.unwrap_or_default();
    let first = [
        robot.clone(),
        String::new(),
        state.to_owned(),
        millis(info.uptime_ms),
        format!("{:.1} ms", trip_us as f64 / 1000.0),
        remarks.join(", "),
    ];
    let devices = info.devices.iter().map(|health| {
        let state = match health.state {
            State::Up => "up",
            State::Trouble => "trouble",
            State::Down => "down",
        };
        let halted = health.halted_by.iter().map(|by| format!("halted by {by}"));
        let holder = health.holder.iter().map(|who| format!("{who} drives"));
        let text = health.text.iter().cloned().chain(halted).chain(holder);
        let text = text.collect::<Vec<_>>().join("; ");
        let (device, state) = (health.device.clone(), state.to_owned());
        [
            robot.clone(),
            device,
            state,
            String::new(),
            String::new(),
            text,
        ]
    });
    std::iter::once(first).chain(devices).collect()
}
