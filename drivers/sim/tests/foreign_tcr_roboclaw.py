"""Drives the simulated RoboClaws with the library of a robot club, over the serial port argv[1].

Prints "ok" on success.
"""

import sys
import time

from tcr_roboclaw import Roboclaw

for address in (0x80, 0x81):
    claw = Roboclaw(sys.argv[1], 38400, address, timeout=0.2)
    assert claw.open()
    done, version = claw.ReadVersion()
    assert done and "Roboclaw" in version, version
    assert tuple(claw.ReadError()) == (1, 0)
    done, temperature = claw.ReadTemp()
    assert done and 200 <= temperature <= 400, temperature
    assert claw.SpeedM1M2(1484, -1484)
    deadline = time.monotonic() + 20
    while True:
        right, left = claw.ReadSpeedM1(), claw.ReadSpeedM2()
        if abs(right[1] - 1484) < 45 and abs(left[1] + 1484) < 45:
            break
        assert time.monotonic() < deadline, (right, left)
    assert (right[2], left[2]) == (0, 1), "directions"
    assert claw.SpeedM1M2(0, 0)

print("ok")
