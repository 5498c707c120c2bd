//! Faults: the router, a robot or its mediator is killed. IO.
//!
//! Three ways to notice it are watched: the tokens of Zenoh, the client of a local mediator that shows
//! the scanners of far robots by `amber-zenoh remote`, and the health, as published and as listed.

use std::time::{Duration, Instant};

use amber_client::{Client, Event};
use amber_harness::Program;
use amber_proto::{Device, DeviceType};
use amber_zenoh::fleet::{Fleet, look};
use amber_zenoh::health::{Health, State};
use amber_zenoh::keys::{ALL_DEVICES_ALIVE, ALL_ROBOTS_ALIVE};
use anyhow::{Context, bail};
use nix::sys::signal::Signal;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use zenoh::Session;
use zenoh::pubsub::Subscriber;
use zenoh::sample::SampleKind;

use crate::clock::monotonic_ns;
use crate::figures::Fault;
use crate::measure::{PATIENCE, wait_for_scans, wait_until_listed};
use crate::site::{Programs, Site, index_of, robot_name};
use crate::watch::Tally;
use crate::ways::{Listening, Way, Ways, zenoh_failed};

/// The robots whose scanners a local mediator shows: those that faults hit.
const FAR: usize = 3;
/// A list does not wait longer for a robot that may be gone.
const LOOK: Duration = Duration::from_millis(100);

/// How soon it should be noticed that a process was killed.
const NOTICE_S: f64 = 2.0;
/// The same of a frozen process: the time without news of 2 s, and a quarter of it.
const FROZEN_S: f64 = 2.5;

/// An observation about a robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// The token of the robot is there, or is gone.
    Robot(bool),
    /// The token of its scanner.
    Scanner(bool),
    /// The published health of its scanner is good.
    Health(bool),
    /// Its scanner in a local mediator publishes.
    Far(bool),
    /// The list shows it as well.
    Listed(bool),
}

/// A sign, and when it was seen.
type Seen = (Instant, usize, Sign);

/// All that watches.
struct Watch {
    signs: mpsc::UnboundedReceiver<Seen>,
    sender: mpsc::UnboundedSender<Seen>,
    session: Session,
    listening: Listening,
    tally: Tally,
    _subscribers: Vec<Subscriber<()>>,
    _tasks: JoinSet<()>,
    _local: Program,
}

/// Causes all faults, one after the other, and repairs each.
pub(crate) async fn all(
    programs: &Programs,
    site: &mut Site,
    ways: &Ways,
    session: &Session,
) -> anyhow::Result<Vec<Fault>> {
    let mut watch = Watch::start(programs, site, ways, session).await?;
    let mut faults = Vec::new();

    let began = watch.begin();
    site.router.kill();
    site.router = programs.router(&site.endpoint)?;
    faults.push(Fault {
        what: "router killed and started again",
        notice_s: NOTICE_S,
        noticed: Vec::new(),
        back: watch.back(began, site, &[0, 1, 2]).await?,
    });

    let began = watch.begin();
    site.robots[0].zenoh.kill();
    let noticed = watch.notices(began, 0, &ROBOT_GONE).await?;
    let (name, address) = (site.robots[0].name.clone(), site.robots[0].address.clone());
    let repaired = watch.begin();
    site.robots[0].zenoh = programs.robot(&name, &address, &site.endpoint)?;
    faults.push(Fault {
        what: "`amber-zenoh` of a robot killed",
        notice_s: NOTICE_S,
        noticed,
        back: watch.back(repaired, site, &[0]).await?,
    });

    let began = watch.begin();
    site.robots[1].zenoh.signal(Signal::SIGSTOP)?;
    let noticed = watch.notices(began, 1, &ROBOT_GONE).await?;
    let repaired = watch.begin();
    site.robots[1].zenoh.signal(Signal::SIGCONT)?;
    faults.push(Fault {
        what: "`amber-zenoh` of a robot frozen",
        notice_s: FROZEN_S,
        noticed,
        back: watch.back(repaired, site, &[1]).await?,
    });

    let began = watch.begin();
    site.robots[2].mediator.kill();
    let noticed = watch.notices(began, 2, &MEDIATOR_GONE).await?;
    let (name, address) = (site.robots[2].name.clone(), site.robots[2].address.clone());
    let repaired = watch.begin();
    site.robots[2].mediator = programs.robot_mediator(&name, &address)?;
    faults.push(Fault {
        what: "mediator of a robot killed",
        notice_s: NOTICE_S,
        noticed,
        back: watch.back(repaired, site, &[2]).await?,
    });
    Ok(faults)
}

