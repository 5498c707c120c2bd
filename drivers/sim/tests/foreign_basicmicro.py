"""Drives the simulated RoboClaws with the maker's own library, over the serial port argv[1]. argv[2] is
the firmware: 4.2.4 or mcp.

Prints "ok" on success.
"""

import sys
import time

from basicmicro import Basicmicro

is_mcp = sys.argv[2] == "mcp"
port = Basicmicro(sys.argv[1], 38400, timeout=0.05)
assert port.Open()


def signed(value):
    """The library reads speeds as unsigned numbers."""
    return value - (1 << 32) if value & 0x80000000 else value


def until(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what


for address in (0x80, 0x81):
    done, version = port.ReadVersion(address)
    assert done and ("MCP" if is_mcp else "Roboclaw") in version, version
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

for address in (0x80, 0x81):
    # Raw speeds are per second, too.
    assert port.SpeedM1M2(address, 1484, 1484)
    until(lambda: abs(port.ReadISpeedM1(address)[1] - 1484) < 45, "raw speed")
    until(lambda: abs(port.GetISpeeds(address)[2] - 1484) < 45, "raw speeds")
    assert port.SpeedM1M2(address, 0, 0)
    until(lambda: port.ReadSpeedM1(address)[1] == 0, "wheels stop")

    # A position is reached and held; the profile ends in a ramp to rest.
    assert port.ResetEncoders(address)
    assert port.SpeedAccelDeccelPositionM1(address, 6000, 3000, 3000, 2000, 1)
    until(lambda: port.ReadBuffers(address)[1] == 0x80, "the position is reached")
    done, count, _status = port.ReadEncM1(address)
    assert done and abs(count - 2000) <= 3, count
    assert port.ResetEncoders(address)
    assert port.SpeedAccelDistanceM1(address, 4000, 4000, 6000, 1)
    assert port.SpeedAccelDistanceM1(address, 4000, 0, 0, 0)
    until(lambda: port.ReadBuffers(address)[1] == 0x80, "the profile ends")
    until(lambda: port.ReadSpeedM1(address)[1] == 0, "the wheel stands")
    done, count, _status = port.ReadEncM1(address)
    assert done and 7950 <= count <= 8050, count
    assert port.ResetEncoders(address)
    assert port.PositionM1(address, 300, 1)
    until(lambda: abs(port.ReadEncM1(address)[1] - 300) <= 3, "a position without further parameters")
    assert port.DutyM1M2(address, 0, 0)

    status = port.GetStatus(address)
    assert status[0] and len(status) == 21, status
    assert status[2] == 0 and 200 <= status[3] <= 400 and 115 <= status[5] <= 126, status
    assert abs(signed(status[11]) - 300) <= 3, status
    assert port.SetM1DefaultAccel(address, 5000, 6000)
    assert port.SetM2DefaultAccel(address, 7000, 8000)
    assert tuple(port.GetDefaultAccels(address)) == (True, 5000, 6000, 7000, 8000)
    assert port.SetPinFunctions(address, 1, 2, 3, 4, 5)
    assert tuple(port.ReadPinFunctions(address)) == (True, 1, 2, 3, 4, 5)
    controls = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
    assert port.SetCtrlSettings(address, *controls)
    assert tuple(port.GetCtrlSettings(address)) == (True, *controls)
    done, config = port.GetConfig(address)
    assert done and port.SetConfig(address, config)
    assert port.SetM1MaxCurrent(address, 700, 0) and port.SetM2MaxCurrent(address, 800, 0)
    assert tuple(port.ReadM1MaxCurrent(address))[:2] == (True, 700)
    assert tuple(port.ReadM2MaxCurrent(address))[:2] == (True, 800)
    assert port.SetMainVoltages(address, 110, 300, 1)
    assert tuple(port.ReadMinMaxMainVoltages(address)) == (True, 110, 300, 1)
    assert port.SetM1DefaultSpeed(address, 30000) and port.SetM2DefaultSpeed(address, 20000)
    assert tuple(port.GetDefaultSpeeds(address)) == (True, 30000, 20000)
    done, main, logic = port.GetVolts(address)
    assert done and 115 <= main <= 126 and logic == 50, (main, logic)
    done, first, second = port.GetTemps(address)
    assert done and 200 <= first <= 400 and first == second, (first, second)
    assert tuple(port.GetEncStatus(address))[0]
    assert tuple(port.GetSpeeds(address))[0]
    assert port.SetSpeedErrorLimit(address, 4000, 5000)
    assert tuple(port.GetSpeedErrorLimit(address)) == (True, 4000, 5000)
    assert tuple(port.GetSpeedErrors(address))[0]
    assert port.SetPosErrorLimit(address, 6000, 7000)
    assert tuple(port.GetPosErrorLimit(address)) == (True, 6000, 7000)
    assert tuple(port.GetPosErrors(address))[0]
    assert port.WriteEeprom(address, 7, 0x1234)
    assert tuple(port.ReadEeprom(address, 7)) == (True, 0x1234)
    if is_mcp:
        assert port.SetOffsets(address, 2, -3 & 0xFF)
        assert tuple(port.GetOffsets(address)) == (True, 2, -3)
        assert port.ResetEStop(address)
    assert port.SetPWMMode(address, 1, 0)
    assert tuple(port.ReadPWMMode(address)) == (True, 1, 0)
    assert port.RestoreDefaults(address)
    assert tuple(port.ReadPWMMode(address)) == (True, 0, 0)

print("ok")
