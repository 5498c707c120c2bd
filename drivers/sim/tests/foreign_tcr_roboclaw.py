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

    # The forms that later firmware has made longer.
    assert claw.SetMainVoltages(110, 300)
    assert tuple(claw.ReadMinMaxMainVoltages()) == (1, 110, 300)
    assert claw.SetM1DefaultAccel(5000) and claw.SetM2DefaultAccel(7000)
    assert tuple(claw.ReadDefaultDutyAcceleration()) == (1, 5000, 7000)
    assert claw.SetM1DefaultSpeed(30000) and claw.SetM2DefaultSpeed(20000)
    assert tuple(claw.ReadDefaultSpeeds()) == (1, 30000, 20000)
    assert claw.SetPinFunctions(1, 2, 3)
    assert tuple(claw.ReadPinFunctions()) == (1, 1, 2, 3)
    assert claw.SetDeadBand(4, 5)
    assert tuple(claw.GetDeadBand()) == (1, 4, 5)
    assert claw.SetSpeedErrorLimits(4000, 5000)
    assert tuple(claw.ReadSpeedErrorLimits()) == (1, 4000, 5000)
    assert claw.SetPositionErrorLimits(6000, 7000)
    assert tuple(claw.ReadPositionErrorLimits()) == (1, 6000, 7000)
    assert claw.SetM1MaxCurrent(700)
    assert tuple(claw.ReadM1MaxCurrent()) == (1, 700)
    assert claw.WriteNVM() and claw.RestoreDefaults()
    assert tuple(claw.ReadPinFunctions()) == (1, 0, 0, 0)

print("ok")