/// The expected signs when a robot has left the fleet.
const ROBOT_GONE: [(Sign, &str); 3] = [
    (Sign::Robot(false), "token"),
    (Sign::Far(false), "client of a local mediator"),
    (Sign::Listed(false), "list"),
];
/// The expected signs when its mediator is gone.
const MEDIATOR_GONE: [(Sign, &str); 4] = [
    (Sign::Scanner(false), "token of a device"),
    (Sign::Far(false), "client of a local mediator"),
    (Sign::Health(false), "health"),
    (Sign::Listed(false), "list"),
];

impl Watch {
    async fn start(
        programs: &Programs,
        site: &Site,
        ways: &Ways,
        session: &Session,
    ) -> anyhow::Result<Self> {
        let (sender, signs) = mpsc::unbounded_channel();
        let mut subscribers = Vec::new();
        for (key, sign) in [
            (ALL_ROBOTS_ALIVE, Sign::Robot as fn(bool) -> Sign),
            (ALL_DEVICES_ALIVE, Sign::Scanner),
        ] {
            let sender = sender.clone();
            let subscriber = session.liveliness().declare_subscriber(key);
            let subscriber = subscriber.callback(move |sample| {
                let key = sample.key_expr().as_str();
                let is_other = sign(true) == Sign::Scanner(true) && !key.contains("/hokuyo/");
                if let (Some(robot), false) = (index_of(key), is_other) {
                    let is_there = sample.kind() == SampleKind::Put;
                    let _ = sender.send((Instant::now(), robot, sign(is_there)));
                }
            });
            subscribers.push(subscriber.await.map_err(zenoh_failed)?);
        }
        let health = sender.clone();
        let subscriber = session.declare_subscriber("amber/*/hokuyo/0/health");
        let subscriber = subscriber.callback(move |sample| {
            let read = serde_json::from_slice::<Health>(&sample.payload().to_bytes());
            if let (Some(robot), Ok(read)) = (index_of(sample.key_expr().as_str()), read) {
                let sign = Sign::Health(read.state == State::Up);
                let _ = health.send((Instant::now(), robot, sign));
            }
        });
        subscribers.push(subscriber.await.map_err(zenoh_failed)?);

        let drivers: Vec<_> = (0..FAR)
            .map(|id| programs.remote_driver(&robot_name(id + 1), id, &site.endpoint))
            .collect();
        let local = programs.mediator("local", "127.0.0.1:0", &drivers)?;
        let client = Client::connect(local.after("listening on ")?).await?;
        let mut tasks = JoinSet::new();
        for robot in 0..FAR {
            tasks.spawn(watch_far(client.clone(), robot, sender.clone()));
        }
        let mut watch = Self {
            signs,
            sender,
            session: session.clone(),
            listening: ways.listen(Way::Fleet).await?,
            tally: Tally::new(ways.robots()),
            _subscribers: subscribers,
            _tasks: tasks,
            _local: local,
        };
        wait_for_scans(&mut watch.listening, &mut watch.tally, 1, 0).await?;
        let wanted = (0..FAR).map(|robot| (robot, Sign::Far(true))).collect();
        watch.wait(None, wanted).await?;
        Ok(watch)
    }

    /// The moment of a fault or a repair. What was seen before does not count.
    fn begin(&mut self) -> Instant {
        while self.signs.try_recv().is_ok() {}
        while let Ok(arrival) = self.listening.arrivals.try_recv() {
            self.tally.take(&arrival);
        }
        self.tally.reset();
        Instant::now()
    }

