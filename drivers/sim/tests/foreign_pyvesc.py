"""Drives the simulated VESCs with the library pyvesc, over the serial port argv[1]. argv[2] is the
number of the second one on the CAN bus.

Prints "ok" on success.
"""

import sys
import time

import pyvesc
import serial
from pyvesc.messages.base import VESCMessage
from pyvesc.packet.codec import frame

path, second = sys.argv[1], int(sys.argv[2])
FORWARD_CAN = 34


class Version(metaclass=VESCMessage):
    """The library has no message for it."""

    id = 0
    fields = [("major", "B"), ("minor", "B"), ("rest", "s")]


class Chosen(metaclass=VESCMessage):
    """Speed, voltage, steps and fault. The values of the library are those of old firmware."""

    id = 50
    MASK = 0xA180
    fields = [("mask", "I"), ("erpm", "i"), ("decivolts", "h"), ("steps", "i"), ("fault", "B")]


def tell(port, message, unit=None):
    """Sends a message of the library to the first VESC, or to another one behind it."""
    payload = VESCMessage.pack(message)
    if unit is not None:
        payload = bytes([FORWARD_CAN, unit]) + payload
    port.write(frame(payload))


def ask(port, payload, unit=None):
    """Asks a question, and reads the answer with the library."""
    if unit is not None:
        payload = bytes([FORWARD_CAN, unit]) + payload
    port.reset_input_buffer()
    port.write(frame(payload))
    heard, deadline = b"", time.monotonic() + 5
    while time.monotonic() < deadline:
        heard += port.read(port.in_waiting or 1)
        message, _ = pyvesc.decode(heard)
        if message is not None:
            return message
    raise AssertionError((payload, heard))


def chosen(port, unit=None):
    return ask(port, bytes([Chosen.id]) + Chosen.MASK.to_bytes(4, "big"), unit)


with serial.Serial(path, 115200, timeout=0.1) as port:
    for unit in (None, second):
        version = ask(port, b"\x00", unit)
        assert (version.major, version.minor) == (6, 2), vars(version)
        assert version.rest.startswith("60_MK5\0"), vars(version)

    # Commands are the same bytes as those of the worked frames of the driver.
    assert pyvesc.encode(pyvesc.SetRPM(3000)).hex() == "02050800000bb8f80403"
    before = {unit: chosen(port, unit) for unit in (None, second)}
    assert all((it.erpm, it.fault) == (0, 0) for it in before.values())
    assert all(120 <= it.decivolts <= 126 for it in before.values())

    # Both ways, until the speeds are reached. The motors are released a second after a command.
    deadline = time.monotonic() + 60
    speeds = {}
    while not (abs(speeds.get(None, 0) - 3000) < 60 and abs(speeds.get(second, 0) + 3000) < 60):
        assert time.monotonic() < deadline, speeds
        tell(port, pyvesc.SetRPM(3000))
        tell(port, pyvesc.SetRPM(-3000), second)
        speeds = {unit: chosen(port, unit).erpm for unit in (None, second)}
    after = {unit: chosen(port, unit) for unit in (None, second)}
    steps = [after[unit].steps - before[unit].steps for unit in (None, second)]
    assert steps[0] > 0 > steps[1], steps

    # Both are released, and roll out.
    deadline = time.monotonic() + 60
    while any(chosen(port, unit).erpm for unit in (None, second)):
        assert time.monotonic() < deadline

    # The second one alone: forward with a tenth of the voltage, and then without a current.
    deadline = time.monotonic() + 60
    while chosen(port, second).erpm < 1000:
        assert time.monotonic() < deadline
        tell(port, pyvesc.SetDutyCycle(10000), second)
    tell(port, pyvesc.SetCurrent(0), second)
    while any(chosen(port, unit).erpm for unit in (None, second)):
        assert time.monotonic() < deadline
print("ok")
