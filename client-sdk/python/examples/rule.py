"""A rule: while the laser does not work, nobody drives."""

import amber

LASER = amber.Device.parse("hokuyo:0")
Event = amber.schemas.mediator.Event

with amber.Robot() as robot:
    lease = None
    for event in robot.mediator().events():
        if (event.device.type, event.device.id) != LASER:
            continue
        fails = event.kind in (Event.DEVICE_DOWN, Event.DEVICE_FAILED, Event.DEVICE_TROUBLE)
        works = event.kind in (Event.DEVICE_UP, Event.DEVICE_RECOVERED)
        if fails and lease is None:
            lease = robot.take_wheels("no laser", force=True)
            print("no laser: the robot stands")
        elif works and lease is not None:
            lease.release()
            lease = None
            print("the laser works: drive on")
