//! Invariants that hold for random schedules.

use super::*;

#[test]
fn random_schedules_keep_the_invariants() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new(&["5:0=x", "77:3=y"]);
        let clients: Vec<SocketAddr> = (1..6).map(local).collect();
        // Half of the clients never contact the mediator itself.
        let (new, old) = clients.split_at(3);
        for step in 0..400 {
            let client = *random.choice(&clients).unwrap();
            let key = *random.choice(&[DUMMY, OTHER]).unwrap();
            let device = *random.choice(&["5:0", "77:3", "9:9"]).unwrap();
            match random.u8(0..10) {
                0..4 => world.send(client, device.parse().unwrap(), b"\x10\x01\x18\x07"),
                4 => world.send(
                    *random.choice(new).unwrap(),
                    Device::MEDIATOR,
                    &plain(MsgType::Ping),
                ),
                5 if world.running.contains_key(&key) => world.exits(key, random.i32(0..2)),
                6 => world.advance(Duration::from_millis(random.u64(0..4000))),
                7 => {
                    let junk: Vec<u8> = (0..random.usize(0..20)).map(|_| random.u8(..)).collect();
                    let from = ClientAddress {
                        socket: 0,
                        address: client,
                    };
                    world.core.datagram(world.now, from, &junk);
                    world.settle();
                }
                8 if world.running.contains_key(&key) => {
                    let id = random.i32(1..12);
                    let header = HeaderBytes::new(None, Some(ClientId(id)));
                    let message = dummy::DriverMsg::data().encode_to_vec();
                    let frame = Frame {
                        header: header.as_slice(),
                        message: &message,
                    };
                    world.core.driver_frame(world.now, key, frame);
                    world.settle();
                }
                _ => world.drivers_answer = random.bool(),
            }
            assert!(world.core.router.clients.len() <= clients.len());
            for address in old {
                for datagram in world.take(*address) {
                    let what = Frame::from_datagram(&datagram).unwrap();
                    let from_driver = dummy::DriverMsg::data().encode_to_vec();
                    assert_eq!(what.message, from_driver, "seed {seed}, step {step}");
                }
            }
            // Processes end when they are told to.
            for (key, action) in std::mem::take(&mut world.actions) {
                let ended = matches!(action, Action::Terminate | Action::Kill);
                if ended && world.running.contains_key(&key) {
                    world.exits(key, 1);
                }
            }
        }
        world.core.shut_down(world.now);
        world.settle();
        world.advance(SECOND * 5);
        for key in world.running.keys().copied().collect::<Vec<_>>() {
            world.exits(key, 0);
        }
        assert!(world.core.is_finished(), "seed {seed}");
    }
}
