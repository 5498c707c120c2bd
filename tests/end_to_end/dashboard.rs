//! The dashboard drives the demo's robot, which stops without its page.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

use crate::common::{
    AMBER, Mediator, Running, is_close_answered, is_running, lines_of, signal, wait_for,
};
use crate::driving::robot_of;
use crate::robot::{AT_ONCE_S, Robot, drives, stands};

mod browser;

/// The life of a motion command, with a margin for a busy machine.
const COMMAND_S: f64 = 0.35 + AT_ONCE_S;

/// A target that no frame has shown by then has ended.
const GOAL_SHOWN: Duration = Duration::from_secs(10);

/// The wheels stop 0.5 s after a page is gone. The rest is for starting the programs that look.
const PROMISED_S: f64 = 0.5 + 0.3;

#[test]
fn the_robot_stops_without_its_page_its_commands_and_the_dashboard() {
    let (robot, dashboard) = start();
    let mut page = Page::open(dashboard.address, None);
    page.drive_until_moving(&robot);
    let silent = robot.state();
    let stood = robot.until("it stands", stands);
    let took_s = stood.time_s - silent.time_s;
    assert!(took_s < COMMAND_S, "silent page: {took_s} s");

    page.drive_until_moving(&robot);
    drop(page);
    stands_at_once(&robot, "page gone");
    // A busy machine may delay a command, but a real error is repeatable.
    let mut times_s = Vec::new();
    while times_s.last().is_none_or(|&it| it > PROMISED_S) {
        assert!(times_s.len() < 4, "page gone: {times_s:?} s");
        let mut page = Page::open(dashboard.address, None);
        page.drive_until_moving(&robot);
        let before = robot.state();
        drop(page);
        times_s.push(robot.until("it stands", stands).time_s - before.time_s);
    }

    // A target is reached, and another one is cancelled when its page is gone.
    let mut page = Page::open(dashboard.address, None);
    let pose = page.until("a known pose", |it| {
        it["t"] == "pose" && it["x"].is_number()
    });
    let (x, y) = (pose["x"].as_f64().unwrap(), pose["y"].as_f64().unwrap());
    let has_ended = |it: &Value| match it["t"] == "path" {
        true => Some(it["targets"].as_array().is_some_and(Vec::is_empty)),
        false => None,
    };
    // On a busy machine, the page may seem to be frozen, which ends its goal. A real error is repeatable.
    let go_until = |page: &mut Page, x: f64, is_so: &(dyn Fn() -> bool + Sync)| {
        for id in 1..=4 {
            page.say(&json!({ "t": "goal", "id": id, "x": x, "y": y }));
            let (asked, is_over) = (Instant::now(), Cell::new(false));
            page.until("what a goal does, or its end", |it| {
                is_over.set(has_ended(it).unwrap_or(is_over.get()));
                is_so() || (is_over.get() && asked.elapsed() > GOAL_SHOWN)
            });
            if is_so() {
                return;
            }
        }
        panic!("the robot does not drive to {x} {y}");
    };
    let before = robot.state().travelled_m;
    go_until(&mut page, x - 0.5, &|| {
        robot.state().travelled_m >= before + 0.1
    });
    page.until("the end of the path", |it| has_ended(it) == Some(true));
    go_until(&mut page, x - 1.5, &|| drives(&robot.state()));
    drop(page);
    stands_at_once(&robot, "page of the target gone");

    let mut page = Page::open(dashboard.address, None);
    page.drive_until_moving(&robot);
    signal(dashboard.pid, Signal::SIGKILL);
    stands_at_once(&robot, "dashboard killed");

    // The mediator notices that the port of a killed program is closed.
    let mut dashboard = Running::start(&robot.demo, &["dashboard", "--listen", "127.0.0.1:0"]);
    let mut page = Page::open(address_of(&dashboard.line()), None);
    page.drive_until(&robot, false);
    signal(dashboard.pid(), Signal::SIGKILL);
    stands_at_once(&robot, "dashboard killed without the collision guard");
    assert_eq!(robot.state().contacts, 0);
}

