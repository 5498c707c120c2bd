use std::collections::VecDeque;

use super::*;

const FRAME: usize = 80;
const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);
/// More than ever fits.
const MANY: usize = 1 << 20;

/// The time for frame number n.
type Each = fn(u64) -> Duration;

/// A mediator with a client that floods one driver, optionally a second client that always has
/// one request open and goes first, and the driver. Time moves from event to event.
struct World {
    start: Instant,
    now: Duration,
    gate: Gate,
    driver: Driver,
    /// The time that each side needs to notice the other.
    wake: Duration,
    /// The flood continues.
    floods: bool,
    pipe: VecDeque<Frame>,
    /// Frames that the driver has read ahead.
    buffer: VecDeque<Frame>,
    work: Option<(Frame, Duration)>,
    /// When the driver notices that there is something to read.
    wakes: Option<Duration>,
    /// When the mediator reads what the driver wrote.
    said: Option<Duration>,
    look: Option<Duration>,
    publishes: Option<Duration>,
    /// When the second client sent the request that is not written yet.
    asks: Option<Duration>,
    answers: Vec<Duration>,
    written: u64,
    done: u64,
    /// The largest number of frames in the pipe.
    most: usize,
}

/// How a driver behaves.
struct Driver {
    each: Each,
    /// Whether it answers frame number n.
    answers: fn(u64) -> bool,
    /// It reads everything at once instead of one frame.
    reads_ahead: bool,
    /// The interval at which it publishes.
    publishes: Option<Duration>,
}

#[derive(Clone, Copy)]
struct Frame {
    number: u64,
    bytes: usize,
    /// When the second client sent it, if it is from that client.
    asked: Option<Duration>,
}

fn answering(each: Each) -> Driver {
    Driver {
        each,
        answers: |_| true,
        reads_ahead: false,
        publishes: None,
    }
}

fn silent(each: Each) -> Driver {
    Driver {
        answers: |_| false,
        ..answering(each)
    }
}

impl World {
    fn new(driver: Driver) -> Self {
        Self {
            start: Instant::now(),
            now: Duration::ZERO,
            gate: Gate::default(),
            publishes: driver.publishes,
            driver,
            wake: 20 * US,
            floods: true,
            pipe: VecDeque::new(),
            buffer: VecDeque::new(),
            work: None,
            wakes: None,
            said: None,
            look: None,
            asks: None,
            answers: Vec::new(),
            written: 0,
            done: 0,
            most: 0,
        }
    }

    fn with_a_bystander(mut self) -> Self {
        self.asks = Some(Duration::ZERO);
        self
    }

    /// Runs for `time`. Returns the number of frames that the driver finished.
    fn run(&mut self, time: Duration) -> u64 {
        let end = self.now + time;
        let done = self.done;
        (self.most, self.answers) = (0, Vec::new());
        self.fill();
        loop {
            let work = self.work.map(|(_, end)| end);
            let all = [work, self.wakes, self.said, self.look, self.publishes];
            let Some(next) = all.into_iter().flatten().min().filter(|next| *next < end) else {
                break;
            };
            self.now = next.max(self.now);
            let due = |at: &mut Option<Duration>| at.take_if(|at| *at <= next).is_some();
            if due(&mut self.wakes) {
                self.begin();
            }
            if work.is_some_and(|end| end <= next) {
                self.finish();
            }
            if due(&mut self.publishes) {
                self.publishes = self.driver.publishes.map(|every| self.now + every);
                self.say();
            }
            if due(&mut self.said) {
                self.gate.said();
                self.fill();
            }
            if due(&mut self.look) {
                self.fill();
            }
        }
        self.now = end;
        self.done - done
    }

    fn say(&mut self) {
        self.said.get_or_insert(self.now + self.wake);
    }

    fn begin(&mut self) {
        if self.work.is_some() {
            return;
        }
        if self.buffer.is_empty() {
            let count = match self.driver.reads_ahead {
                // The usual size of a buffer.
                true => self.pipe.len().min(8192 / FRAME),
                false => self.pipe.len().min(1),
            };
            self.buffer.extend(self.pipe.drain(..count));
        }
        if let Some(frame) = self.buffer.pop_front() {
            self.work = Some((frame, self.now + (self.driver.each)(frame.number)));
        }
    }

