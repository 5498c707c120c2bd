//! The descriptions of devices that drivers send.

use super::*;

fn description(files: &[u8]) -> mediator::DriverMsg {
    mediator::DriverMsg {
        description: Some(mediator::Description {
            files: Bytes::copy_from_slice(files),
        }),
        ..mediator::DriverMsg::data()
    }
}

/// The description that a client gets, or the reason why there is none.
fn ask(world: &mut World, device: Device) -> Result<Bytes, String> {
    let device = control::wire_device(device);
    match world.ask(remote(), request::What::GetDescription(device)) {
        reply::What::Description(description) => Ok(description.files),
        reply::What::Refused(refusal) => Err(refusal.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_gets_the_description_of_each_device() {
    let mut world = World::new(&["77:0,77:1=x"]);
    let [one, other] = [0, 1].map(|id| Device::new(DeviceType(77), id));
    assert_eq!(
        ask(&mut world, one).unwrap_err(),
        "the driver of this device has sent no description"
    );
    world.tells_mediator(DUMMY, None, &description(b"of both"));
    assert_eq!(ask(&mut world, one).unwrap(), "of both");
    world.tells_mediator(DUMMY, Some(other), &description(b"of one"));
    assert_eq!(ask(&mut world, one).unwrap(), "of both");
    assert_eq!(ask(&mut world, other).unwrap(), "of one");
    assert!(ask(&mut world, "77:2".parse().unwrap()).is_err());
}

#[test]
fn a_description_ends_with_its_driver() {
    let mut world = World::new(&["5:0=x"]);
    world.tells_mediator(DUMMY, None, &description(b"old"));
    assert!(ask(&mut world, dummy()).is_ok());
    world.exits(DUMMY, 1);
    assert!(ask(&mut world, dummy()).is_err());
    world.advance(SECOND);
    assert!(ask(&mut world, dummy()).is_err());
    world.tells_mediator(DUMMY, None, &description(b"new"));
    assert_eq!(ask(&mut world, dummy()).unwrap(), "new");
}

#[test]
fn the_longest_description_is_served_and_a_longer_one_is_counted() {
    let mut world = World::new(&["5:0=x"]);
    let longest = vec![b'x'; limits::DESCRIPTION_BYTES];
    world.tells_mediator(DUMMY, None, &description(&longest));
    let too_long = vec![b'y'; limits::DESCRIPTION_BYTES + 1];
    world.tells_mediator(DUMMY, None, &description(&too_long));
    // `ask` checks the length of each answer.
    assert_eq!(ask(&mut world, dummy()).unwrap(), longest);
    let counters = &world.core.router.counters;
    assert_eq!(counters.dropped(DropReason::Description), 1);
    assert_eq!(counters.dropped(DropReason::MediatorMessage), 0);
}