#[test]
fn a_page_makes_a_map_while_the_robot_explores_until_the_page_is_gone() {
    let (robot, dashboard) = start();
    let mut page = Page::open(dashboard.address, None);
    page.until("a driver that makes maps", |it| {
        it["t"] == "mapping" && it["grows"] == false
    });
    let number = Cell::new(0);
    let ask = |page: &mut Page, mut request: Value| {
        number.set(number.get() + 1);
        request["id"] = number.get().into();
        page.say(&request);
        let what = request.to_string();
        let answer = page.until(&what, |it| it["t"] == "answer" && it["id"] == number.get());
        assert!(answer["error"].is_null(), "{what}: {answer}");
        answer
    };
    let call = |method: &str, args: &[&str]| json!({ "t": "call", "device": "mapping:0", "method": method, "args": args });
    let is_growing = |it: &Value| it["t"] == "map" && it["grid"]["png"].is_string();
    ask(&mut page, call("start-map", &[]));
    page.until("the growing map", is_growing);
    let holder = || {
        let motions = robot.demo.describe("roboclaw:0").motions;
        motions.first().and_then(|motion| motion.holder.clone())
    };
    // On a machine that is too busy, the page seems to be frozen, or loses its lease. A real error is
    // repeatable.
    let explore_until = |page: &mut Page, is_so: &(dyn Fn() -> bool + Sync)| {
        let mut problems = Vec::new();
        loop {
            ask(page, json!({ "t": "explore" }));
            match page.read_until("it explores", is_so) {
                Ok(()) => return,
                Err(problem) => problems.push(problem),
            }
            assert!(problems.len() < 4, "{problems:?}");
        }
    };
    explore_until(&mut page, &|| {
        let is_own = |it: &str| it.starts_with("dashboard ") && it.contains(" via mapping:0");
        drives(&robot.state()) && holder().is_some_and(|it| is_own(&it))
    });
    // Another page sees it, and stops it.
    let mut other = Page::open(dashboard.address, None);
    other.until("the growing map", is_growing);
    other.say(&json!({ "t": "stop" }));
    drop(other);
    // The page is told that it no longer explores.
    let stands_without_lease = || stands(&robot.state()) && holder().is_none();
    while (page.read_until("the end of the lease", stands_without_lease)).is_err() {}
    // Until then, there may be too few walls.
    page.until("enough of the flat", |it| {
        it["t"] == "mapping" && it["area_m2"].as_f64() > Some(3.0)
    });
    let saved = ask(&mut page, call("save-map", &["name=page", "upload=true"]));
    let files = saved["value"]["saved_map"]["files"].as_array().unwrap();
    assert_eq!(files.len(), 3, "{saved}");
    explore_until(&mut page, &|| drives(&robot.state()));
    drop(page);
    stands_at_once(&robot, "page gone");
    let mut other = Page::open(dashboard.address, None);
    other.until("the end of the exploration", |it| {
        it["t"] == "mapping" && it["explores"] == false && it["grows"] == true
    });
    ask(&mut other, call("stop-map", &[]));
    other.until("the map of the location driver", |it| {
        it["t"] == "map" && it["walls"].as_array().is_some_and(|it| !it.is_empty())
    });
}

