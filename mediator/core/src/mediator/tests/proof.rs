//! The mediator's answers cannot be used to flood a third party: an unverified address gets no
//! more bytes than it has sent.

use super::*;

fn ask_for_drivers() -> Vec<u8> {
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(1)));
    let list = request::What::ListDrivers(mediator::ListDrivers::default());
    message.request = Some(Request { what: Some(list) });
    message.encode_to_vec()
}

#[test]
fn a_remote_request_waits_until_its_address_is_proved() {
    let mut world = World::new(&["5:0=x"]);
    world.send(remote(), Device::MEDIATOR, &ask_for_drivers());
    let datagrams = world.take(remote());
    assert_eq!(datagrams.len(), 1);
    let ping = decode(&datagrams[0]);
    assert_eq!(ping.kind(), Some(MsgType::Ping));
    let asked = frame(Some(Device::MEDIATOR), &ask_for_drivers());
    assert!(datagrams[0].len() <= asked.len());

    // A wrong number proves nothing.
    let mut wrong = ping.clone();
    wrong.set_syn(Some(SynNum(ping.syn().unwrap().0 ^ 1)));
    world.send(remote(), Device::MEDIATOR, &pong(&wrong));
    world.send(remote(), Device::MEDIATOR, &plain(MsgType::Pong));
    assert!(world.take(remote()).is_empty());

    world.send(remote(), Device::MEDIATOR, &pong(&ping));
    let answer = decode(&world.take(remote())[0]);
    assert!(matches!(
        answer.reply,
        Some(Reply {
            what: Some(reply::What::Drivers(_))
        })
    ));
    // From now on it is answered at once.
    world.send(remote(), Device::MEDIATOR, &ask_for_drivers());
    assert!(decode(&world.take(remote())[0]).reply.is_some());
}

#[test]
fn a_waiting_request_is_not_carried_out_for_the_next_client_at_that_address() {
    let mut world = World::new(&["5:0=x"]);
    world.send(remote(), Device::MEDIATOR, &ask_for_drivers());
    let ping = decode(&world.take(remote())[0]);
    world.send(remote(), Device::MEDIATOR, &plain(MsgType::ClientDied));
    let unproved = world.core.router.counters.dropped(DropReason::Unproved);
    assert_eq!(unproved, 1, "it is counted");

    // An old client, which never contacts the mediator; the PONG comes too late.
    world.send(remote(), dummy(), b"x");
    world.send(remote(), Device::MEDIATOR, &pong(&ping));
    assert!(world.take(remote()).is_empty());
}

#[test]
fn the_proof_of_one_address_does_not_count_for_another() {
    let mut world = World::new(&[]);
    let other: SocketAddr = ([192, 168, 1, 7], 4001).into();
    for from in [remote(), other] {
        world.send(from, Device::MEDIATOR, &ask_for_drivers());
    }
    let ping = decode(&world.take(remote())[0]);
    world.take(other);
    world.send(other, Device::MEDIATOR, &pong(&ping));
    assert!(world.take(other).is_empty());
}

#[test]
fn changes_need_a_proved_address() {
    let mut world = World::new(&["5:0=x"]);
    world.core.admin = Admin::Anyone;
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(1)));
    let stop = request::What::ChangeDriver(mediator::ChangeDriver {
        device: control::wire_device(dummy()),
        action: mediator::change_driver::Action::Stop.into(),
    });
    message.request = Some(Request { what: Some(stop) });
    world.send(remote(), Device::MEDIATOR, &message.encode_to_vec());
    assert_eq!(world.describe(dummy()).state(), DriverState::Up);
    let ping = decode(&world.take(remote())[0]);
    world.send(remote(), Device::MEDIATOR, &pong(&ping));
    assert_eq!(world.describe(dummy()).state(), DriverState::Stopping);
}

#[test]
fn requests_that_wait_for_proof_are_bounded() {
    let mut world = World::new(&[]);
    for port in 1..=1000 {
        let from = ([192, 168, 1, 7], port).into();
        world.send(from, Device::MEDIATOR, &ask_for_drivers());
    }
    assert_eq!(
        world.core.unproved.requests().count(),
        limits::UNPROVED_REQUESTS
    );
    let mut long = ask_for_drivers();
    // An unknown field.
    long.extend([0xfa, 0x0f, 0xac, 0x02]);
    long.extend([0; 300]);
    world.send(remote(), Device::MEDIATOR, &long);
    assert_eq!(
        world.core.unproved.requests().count(),
        limits::UNPROVED_REQUESTS
    );
    assert!(
        world
            .core
            .unproved
            .requests()
            .all(|(from, _)| from.address != remote())
    );
}

#[test]
fn an_unproved_address_never_gets_more_than_it_sent() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new(&["5:0=x", "77:3,77:4=y"]);
        let (mut sent, mut got) = (0, 0);
        for _ in 0..300 {
            let mut send = |world: &mut World, to: Device, message: &[u8]| {
                sent += frame(Some(to), message).len();
                world.send(remote(), to, message);
            };
            let device = *random.choice(&["5:0", "77:3", "77:4", "9:9"]).unwrap();
            match random.u8(0..8) {
                0 => send(&mut world, Device::MEDIATOR, &plain(MsgType::Ping)),
                1 => send(&mut world, Device::MEDIATOR, &plain(MsgType::Subscribe)),
                2 => send(&mut world, Device::MEDIATOR, &ask_for_drivers()),
                3 => send(&mut world, Device::MEDIATOR, &plain(MsgType::Pong)),
                4 => send(&mut world, device.parse().unwrap(), b"\x10\x01\x18\x07"),
                5 => send(&mut world, device.parse().unwrap(), b""),
                6 => world.advance(Duration::from_millis(random.u64(0..3000))),
                _ => {
                    let key = *random.choice(&[DUMMY, OTHER]).unwrap();
                    if world.running.contains_key(&key) {
                        world.exits(key, 1);
                    }
                }
            }
            got += world.take(remote()).iter().map(Vec::len).sum::<usize>();
            assert!(got <= sent, "seed {seed}: {got} bytes for {sent}");
        }
        assert!(got > 0, "seed {seed}");
        assert!(world.core.router.counters.dropped(DropReason::Unproved) > 0);
    }
}
