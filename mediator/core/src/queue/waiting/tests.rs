//! Turns, shares and bounds of the waiting frames.

use super::group::JOINERS;
use super::*;

/// The clients of the next turns, until no frame waits.
fn turns(waiting: &mut Waiting, count: usize) -> Vec<i32> {
    let next = || Some(waiting.next()?.1.0);
    std::iter::from_fn(next).take(count).collect()
}

fn push(waiting: &mut Waiting, client: i32) {
    push_from(waiting, client, client);
}

/// A frame of a client of a host.
fn push_from(waiting: &mut Waiting, host: i32, client: i32) {
    let source = Source::Alone(ClientId(host));
    waiting.push_back(source, ClientId(client), vec![0]);
}

#[test]
fn hosts_take_turns_before_their_clients_do() {
    let mut waiting = Waiting::default();
    for client in 10..1010 {
        push_from(&mut waiting, 1, client);
    }
    // One client of another host, and two of a third.
    for _ in 0..3 {
        push_from(&mut waiting, 2, 2);
    }
    push_from(&mut waiting, 3, 3);
    push_from(&mut waiting, 3, 4);
    let order = turns(&mut waiting, 9);
    assert_eq!(order, [10, 2, 3, 11, 2, 4, 12, 2, 13]);
}

#[test]
fn too_many_frames_cost_the_host_with_most_frames() {
    let mut waiting = Waiting::default();
    for client in 10..1010 {
        push_from(&mut waiting, 1, client);
    }
    for _ in 0..5 {
        push_from(&mut waiting, 2, 2);
    }
    // Each client of the large host has one frame; the newest loses its frame.
    for _ in 0..995 {
        assert!(waiting.drop_oldest(Most::Frames));
    }
    assert_eq!(turns(&mut waiting, 9), [10, 2, 11, 2, 12, 2, 13, 2, 14]);
    assert_eq!(turns(&mut waiting, 9), [2]);
}

/// A simple model of the waiting frames: a list.
type Model = Vec<(i32, i32, u8)>;

proptest::proptest! {
    /// For any schedule, no frame is lost or doubled, counts are right, and a host that always
    /// has a waiting frame gets its share of the turns.
    #[test]
    fn hosts_get_equal_shares(steps in proptest::collection::vec((0u8..10, 1i32..4, 0i32..3, 0u8..3), 1..300)) {
        let (mut waiting, mut model) = (Waiting::default(), Model::new());
        let mut since_turn = [0usize; 4];
        for (what, host, port, header) in steps {
            let client = 10 * host + port;
            match what {
                0..4 => {
                    let source = Source::Alone(ClientId(host));
                    waiting.push_back(source, ClientId(client), vec![header, 1]);
                    model.push((host, client, header));
                }
                4..7 => {
                    let next = waiting.next();
                    proptest::prop_assert_eq!(next.is_some(), !model.is_empty());
                    if let Some((Source::Alone(from), id, frame)) = next {
                        let oldest = model.iter().position(|(_, client, _)| *client == id.0);
                        let (host, _, header) = model.remove(oldest.unwrap());
                        proptest::prop_assert_eq!((from.0, frame[0]), (host, header));
                        for other in 1..4 {
                            let waits = model.iter().any(|(of, ..)| *of == other) && other != host;
                            let turns = &mut since_turn[other as usize];
                            *turns = if waits { *turns + 1 } else { 0 };
                            // Two others had a turn, and one that joined the round late.
                            proptest::prop_assert!(*turns <= 4, "host {other} waits for {turns} turns");
                        }
                    }
                }
                7 => {
                    let dropped = waiting.drop_oldest(Most::Frames);
                    proptest::prop_assert_eq!(dropped, !model.is_empty());
                    let many = |host: i32| model.iter().filter(|(of, ..)| *of == host).count();
                    let most = (1..4).map(many).max().unwrap();
                    let left: Vec<_> = (1..4).map(|host| waiting.hosts.get(&Source::Alone(ClientId(host))).map_or(0, Holds::frames)).collect();
                    let from = (1..4).find(|host| many(*host) > left[*host as usize - 1]);
                    if let Some(host) = from {
                        proptest::prop_assert_eq!(many(host), most);
                        let clients = (0..3).map(|port| 10 * host + port);
                        let lost = clients.clone().find(|client| {
                            let source = Source::Alone(ClientId(host));
                            let line = waiting.hosts.get(&source).and_then(|clients| clients.get(&ClientId(*client)));
                            line.map_or(0, Holds::frames) < model.iter().filter(|(_, of, _)| of == client).count()
                        });
                        let oldest = model.iter().position(|(_, client, _)| Some(*client) == lost);
                        model.remove(oldest.unwrap());
                    }
                }
                8 => {
                    let before = model.len();
                    model.retain(|(_, of, _)| *of != client);
                    proptest::prop_assert_eq!(waiting.forget(ClientId(client)), (before - model.len()) as u64);
                }
                _ => {
                    let before = model.len();
                    model.retain(|(_, of, with)| (*of, *with) != (client, header));
                    let forgotten = waiting.forget_headed(ClientId(client), &[header]);
                    proptest::prop_assert_eq!(forgotten, (before - model.len()) as u64);
                }
            }
            for host in 1..4 {
                if !model.iter().any(|(of, ..)| *of == host) {
                    // It lost its place.
                    since_turn[host as usize] = 0;
                }
            }
            proptest::prop_assert_eq!(waiting.frames(), model.len());
            proptest::prop_assert_eq!(waiting.bytes(), 2 * model.len());
            waiting.hosts.check();
        }
    }
}

#[test]
fn an_occasional_request_does_not_wait_behind_a_flood() {
    let mut waiting = Waiting::default();
    for _ in 0..100 {
        push(&mut waiting, 1);
    }
    assert_eq!(turns(&mut waiting, 2), [1, 1]);
    push(&mut waiting, 2);
    assert_eq!(
        turns(&mut waiting, 1),
        [2],
        "it has had no turn in this round"
    );
    push(&mut waiting, 2);
    assert_eq!(turns(&mut waiting, 3), [1, 2, 1], "now it had");
}

#[test]
fn floods_and_single_requests_get_equal_shares() {
    let mut waiting = Waiting::default();
    for _ in 0..1000 {
        push(&mut waiting, 1);
    }
    for client in 2..=4 {
        push(&mut waiting, client);
    }
    let mut counts = [0; 5];
    for _ in 0..400 {
        let client = turns(&mut waiting, 1)[0];
        counts[client as usize] += 1;
        if client != 1 {
            push(&mut waiting, client);
        }
    }
    assert!(
        counts[1..].iter().all(|count| (99..=101).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn a_stream_of_newcomers_does_not_delay_others() {
    let mut waiting = Waiting::default();
    for _ in 0..100 {
        push(&mut waiting, 1);
    }
    let mut newcomers = 2..;
    let mut last = 0;
    for turn in 0..1000 {
        // Two newcomers come for each that is served.
        for client in newcomers.by_ref().take(2) {
            push(&mut waiting, client);
        }
        if turns(&mut waiting, 1) == [1] {
            last = turn;
        }
        assert!(
            turn - last <= 2 * JOINERS.max(waiting.frames()),
            "turn {turn}"
        );
    }
    assert!(last > 0);
}