#[test]
fn a_page_shows_the_robot_and_any_device() {
    let (robot, dashboard) = start();
    let mut page = Page::open(dashboard.address, None);
    // They come in any order, and some only once.
    let mut missing = vec!["map", "pose", "path", "scan", "particles"];
    wait_for("all parts of the picture", || {
        let seen = match page.socket.read().unwrap() {
            Message::Binary(bytes) if bytes.starts_with(&1_u32.to_le_bytes()) => "scan".to_owned(),
            Message::Binary(bytes) if bytes.starts_with(&3_u32.to_le_bytes()) => {
                "particles".to_owned()
            }
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                match message["missing"].is_null() {
                    true => message["t"].as_str().unwrap().to_owned(),
                    false => return None,
                }
            }
            _ => return None,
        };
        missing.retain(|kind| *kind != seen);
        missing.is_empty().then_some(())
    });
    let drivers = page.until("rates of the drivers", |it| {
        it["t"] == "drivers" && it["devices"][0]["in_per_s"].is_number()
    });
    assert_eq!(drivers["parts"]["guard"], "collision-avoidance:0");
    // A description, a request that only reads, and one that changes something.
    page.say(&json!({ "t": "describe", "id": 6, "device": "dummy:0" }));
    let answer = page.until("an answer", |it| it["t"] == "answer" && it["id"] == 6);
    assert_eq!(answer["value"]["name"], "dummy");
    page.say(&json!({
        "t": "call", "id": 7, "device": "dummy:0", "method": "message",
        "args": ["message=hello from the page"],
    }));
    let answer = page.until("an answer", |it| it["t"] == "answer" && it["id"] == 7);
    assert!(answer["error"].is_null(), "{answer}");
    page.say(&json!({ "t": "call", "id": 8, "device": "dummy:0", "method": "status", "args": [] }));
    let answer = page.until("the status", |it| it["t"] == "answer" && it["id"] == 8);
    assert!(
        answer["value"].to_string().contains("hello from the page"),
        "{answer}"
    );
    for (method, why) in [("fly", "no request 'fly'"), ("drive", "use the stick")] {
        page.say(&json!({
            "t": "call", "id": 9, "device": "roboclaw:0", "method": method, "args": ["100"],
        }));
        let answer = page.until("a refusal", |it| it["t"] == "answer" && it["id"] == 9);
        assert!(answer["error"].as_str().unwrap().contains(why), "{answer}");
    }
    // The servos turn by 180 degrees at most.
    page.say(&json!({
        "t": "call", "id": 11, "device": "maestro:0", "method": "set-angle", "args": ["3", "4500"],
    }));
    let answer = page.until("a refusal", |it| it["t"] == "answer" && it["id"] == 11);
    assert!(
        answer["error"].as_str().unwrap().contains("4500"),
        "{answer}"
    );
    // Drivers are restarted, and the event shows it.
    assert!(robot.amber(&["restart", "dummy:0"]));
    page.until("its event", |it| {
        it["t"] == "event" && it["device"] == "dummy:0" && it["kind"] == "up"
    });
}

#[test]
fn a_page_is_told_who_has_taken_the_robot_from_its_target() {
    let (robot, dashboard) = start();
    let robot = robot_of(robot);
    let mut page = Page::open(dashboard.address, None);
    page.until("the driver", |it| {
        it["t"] == "drivers" && it["parts"]["targets"].is_string()
    });
    page.say(&json!({ "t": "goal", "id": 1, "x": 5.7, "y": 4.4 }));
    let answer = page.until("an answer", |it| it["t"] == "answer" && it["id"] == 1);
    let order = answer["value"].clone();
    assert!(order.is_u64(), "{answer}");
    page.until("a robot on its way", |it| {
        it["t"] == "path" && it["targets"][0][0] == 5.7 && drives(&robot.state())
    });
    let mut goto = robot.demo.amber(&["goto", "1.4", "1", "--force"]);
    let mut goto = goto.stdout(Stdio::null()).spawn().unwrap();
    let end = page.until("the end", |it| it["t"] == "trip" && it["order"] == order);
    assert_eq!(end["end"], "failed", "{end}");
    assert!(end["why"].as_str().unwrap().contains("amber goto"), "{end}");
    goto.kill().unwrap();
    goto.wait().unwrap();
}

