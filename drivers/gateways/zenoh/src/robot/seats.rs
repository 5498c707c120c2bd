//! The seat of a robot: its holder, and the waiting operators. PURE.
//!
//! The operator who drives holds the seat ([`Helm`](amber_robot::helm::Helm) tracks
//! this), until a second after the last command. In addition, operators claim the seat for
//! [`SEAT_CLAIM`], and renew the claim. The first claim holds the seat while no operator drives;
//! the others wait in their order of arrival. So a free seat goes to the operator who has waited
//! longest, and claims of ended programs expire.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::health::{SeatHolder, SeatInfo, SeatWaiting};
use crate::limits::{MAX_CLAIMS, SEAT_CLAIM};
use crate::names::Name;
use crate::problem::{Kind, Problem};

/// A request of an operator for a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatRequest {
    /// The robot, if the mediator has several: the id of its devices.
    pub id: Option<i32>,
    pub action: SeatAction,
}

/// An action on a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatAction {
    /// Only report the holder.
    Show,
    /// Claim it: take it if it is free, or wait for it.
    Take,
    /// Release it, and stop waiting.
    Release,
    /// Take it even if another operator drives.
    Force,
    /// Halt everything of the robot that moves.
    Halt,
    /// Release that halt.
    ReleaseHalt,
}

impl SeatRequest {
    /// Reads the parameters of a query.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn parse(action: Option<&str>, id: Option<&str>) -> Result<Self, Problem> {
        let action = match action.unwrap_or_default() {
            "" => SeatAction::Show,
            "take" => SeatAction::Take,
            "release" => SeatAction::Release,
            "force" => SeatAction::Force,
            "halt" => SeatAction::Halt,
            "release-halt" => SeatAction::ReleaseHalt,
            other => {
                let problem = format!("unknown action '{other}'");
                return Err(Problem::new(Kind::BadRequest, problem)
                    .hint("use action=take, release, force, halt or release-halt"));
            }
        };
        let invalid = |_| Problem::new(Kind::BadRequest, "invalid id: use a number, such as id=0");
        let id = id.map(str::parse).transpose().map_err(invalid)?;
        Ok(Self { id, action })
    }
}

/// The seats of all robots of a mediator; most have one.
#[derive(Debug, Default)]
pub struct Seats {
    seats: BTreeMap<i32, Seat>,
    /// Seats whose holder or waiting operators have changed.
    changed: Vec<i32>,
}

#[derive(Debug, Default)]
struct Seat {
    /// The driving operator, and the end time if no further command comes.
    driver: Option<(Name, Duration)>,
    /// In the order of precedence, one of each operator.
    claims: Vec<Claim>,
    /// The holder of the seat, and the start time.
    holder: Option<(Name, Duration)>,
    /// The others with claims.
    waiting: Vec<Name>,
}

#[derive(Debug)]
struct Claim {
    who: Name,
    since: Duration,
    until: Duration,
}

impl Seats {
    /// Claims a seat, or claims it again, for [`SEAT_CLAIM`].
    ///
    /// # Errors
    /// There are too many claims.
    pub fn claim(&mut self, now: Duration, id: i32, who: &Name) -> Result<(), Problem> {
        let claims: usize = self.seats.values().map(|it| it.claims.len()).sum();
        let until = now + SEAT_CLAIM;
        let is_own = |claim: &&mut Claim| claim.who == *who;
        let mut known = self
            .seats
            .get_mut(&id)
            .into_iter()
            .flat_map(|it| &mut it.claims);
        if let Some(claim) = known.find(is_own) {
            claim.until = until;
        } else if claims >= MAX_CLAIMS {
            let problem = format!("more than {MAX_CLAIMS} operators wait for a seat");
            return Err(Problem::new(Kind::Busy, problem));
        } else {
            self.seats.entry(id).or_default().claims.push(Claim {
                who: who.clone(),
                since: now,
                until,
            });
        }
        self.settle(now, id);
        Ok(())
    }

    /// Puts the claim of an operator before all others.
    pub fn prefer(&mut self, now: Duration, id: i32, who: &Name) {
        if let Some(seat) = self.seats.get_mut(&id) {
            // A stable sort: the others keep their order.
            seat.claims.sort_by_key(|it| it.who != *who);
        }
        self.settle(now, id);
    }

