"""Uses the simulated servos at the port argv[1] by scservo_sdk (feetech-servo-sdk).

Prints "ok" on success.
"""

import sys
import time

import scservo_sdk as sdk
import scservo_sdk.port_handler

# A busy machine may take longer than the 34 ms that the library waits: 2 s.
scservo_sdk.port_handler.LATENCY_TIMER = 1000
TORQUE, GOAL, SPEED, POSITION = 40, 42, 46, 56
ARM = range(1, 7)

port = sdk.PortHandler(sys.argv[1])
assert port.openPort() and port.setBaudRate(1_000_000)
packets = sdk.PacketHandler(0)


def good(answer):
    """The values of an answer that was right."""
    *values, result, error = answer
    assert result == sdk.COMM_SUCCESS, packets.getTxRxResult(result)
    assert error == 0, packets.getRxPacketError(error)
    return values[0] if values else None


def positions():
    """The positions of the arm, in one exchange."""
    group = sdk.GroupSyncRead(port, packets, POSITION, 2)
    assert all(group.addParam(servo) for servo in ARM)
    result = group.txRxPacket()
    assert result == sdk.COMM_SUCCESS, packets.getTxRxResult(result)
    assert all(group.isAvailable(servo, POSITION, 2) for servo in ARM)
    return [group.getData(servo, POSITION, 2) for servo in ARM]


for servo in ARM:
    assert good(packets.ping(port, servo)) == 777
_, result, _ = packets.ping(port, 20)
assert result == sdk.COMM_RX_TIMEOUT, result
assert positions() == [2048] * 6

group = sdk.GroupSyncWrite(port, packets, GOAL, 2)
for servo in ARM:
    goal = 2048 + 100 * servo
    assert group.addParam(servo, [sdk.SCS_LOBYTE(goal), sdk.SCS_HIBYTE(goal)])
assert group.txPacket() == sdk.COMM_SUCCESS
for servo in ARM:
    good(packets.write1ByteTxRx(port, servo, TORQUE, 1))
deadline = time.monotonic() + 20
wanted = [2048 + 100 * servo for servo in ARM]
while positions() != wanted:
    assert time.monotonic() < deadline, positions()
    time.sleep(0.05)
assert good(packets.read2ByteTxRx(port, 3, GOAL)) == 2348
good(packets.write2ByteTxRx(port, 3, SPEED, 500))
assert good(packets.read2ByteTxRx(port, 3, SPEED)) == 500
assert good(packets.read1ByteTxRx(port, 1, 62)) == 74
port.closePort()
print("ok")
