//! The driver between clients, the task of the robot and the mapper. IO.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amber_driver::client::Client;
use amber_driver::devices::mapping::{
    Explore, Grid, MappingServiceDriver, MappingServiceLink, Piece, Progress, SaveMap, SavedMap,
    StartMap,
};
use amber_driver::proto::{DeviceMessage, location, mediator};
use amber_driver::{ClientId, Outcome, Reply, now};
use amber_map::ros_map;
use amber_map::tiles::Tiles;
use amber_navigation::slam::recording::Finished;
use amber_proto::Device;
use prost::Message;
use tokio::task::{JoinSet, spawn_blocking};

use super::answer::{self, Growth, Saved};
use super::board::Board;
use super::files::{Files, Folder};
use super::mapper::Mapper;
use super::pilot::{MapPilot, Request, lock};
use super::{Course, Settings};
use crate::described::setup_once;
use crate::device_task::DeviceTask;
use crate::moving::wheel_task::WheelTask;
use crate::options::check;

/// The time between two messages to subscribers while a map grows...
const PUBLISH_PERIOD: Duration = Duration::from_millis(200);
/// ...and while none does, in these times.
const CALM_PERIODS: u32 = 5;
/// The location driver has an uploaded map in this time.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(20);
/// From the number of a map to that of the next one: each change of the size of its cells takes one.
const NEXT_MAP: u32 = 16;
/// A name of a map without files.
const UNNAMED: &str = "map";

pub(super) struct MapDriver {
    settings: Settings,
    folder: Option<Folder>,
    location: Device,
    /// `Some` from the start on.
    link: Option<MappingServiceLink>,
    task: DeviceTask<Request>,
    map: Option<Map>,
    /// The number of the last map.
    number: u32,
    saved: Arc<Mutex<Saved>>,
    saving: JoinSet<()>,
    /// Calls of `publish` since the last message.
    calm: u32,
}

struct Map {
    mapper: Arc<Mapper>,
    board: Arc<Mutex<Board>>,
    growth: Growth,
    /// The map stops with this client.
    client: Option<ClientId>,
    started: Instant,
    stopped: Option<Instant>,
}

impl MapDriver {
    pub(super) fn new(settings: Settings, folder: Option<Folder>, location: Device) -> Self {
        let number = first_number();
        Self {
            settings,
            folder,
            location,
            link: None,
            task: DeviceTask::default(),
            map: None,
            number,
            saved: Arc::new(Mutex::new(Saved {
                number,
                ..Saved::default()
            })),
            saving: JoinSet::new(),
            calm: 0,
        }
    }

    async fn begin(&mut self, start: &StartMap, client: Option<ClientId>) -> Result<(), String> {
        let link = self.link.clone().ok_or("the driver has not started")?;
        if self.growing().is_some() {
            return Err("a map grows already: stop it first".into());
        }
        let wanted = self.settings.wanted(start);
        let wanted = wanted.map_err(|error| error.to_string())?;
        let course = wanted.course(setup_once(link.devices(), &wanted.robot).await?);
        self.number = self.number.wrapping_add(NEXT_MAP).max(1);
        let mapper = Mapper::start(course.slam, course.geometry(), self.number)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let (mapper, board) = (Arc::new(mapper), Arc::<Mutex<Board>>::default());
        let Course { setup, .. } = course.clone();
        let pilot = MapPilot::new(course, mapper.clone(), board.clone());
        self.task = DeviceTask::default();
        (self.task).open_in_thread(WheelTask::new(pilot, setup, &link), link);
        self.map = Some(Map {
            mapper,
            board,
            growth: Growth::Grows,
            client: client.filter(|_| start.ends_with_client()),
            started: now(),
            stopped: None,
        });
        tracing::info!("a map begins");
        Ok(())
    }

    /// Ends the growth of the map, after the robot stands.
    async fn end(&mut self) {
        if self.growing().is_none() {
            return;
        }
        self.task.close().await;
        if let Some(map) = &mut self.map {
            map.growth = Growth::Stopped;
            map.stopped = Some(now());
            let mut board = lock(&map.board);
            board.end();
        }
        if let Some(link) = &self.link {
            link.recovered();
        }
        tracing::info!("the map is stopped");
    }