    /// Takes the claim of an operator back.
    pub fn withdraw(&mut self, now: Duration, id: i32, who: &Name) {
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.claims.retain(|it| it.who != *who);
        }
        self.settle(now, id);
    }

    /// Sets the driving operator, and the end time if no further command comes.
    pub fn driven(&mut self, now: Duration, id: i32, driver: Option<(Name, Duration)>) {
        if driver.is_some() || self.seats.contains_key(&id) {
            self.seats.entry(id).or_default().driver = driver;
            self.settle(now, id);
        }
    }

    /// Whether an operator may drive.
    ///
    /// # Errors
    /// Another one holds the seat.
    pub fn check(&self, now: Duration, id: i32, who: &Name) -> Result<(), Problem> {
        match self.seats.get(&id).and_then(|seat| seat.held(now)) {
            Some((holder, until)) if holder != who => Err(occupied(holder.as_str(), until - now)),
            _ => Ok(()),
        }
    }

    /// The seats that may have a holder.
    pub fn ids(&self) -> Vec<i32> {
        self.seats.keys().copied().collect()
    }

    /// When a seat changes by itself.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let all = self.seats.values();
        let due = all.flat_map(|seat| {
            let claims = seat.claims.iter().map(|it| it.until);
            claims.chain(seat.driver.iter().map(|(_, until)| *until))
        });
        due.min()
    }

    /// The holder of a seat, and the waiting operators.
    #[must_use]
    pub fn info(&self, now: Duration, id: i32) -> SeatInfo {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let Some(seat) = self.seats.get(&id) else {
            return SeatInfo::free(id);
        };
        let since = seat.holder.as_ref().map_or(now, |(_, since)| *since);
        let holder = seat.held(now).map(|(who, until)| SeatHolder {
            who: who.clone(),
            held_ms: ms(now.saturating_sub(since)),
            free_in_ms: ms(until - now),
            drives: seat.drives(now),
        });
        let waiting = seat.claims.iter().filter(|it| it.until > now);
        let waiting = waiting.filter(|it| holder.as_ref().is_none_or(|held| held.who != it.who));
        SeatInfo {
            id,
            waiting: waiting
                .map(|it| SeatWaiting {
                    who: it.who.clone(),
                    waits_ms: ms(now.saturating_sub(it.since)),
                })
                .collect(),
            holder,
        }
    }

    /// The seats that have changed since the last call.
    pub fn take_changed(&mut self, now: Duration) -> Vec<SeatInfo> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(|id| self.info(now, id)).collect()
    }

    /// Removes expired claims, and records the current holder.
    pub fn settle(&mut self, now: Duration, id: i32) {
        let Some(seat) = self.seats.get_mut(&id) else {
            return;
        };
        seat.claims.retain(|it| it.until > now);
        seat.driver.take_if(|(_, until)| *until <= now);
        let held = seat.held(now).map(|(who, _)| who.clone());
        let is_same = seat.holder.as_ref().map(|(who, _)| who) == held.as_ref();
        let others = seat.claims.iter().map(|it| &it.who);
        let waiting: Vec<_> = others
            .filter(|it| Some(*it) != held.as_ref())
            .cloned()
            .collect();
        if !is_same || seat.waiting != waiting {
            self.changed.push(id);
        }
        if !is_same {
            seat.holder = held.map(|who| (who, now));
        }
        seat.waiting = waiting;
        if seat.holder.is_none() {
            self.seats.remove(&id);
        }
    }
}

impl Seat {
    /// The holder of the seat, and the end time if nothing further comes.
    fn held(&self, now: Duration) -> Option<(&Name, Duration)> {
        let driver = self.driver.iter().map(|(who, until)| (who, *until));
        let claims = self.claims.iter().map(|it| (&it.who, it.until));
        let (holder, until) = driver
            .chain(claims.clone())
            .find(|(_, until)| *until > now)?;
        // The driving operator may also have a claim.
        let own = claims.filter(|(who, _)| *who == holder);
        // A claim counts only while no other one is before it.
        let is_first = self
            .claims
            .iter()
            .find(|it| it.until > now)
            .is_some_and(|it| it.who == *holder);
        let until = own
            .filter(|_| is_first)
            .map(|(_, until)| until)
            .fold(until, Duration::max);
        Some((holder, until))
    }

    fn drives(&self, now: Duration) -> bool {
        self.driver.as_ref().is_some_and(|(_, until)| *until > now)
    }
}