#[test]
fn a_page_is_told_why_the_robot_does_not_move() {
    let (robot, dashboard) = start();
    let mut page = Page::open(dashboard.address, None);
    page.until("a known pose", |it| {
        it["t"] == "pose" && it["x"].is_number()
    });
    let problem = |it: &Value, place: &str| it["problems"][place].as_str().map(str::to_owned);
    page.until("a robot without problems", |it| {
        it["t"] == "drivers"
            && ["wheels", "guard", "targets", "map"]
                .iter()
                .all(|place| problem(it, place).is_none())
    });
    // A place outside the map.
    page.say(&json!({ "t": "goal", "id": 1, "x": 100.0, "y": 50.0 }));
    let answer = page.until("an answer", |it| it["t"] == "answer" && it["id"] == 1);
    let order = &answer["value"];
    assert!(order.is_u64(), "{answer}");
    page.until("a target that is given up", |it| {
        it["t"] == "trip" && &it["order"] == order && it["end"] == "failed"
    });

    assert!(robot.sim(&["fault", "unplug", "roboclaw"]));
    page.until("unplugged wheels", |it| {
        problem(it, "wheels").is_some_and(|it| it.starts_with("roboclaw:0: "))
    });
    let drive = json!({ "t": "drive", "left": 200, "right": 200, "guard": false });
    let refused = wait_for("a refusal", || {
        page.say(&drive);
        Some(page.next()).filter(|it| it["t"] == "refused")
    });
    assert!(
        refused["text"].as_str().unwrap().contains("roboclaw:0"),
        "{refused}"
    );
    page.say(&json!({ "t": "stop" }));
    assert!(robot.sim(&["fault", "replug", "roboclaw"]));
    page.until("wheels that work", |it| {
        it["t"] == "drivers" && problem(it, "wheels").is_none()
    });

    for (device, places) in [
        ("drive-to-point:0", &["targets"][..]),
        ("hokuyo:0", &["guard", "map"]),
        ("roboclaw:0", &["wheels"]),
    ] {
        assert!(robot.amber(&["stop", device]));
        let words = format!("{device} is stopped: start it under Devices");
        page.until("the stopped driver", |it| {
            let mut places = places.iter();
            places.all(|place| problem(it, place).is_some_and(|it| it == words))
        });
    }
    page.say(&json!({ "t": "goal", "id": 5, "x": 1.5, "y": 2.6 }));
    let answer = page.until("a refusal", |it| it["t"] == "answer" && it["id"] == 5);
    assert!(
        answer["error"]
            .as_str()
            .unwrap()
            .contains("drive-to-point:0"),
        "{answer}"
    );
}

#[test]
fn others_need_a_token_and_foreign_pages_are_refused() {
    let mediator = Mediator::start(&["dummy:0=amber driver dummy"]);
    let mut process = Running::start(&mediator, &["dashboard", "--listen", "0.0.0.0:0"]);
    let token = |line: &str| {
        let (url, token) = line.split_once('#').unwrap();
        let port: u16 = url
            .trim_end_matches('/')
            .rsplit(':')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        (SocketAddr::from(([127, 0, 0, 1], port)), token.to_owned())
    };
    let (address, drive) = token(&process.line());
    let (_, look) = token(&process.line());
    assert_eq!(Page::refusal(address, None), "wrong or missing token");
    assert_eq!(
        Page::refusal(address, Some("guess")),
        "wrong or missing token"
    );
    let refused = process.note();
    assert!(
        refused.contains("its token is wrong or missing"),
        "{refused}"
    );
    let mut looking = Page::open(address, Some(&look));
    assert_eq!(looking.hello["role"], "look");
    looking.say(&json!({ "t": "drive", "left": 200, "right": 200, "guard": false }));
    looking.until("a refusal", |it| {
        it["t"] == "refused" && it["text"] == "this page is view-only"
    });
    let mut driving = Page::open(address, Some(&drive));
    assert_eq!(driving.hello["role"], "drive");
    assert!(is_close_answered(&mut driving.socket));

    // Pictures are as private as the rest, and come only from cameras.
    for path in ["/pictures", "/robot"] {
        let stranger = Page::connect_to(address, path, None);
        assert_eq!(Page::refusal_of(stranger), "wrong or missing token");
    }
    let mut socket = Page::connect_to(address, "/pictures", Some(&look));
    let show = json!({ "t": "show", "device": "dummy:0", "period": 100 });
    socket.send(show.to_string().into()).unwrap();
    let refused = wait_for("a refusal", || match socket.read().unwrap() {
        Message::Text(text) => Some(text),
        _ => None,
    });
    assert!(refused.contains("'dummy:0' is not a camera"), "{refused}");
    assert!(is_close_answered(&mut socket));

    // Connections without a token take no places.
    let silent: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(address).unwrap())
        .map(|stream| tungstenite::client(format!("ws://{address}/socket"), stream).unwrap())
        .collect();
    let mut driving = Page::open(address, Some(&drive));
    let told = wait_for("the reason", || {
        Some(process.note()).filter(|it| it.contains("without a token"))
    });
    assert!(told.contains("127.0.0.1"), "{told}");
    drop(silent);
    // The last place is for a page that may drive, and the others are told.
    let mut pages = Vec::new();
    let full = wait_for("the last place", || {
        let mut socket = Page::connect(address, Some(&look));
        match socket.read().unwrap() {
            Message::Close(Some(close)) => Some(close),
            _ => {
                pages.push(socket);
                None
            }
        }
    });
    assert_eq!(u16::from(full.code), 1013);
    assert!(full.reason.contains("too many pages are open"), "{full}");
    assert_eq!(Page::open(address, Some(&drive)).hello["role"], "drive");
    driving.say(&json!({ "t": "stop" }));
    drop(pages);

    let ask = |path: &str, host: &str, lines: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{lines}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let own = address.to_string();
    let page = ask("/", &own, "");
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    assert!(page.contains("content-security-policy: default-src 'self'"));
    assert!(!page.contains(&drive) && !page.contains(&look));
    let foreign = ask("/socket", &own, "Origin: https://evil.example\r\n");
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    assert!(ask("/none", &own, "").starts_with("HTTP/1.1 404 "));
    process.interrupt();
}