    fn growing(&self) -> Option<&Map> {
        (self.map.as_ref()).filter(|map| map.growth == Growth::Grows)
    }

    fn shown(&self) -> Progress {
        self.map.as_ref().map_or_else(answer::no_map, Map::progress)
    }

    /// What it takes to save a map as wanted.
    fn save(&self, wanted: SaveMap) -> Result<Saving, String> {
        let Some(map) = &self.map else {
            return Err("there is no map: start one first".into());
        };
        let files = match (&wanted.name, &self.folder) {
            (None, _) => None,
            (Some(name), Some(folder)) => Some(folder.files(name, wanted.replace())?),
            (Some(_), None) => {
                return Err(
                    "the driver has no folder for maps: start it with --maps FOLDER".into(),
                );
            }
        };
        let cell_mm = check("cell_mm", wanted.cell.unwrap_or(25.0), 5.0..=200.0);
        let location = match wanted.upload() {
            true => Some(self.location),
            false => None,
        };
        let link = self.link.as_ref().ok_or("the driver has not started")?;
        let board = lock(&map.board).clone();
        Ok(Saving {
            mapper: map.mapper.clone(),
            board,
            progress: map.progress(),
            name: wanted.name.unwrap_or_else(|| UNNAMED.into()),
            files,
            cell_m: cell_mm.map_err(|error| error.to_string())? / 1000.0,
            location,
            devices: link.devices().clone(),
            saved: self.saved.clone(),
        })
    }
}

impl Map {
    fn progress(&self) -> Progress {
        let time = self.stopped.unwrap_or_else(now) - self.started;
        let reports = self.mapper.reports();
        let report = reports.borrow();
        answer::progress(&report, &lock(&self.board), self.growth, time)
    }
}

/// A map that is being saved.
struct Saving {
    mapper: Arc<Mapper>,
    board: Board,
    progress: Progress,
    name: String,
    files: Option<Files>,
    cell_m: f64,
    /// The driver that gets the map.
    location: Option<Device>,
    devices: Client,
    saved: Arc<Mutex<Saved>>,
}

impl Saving {
    async fn run(self) -> Result<SavedMap, String> {
        const BUG: &str = "saving the map failed: this is a bug in amber";
        let recording = self.mapper.copy().await.ok_or(BUG)?;
        let (name, cell_m, files) = (self.name.clone(), self.cell_m, self.files.clone());
        let written = spawn_blocking(move || {
            let finished = recording.finish(&name, cell_m);
            let finished = finished.map_err(|error| format!("there is no map: {error}"))?;
            // No program reads a .roson file without walls.
            if finished.walls == 0 {
                return Err("the map has no walls yet: drive for a while".into());
            }
            let roson = finished.map.to_roson();
            let png = ros_map::png(&finished.occupancy).map_err(|error| error.to_string())?;
            if let Some(files) = files {
                files.write(&finished.occupancy, &roson)?;
            }
            Ok::<_, String>((finished, roson, png))
        });
        let (finished, roson, png): (Finished, _, _) = written.await.map_err(|_| BUG)??;
        let missing = answer::missing(&finished.progress, self.mapper.dropped(), &self.board);
        let mut message = answer::saved(&finished, missing);
        if let Some(files) = &self.files {
            message.files = files.names();
            tracing::info!("wrote {}", message.files.join(", "));
        }
        if let Some(location) = self.location {
            upload(&self.devices, location, &roson).await?;
            message.uploaded = Some(true);
        }
        // The points would only be in the way.
        message.progress = Some(Progress {
            scan: None,
            path: None,
            ..self.progress
        });
        let mut saved = (self.saved.lock()).unwrap_or_else(std::sync::PoisonError::into_inner);
        *saved = Saved {
            number: saved.number.wrapping_add(1).max(1),
            roson,
            png,
        };
        message.saved = Some(saved.number);
        Ok(message)
    }
}

