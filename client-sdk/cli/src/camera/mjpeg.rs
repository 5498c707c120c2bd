//! `amber camera --mjpeg`: serves pictures over HTTP, for programs that read network cameras. IO.
//!
//! ```text
//! camera -- one subscription, while somebody reads --> newest picture --> reader
//!                                                           |-----------> reader
//! ```
//!
//! A reader gets the newest picture whenever its connection has room for one. So a slow one gets fewer,
//! and none waits for it.

mod format;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use amber_client::{Client, Event};
use amber_proto::Device;
use amber_proto::camera::PictureRequest;
use amber_terminal::{Failure, note, print};
use amber_web::{
    Access, Advice, Answer, Limits, Origins, Own, Parts, Refused, Request, Server, StatusCode,
    Token, Tokens, endless, head, headers, page, place, plain,
};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::timeout;

use self::format::Place;
use super::{Options, why_silent};
use crate::reason;

/// A period that is shorter than that of any camera: each picture.
const EACH_HZ: f64 = 100.0;

/// Readers at the same time. A network of more needs a real server of pictures.
const LIMITS: Limits = Limits {
    total: 64,
    per_ip: 32,
};

/// What the system keeps of pictures for a slow reader, in bytes: a few of 640 x 480. All of that is
/// older than the newest one.
const SEND_BUFFER: usize = 128 * 1024;

/// How long a reader waits for the first picture: longer than a camera takes that was off.
const FIRST: Duration = Duration::from_secs(7);
/// A new reader gets no picture that is older.
const FRESH: Duration = Duration::from_secs(1);

const ADVICE: Advice = Advice {
    host: "these pictures are for this machine only: use http://localhost, or start `amber camera` \
           with --mjpeg 0.0.0.0:8027 to serve other machines",
    origin: "pages of other sites cannot read these pictures",
    from_disk: "pages that are opened from disk cannot read these pictures",
    token: "wrong or missing token: use the address that `amber camera` printed",
};

/// Serves until Ctrl-C.
pub(super) async fn serve(
    client: &Client,
    options: &Options,
    address: SocketAddr,
) -> Result<(), Failure> {
    let (listener, listen) = place::listen_by(address, "amber camera", "--mjpeg").await?;
    // Connections inherit it. An error means that more pictures wait for slow readers.
    let _ = socket2::SockRef::from(&listener).set_send_buffer_size(SEND_BUFFER);
    let access = access(listen, place::token)?;
    if let Err(error) = client.camera(options.device.id.0).info().await {
        note(format_args!("no pictures for now: {error}"));
    }
    print(introduction(&place::shown(listen), &access).as_bytes())?;
    let server = Arc::new(Server::new(LIMITS));
    let camera = Arc::new(Camera {
        client: client.clone(),
        device: options.device,
        request: options.request(),
        period: options.period(EACH_HZ),
        access,
        connections: server.clone(),
        newest: watch::Sender::new(None),
        readers: watch::Sender::new(0),
        taken: Mutex::default(),
        counters: Counters::default(),
    });
    let served = camera.clone();
    let service = move |request, peer| served.clone().answer(request, peer);
    let done = tokio::select! {
        () = server.run(listener, service) => Ok(()),
        done = camera.feed(options) => done,
        () = place::end() => Ok(()),
    };
    note(camera.status().line());
    done
}

/// The addresses to open. `hosts` are those of this machine, the best one first.
fn introduction(hosts: &[SocketAddr], access: &Access) -> String {
    let token = access.tokens().map(|tokens| tokens.drive.text());
    let token = token.map_or(String::new(), |token| format!("/{token}"));
    let Some((host, others)) = hosts.split_first() else {
        return String::new();
    };
    let mut lines = format!(
        "stream:   http://{host}{token}/stream\n\
         picture:  http://{host}{token}/snapshot\n\
         page:     http://{host}{token}/\n"
    );
    if !others.is_empty() {
        let others: Vec<_> = others.iter().map(SocketAddr::to_string).collect();
        lines += &format!("other addresses of this machine: {}\n", others.join(", "));
    }
    lines
}