#[test]
fn a_panel_tells_why_a_description_is_invalid() {
    // A frame to the mediator with the description "hello".
    let frame = r"\0\0\0\014\020\001\342\013\007\012\005hello";
    // The shell keeps its stdout open while it waits for the end of stdin.
    let driver = format!(r#"211:0=bash -c "printf '{frame}'; cat > /dev/null; true""#);
    let mediator = Mediator::start(&[&driver]);
    mediator.wait_for_line("up driver=211:0");
    let mut process = Running::start(&mediator, &["dashboard", "--listen", "127.0.0.1:0"]);
    let mut page = Page::open(address_of(&process.line()), None);
    // The dashboard may not have found the mediator yet.
    let problem = wait_for("the reason", || {
        page.say(&json!({ "t": "describe", "id": 1, "device": "211:0" }));
        let answer = page.until("an answer", |it| it["t"] == "answer");
        let problem = answer["error"].as_str().unwrap().to_owned();
        (problem != "the mediator is unavailable").then_some(problem)
    });
    assert!(
        problem.starts_with("211:0: invalid description: "),
        "{problem}"
    );
    page.say(&json!({ "t": "call", "id": 2, "device": "211:0", "method": "fly", "args": [] }));
    let answer = page.until("a refusal", |it| it["t"] == "answer" && it["id"] == 2);
    assert_eq!(answer["error"].as_str(), Some(&*problem));
    process.interrupt();
}

#[test]
fn without_a_mediator_the_page_says_so_and_recovers() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mediator = taken.local_addr().unwrap().to_string();
    drop(taken);
    let mut child = Command::new(AMBER)
        .args(["dashboard", "--listen", "127.0.0.1:0", "-m", &mediator])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = lines_of(child.stdout.take().unwrap());
    let url = lines.recv_timeout(Duration::from_secs(30)).unwrap();
    let mut page = Page::open(address_of(&url), None);
    page.until("the reason", |it| {
        it["t"] == "drivers" && it["missing"].is_string()
    });
    let mut command = Command::new(AMBER);
    command.args(["mediator", "--listen", &mediator, "--driver"]);
    command.arg("dummy:0=amber driver dummy");
    let _mediator = Mediator::run(command);
    page.until("the drivers", |it| {
        it["t"] == "drivers" && it["devices"][0]["state"] == "up"
    });
    signal(child.id(), Signal::SIGTERM);
    assert!(child.wait().unwrap().success());
}

/// Waits until the robot stands, which must take no longer than braking.
fn stands_at_once(robot: &Robot, what: &str) {
    let before = robot.state();
    let stood = robot.until("it stands", stands);
    let took_s = stood.time_s - before.time_s;
    assert!(took_s < AT_ONCE_S, "{what}: {took_s} s");
}

/// A dashboard of a demo.
struct Dashboard {
    address: SocketAddr,
    pid: u32,
}

fn start() -> (Robot, Dashboard) {
    let robot = Robot::start();
    let line = robot.demo.wait_for_line("in a browser to see the robot");
    let url = line
        .split_whitespace()
        .find(|word| word.starts_with("http"));
    let address = address_of(url.unwrap());
    let pid = child_of(robot.demo.pid(), "dashboard");
    (robot, Dashboard { address, pid })
}

