//! `amber top`: a live view of a mediator, updated once a second. IO.

mod columns;
mod sample;
mod screen;
mod state;

use std::io::{self, IsTerminal};
use std::time::Duration;

use amber_client::{Client, Error};
use amber_proto::Device;
use amber_proto::mediator::{Driver, DriverState};
use amber_terminal::{Failure, Human, has_colours, millis, show, table};
use ratatui::DefaultTerminal;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::columns::{memory, milliseconds, percent, rate};
use self::sample::{DeviceRow, Look, View};
use self::state::{Change, Effect, Key, State, meaning};
use super::devices::name;
use super::drive::keyboard::Keyboard;
use super::overview::Overview;

pub(super) const HELP: &str = "\
Keys: up and down select a device, r restarts its driver, s stops or starts it, p pauses, tab
switches between clients and drops on a narrow terminal, q quits.

Examples:
  amber top
  amber top --every 0.5
  amber top --json --count 10";

/// Options of `amber top`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Seconds between updates
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = amber_terminal::seconds)]
    every: Duration,
    /// Number of updates [default: until q or Ctrl-C]
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Working drivers answer sooner.
const PING_DEADLINE: Duration = Duration::from_millis(500);
/// Maximum number of drivers to ping per update.
const MAX_PINGS: usize = 64;

pub(super) async fn run(client: &Client, options: &Options, json: bool) -> Result<(), Failure> {
    if !json && io::stdout().is_terminal() && io::stdin().is_terminal() {
        return on_terminal(client, options).await;
    }
    super::until_interrupt(in_lines(client, options, json)).await
}

/// Prints each update.
async fn in_lines(client: &Client, options: &Options, json: bool) -> Result<(), Failure> {
    let began = Instant::now();
    let mut ticks = interval(options.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut last = look(client.clone(), began).await?;
    let mut shown = 0;
    while options.count.is_none_or(|count| shown < count) {
        ticks.tick().await;
        let now = look(client.clone(), began).await?;
        show(&View::between(Some(&last), &now), json)?;
        last = now;
        shown += 1;
    }
    Ok(())
}

/// Draws each update, and handles keys.
async fn on_terminal(client: &Client, options: &Options) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot use the terminal: {error}"));
    let (_keyboard, mut keys) = Keyboard::new(meaning).map_err(failed)?;
    let mut screen = Screen::open().map_err(failed)?;
    let mut state = State::new(client.mediator_address().to_owned(), has_colours());
    let (mut ticks, began) = (interval(options.every), Instant::now());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut last, mut view, mut shown) = (None, View::default(), 0);
    let mut looking: Option<JoinHandle<Result<Look, Error>>> = None;
    let (said, mut saying) = mpsc::channel(4);
    loop {
        screen.draw(&view, &state).map_err(failed)?;
        tokio::select! {
            key = keys.recv() => {
                // The terminal is closed.
                let key = key.unwrap_or(Key::Quit);
                match state.press(key, &view) {
                    Some(Effect::Quit) => return Ok(()),
                    Some(Effect::Change(change, device)) => {
                        let (client, said) = (client.clone(), said.clone());
                        tokio::spawn(async move {
                            let _ = said.send(carry_out(&client, change, device).await).await;
                        });
                    }
                    None => {}
                }
            }
            Some(done) = saying.recv() => state.message = Some(done),
            _ = ticks.tick(), if looking.is_none() && !state.is_paused => {
                looking = Some(tokio::spawn(look(client.clone(), began)));
            }
            looked = finished(&mut looking) => {
                looking = None;
                match looked {
                    Ok(now) => {
                        view = View::between(last.as_ref(), &now);
                        // Rates need two samples.
                        shown += u64::from(last.is_some());
                        last = Some(now);
                    }
                    Err(error) => state.message = Some(error.to_string()),
                }
                if options.count.is_some_and(|count| shown >= count) {
                    return screen.draw(&view, &state).map_err(failed);
                }
            }
        }
    }
}

async fn finished(looking: &mut Option<JoinHandle<Result<Look, Error>>>) -> Result<Look, Error> {
    match looking {
        Some(looking) => match looking.await {
            Ok(looked) => looked,
            Err(ended) => std::panic::resume_unwind(ended.into_panic()),
        },
        None => std::future::pending().await,
    }
}

async fn carry_out(client: &Client, change: Change, device: Device) -> String {
    let mediator = client.mediator();
    let done = match change {
        Change::Start => mediator.start(device).await,
        Change::Stop => mediator.stop(device).await,
        Change::Restart => mediator.restart(device).await,
    };
    done.unwrap_or_else(|error| error.to_string())
}

/// Takes a sample of everything.
async fn look(client: Client, began: Instant) -> Result<Look, Error> {
    let asked = Instant::now();
    client.mediator().ping().await?;
    let round_trip = asked.elapsed();
    let mediator = client.mediator();
    let (overview, clients) = tokio::try_join!(Overview::ask(&client), mediator.clients())?;
    let at = began.elapsed();
    let mut pings = JoinSet::new();
    for device in overview.drivers.iter().filter_map(pinged).take(MAX_PINGS) {
        let proxy = client.device(device).with_deadline(PING_DEADLINE);
        pings.spawn(async move { Some((device.to_string(), proxy.ping().await.ok()?)) });
    }
    let round_trips = pings.join_all().await.into_iter().flatten().collect();
    Ok(Look {
        at,
        overview,
        clients,
        round_trip: Some(round_trip),
        round_trips,
    })
}

/// The device to ping. Skips old drivers that do not answer.
fn pinged(driver: &Driver) -> Option<Device> {
    let answers = driver.state() == DriverState::Up && driver.answers_ping();
    name(driver.devices.first().filter(|_| answers)?)
        .parse()
        .ok()
}

/// The terminal. Dropping this restores it; so does a panic.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> io::Result<Self> {
        ratatui::try_init().map(Self)
    }

    fn draw(&mut self, view: &View, state: &State) -> io::Result<()> {
        self.0.draw(|frame| screen::draw(frame, view, state))?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl Human for View {
    fn human(&self) -> String {
        let of = &self.mediator;
        let first = format!(
            "up {}, clients {}, in {}/s, out {}/s, drops {}/s, CPU {} %, memory {}\n",
            millis(of.uptime_ms),
            of.clients,
            rate(of.received_per_s),
            rate(of.sent_per_s),
            rate(of.drops_per_s),
            percent(of.cpu_percent),
            memory(of.memory_bytes)
        );
        let row = |row: &DeviceRow| {
            [
                row.device.clone(),
                row.state.to_owned(),
                rate(row.in_per_s),
                rate(row.out_per_s),
                percent(row.cpu_percent),
                memory(row.memory_bytes),
                milliseconds(row.round_trip_ms),
                row.dropped.to_string(),
                row.restarts.to_string(),
            ]
        };
        let rows: Vec<_> = self.devices.iter().map(row).collect();
        let heading = [
            "DEVICE", "STATE", "IN/s", "OUT/s", "CPU %", "MEMORY", "RTT ms", "DROPS", "RESTARTS",
        ];
        first + &table(heading, &rows) + "\n"
    }
}