/// The path of a request that may be answered, without the token in front of it.
fn admitted<'a>(
    access: &Access,
    path: &'a str,
    host: Option<&str>,
    origin: Option<&str>,
) -> Result<&'a str, Refused> {
    match access.tokens() {
        None => access.admit(host, origin).map(|()| path),
        Some(_) => {
            let (token, path) = format::token(path);
            access.role(Some(token)).map(|_| path)
        }
    }
}

/// The rules of a server that listens at this address.
fn access<E>(listen: SocketAddr, token: impl FnOnce() -> Result<Token, E>) -> Result<Access, E> {
    let origins = Origins {
        listed: Vec::new(),
        of_this_machine: true,
        own: Own::ByAnyHost,
    };
    Access::new(listen, origins, || {
        token().map(|drive| Tokens { drive, look: None })
    })
}

/// What all connections share.
struct Camera {
    client: Client,
    device: Device,
    request: PictureRequest,
    period: Duration,
    access: Access,
    connections: Arc<Server>,
    /// Absent while nobody reads, or there are no pictures.
    newest: watch::Sender<Option<Shot>>,
    /// Of the stream.
    readers: watch::Sender<usize>,
    /// What each of them has taken. Changes while the newest picture is locked.
    taken: Mutex<Vec<Arc<Taken>>>,
    counters: Counters,
}

/// The number of the picture that a reader took last.
struct Taken(AtomicU64);

impl Taken {
    /// Before its first picture, a reader is not slow.
    const NOTHING_YET: u64 = u64::MAX;

    fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    /// Whether this reader has not taken the picture before this one.
    fn lags_at(&self, number: u64) -> bool {
        self.0.load(Ordering::Relaxed).saturating_add(1) < number
    }
}

/// A picture in the form of the stream.
#[derive(Clone)]
struct Shot {
    /// Counts from 1.
    number: u64,
    at: Instant,
    part: Bytes,
}

#[derive(Default)]
struct Counters {
    pictures: AtomicU64,
    missed: AtomicU64,
    damaged: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
    snapshots: AtomicU64,
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// What has happened so far.
#[derive(Debug, Serialize)]
struct Status {
    device: String,
    /// Those who read the stream now.
    readers: usize,
    /// Pictures of the camera for the stream.
    pictures: u64,
    /// Those that were lost on the way from the camera.
    missed: u64,
    /// Those whose end is missing.
    damaged: u64,
    /// Pictures for all readers of the stream.
    sent: u64,
    /// Those that readers were too slow for.
    skipped: u64,
    /// Single pictures.
    snapshots: u64,
}

impl Status {
    fn line(&self) -> String {
        let Self {
            pictures,
            missed,
            sent,
            skipped,
            snapshots,
            ..
        } = self;
        format!(
            "{pictures} pictures came and {missed} were lost; {sent} were sent, {skipped} skipped \
             for slow readers; {snapshots} single ones"
        )
    }
}

impl Camera {
    /// Reads the pictures of the camera while the stream has readers.
    async fn feed(&self, options: &Options) -> Result<(), Failure> {
        let camera = self.client.camera(self.device.id.0);
        let mut readers = self.readers.subscribe();
        loop {
            // This struct has the sender.
            let _ = readers.wait_for(|readers| *readers > 0).await;
            let mut pictures = camera.pictures(self.period, options.stream()).await?;
            loop {
                let event = tokio::select! {
                    event = pictures.next_event() => event,
                    _ = readers.wait_for(|readers| *readers == 0) => break,
                };
                match event {
                    Some(Event::Message(update)) => {
                        let picture = update.message;
                        count(&self.counters.pictures, 1);
                        count(&self.counters.missed, update.missed);
                        count(&self.counters.damaged, picture.damaged().into());
                        self.show(Shot {
                            number: self.counters.pictures.load(Ordering::Relaxed),
                            at: Instant::now(),
                            part: format::part(picture.data()),
                        });
                    }
                    Some(Event::Interrupted(_) | Event::Resumed) => {
                        self.newest.send_replace(None);
                    }
                    None => return Err(Failure::new("the connection to the mediator has ended")),
                }
            }
            self.newest.send_replace(None);
        }
    }