    fn finish(&mut self) {
        let Some((frame, _)) = self.work.take() else {
            return;
        };
        self.done += 1;
        if (self.driver.answers)(frame.number) || frame.asked.is_some() {
            self.say();
        }
        if let Some(asked) = frame.asked {
            self.answers.push(self.now - asked);
            self.asks = Some(self.now + 3 * self.wake);
        }
        self.begin();
    }

    fn unread(&self) -> usize {
        self.pipe.iter().map(|frame| frame.bytes).sum()
    }

    fn fill(&mut self) {
        while self.floods || self.asks.is_some() {
            let (now, unread) = (self.start + self.now, self.unread());
            let room = self.gate.room(MANY, || now, || unread);
            if room == 0 {
                break;
            }
            let mut bytes = 0;
            while bytes < room && (self.floods || self.asks.is_some()) {
                let asked = self.asks.take_if(|asks| *asks <= self.now);
                if asked.is_none() && !self.floods {
                    break;
                }
                self.pipe.push_back(Frame {
                    number: self.written,
                    bytes: FRAME,
                    asked,
                });
                self.written += 1;
                bytes += FRAME;
            }
            if bytes == 0 {
                break;
            }
            self.gate.wrote(bytes);
            if self.work.is_none() {
                self.wakes.get_or_insert(self.now + self.wake);
            }
        }
        self.most = self.most.max(self.unread() / FRAME);
        // Timers have milliseconds.
        self.look = self.gate.look_at().map(|at| {
            let at = at.duration_since(self.start).max(self.now + US);
            MS * u32::try_from(at.as_micros().div_ceil(1000)).unwrap()
        });
    }

    /// The given percentile of the second client's waiting times.
    fn waits(&mut self, percent: usize) -> Duration {
        self.answers.sort();
        assert!(self.answers.len() >= 100, "{} answers", self.answers.len());
        self.answers[self.answers.len() * percent / 100]
    }
}

/// The 99th percentile of a bystander's waiting time beside the flood, in multiples of the time
/// per frame; and the percentage of frames that the driver handled, of those that it could.
fn beside_a_flood(driver: Driver, each: Duration) -> (f64, f64) {
    let mut world = World::new(driver).with_a_bystander();
    world.run(400 * each);
    let done = world.run(2000 * each);
    (
        world.waits(99).as_secs_f64() / each.as_secs_f64(),
        done as f64 / 20.0,
    )
}

#[test]
fn beside_a_flood_a_newcomer_waits_for_two_frames() {
    let list: [(Duration, Each); 5] = [
        (200 * US, |_| 200 * US),
        (300 * US, |_| 300 * US),
        (MS, |_| MS),
        (10 * MS, |_| 10 * MS),
        (300 * MS, |_| 300 * MS),
    ];
    for (time, each) in list {
        for reads_ahead in [false, true] {
            let driver = Driver {
                reads_ahead,
                ..answering(each)
            };
            let (p99, percent) = beside_a_flood(driver, time);
            assert!(p99 <= 5.0, "{time:?}, {reads_ahead}: {p99}");
            assert!(reads_ahead || p99 <= 3.1, "{time:?}: {p99}");
            assert!(percent > 99.0, "{time:?}, {reads_ahead}: {percent} %");
        }
    }
}

#[test]
fn a_driver_of_unknown_speed_gets_little_ahead() {
    // For drivers that answer or not, and read ahead or not.
    for (answers, reads_ahead) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut world = World::new(Driver {
            reads_ahead,
            ..if answers {
                answering(|_| 10 * MS)
            } else {
                silent(|_| 10 * MS)
            }
        });
        let mut most = 0;
        for _ in 0..1000 {
            world.run(MS);
            most = most.max(world.pipe.len() + world.buffer.len());
        }
        // Each frame delays the news of the client's death by 10 ms.
        assert!(most <= 12, "{answers}, {reads_ahead}: {most} frames");
    }
}

#[test]
fn each_publication_allows_one_more_frame() {
    let list: [(Duration, Each); 3] = [
        (200 * US, |_| 200 * US),
        (300 * US, |_| 300 * US),
        (MS, |_| MS),
    ];
    for (time, each) in list {
        for every in [7 * MS, 50 * MS] {
            let driver = Driver {
                publishes: Some(every),
                ..answering(each)
            };
            let (p99, percent) = beside_a_flood(driver, time);
            assert!(p99 <= 4.1, "{time:?}, {every:?}: {p99}");
            assert!(percent > 99.0, "{time:?}, {every:?}: {percent} %");
        }
    }
}

