//! The drivers of the suite: honest ones, and ones that attack. IO.
//!
//! They speak the pipe protocol without the SDK, because the SDK would not let them
//! misbehave.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amber_proto::{ClientId, DeviceMessage, Frame, Header, MsgType, mediator, roboclaw};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpgid, getppid, setpgid};
use prost::Message;

use crate::wire;

/// What a driver does.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Driver {
    /// Answers each request with the same message
    Echo {
        /// What it takes for each, in microseconds
        #[arg(long, default_value_t = 0)]
        work_us: u64,
    },
    /// Answers each request with the id of the client as number
    Whoami,
    /// Sends to all subscribers
    Publish {
        /// Messages in a second
        #[arg(long)]
        per_second: u32,
        /// Bytes of padding in each
        #[arg(long)]
        bytes: usize,
    },
    /// Names the client that subscribed last again and again in one header
    Duplicate {
        /// Frames in a second
        #[arg(long)]
        per_second: u32,
        /// How often the client is named in each
        #[arg(long)]
        times: usize,
    },
    /// Joins the process group of its parent, ignores SIGTERM and the end of its parent
    LeaveGroup,
    /// Writes tiny frames for nobody without end
    Junk,
    /// No driver: ends as soon as it has taken a port of this machine that another program has
    Steal {
        /// The port
        #[arg(long)]
        port: u16,
    },
    /// Writes a line for each frame to a file
    Record {
        /// The file
        #[arg(long)]
        file: PathBuf,
        /// What it takes for each frame, in microseconds
        #[arg(long, default_value_t = 0)]
        work_us: u64,
    },
    /// Writes the time, in ms since 1970, and the speed of the left front wheel of each motion command
    /// to a file
    Wheels {
        /// The file
        #[arg(long)]
        file: PathBuf,
    },
}

/// Runs a driver until its stdin ends.
///
/// # Errors
/// Its pipes fail.
pub fn run(driver: &Driver) -> io::Result<()> {
    match driver {
        Driver::Echo { work_us } => echo(Duration::from_micros(*work_us)),
        Driver::Whoami => each_frame(|input| {
            let Some(client) = input.client.filter(|_| input.kind == Some(MsgType::Data)) else {
                return Ok(());
            };
            let answer = wire::numbered(client.0.cast_unsigned(), 0);
            say(&wire::frame(None, Some(client), &answer))
        }),
        Driver::Publish { per_second, bytes } => publish(*per_second, *bytes, <[i32]>::to_vec),
        Driver::Duplicate { per_second, times } => {
            let times = *times;
            publish(*per_second, 1000, move |ids| {
                ids.last().map_or(vec![], |id| vec![*id; times])
            })
        }
        Driver::LeaveGroup => leave_group(),
        Driver::Junk => loop {
            // Empty headers and empty messages.
            say(&[0; 1 << 16])?;
        },
        Driver::Steal { port } => steal(*port),
        Driver::Record { file, work_us } => record(file, Duration::from_micros(*work_us)),
        Driver::Wheels { file } => wheels(file),
    }
}

/// One frame from the mediator.
struct Input {
    client: Option<ClientId>,
    kind: Option<MsgType>,
    number: Option<u32>,
    message: Vec<u8>,
}

/// Reads frames one after the other, and answers PINGs of the mediator.
fn each_frame(mut take: impl FnMut(Input) -> io::Result<()>) -> io::Result<()> {
    let mut stdin = io::stdin().lock();
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let length = stdin.read(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&chunk[..length]);
        let mut done = 0;
        while let Some(frame) = Frame::from_stream(&buffer[done..]) {
            done += frame.wire_len();
            let Ok(header) = Header::parse(frame.header) else {
                continue;
            };
            // A message may be of any device: only the base fields are looked at.
            let message = mediator::DriverMsg::decode(frame.message).unwrap_or_default();
            let input = Input {
                client: header.client_ids().next(),
                kind: message.kind(),
                number: message.syn().map(|syn| syn.0),
                message: frame.message.to_vec(),
            };
            if input.client.is_none() && input.kind == Some(MsgType::Ping) {
                let mut pong = mediator::DriverMsg::of_kind(MsgType::Pong);
                pong.set_ack(message.syn());
                say(&wire::frame(None, None, &pong.encode_to_vec()))?;
            } else {
                take(input)?;
            }
        }
        buffer.drain(..done);
    }
}