    /// Replaces the newest picture. Readers that have not taken it by now get no more of it.
    fn show(&self, shot: Shot) {
        self.newest.send_modify(|newest| {
            let taken = self.taken();
            let slow = taken.iter().filter(|it| it.lags_at(shot.number)).count();
            count(&self.counters.skipped, slow as u64);
            *newest = Some(shot);
        });
    }

    fn taken(&self) -> MutexGuard<'_, Vec<Arc<Taken>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(self: Arc<Self>, request: Request, peer: SocketAddr) -> Answer {
        let (host, origin) = (head(&request, "host"), head(&request, "origin"));
        let path = match admitted(&self.access, request.uri().path(), host, origin) {
            Ok(path) => path,
            Err(refused) => {
                let why = ADVICE.about(refused);
                self.connections.refused(peer, why);
                return plain(StatusCode::FORBIDDEN, why);
            }
        };
        match Place::of(path) {
            Some(Place::Stream) => self.stream().await,
            Some(Place::Snapshot) => self.snapshot().await,
            Some(Place::Status) => self.counted(),
            Some(Place::Page) => self.page(),
            None => plain(
                StatusCode::NOT_FOUND,
                "there are /stream, /snapshot, /status and a page at /",
            ),
        }
    }

    async fn stream(self: Arc<Self>) -> Answer {
        let mut reader = Reader::new(&self);
        // Of a slow stream, the last picture is the right one.
        let fresh = FRESH.max(2 * self.period);
        let is_fresh =
            |shot: &Option<Shot>| shot.as_ref().is_some_and(|it| it.at.elapsed() < fresh);
        let first = timeout(FIRST, reader.newest.wait_for(is_fresh)).await;
        // Not kept while the reason is asked for: it locks the picture.
        let taken = &reader.taken;
        let first = first.ok().and_then(|shot| {
            let shot = shot.ok()?;
            shot.as_ref().inspect(|it| taken.set(it.number)).cloned()
        });
        let Some(first) = first else {
            let why = why_silent(&self.client, self.device).await;
            let why = format!("{}: {why}", self.device);
            return plain(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        reader.first = Some(first);
        endless(reader, &self.headers(format::CONTENT_TYPE))
    }

    async fn snapshot(&self) -> Answer {
        let camera = self.client.camera(self.device.id.0);
        match camera.picture(self.request).await {
            Ok(picture) => {
                count(&self.counters.snapshots, 1);
                let file = Bytes::copy_from_slice(picture.data());
                page(file, &self.headers("image/jpeg"))
            }
            Err(error) => {
                let failure = reason::explain(&self.client, error.into()).await;
                plain(StatusCode::SERVICE_UNAVAILABLE, failure.text())
            }
        }
    }

    /// The headers of pictures.
    fn headers(&self, content_type: &'static str) -> [(&'static str, &'static str); 4] {
        // Without a token, a page of another site could show the picture to its user.
        let embedded = match self.access.tokens() {
            None => "same-site",
            Some(_) => "cross-origin",
        };
        [
            ("content-type", content_type),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", embedded),
            ("referrer-policy", "no-referrer"),
        ]
    }

    fn counted(&self) -> Answer {
        match serde_json::to_string(&self.status()) {
            Ok(text) => page(text + "\n", &[("content-type", "application/json")]),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, error),
        }
    }

    fn page(&self) -> Answer {
        let device = self.device;
        let page_text = format!(
            "<!doctype html><title>{device}</title><img src=\"stream\" alt=\"pictures of {device}\">\n"
        );
        let mut all = vec![
            ("content-type", "text/html; charset=utf-8"),
            (headers::POLICY_NAME, headers::POLICY),
        ];
        all.extend(headers::ALWAYS);
        page(page_text, &all)
    }

    fn status(&self) -> Status {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        Status {
            device: self.device.to_string(),
            readers: *self.readers.borrow(),
            pictures: get(&counters.pictures),
            missed: get(&counters.missed),
            damaged: get(&counters.damaged),
            sent: get(&counters.sent),
            skipped: get(&counters.skipped),
            snapshots: get(&counters.snapshots),
        }
    }
}

/// A reader of the stream, until this is dropped.
struct Reader {
    camera: Arc<Camera>,
    newest: watch::Receiver<Option<Shot>>,
    /// The first picture, until it is sent.
    first: Option<Shot>,
    taken: Arc<Taken>,
}

impl Reader {
    fn new(camera: &Arc<Camera>) -> Self {
        let taken = Arc::new(Taken(AtomicU64::new(Taken::NOTHING_YET)));
        camera.taken().push(taken.clone());
        camera.readers.send_modify(|readers| *readers += 1);
        Self {
            camera: camera.clone(),
            newest: camera.newest.subscribe(),
            first: None,
            taken,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.camera.readers.send_modify(|readers| *readers -= 1);
        let mut all = self.camera.taken();
        all.retain(|taken| !Arc::ptr_eq(taken, &self.taken));
    }
}

impl Parts for Reader {
    async fn next(&mut self) -> Option<Bytes> {
        let sent = &self.camera.counters.sent;
        if let Some(first) = self.first.take() {
            count(sent, 1);
            return Some([format::BEGIN, &first.part].concat().into());
        }
        loop {
            self.newest.changed().await.ok()?;
            if let Some(shot) = &*self.newest.borrow_and_update() {
                self.taken.set(shot.number);
                count(sent, 1);
                return Some(shot.part.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use amber_web::access::TOKEN_BYTES;

    use super::*;

    fn at(listen: &str) -> Access {
        let token = || Ok::<_, ()>(Token::new([1; TOKEN_BYTES]));
        access(listen.parse().unwrap(), token).unwrap()
    }

    #[test]
    fn the_addresses_have_the_token_that_others_need() {
        let shown = |listen: &str, hosts: &[&str]| {
            let hosts: Vec<_> = hosts.iter().map(|host| host.parse().unwrap()).collect();
            introduction(&hosts, &at(listen))
        };
        assert_eq!(
            shown("127.0.0.1:8027", &["127.0.0.1:8027"]),
            "stream:   http://127.0.0.1:8027/stream\n\
             picture:  http://127.0.0.1:8027/snapshot\n\
             page:     http://127.0.0.1:8027/\n"
        );
        let token = Token::new([1; TOKEN_BYTES]);
        let hosts = ["192.168.1.7:8027", "10.0.0.3:8027"];
        let lines = shown("0.0.0.0:8027", &hosts);
        let stream = format!(
            "stream:   http://192.168.1.7:8027/{}/stream\n",
            token.text()
        );
        assert!(lines.starts_with(&stream), "{lines}");
        assert!(lines.ends_with("this machine: 10.0.0.3:8027\n"), "{lines}");
    }

    #[test]
    fn a_reader_is_slow_once_a_picture_was_replaced() {
        let taken = Taken(AtomicU64::new(Taken::NOTHING_YET));
        assert!(!taken.lags_at(1) && !taken.lags_at(100));
        taken.set(5);
        let lags = [5, 6, 7, 8].map(|number| taken.lags_at(number));
        assert_eq!(lags, [false, false, true, true]);
    }

    #[test]
    fn others_need_the_token_and_pages_of_other_sites_are_refused() {
        let token = Token::new([1; TOKEN_BYTES]);
        let path = format!("/{}/stream", token.text());
        let all = at("0.0.0.0:8027");
        let robot = Some("robot:8027");
        assert_eq!(admitted(&all, &path, robot, None), Ok("/stream"));
        for wrong in ["/stream", "/", "/x/stream", "//stream", &path[1..5]] {
            let refused = admitted(&all, wrong, robot, None);
            assert_eq!(refused, Err(Refused::Token), "{wrong}");
        }
        let here = at("127.0.0.1:8027");
        let local = Some("localhost:8027");
        for (host, origin, expected) in [
            (local, None, Ok("/stream")),
            (local, Some("http://127.0.0.1:3000"), Ok("/stream")),
            (local, Some("http://evil.example"), Err(Refused::Origin)),
            (local, Some("null"), Err(Refused::FromDisk)),
            (robot, None, Err(Refused::Host)),
        ] {
            assert_eq!(admitted(&here, "/stream", host, origin), expected);
        }
    }
}
