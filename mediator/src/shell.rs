//! Where the core meets the world. IO.
//!
//! One thread, one [`Core`], and a few tasks that tell it what happens: one per
//! socket, three per driver, one for timers. Each of them, after it has told
//! the core, calls `Shell::settle`, which does what there is to do until
//! nothing is left. There are no locks and no hand-overs: the core is borrowed
//! only between two awaits.

mod child;
mod errors;
mod guard;
mod reload;
mod sender;
mod service;
mod spawn;
mod udp;

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{self, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use std::{env, future, io};

use nix::sys::signal::Signal;
use tokio::net::UdpSocket;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::timeout;
use tracing::{debug, error, warn};

use self::child::Child;
use self::guard::Guard;
pub use self::guard::guard;
use self::reload::Reloads;
use self::sender::Sender;
use self::service::Service;
use crate::config::{Config, ConfigError};
use crate::core::{Core, Order};
use crate::counters::Drop;
use crate::hash::Map;
use crate::router::{ClientAddress, DriverKey, Unreachable};
use crate::supervise::{Action, Event};

/// A mediator that has its sockets.
pub struct Mediator {
    config: Config,
    sockets: Vec<net::UdpSocket>,
    addresses: Vec<SocketAddr>,
    hooks: Hooks,
}

/// What the mediator cannot do without its program.
pub struct Hooks {
    /// Reads the configuration again, on a thread of its own.
    pub reload: Arc<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>,
    /// Changes what is logged; the error says what is wrong with the filter.
    pub set_log_level: SetLogLevel,
    /// Changes how many lines are logged in a second at most.
    pub set_log_rate: Box<dyn Fn(u32)>,
    /// Lines of the log that were lost so far.
    pub log_lines_lost: Box<dyn Fn() -> u64>,
    /// The program that `amber` stands for in commands; it is also run as
    /// `amber guard`.
    pub amber: PathBuf,
}

/// See [`Hooks`].
pub type SetLogLevel = Box<dyn Fn(&str) -> Result<(), String>>;

/// Why the mediator cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else listens there.
    #[error("{address} is in use{}", by(holder.as_deref()))]
    InUse {
        /// Where.
        address: SocketAddr,
        /// Who, as far as can be seen.
        holder: Option<String>,
    },
    /// Something else is wrong.
    #[error("cannot listen on {0}: {1}")]
    Other(SocketAddr, io::Error),
    /// The configuration names no address.
    #[error("no address to listen on")]
    Nothing,
}

fn by(holder: Option<&str>) -> String {
    holder.map_or(String::new(), |holder| format!(" by {holder}"))
}

impl Mediator {
    /// Takes the addresses of the configuration.
    ///
    /// # Errors
    /// One of them cannot be had. An address family that the machine lacks is
    /// skipped with a line in the log, unless nothing else is left.
    pub fn bind(config: Config, hooks: Hooks) -> Result<Self, BindError> {
        let mut sockets = Vec::new();
        let mut addresses = Vec::new();
        let mut skipped = None;
        for address in &config.listen {
            let bound = udp::bind(*address).and_then(|socket| Ok((socket.local_addr()?, socket)));
            match bound {
                Ok((local, socket)) => {
                    addresses.push(local);
                    sockets.push(socket);
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    let holder = port_holder(address.port());
                    return Err(BindError::InUse {
                        address: *address,
                        holder,
                    });
                }
                Err(error) if address.ip().is_unspecified() && lacks_family(&error) => {
                    warn!(%address, %error, "skipped");
                    skipped = Some(BindError::Other(*address, error));
                }
                Err(error) => return Err(BindError::Other(*address, error)),
            }
        }
        match sockets.is_empty() {
            true => Err(skipped.unwrap_or(BindError::Nothing)),
            false => Ok(Self {
                config,
                sockets,
                addresses,
                hooks,
            }),
        }
    }

    /// Where it listens, with the ports that it got.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Routes and supervises until `shutdown` is ready and all drivers have
    /// ended, or cannot be ended: at the latest twice the longest grace time and
    /// [`AFTER_KILL`](crate::limits::AFTER_KILL) later. SIGHUP reads the
    /// configuration again.
    ///
    /// Needs a [`LocalRuntime`](tokio::runtime::LocalRuntime), because drivers
    /// are tied to the life of the thread that starts them. Cancelling stops
    /// nothing: the end of the runtime ends all drivers with SIGKILL.
    ///
    /// # Errors
    /// The system refuses what the mediator needs to begin with.
    pub async fn run(self, shutdown: impl Future<Output = ()> + 'static) -> io::Result<()> {
        // A task of its own is polled only when it has something to do.
        spawn_local(self.run_local(shutdown)).await?
    }

