//! Says what is wrong between here and the robots: `amber-zenoh doctor`. IO.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use amber_terminal::Human;
use serde::Serialize;
use zenoh::Session;

use crate::certificate::{self, Validity};
use crate::config::FleetLink;
use crate::fleet::{self, RobotRow};
use crate::limits::CLOCK_TROUBLE;
use crate::names::Name;
use crate::ros::clock::in_words;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The routers of the configuration.
    pub routers: Vec<String>,
    /// The Zenoh ids of the routers that this machine has a link to.
    pub linked: Vec<String>,
    /// How long it took to get a link.
    pub link_ms: u64,
    /// The certificates of this machine.
    pub certificates: Vec<Validity>,
    /// The robots that this operator may see.
    pub robots: Vec<RobotReport>,
    /// Everything that is wrong, in words.
    pub problems: Vec<String>,
}

/// The way to one robot, and what it has dropped.
#[derive(Clone, Debug, Serialize)]
pub struct RobotReport {
    pub robot: Name,
    /// The round-trip time.
    pub round_trip_us: Option<u64>,
    /// How many milliseconds its clock is ahead of that of this machine, or behind if negative.
    pub clock_ms: Option<i64>,
    /// What it has dropped, refused or not sent since its start, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// Looks at the link and at all robots, or at one of them. `began` is when the link was asked for.
///
/// # Errors
/// Zenoh fails.
pub async fn examine(
    session: &Session,
    link: &FleetLink,
    robot: Option<&Name>,
    began: Instant,
    deadline: Duration,
) -> Result<Report, zenoh::Error> {
    let link_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let linked = session.info().routers_zid().await;
    let certificates = link.tls.as_ref().map(certificate::check);
    let mut fleet = fleet::look(session, deadline).await?;
    fleet
        .robots
        .retain(|row| robot.is_none_or(|robot| row.robot == *robot));
    let mut report = Report {
        routers: link.connect.clone(),
        linked: linked.map(|id| id.to_string()).collect(),
        link_ms,
        certificates: certificates.and_then(Result::ok).unwrap_or_default(),
        robots: fleet.robots.iter().map(of_robot).collect(),
        problems: Vec::new(),
    };
    let expiring = report.certificates.iter().filter_map(Validity::trouble);
    report.problems = expiring
        .chain(fleet.robots.iter().flat_map(problems))
        .collect();
    match robot {
        Some(robot) if fleet.robots.is_empty() => report.problems.push(format!(
            "{robot} is not in the fleet, or the rights of this operator do not allow it"
        )),
        None if fleet.robots.is_empty() => report.problems.push("no robots".to_owned()),
        _ => {}
    }
    Ok(report)
}

fn of_robot(row: &RobotRow) -> RobotReport {
    let counters = row.info.iter().flat_map(|info| &info.counters);
    RobotReport {
        robot: row.robot.clone(),
        round_trip_us: row.round_trip_us,
        clock_ms: row.clock_ms,
        drops: counters
            .filter(|(name, count)| is_loss(name) && **count > 0)
            .map(|(name, count)| (name.clone(), *count))
            .collect(),
    }
}

/// Whether a counter counts what was lost. Data that a newer one replaces is not.
fn is_loss(name: &str) -> bool {
    let losses = ["dropped", "refused_", "not_sent", "missed", "abandoned"];
    losses.iter().any(|it| name.contains(it))
}

/// What is wrong with a robot now. Old drops are shown, but may be over.
fn problems(row: &RobotRow) -> Vec<String> {
    let robot = &row.robot;
    let Some(info) = &row.info else {
        return vec![format!("{robot} has a token, but does not answer")];
    };
    let mut all = Vec::new();
    if row.starts > 1 {
        all.push(format!("{} programs have the name {robot}", row.starts));
    }
    if !info.mediator {
        all.push(format!("{robot}: its mediator does not answer"));
    }
    let is_off = |ms: &i64| u128::from(ms.unsigned_abs()) > CLOCK_TROUBLE.as_millis();
    if let Some(clock_ms) = row.clock_ms.filter(is_off) {
        let words = in_words(clock_ms).replace("the robot", "this machine");
        all.push(format!("{robot}: its clock is {words}"));
    }
    for (topic, ahead_ms) in &info.clocks {
        let words = in_words(*ahead_ms);
        all.push(format!(
            "{robot}: the clock of a node on {topic} is {words}"
        ));
    }
    for health in &info.devices {
        if let Some(text) = &health.text {
            all.push(format!("{robot}: {}: {text}", health.device));
        }
    }
    all
}

impl Human for Report {
    fn human(&self) -> String {
        let mut text = String::new();
        let (routers, linked) = (self.routers.join(" "), self.linked.join(" "));
        let _ = writeln!(
            text,
            "link to {routers}: {} ms, router {linked}",
            self.link_ms
        );
        for certificate in &self.certificates {
            let (file, days) = (certificate.file.display(), certificate.days_left);
            let _ = writeln!(text, "certificate {file}: {days} days left");
        }
        for row in &self.robots {
            let trip = row.round_trip_us.map(|us| us as f64 / 1000.0);
            let trip = trip.map_or("no answer".to_owned(), |ms| format!("{ms:.1} ms"));
            let _ = write!(text, "{}: round trip {trip}", row.robot);
            if let Some(ms) = row.clock_ms {
                let _ = write!(text, ", clock {ms:+} ms");
            }
            text.push('\n');
            for (name, count) in &row.drops {
                let _ = writeln!(text, "  {name} {count}");
            }
        }
        for problem in &self.problems {
            let _ = writeln!(text, "problem: {problem}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Info;

    fn row() -> RobotRow {
        RobotRow {
            robot: "r1".parse().unwrap(),
            starts: 1,
            round_trip_us: Some(1_234),
            clock_ms: Some(-20),
            info: Some(Info {
                robot: "r1".parse().unwrap(),
                version: "0".to_owned(),
                boot: "1".to_owned(),
                uptime_ms: 1,
                time_ms: 1,
                mediator: true,
                devices: Vec::new(),
                operators: Vec::new(),
                counters: [("refused_late".to_owned(), 3), ("orders".to_owned(), 9)].into(),
                clocks: BTreeMap::new(),
            }),
        }
    }

    #[test]
    fn a_report_has_the_losses_and_what_is_wrong() {
        assert_eq!(problems(&row()), Vec::<String>::new());
        let mut row = row();
        row.clock_ms = Some(-700);
        if let Some(info) = &mut row.info {
            info.mediator = false;
            info.clocks.insert("/r1/cmd_vel".to_owned(), 900);
        }
        let expected = [
            "r1: its mediator does not answer",
            "r1: its clock is 0.7 s behind that of this machine",
            "r1: the clock of a node on /r1/cmd_vel is 0.9 s ahead of that of the robot",
        ];
        assert_eq!(problems(&row), expected);
        let report = Report {
            routers: vec!["tcp/127.0.0.1:7447".to_owned()],
            linked: vec!["ab".to_owned()],
            link_ms: 5,
            certificates: Vec::new(),
            robots: vec![of_robot(&row)],
            problems: problems(&row)[..1].to_vec(),
        };
        let expected = "link to tcp/127.0.0.1:7447: 5 ms, router ab\n\
            r1: round trip 1.2 ms, clock -700 ms\n  refused_late 3\n\
            problem: r1: its mediator does not answer\n";
        assert_eq!(report.human(), expected);
    }
}
