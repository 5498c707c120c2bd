"""Uses the simulated servos of a Koch v1.1 at the port argv[1] by dynamixel_sdk (dynamixel-sdk).

Prints "ok" on success.
"""

import sys
import time

import dynamixel_sdk as sdk
import dynamixel_sdk.port_handler

# A busy machine may take longer than the 34 ms that the library waits: 2 s.
dynamixel_sdk.port_handler.LATENCY_TIMER = 1000
MODE, TORQUE, ERROR, WATCHDOG, CURRENT, SPEED = 11, 64, 70, 98, 102, 104
PROFILE, GOAL, POSITION, VOLTAGE, TEMPERATURE = 112, 116, 132, 144, 146
ARM = range(1, 7)
MODELS = {1: 1060, 2: 1060, 3: 1200, 4: 1200, 5: 1200, 6: 1200}
RANGE, LIMIT, ACCESS = 4, 6, 7

port = sdk.PortHandler(sys.argv[1])
assert port.openPort() and port.setBaudRate(1_000_000)
packets = sdk.PacketHandler(2.0)


def good(answer):
    """The value of an answer that was right."""
    *values, result, error = answer
    assert result == sdk.COMM_SUCCESS, packets.getTxRxResult(result)
    assert error == 0, packets.getRxPacketError(error)
    return values[0] if values else None


def refused(answer):
    """The number of an answer that refuses the request."""
    result, error = answer
    assert result == sdk.COMM_SUCCESS, packets.getTxRxResult(result)
    return error


def low_first(value):
    """The four bytes of a value."""
    return list(value.to_bytes(4, "little"))


def positions():
    """The positions of the arm, in one exchange."""
    group = sdk.GroupSyncRead(port, packets, POSITION, 4)
    assert all(group.addParam(servo) for servo in ARM)
    result = group.txRxPacket()
    assert result == sdk.COMM_SUCCESS, packets.getTxRxResult(result)
    assert all(group.isAvailable(servo, POSITION, 4) for servo in ARM)
    return [group.getData(servo, POSITION, 4) for servo in ARM]


for servo, model in MODELS.items():
    assert good(packets.ping(port, servo)) == model
# It waits for 0.8 s, whatever the machine does.
deadline = time.monotonic() + 20
found = {}
while {servo: model for servo, (model, _) in found.items()} != MODELS:
    assert time.monotonic() < deadline, found
    found, _ = packets.broadcastPing(port)
_, result, _ = packets.ping(port, 20)
assert result == sdk.COMM_RX_TIMEOUT, result
assert positions() == [2048] * 6

# All goals in one packet, then all motors one by one.
group = sdk.GroupSyncWrite(port, packets, GOAL, 4)
for servo in ARM:
    assert group.addParam(servo, low_first(2048 + 100 * servo))
assert group.txPacket() == sdk.COMM_SUCCESS
for servo in ARM:
    good(packets.write1ByteTxRx(port, servo, TORQUE, 1))
deadline = time.monotonic() + 20
wanted = [2048 + 100 * servo for servo in ARM]
while positions() != wanted:
    assert time.monotonic() < deadline, positions()
    time.sleep(0.05)
assert good(packets.read4ByteTxRx(port, 3, GOAL)) == 2348

# Different registers of several servos in one exchange.
bulk = sdk.GroupBulkRead(port, packets)
assert bulk.addParam(1, VOLTAGE, 2) and bulk.addParam(6, TEMPERATURE, 1)
result = bulk.txRxPacket()
assert result == sdk.COMM_SUCCESS, packets.getTxRxResult(result)
assert bulk.getData(1, VOLTAGE, 2) == 120
assert bulk.getData(6, TEMPERATURE, 1) == 31
bulk = sdk.GroupBulkWrite(port, packets)
assert bulk.addParam(2, PROFILE, 4, low_first(33))
assert bulk.addParam(5, 65, 1, [1])
assert bulk.txPacket() == sdk.COMM_SUCCESS
assert good(packets.read4ByteTxRx(port, 2, PROFILE)) == 33
assert good(packets.read1ByteTxRx(port, 5, 65)) == 1

# What it refuses, and why.
assert refused(packets.write4ByteTxRx(port, 1, GOAL, 4096)) == LIMIT
assert refused(packets.write1ByteTxRx(port, 1, MODE, 1)) == ACCESS
assert refused(packets.write1ByteTxRx(port, 1, TEMPERATURE, 1)) == ACCESS

# A current of -1 and a speed of -3 look like a header, which is stuffed.
good(packets.write2ByteTxRx(port, 3, CURRENT, 0xFFFF))
good(packets.write4ByteTxRx(port, 3, SPEED, 0xFFFFFFFD))
values = good(packets.readTxRx(port, 3, CURRENT, 6))
assert list(values) == [0xFF, 0xFF, 0xFD, 0xFF, 0xFF, 0xFF], values

# The watchdog stops a servo when nobody speaks: after 200 ms.
good(packets.write1ByteTxRx(port, 4, WATCHDOG, 10))
# The simulation is slower on a busy machine.
for pause_s in (0.5, 1, 2, 4, 8):
    time.sleep(pause_s)
    if good(packets.read1ByteTxRx(port, 4, WATCHDOG)) == 0xFF:
        break
assert refused(packets.write4ByteTxRx(port, 4, GOAL, 2048)) == RANGE
good(packets.write1ByteTxRx(port, 4, WATCHDOG, 0))
good(packets.write4ByteTxRx(port, 4, GOAL, 2400))

# A restart switches its motor off.
good(packets.reboot(port, 6))
assert good(packets.read1ByteTxRx(port, 6, TORQUE)) == 0
assert good(packets.read1ByteTxRx(port, 6, ERROR)) == 0
port.closePort()
print("ok")