#[test]
fn a_driver_that_mostly_publishes_gets_little_ahead() {
    for (time, every) in [(10 * MS, 7 * MS), (10 * MS, MS), (300 * MS, 50 * MS)] {
        let mut driver = answering(|_| 10 * MS);
        if time == 300 * MS {
            driver = answering(|_| 300 * MS);
        }
        driver.publishes = Some(every);
        let (p99, percent) = beside_a_flood(driver, time);
        assert!(p99 <= 4.2, "{time:?}, {every:?}: {p99}");
        assert!(percent > 95.0, "{time:?}, {every:?}: {percent} %");
    }
}

#[test]
fn answer_times_may_vary() {
    // 0.5 to 1.5 ms; or 0.1 ms or 1 ms.
    let list: [Each; 2] = [
        |n| 500 * US + US * u32::try_from(n * 377 % 1000).unwrap(),
        |n| if n * 377 % 10 < 5 { 100 * US } else { MS },
    ];
    for (each, least) in list.into_iter().zip([99.0, 99.0]) {
        let mut world = World::new(answering(each));
        world.run(1000 * MS);
        let start = world.written;
        let done = world.run(2000 * MS);
        let all: Duration = (start..start + done).map(each).sum();
        let percent = 100.0 * all.as_secs_f64() / 2.0;
        assert!(percent > least, "{percent} %");
        assert!(world.most <= 3, "{} frames", world.most);
    }
}

#[test]
fn a_silent_driver_is_hardly_slowed_down() {
    let list: [(Duration, Each); 9] = [
        (20 * US, |_| 20 * US),
        (100 * US, |_| 100 * US),
        (300 * US, |_| 300 * US),
        (600 * US, |_| 600 * US),
        (MS, |_| MS),
        (1700 * US, |_| 1700 * US),
        (10 * MS, |_| 10 * MS),
        (40 * MS, |_| 40 * MS),
        (300 * MS, |_| 300 * MS),
    ];
    for (time, each) in list {
        // Publishing nothing, at 20 Hz and at 140 Hz.
        for (publishes, least) in [(None, 90.0), (Some(50 * MS), 78.0), (Some(7 * MS), 80.0)] {
            let mut world = World::new(Driver {
                publishes,
                ..silent(each)
            });
            world.run(200 * time + 200 * MS);
            let span = 500 * time + 200 * MS;
            let done = world.run(span);
            let percent = 100.0 * done as f64 * time.as_secs_f64() / span.as_secs_f64();
            assert!(percent > least, "{time:?}, {publishes:?}: {percent} %");
            let ahead = world.most as u32 * time;
            assert!(ahead <= 4 * AHEAD_SILENT.max(time), "{time:?}: {ahead:?}");
        }
    }
}

#[test]
fn a_silent_driver_that_publishes_often_gets_a_frame_per_publication() {
    for each in [|_| 20 * US, |_| 100 * US, |_| 300 * US, |_| 600 * US] as [Each; 4] {
        let mut world = World::new(Driver {
            publishes: Some(MS),
            ..silent(each)
        });
        world.run(1000 * MS);
        let done = world.run(1000 * MS);
        assert!(done >= 999, "{done} frames of {:?}", each(0));
    }
}

#[test]
fn a_driver_that_answers_only_some_requests_is_hardly_slowed_down() {
    let list: [fn(u64) -> bool; 3] = [|n| n * 377 % 10 < 9, |n| n % 2 == 0, |n| n % 20 == 0];
    for (i, answers) in list.into_iter().enumerate() {
        let mut world = World::new(Driver {
            answers,
            ..answering(|_| MS)
        });
        world.run(1000 * MS);
        let done = world.run(4000 * MS);
        assert!(done > 2800, "{i}: {done} of 4000");
    }
}

#[test]
fn a_change_between_silent_and_answering_is_noticed() {
    let mut world = World::new(answering(|_| MS));
    world.run(1000 * MS);
    world.driver.answers = |_| false;
    let done = world.run(20 * MS);
    assert!(done >= 15, "{done} of 20");
    world.driver.answers = |_| true;
    world.run(200 * MS);
    world.run(100 * MS);
    // Three frames are an attempt to find out whether it is fast.
    assert!(world.most <= 3, "{} frames", world.most);
}