/// Hands a map to the location driver, and waits until it uses it.
async fn upload(devices: &Client, location: Device, roson: &str) -> Result<(), String> {
    let refused = |why: String| format!("{location} did not take the map: {why}");
    let map = location::DriverMsg {
        upload_map: Some(roson.to_owned()),
        ..location::DriverMsg::data()
    };
    // Protobuf merges the two messages.
    let wish = mediator::DriverMsg {
        want_outcome: Some(true),
        ..mediator::DriverMsg::default()
    };
    let message = [map.encode_to_vec(), wish.encode_to_vec()].concat();
    let device = devices.device(location).with_deadline(UPLOAD_DEADLINE);
    let answer = device.request_raw(message.into()).await;
    let answer = answer.map_err(|error| refused(error.to_string()))?;
    let answer = mediator::DriverMsg::decode(answer).map_err(|error| refused(error.to_string()))?;
    match answer.outcome.and_then(|outcome| outcome.why_refused()) {
        None => Ok(()),
        Some(why) => Err(refused(why)),
    }
}

impl MappingServiceDriver for MapDriver {
    async fn start(
        &mut self,
        link: MappingServiceLink,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.link = Some(link);
        Ok(())
    }

    async fn start_map(&mut self, start: StartMap, outcome: Outcome) {
        match self.begin(&start, outcome.client()).await {
            Ok(()) => outcome.done(),
            Err(why) => outcome.refuse(&why),
        }
    }

    async fn stop_map(&mut self, outcome: Outcome) {
        self.end().await;
        outcome.done();
    }

    async fn explore(&mut self, explore: Explore, outcome: Outcome) {
        if self.growing().is_some() {
            self.task.request(Request::Explore(outcome, explore)).await;
        } else if explore.on == Some(false) {
            outcome.done();
        } else {
            outcome.refuse("no map grows: start one first");
        }
    }

    async fn save_map(&mut self, wanted: SaveMap, reply: Reply<SavedMap>) {
        match self.save(wanted) {
            Ok(saving) => {
                self.saving.spawn(async move {
                    match saving.run().await {
                        Ok(saved) => reply.send(saved),
                        Err(why) => reply.refuse(&why),
                    }
                });
            }
            Err(why) => reply.refuse(&why),
        }
        // Finished tasks leave their results here.
        while self.saving.try_join_next().is_some() {}
    }

    async fn progress(&mut self, reply: Reply<Progress>) {
        reply.send(self.shown());
    }

    async fn grid(&mut self, asked: Grid, reply: Reply<Grid>) {
        let tiles = match &self.map {
            Some(map) => map.mapper.reports().borrow().tiles.clone(),
            None => Arc::new(Tiles::new(0)),
        };
        reply.send(answer::grid(&tiles, &asked));
    }

    async fn map_piece(&mut self, asked: Piece, reply: Reply<Piece>) {
        let saved = (self.saved.lock()).unwrap_or_else(std::sync::PoisonError::into_inner);
        reply.send(answer::piece(&saved, &asked));
    }

    fn period(&self) -> Option<Duration> {
        Some(PUBLISH_PERIOD)
    }

    async fn publish(&mut self) -> Option<Progress> {
        self.calm += 1;
        if self.growing().is_none() && self.calm < CALM_PERIODS {
            return None;
        }
        self.calm = 0;
        Some(self.shown())
    }

    fn handles_gone_clients(&self) -> bool {
        true
    }

    async fn client_gone(&mut self, client: ClientId) {
        if self.growing().is_some_and(|map| map.client == Some(client)) {
            self.end().await;
        } else {
            self.task.request(Request::ClientGone(client)).await;
        }
    }

    async fn shutdown(&mut self) {
        self.task.close().await;
        self.saving.shutdown().await;
    }
}

/// The number before that of the first map. After a restart of the driver, numbers must not be those
/// of maps that clients still have.
fn first_number() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as u32)
}

#[cfg(test)]
mod tests;