    async fn run_local(self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let sockets: io::Result<Vec<_>> =
            self.sockets.into_iter().map(UdpSocket::from_std).collect();
        let sockets = sockets?;
        let mut hangup = signal(SignalKind::hangup())?;
        // Nobody can guess it: clients prove themselves with what comes of it.
        let seed = RandomState::new().build_hasher().finish();
        let mut core = Core::new(Instant::now(), &self.config, seed, SystemTime::now);
        core.router.set_listening(&self.addresses);
        (self.hooks.set_log_rate)(self.config.limits.log_lines_per_second);
        let (reloads, reloads_wanted) = Reloads::new();
        let shell = Rc::new(Shell {
            core: RefCell::new(core),
            sender: RefCell::new(Sender::new()),
            children: RefCell::default(),
            for_drivers: for_drivers(self.addresses[0]),
            guard: Guard::start(self.hooks.amber.clone()),
            hooks: self.hooks,
            reloads,
            service: Service::from_env(),
            log_lines_lost: Cell::new(0),
            timers_changed: Notify::new(),
            settled: Notify::new(),
            sockets,
        });
        for index in 0..shell.sockets.len() {
            spawn_local(receive(shell.clone(), index));
        }
        spawn_local(keep_time(shell.clone()));
        spawn_local(service::keep_telling(shell.clone()));
        reload::start(&shell, reloads_wanted);

        let listening = self.addresses.iter().map(ToString::to_string).collect();
        shell.core.borrow_mut().start(Instant::now(), listening);
        shell.settle();
        shell.service.ready();

        let reload_on_hangup = async {
            while hangup.recv().await.is_some() {
                shell.reloads.ask(&shell, None);
            }
            future::pending::<()>().await;
        };
        tokio::select! {
            () = shutdown => {}
            () = reload_on_hangup => {}
        }
        let patience = shell.core.borrow_mut().shut_down(Instant::now());
        shell.service.stopping(patience);
        shell.settle();
        let finished = async {
            while !shell.core.borrow().is_finished() {
                shell.settled.notified().await;
            }
        };
        if timeout(patience, finished).await.is_err() {
            let left = shell.core.borrow().unfinished();
            error!("not even SIGKILL ends {left}: left behind");
        }
        Ok(())
    }
}

/// See the [module](self).
struct Shell {
    core: RefCell<Core>,
    sockets: Vec<UdpSocket>,
    sender: RefCell<Sender>,
    children: RefCell<Map<DriverKey, Child>>,
    /// Where drivers reach us.
    for_drivers: SocketAddr,
    guard: Rc<Guard>,
    hooks: Hooks,
    reloads: Reloads,
    service: Service,
    log_lines_lost: Cell<u64>,
    timers_changed: Notify,
    settled: Notify,
}

impl Shell {
    /// Does all that the core has decided.
    fn settle(self: &Rc<Self>) {
        loop {
            self.settle_drivers();
            // What is learned by sending is one more thing to settle.
            if !self.send() {
                break;
            }
        }
        let core = &mut *self.core.borrow_mut();
        if core.poll_timers_changed() {
            self.timers_changed.notify_one();
            self.settled.notify_one();
            self.service.changed();
        }
    }

    fn settle_drivers(self: &Rc<Self>) {
        loop {
            let dirty = self.core.borrow_mut().router.poll_dirty();
            if let Some(key) = dirty {
                self.write(key);
                continue;
            }
            let action = self.core.borrow_mut().poll_action();
            if let Some((key, action)) = action {
                self.act(key, action);
                continue;
            }
            let order = self.core.borrow_mut().poll_order();
            if let Some(order) = order {
                self.carry_out(order);
                continue;
            }
            break;
        }
    }

    /// Sends what is to be sent; true when it turned out that somebody cannot be
    /// reached.
    fn send(&self) -> bool {
        let core = &mut *self.core.borrow_mut();
        if !core.router.tap.is_empty() {
            core.send_traced(Instant::now());
        }
        if core.outbox.is_empty() {
            return false;
        }
        let counters = &mut core.router.counters;
        let sender = &mut *self.sender.borrow_mut();
        let unreachable = sender.send(&self.sockets, &core.outbox, counters);
        core.outbox.clear();
        for address in &unreachable {
            core.unreachable(Instant::now(), *address, Unreachable::NoRoute);
        }
        !unreachable.is_empty()
    }

    /// Takes the lines of the log that were lost into the count.
    fn count_lost_lines(&self, core: &mut Core) {
        let lost = (self.hooks.log_lines_lost)();
        let known = self.log_lines_lost.replace(lost);
        core.router.counters.drop_many(Drop::LogLines, lost - known);
    }

    /// Writes what waits for a driver. Returns how many bytes that were.
    fn write(&self, key: DriverKey) -> usize {
        let core = &mut *self.core.borrow_mut();
        let Some(queue) = core.router.queue_mut(key) else {
            return 0;
        };
        match self.children.borrow().get(&key) {
            Some(child) => child.write(queue),
            None => {
                queue.clear();
                0
            }
        }
    }

    fn act(self: &Rc<Self>, key: DriverKey, action: Action) {
        match action {
            Action::Spawn => self.spawn(key),
            Action::CloseInput => self.with_child(key, Child::close_input),
            Action::Terminate => self.with_child(key, |child| child.signal(Signal::SIGTERM)),
            Action::Kill => self.with_child(key, |child| child.signal(Signal::SIGKILL)),
            // The core does these itself.
            Action::Ping { .. } | Action::Up | Action::Gone { .. } | Action::GiveUp { .. } => {}
        }
    }