/// The refusal of a command, because this operator drives.
#[must_use]
pub fn occupied(holder: &str, free_in: Duration) -> Problem {
    // Rounded up: after that time it is free.
    let tenths = free_in.as_millis().div_ceil(100);
    let problem = format!(
        "occupied by {holder}, free in {}.{} s",
        tenths / 10,
        tenths % 10
    );
    Problem::new(Kind::Occupied, problem).hint(
        "the seat is free one second after the last command of that operator; request it with \
             `amber-zenoh seat`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Name {
        name.parse().unwrap()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The holder and those who wait.
    fn shown(seats: &Seats, now: u64) -> String {
        let info = seats.info(ms(now), 0);
        let holder = info.holder.map_or("-".to_owned(), |it| it.who.to_string());
        let waiting: Vec<_> = info.waiting.iter().map(|it| it.who.to_string()).collect();
        format!("{holder} {}", waiting.join(","))
    }

    #[test]
    fn the_seat_goes_to_the_one_who_has_waited_longest() {
        let (alice, bob, carol) = (name("alice"), name("bob"), name("carol"));
        let mut seats = Seats::default();
        seats.driven(ms(0), 0, Some((alice.clone(), ms(1_000))));
        seats.claim(ms(100), 0, &bob).unwrap();
        seats.claim(ms(200), 0, &carol).unwrap();
        seats.claim(ms(300), 0, &bob).unwrap();
        assert_eq!(shown(&seats, 300), "alice bob,carol");
        assert_eq!(seats.check(ms(300), 0, &alice), Ok(()));
        let error = seats.check(ms(420), 0, &bob).unwrap_err();
        assert_eq!(error.message, "occupied by alice, free in 0.6 s");
        assert_eq!(seats.next_due(), Some(ms(1_000)));
        seats.settle(ms(1_000), 0);
        assert_eq!(shown(&seats, 1_000), "bob carol");
        let info = seats.info(ms(1_500), 0);
        let holder = info.holder.unwrap();
        assert_eq!((holder.held_ms, holder.free_in_ms), (500, 1_800));
        assert!(!holder.drives);
        assert_eq!(info.waiting[0].waits_ms, 1_300);
        // Alice comes back too late.
        assert!(seats.check(ms(1_500), 0, &alice).is_err());
        seats.withdraw(ms(1_600), 0, &bob);
        assert_eq!(shown(&seats, 1_600), "carol ");
        // Claims expire.
        assert_eq!(
            seats.check(ms(3_199), 0, &alice).unwrap_err().kind,
            Kind::Occupied
        );
        assert_eq!(seats.check(ms(3_200), 0, &alice), Ok(()));
        seats.settle(ms(3_200), 0);
        assert_eq!(shown(&seats, 3_200), "- ");
        assert_eq!((seats.next_due(), seats.ids()), (None, vec![]));
    }

    #[test]
    fn an_operator_who_drives_keeps_the_own_claim() {
        let (alice, bob) = (name("alice"), name("bob"));
        let mut seats = Seats::default();
        seats.claim(ms(0), 0, &alice).unwrap();
        seats.driven(ms(100), 0, Some((alice.clone(), ms(1_100))));
        seats.claim(ms(200), 0, &bob).unwrap();
        let free_in = |seats: &Seats, now| seats.info(ms(now), 0).holder.unwrap().free_in_ms;
        assert_eq!(free_in(&seats, 1_000), 2_000);
        // But not before those who were first.
        seats.prefer(ms(300), 0, &bob);
        assert_eq!(shown(&seats, 300), "alice bob");
        assert_eq!(free_in(&seats, 1_000), 100);
        seats.driven(ms(400), 0, None);
        assert_eq!(shown(&seats, 400), "bob alice");
    }

    #[test]
    fn changes_are_told_once() {
        let alice = name("alice");
        let mut seats = Seats::default();
        let changed = |seats: &mut Seats, now| {
            let changed = seats.take_changed(ms(now));
            changed
                .iter()
                .map(|it| (it.id, it.holder.is_some()))
                .collect::<Vec<_>>()
        };
        for now in [0, 10, 20] {
            seats.claim(ms(now), 3, &alice).unwrap();
            seats.driven(ms(now), 3, Some((alice.clone(), ms(now + 1_000))));
        }
        assert_eq!(changed(&mut seats, 20), [(3, true)]);
        assert_eq!(changed(&mut seats, 20), []);
        seats.withdraw(ms(30), 3, &alice);
        seats.driven(ms(30), 3, None);
        assert_eq!(changed(&mut seats, 30), [(3, false)]);
        // Nobody has driven the other one.
        seats.driven(ms(30), 4, None);
        assert_eq!(seats.ids(), [0; 0]);
    }

    #[test]
    fn claims_are_bounded() {
        let mut seats = Seats::default();
        for id in 0..MAX_CLAIMS as i32 {
            seats.claim(ms(0), id, &name("alice")).unwrap();
        }
        let error = seats.claim(ms(0), -1, &name("alice")).unwrap_err();
        assert_eq!(error.kind, Kind::Busy);
        assert_eq!(seats.claim(ms(0), 0, &name("alice")), Ok(()));
    }

    #[test]
    fn parameters_are_read() {
        let parse = SeatRequest::parse;
        let request = |id, action| Ok(SeatRequest { id, action });
        assert_eq!(parse(None, None), request(None, SeatAction::Show));
        assert_eq!(
            parse(Some("take"), Some("1")),
            request(Some(1), SeatAction::Take)
        );
        assert_eq!(
            parse(Some("release"), None),
            request(None, SeatAction::Release)
        );
        assert_eq!(parse(Some("force"), None), request(None, SeatAction::Force));
        for (action, id) in [("steal", None), ("take", Some("x"))] {
            assert_eq!(parse(Some(action), id).unwrap_err().kind, Kind::BadRequest);
        }
    }
}