    /// How long it takes until all these signs of a robot are seen.
    async fn notices(
        &mut self,
        began: Instant,
        robot: usize,
        wanted: &[(Sign, &'static str)],
    ) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let lists = tokio::spawn(list(self.session.clone(), robot, self.sender.clone()));
        let signs = wanted.iter().map(|(sign, _)| (robot, *sign)).collect();
        let seen = self.wait(Some(began), signs).await;
        lists.abort();
        let named = seen?.into_iter().zip(wanted);
        Ok(named.map(|(after_s, (_, name))| (*name, after_s)).collect())
    }

    /// How long it takes until all streams flow, all robots are listed, and these robots publish
    /// through the local mediator.
    async fn back(
        &mut self,
        repaired: Instant,
        site: &Site,
        far: &[usize],
    ) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let repaired_ns = monotonic_ns() - repaired.elapsed().as_nanos() as u64;
        let session = self.session.clone();
        let listed = async {
            wait_until_listed(&session, site.robots.len()).await?;
            anyhow::Ok(repaired.elapsed().as_secs_f64())
        };
        let streams = async {
            let (listening, tally) = (&mut self.listening, &mut self.tally);
            wait_for_scans(listening, tally, 1, repaired_ns).await?;
            anyhow::Ok(repaired.elapsed().as_secs_f64())
        };
        let wanted = far.iter().map(|robot| (*robot, Sign::Far(true))).collect();
        let far = wait(&mut self.signs, Some(repaired), wanted);
        let (listed, streams, far) = tokio::join!(listed, streams, far);
        Ok(vec![
            ("all streams", streams.context("streams")?),
            ("all listed", listed.context("list")?),
            ("local mediator", far?.into_iter().fold(0.0, f64::max)),
        ])
    }

    async fn wait(
        &mut self,
        began: Option<Instant>,
        wanted: Vec<(usize, Sign)>,
    ) -> anyhow::Result<Vec<f64>> {
        wait(&mut self.signs, began, wanted).await
    }
}

/// Waits until all signs have been seen after a moment. Returns how long after.
async fn wait(
    signs: &mut mpsc::UnboundedReceiver<Seen>,
    began: Option<Instant>,
    wanted: Vec<(usize, Sign)>,
) -> anyhow::Result<Vec<f64>> {
    let mut found: Vec<Option<f64>> = vec![None; wanted.len()];
    let search = async {
        while found.contains(&None) {
            let Some((at, robot, sign)) = signs.recv().await else {
                bail!("there are no subscribers left");
            };
            let after = began.map_or(Some(Duration::ZERO), |began| {
                at.checked_duration_since(began)
            });
            let place = wanted.iter().position(|it| *it == (robot, sign));
            if let (Some(place), Some(after)) = (place, after) {
                found[place].get_or_insert(after.as_secs_f64());
            }
        }
        Ok(())
    };
    if timeout(PATIENCE, search).await.is_err() {
        let missing = wanted
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none());
        bail!(
            "not seen: {:?}",
            missing.map(|(it, _)| it).collect::<Vec<_>>()
        );
    }
    Ok(found.into_iter().flatten().collect())
}

/// Tells when the scanner of a far robot, as a local client sees it, begins to publish, and when it
/// is told to be gone.
async fn watch_far(client: Client, robot: usize, seen: mpsc::UnboundedSender<Seen>) {
    let device = Device::new(DeviceType::HOKUYO, robot as i32);
    let mut scans = loop {
        match client.device(device).subscribe_raw().await {
            Ok(scans) => break scans,
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    };
    let mut publishes = false;
    while let Some(event) = scans.next_event().await {
        let now = match event {
            Event::Message(_) => true,
            Event::Interrupted(_) => false,
            Event::Resumed => continue,
        };
        if now != publishes {
            publishes = now;
            let _ = seen.send((Instant::now(), robot, Sign::Far(now)));
        }
    }
}

/// Lists the fleet repeatedly until a robot is missing in the list, or shown as faulty.
async fn list(session: Session, robot: usize, seen: mpsc::UnboundedSender<Seen>) {
    loop {
        if let Ok(fleet) = look(&session, LOOK).await
            && !is_well(&fleet, robot)
        {
            let _ = seen.send((Instant::now(), robot, Sign::Listed(false)));
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn is_well(fleet: &Fleet, robot: usize) -> bool {
    let name = robot_name(robot + 1);
    let row = fleet.robots.iter().find(|it| it.robot.as_str() == name);
    let info = row.and_then(|row| row.info.as_ref());
    info.is_some_and(|it| it.mediator && it.devices.iter().all(|it| it.state == State::Up))
}