fn say(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn work(time: Duration) {
    // A sleep would be rounded up.
    let end = Instant::now() + time;
    while Instant::now() < end {
        match time > Duration::from_millis(5) {
            true => thread::sleep(Duration::from_millis(1)),
            false => std::hint::spin_loop(),
        }
    }
}

fn echo(time: Duration) -> io::Result<()> {
    each_frame(|input| {
        if input.kind != Some(MsgType::Data) {
            return Ok(());
        }
        work(time);
        say(&wire::frame(None, input.client, &input.message))
    })
}

/// Sends to some of the subscribers, or to one several times.
fn publish(
    per_second: u32,
    bytes: usize,
    named: impl Fn(&[i32]) -> Vec<i32> + Send + 'static,
) -> io::Result<()> {
    let subscribers: Arc<Mutex<BTreeSet<i32>>> = Arc::default();
    {
        let subscribers = subscribers.clone();
        let pause = Duration::from_secs(1) / per_second;
        thread::spawn(move || {
            let mut due = Instant::now();
            for number in 0.. {
                let subscribers = subscribers.lock().unwrap_or_else(PoisonError::into_inner);
                let ids: Vec<i32> = subscribers.iter().copied().collect();
                drop(subscribers);
                let ids = named(&ids);
                if !ids.is_empty() {
                    let message = wire::numbered(number, bytes);
                    if say(&wire::framed(&header_for(&ids), &message)).is_err() {
                        break;
                    }
                }
                due = (due + pause).max(Instant::now() - 10 * pause);
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        });
    }
    each_frame(|input| {
        let mut subscribers = subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ClientId(id)) = input.client {
            match input.kind {
                Some(MsgType::Subscribe) => drop(subscribers.insert(id)),
                Some(MsgType::Unsubscribe | MsgType::ClientDied) => drop(subscribers.remove(&id)),
                _ => {}
            }
        }
        Ok(())
    })
}

/// A header that names these clients, in this order.
pub fn header_for(ids: &[i32]) -> Vec<u8> {
    let header = amber_proto::DriverHdr {
        client_ids: ids.to_vec(),
        ..amber_proto::DriverHdr::default()
    };
    header.encode_to_vec()
}

fn record(file: &PathBuf, time: Duration) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    each_frame(|input| {
        work(time);
        let client = input.client.map_or(0, |client| client.0);
        let number = input.number.unwrap_or(0);
        writeln!(
            file,
            "{:?} {client} {number}",
            input.kind.unwrap_or(MsgType::Data)
        )
    })
}

/// Waits until another program has a port, and binds it with `SO_REUSEADDR` as soon as that works.
fn steal(port: u16) -> io::Result<()> {
    use nix::sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket, sockopt,
    };
    use std::os::fd::AsRawFd;
    let own = SockaddrIn::new(127, 0, 0, 1, port);
    let is_bound = |shares| {
        let kind = SockType::Datagram;
        let socket = socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, None)?;
        setsockopt(&socket, sockopt::ReuseAddr, &shares)?;
        io::Result::Ok(bind(socket.as_raw_fd(), &own).is_ok())
    };
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if !is_bound(false)? && is_bound(true)? {
            return Ok(());
        }
    }
    Ok(())
}

fn wheels(file: &PathBuf) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    each_frame(|input| {
        let message = roboclaw::DriverMsg::decode(&input.message[..]).unwrap_or_default();
        let Some(command) = message.motors_command else {
            return Ok(());
        };
        let (ms, speed) = (unix_ms(), command.front_left_speed());
        writeln!(file, "{ms} {speed}")
    })
}

/// The time in ms since 1970.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Does what it can to survive, for two minutes at most.
fn leave_group() -> io::Result<()> {
    SigSet::from(Signal::SIGTERM).thread_block()?;
    set_pdeathsig(None)?;
    setpgid(Pid::from_raw(0), getpgid(Some(getppid()))?)?;
    thread::sleep(Duration::from_secs(120));
    Ok(())
}