fn address_of(text: &str) -> SocketAddr {
    text.rsplit("http://").next().unwrap().parse().unwrap()
}

/// The child of a process that runs this command of `amber`.
fn child_of(parent: u32, command: &str) -> u32 {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_wanted = |pid: &u32| {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        let Ok(stat) = read("stat") else {
            return false;
        };
        let parent_pid = stat
            .rsplit(") ")
            .next()
            .and_then(|it| it.split(' ').nth(1)?.parse().ok());
        parent_pid == Some(parent)
            && read("cmdline").is_ok_and(|line| line.split('\0').nth(1) == Some(command))
            && is_running(*pid)
    };
    pids.into_iter().find(is_wanted).unwrap()
}

/// What a browser does, without one.
struct Page {
    socket: WebSocket<TcpStream>,
    hello: Value,
}

impl Page {
    fn connect(address: SocketAddr, token: Option<&str>) -> WebSocket<TcpStream> {
        Self::connect_to(address, "/socket", token)
    }

    fn connect_to(address: SocketAddr, path: &str, token: Option<&str>) -> WebSocket<TcpStream> {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let url = format!("ws://{address}{path}");
        let (mut socket, _) = tungstenite::client(url, stream).unwrap();
        let hello = json!({ "t": "hello", "token": token });
        socket.send(hello.to_string().into()).unwrap();
        socket
    }

    fn open(address: SocketAddr, token: Option<&str>) -> Self {
        let mut page = Self {
            socket: Self::connect(address, token),
            hello: Value::Null,
        };
        page.hello = page.until("hello", |it| it["t"] == "hello");
        page
    }

    /// Why the dashboard closes the connection, up to the colon.
    fn refusal(address: SocketAddr, token: Option<&str>) -> String {
        Self::refusal_of(Self::connect(address, token))
    }

    fn refusal_of(mut socket: WebSocket<TcpStream>) -> String {
        match socket.read().unwrap() {
            Message::Close(Some(close)) => close.reason.split(':').next().unwrap().to_owned(),
            other => panic!("not refused: {other}"),
        }
    }

    fn say(&mut self, message: &Value) {
        self.socket.send(message.to_string().into()).unwrap();
    }

    /// The next message; null if it is binary.
    fn next(&mut self) -> Value {
        match self.socket.read().unwrap() {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            _ => Value::Null,
        }
    }

    /// The next message of which something is true.
    fn until(&mut self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || Some(self.next()).filter(&is_wanted))
    }

    /// Keeps reading, as a browser does, until something is true. An error if the page is told that the
    /// robot does not obey it, or no longer explores.
    fn read_until(&mut self, what: &str, is_true: impl Fn() -> bool + Sync) -> Result<(), Value> {
        let is_refused = AtomicBool::new(false);
        let is_over = || is_true() || is_refused.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_for(what, || is_over().then_some(())));
            let (mut told, mut explored) = (Ok(()), false);
            while !waiting.is_finished() {
                let message = self.next();
                let has_ended = message["t"] == "mapping" && message["explores"] == false;
                explored |= message["t"] == "mapping" && message["explores"] == true;
                let is_refusal = message["t"] == "refused" || message["t"] == "notice";
                if is_refusal || (explored && has_ended) {
                    is_refused.store(true, Ordering::Relaxed);
                    told = Err(message);
                }
            }
            waiting.join().unwrap();
            told
        })
    }

    fn drive_until_moving(&mut self, robot: &Robot) {
        self.drive_until(robot, true);
    }

    /// Sends commands until the wheels turn.
    fn drive_until(&mut self, robot: &Robot, guard: bool) {
        let drive = json!({ "t": "drive", "left": 200, "right": 200, "guard": guard });
        self.until("the collision guard", |it| {
            let devices = it["devices"].as_array();
            let mut devices = devices.into_iter().flatten();
            devices.any(|it| it["device"] == "collision-avoidance:0" && it["state"] == "up")
        });
        wait_for("the robot to drive", || {
            self.say(&drive);
            drives(&robot.state()).then_some(())
        });
    }
}