#[test]
fn a_driver_that_pauses_recovers() {
    // A pause of 0.1 s costs a hundredth of the time.
    let each: Each = |n| if n % 10_000 == 9_999 { 100 * MS } else { MS };
    let (p99, percent) = beside_a_flood(answering(each), MS);
    assert!(p99 <= 3.1, "{p99}");
    assert!(percent > 99.0, "{percent} %");
}

#[test]
fn a_fast_driver_never_waits_and_gets_little_ahead() {
    for each in [|_| 2 * US, |_| 10 * US, |_| 50 * US] as [Each; 3] {
        let mut world = World::new(answering(each));
        world.run(20 * MS);
        let done = world.run(20 * MS);
        let all = (20 * MS).as_micros() / each(0).as_micros();
        assert!(u128::from(done) >= all * 99 / 100, "{done} of {all}");
        let ahead = world.most as u32 * each(0);
        assert!(ahead <= 3 * AHEAD, "{:?}: {ahead:?}", each(0));
    }
}

#[test]
fn the_allowance_follows_the_speed_of_the_driver() {
    for slow in [|_| MS, |_| 5 * MS, |_| 100 * MS] as [Each; 3] {
        for publishes in [None, Some(50 * MS)] {
            let mut world = World::new(Driver {
                publishes,
                ..answering(|_| 2 * US)
            });
            world.run(20 * MS);
            world.driver.each = slow;
            world.run(2000 * slow(0));
            let mut attempts = 0;
            for _ in 0..100 {
                world.run(10 * slow(0));
                attempts += u32::from(world.most > 2);
            }
            assert!(attempts <= 3, "{:?}: {attempts} in 1000 frames", slow(0));
            world.driver.each = |_| 2 * US;
            world.run(1000 * MS);
            let done = world.run(20 * MS);
            assert!(done > 9_900, "{:?}: {done} of 10000", slow(0));
        }
    }
}

#[test]
fn a_fast_driver_is_recognized_on_a_busy_machine() {
    let mut world = World::new(answering(|_| 2 * US));
    world.driver.each = |_| MS;
    world.run(1000 * MS);
    world.driver.each = |_| 2 * US;
    // Each side needs half a millisecond to notice the other.
    world.wake = MS / 2;
    world.run(1000 * MS);
    let done = world.run(1000 * MS);
    assert!(done > 10_000, "{done}, and one by one it would be 1000");
}

#[test]
fn a_check_during_a_slow_frame_does_not_make_the_driver_fast() {
    for driver in [answering(|_| MS), silent(|_| MS)] {
        let mut world = World::new(driver);
        for _ in 0..1000 {
            world.run(MS - 20 * US);
            world.run(20 * US);
        }
        let mut most = 0;
        for _ in 0..1000 {
            world.run(MS - 20 * US);
            most = most.max(world.most);
            world.run(20 * US);
            most = most.max(world.most);
        }
        assert!(most <= 5, "{most} frames");
    }
}

#[test]
fn a_pipe_with_room_is_not_checked() {
    let mut gate = Gate::default();
    let never = || unreachable!("there is room");
    let no_clock = || unreachable!("there is room");
    // Only the very first check is always made.
    assert!(gate.room(1, Instant::now, || 0) > 0);
    assert!(gate.room(1, no_clock, never) > 0);
    gate.wrote(AHEAD_BYTES_FIRST - 1);
    gate.said();
    assert_eq!(gate.room(1, no_clock, never), 1);
    assert_eq!(gate.look_at(), None);
    gate.wrote(1);
    assert_eq!(gate.room(1, Instant::now, || 100), AHEAD_BYTES_FIRST - 100);
    assert_eq!(gate.look_at(), None);
}

#[test]
fn a_check_comes_before_a_write_that_does_not_fit() {
    let mut gate = Gate::default();
    let never = || unreachable!("there is room");
    let no_clock = || unreachable!("there is room");
    let start = Instant::now();
    assert_eq!(gate.room(100, || start, || 0), AHEAD_BYTES_FIRST);
    gate.wrote(100);
    gate.said();
    assert!(!gate.is_about_to_close());
    assert_eq!(gate.room(100, no_clock, never), AHEAD_BYTES_FIRST - 100);
    gate.wrote(100);
    gate.said();
    // The third write does not fit, unless the driver has read something.
    assert!(gate.is_about_to_close());
    assert_eq!(gate.room(50, no_clock, never), AHEAD_BYTES_FIRST - 200);
    let room = gate.room(100, || start + 100 * US, || 0);
    assert!(room >= AHEAD_BYTES_FIRST && !gate.is_about_to_close());
    // Nothing is known to be unread, so a check would tell nothing.
    assert_eq!(gate.room(MANY, no_clock, never), room);
}

