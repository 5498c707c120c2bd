"""Drives the simulated RoboClaws with the maker's own library, over the serial port argv[1].

Prints "ok" when everything was as it should be.
"""

import sys
import time

from basicmicro import Basicmicro

port = Basicmicro(sys.argv[1], 38400, timeout=0.05)
assert port.Open()


def signed(value):
    """The library reads speeds as if they had no sign."""
    return value - (1 << 32) if value & 0x80000000 else value


def until(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what


for address in (0x80, 0x81):
    done, version = port.ReadVersion(address)
    assert done and "Roboclaw" in version, version
    assert port.SetM1VelocityPID(address, 1.0, 0.5, 0.25, 13800)
    assert port.SetM2VelocityPID(address, 1.0, 0.5, 0.25, 13800)
    done, p, i, d, qpps = port.ReadM1VelocityPID(address)
    assert done and (p, i, d, qpps) == (1.0, 0.5, 0.25, 13800), (p, i, d, qpps)
    assert port.SetM1EncoderMode(address, 0) and port.SetM2EncoderMode(address, 0)
    assert tuple(port.ReadEncoderModes(address)) == (True, 0, 0)
    assert tuple(port.ReadError(address)) == (True, 0)
    done, battery = port.ReadMainBatteryVoltage(address)[:2]
    assert done and 120 <= battery <= 126, battery
    done, temperature = port.ReadTemp(address)[:2]
    assert done and 200 <= temperature <= 400, temperature
    assert tuple(port.ReadBuffers(address)) == (True, 0x80, 0x80)
    assert port.WriteNVM(address)
    assert port.SetTimeout(address, 2.0)
    assert tuple(port.GetTimeout(address))[0]
    assert port.ResetEncoders(address)

for address in (0x81, 0x80):
    assert port.SpeedM1M2(address, 1484, -1484)

for address in (0x81, 0x80):
    until(lambda: abs(port.ReadSpeedM1(address)[1] - 1484) < 45, "right wheel")
    until(lambda: abs(signed(port.ReadSpeedM2(address)[1]) + 1484) < 45, "left wheel")
    done, count, _status = port.ReadEncM1(address)
    assert done and count > 0, count
    done, right, left = port.GetEncoders(address)
    assert done and signed(right) > 0 > signed(left), (right, left)
    done, first, second = port.ReadCurrents(address)
    assert done and first > 0 and second > 0, (first, second)

for address in (0x81, 0x80):
    assert port.SpeedM1M2(address, 0, 0)
for address in (0x81, 0x80):
    until(lambda: port.ReadSpeedM1(address)[1] == 0, "right wheel stops")
    assert port.DutyM1M2(address, 0, 0)
    assert port.SpeedDistanceM1(address, 500, 100, 1)
    until(lambda: port.ReadBuffers(address)[1] == 0x80, "a move ends")

print("ok")