    fn with_child(&self, key: DriverKey, act: impl FnOnce(&mut Child)) {
        if let Some(child) = self.children.borrow_mut().get_mut(&key) {
            act(child);
        }
    }

    fn spawn(self: &Rc<Self>, key: DriverKey) {
        let config = self.core.borrow_mut().driver_config(key).cloned();
        let Some(config) = config else { return };
        let child = spawn::spawn(&config, &self.hooks.amber, self.for_drivers, &self.guard)
            .and_then(|process| {
                Child::new(self, key, process).map_err(|error| spawn::SpawnError {
                    error: error.to_string(),
                    hint: "the system may have no file descriptors left: see `ulimit -n`".into(),
                })
            });
        let now = Instant::now();
        match child {
            Ok(child) => {
                let pid = child.pid;
                self.guard.watch(pid);
                self.children.borrow_mut().insert(key, child);
                self.core
                    .borrow_mut()
                    .driver_event(now, key, Event::Spawned { pid });
            }
            Err(spawn::SpawnError { error, hint }) => {
                self.guard.forget_what_is_gone();
                self.core.borrow_mut().spawn_failed(now, key, error, hint);
            }
        }
    }

    /// The process of a driver has ended.
    fn gone(&self, key: DriverKey, pid: u32) {
        self.guard.forget(pid);
        if let Some(mut child) = self.children.borrow_mut().remove(&key) {
            child.close_input();
        }
    }

    fn carry_out(&self, order: Order) {
        match order {
            Order::Reload(ticket) => self.reloads.ask(self, Some(ticket)),
            Order::SetLogLevel(ticket, filter) => {
                let outcome = (self.hooks.set_log_level)(&filter)
                    .map(|()| format!("log level: {filter}"))
                    .map_err(|error| {
                        let hint = "try `info`, `debug` or `amber_mediator=trace`";
                        (error, Some(hint.to_owned()))
                    });
                self.core.borrow_mut().answer(ticket, outcome);
            }
        }
    }
}

/// Takes datagrams from one socket.
async fn receive(shell: Rc<Shell>, index: usize) {
    let io = &shell.sockets[index];
    let socket = index as u8;
    let mut receiver = udp::Receiver::new();
    loop {
        let unreachable = |address, how| {
            let from = ClientAddress { socket, address };
            let core = &mut *shell.core.borrow_mut();
            core.unreachable(Instant::now(), from, how);
        };
        let received = udp::receive(io, unreachable, || {
            let core = &mut *shell.core.borrow_mut();
            // Somebody may ask for it.
            shell.count_lost_lines(core);
            let now = Instant::now();
            receiver.receive(io, |address, bytes| {
                core.datagram(now, ClientAddress { socket, address }, bytes);
            })
        })
        .await;
        if let Err(error) = received {
            // An error of the socket is taken by being seen.
            debug!(%error, "receiving failed");
            tokio::task::yield_now().await;
        }
        shell.settle();
    }
}

/// Tells the core when its time has come.
async fn keep_time(shell: Rc<Shell>) {
    loop {
        let due = shell.core.borrow().next_timeout();
        let sleep = async {
            match due {
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            () = sleep => {
                shell.core.borrow_mut().timeout(Instant::now());
                shell.settle();
            }
            () = shell.timers_changed.notified() => {}
        }
    }
}

/// The address under which a program on this machine reaches us.
fn for_drivers(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, v6.port()).into(),
        address => address,
    }
}

fn lacks_family(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let code = error.raw_os_error().map(Errno::from_raw);
    matches!(code, Some(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL))
}

/// Who holds a UDP port, as far as /proc lets us see.
fn port_holder(port: u16) -> Option<String> {
    let inodes: Vec<String> = ["/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| {
            table
                .lines()
                .skip(1)
                .filter_map(|line| {
                    let fields: Vec<&str> = line.split_whitespace().collect();
                    let local = fields.get(1)?.rsplit(':').next()?;
                    let inode = fields.get(9)?;
                    (u16::from_str_radix(local, 16) == Ok(port))
                        .then(|| format!("socket:[{inode}]"))
                })
                .collect::<Vec<_>>()
        })
        .collect();
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let Ok(files) = std::fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let holds = files.flatten().any(|file| {
            std::fs::read_link(file.path()).is_ok_and(|target| {
                inodes
                    .iter()
                    .any(|inode| target.as_os_str() == inode.as_str())
            })
        });
        if holds {
            let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
            let pid = process.file_name();
            return Some(format!(
                "'{}' (process {})",
                name.trim(),
                pid.to_string_lossy()
            ));
        }
    }
    None
}

/// The running program, for [`Hooks::amber`].
///
/// # Errors
/// The system does not say.
pub fn this_program() -> io::Result<PathBuf> {
    env::current_exe()
}