#[test]
fn sequential_requests_cause_few_checks() {
    // The number of checks in a hundred requests, each sent after the previous answer.
    let looks = |bytes, apart: Duration| {
        let start = Instant::now();
        let (mut gate, mut looks) = (Gate::default(), 0);
        for number in 0..200 {
            let look = || {
                looks += u32::from(number >= 100);
                0
            };
            let room = gate.room(bytes, || start + apart * number, look);
            assert!(room > 0);
            gate.wrote(bytes);
            gate.said();
        }
        looks
    };
    for (bytes, most) in [(FRAME, 10), (1024, 10), (6800, 10), (AHEAD_BYTES, 10)] {
        let count = looks(bytes, 20 * US);
        assert!(count <= most, "{count} looks, {bytes} bytes each");
    }
    // What a driver takes in 0.1 s tells little.
    assert!(looks(6800, 100 * MS) >= 50);
}

#[test]
fn a_driver_that_takes_everything_catches_up_before_its_answers_are_read() {
    let (start, mut gate) = (Instant::now(), Gate::default());
    let mut now = start;
    let write = |gate: &mut Gate, now: Instant, unread: usize| {
        let frames = gate.room(MANY, || now, || unread).div_ceil(FRAME);
        gate.wrote(frames * FRAME);
        frames
    };
    for _ in 0..10 {
        write(&mut gate, now, 0);
        gate.said();
        now += 10 * US;
    }
    // Other programs use the cores for a while.
    let ahead = write(&mut gate, now, 0) * FRAME;
    for taken in [0, FRAME, 2 * FRAME] {
        now += 2 * AHEAD_LOOK;
        gate.room(MANY, || now, || ahead - taken);
    }
    assert!(gate.allowed <= FRAME);
    // The driver runs at each write, while the mediator is busy with requests.
    let mut frames = 0;
    for _ in 0..100 {
        now += 10 * US;
        frames += write(&mut gate, now, 0);
    }
    assert!(frames > 1000, "{frames} in 100 looks");
}

#[test]
fn a_driver_that_never_reads_gets_no_more_and_is_checked_seldom() {
    let mut world = World::new(silent(|_| 1_000_000 * MS));
    world.run(1000 * MS);
    let before = world.unread();
    world.run(1000 * MS);
    assert_eq!(world.unread(), before);
    assert!(before <= AHEAD_BYTES_FIRST + FRAME);
    assert_eq!(world.gate.pause, AHEAD_LOOK_MAX);
}

#[test]
fn a_newcomer_without_competition_does_not_wait() {
    // The previous frame is not answered yet; then it is.
    let mut world = World::new(answering(|_| MS));
    world.run(1000 * MS);
    world.floods = false;
    world.run(10_000 * MS);
    let now = world.start + world.now;
    assert!(world.gate.room(MANY, || now, || 0) > 0);
}

#[test]
fn a_pipe_that_the_first_write_fills_is_checked_again() {
    let mut gate = Gate::default();
    let now = Instant::now();
    let room = gate.room(MANY, || now, || 0);
    gate.wrote(room);
    assert!(gate.look_at().is_some(), "nothing else reports it");
}

#[test]
fn a_driver_that_had_a_whole_pipe_ahead_and_becomes_slow_is_noticed() {
    let (mut gate, mut now) = (Gate::default(), Instant::now());
    for _ in 0..100 {
        gate.room(MANY, || now, || 0);
        gate.wrote(AHEAD_BYTES);
        gate.said();
        now += 100 * US;
    }
    assert_eq!(gate.allowed, AHEAD_BYTES);
    // At the next check its pipe is full, and at the one after that it has taken one frame.
    now += AHEAD_LOOK;
    assert_eq!(gate.room(MANY, || now, || AHEAD_BYTES), 0);
    now += 2 * AHEAD_LOOK;
    assert_eq!(gate.room(MANY, || now, || AHEAD_BYTES - 6800), 0);
    assert!(gate.allowed < 6800, "{}", gate.allowed);
}
