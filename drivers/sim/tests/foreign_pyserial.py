"""Talks to the simulated Arduino by pyserial, as the programs for ros_arduino_bridge do.

The arguments are the serial port, and bridge or andino. Prints "ok" on success.
"""

import sys
import time

import serial

path, firmware = sys.argv[1:]
invalid = {"bridge": "Invalid Command", "andino": "Unknown command."}[firmware]


def ask(port, command):
    port.reset_input_buffer()
    port.write(command.encode() + b"\r")
    answer = port.readline()
    assert answer.endswith(b"\r\n"), (command, answer)
    return answer[:-2].decode()


def counts(port):
    return [int(count) for count in ask(port, "e").split(" ")]


with serial.Serial(path, 57600, timeout=0.5) as port:
    # The board starts; what arrives before is lost.
    deadline = time.monotonic() + 20
    while True:
        port.write(b"\r")
        if port.readline() == invalid.encode() + b"\r\n":
            break
        assert time.monotonic() < deadline
    time.sleep(1)
    assert ask(port, "b") == {"bridge": "57600", "andino": invalid}[firmware]
    assert ask(port, "z") == invalid
    assert ask(port, "r") == "OK"
    assert counts(port) == [0, 0]

    # 300 counts per second to the left.
    speed = {"bridge": 10, "andino": 300}[firmware]
    assert ask(port, f"m {-speed} {speed}") == "OK"
    time.sleep(1)
    assert ask(port, f"m {-speed} {speed}") == "OK"
    began, (left, right) = time.monotonic(), counts(port)
    time.sleep(1)
    took, (left, right) = time.monotonic() - began, [
        after - before for before, after in zip((left, right), counts(port))
    ]
    # On a busy machine the simulation is slower than real time.
    assert 0 < right <= 330 * took and abs(left + right) <= 6, (left, right, took)

    # Two seconds after the last command the firmware stops the motors, and they roll out.
    deadline = time.monotonic() + 60
    before = None
    while before != (now := counts(port)):
        before = now
        assert time.monotonic() < deadline, now
        time.sleep(0.5)

    assert ask(port, "o 100 100") == "OK"
    deadline = time.monotonic() + 20
    while not all(b - a > 50 for a, b in zip(before, counts(port))):
        assert time.monotonic() < deadline
    assert ask(port, "m 0 0") == "OK"
    if firmware == "andino":
        assert ask(port, "u 30 20 10 50") == "PID Updated: 30 20 10 50"
        assert port.readline() == b"OK\r\n"
    else:
        assert ask(port, "u 30:20:0:100") == "OK"
print("ok")
