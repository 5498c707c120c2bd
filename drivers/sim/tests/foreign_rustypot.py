"""Uses simulated servos by rustypot: those of Dynamixel at the port argv[1], of Feetech at argv[2].

Prints "ok" on success.
"""

import math
import sys
import time

from rustypot import Sts3215PyController, Xl330PyController, Xl430PyController

BAUD = 1_000_000
# A busy machine may take longer than real servos: 2 s.
TIMEOUT_S = 2.0
#: The middle of a turn, and a step, for controllers with radians and for those with steps.
RADIANS = (0.0, 2 * math.pi / 4096)
STEPS = (2048, 1)


def move(servos, ids, units):
    """Turns servos from the middle of their turn to different angles, all at once."""
    middle, step = units
    assert all(servos.ping(servo) for servo in ids)
    assert not servos.ping(20)
    assert servos.sync_read_present_position(ids) == [middle] * len(ids)
    servos.sync_write_torque_enable(ids, [True] * len(ids))
    assert servos.sync_read_torque_enable(ids) == [True] * len(ids)
    goals = [middle + 70 * servo * step for servo in ids]
    servos.sync_write_goal_position(ids, goals)
    deadline = time.monotonic() + 20
    while True:
        places = servos.sync_read_present_position(ids)
        pairs = zip(places, goals, strict=True)
        if all(abs(place - goal) <= step for place, goal in pairs):
            break
        assert time.monotonic() < deadline, places
        time.sleep(0.05)
    servos.sync_write_torque_enable(ids, [False] * len(ids))
    assert servos.sync_read_torque_enable(ids) == [False] * len(ids)


small = Xl330PyController(sys.argv[1], BAUD, TIMEOUT_S)
assert small.sync_read_model_number([3, 4, 5, 6]) == [1200] * 4
move(small, [3, 4, 5, 6], RADIANS)
del small
large = Xl430PyController(sys.argv[1], BAUD, TIMEOUT_S)
assert large.sync_read_model_number([1, 2]) == [1060] * 2
move(large, [1, 2], STEPS)
del large
arm = Sts3215PyController(sys.argv[2], BAUD, TIMEOUT_S)
assert arm.sync_read_present_voltage([1, 6]) == [74] * 2
assert arm.sync_read_present_temperature([1, 6]) == [31] * 2
move(arm, [1, 2, 3, 4, 5, 6], RADIANS)
print("ok")
