"""Talks to the simulated ODrive by pyserial, over the serial port argv[1]: with and without sums, as
programs with the ASCII protocol do.

Prints "ok" on success.
"""

import functools
import operator
import sys
import time

import serial


def checked(text):
    return f"{text}*{functools.reduce(operator.xor, text.encode())}"


def tell(port, command):
    port.write(checked(command).encode() + b"\n")


def ask(port, command):
    """The answer with a sum is that without one."""
    answers = []
    for line in (command, checked(command)):
        port.reset_input_buffer()
        port.write(line.encode() + b"\n")
        answer = port.readline()
        assert answer.endswith(b"\r\n"), (line, answer)
        answers.append(answer[:-2].decode())
    plain, with_sum = answers
    assert checked(with_sum.rsplit("*", 1)[0]) == with_sum, with_sum
    return plain


def feedback(port, axis):
    position, velocity = ask(port, f"f {axis}").split(" ")
    return float(position), float(velocity)


with serial.Serial(sys.argv[1], 115200, timeout=5) as port:
    # An empty line ends what another program may have begun.
    port.write(b"\n")
    assert port.readline() == b"unknown command\r\n"
    port.write(b"i\n")
    information = [port.readline().decode().strip() for _ in range(3)]
    assert information[1] == "Firmware version: 0.5.6", information
    assert 11 < float(ask(port, "r vbus_voltage")) < 12.7
    assert ask(port, "r axis0.error") == "0"
    assert ask(port, "r axis9.error") == "invalid property"
    assert ask(port, "f 7") == "invalid motor 7"
    assert [feedback(port, axis) for axis in (0, 1)] == [(0, 0), (0, 0)]

    # Without control, a velocity turns nothing. Half a turn per second, both ways.
    tell(port, "v 0 0.5")
    assert ask(port, "r axis0.current_state") == "1"
    for axis in (0, 1):
        tell(port, f"w axis{axis}.requested_state 8")
    assert ask(port, "r axis1.current_state") == "8"
    tell(port, "v 0 0.5")
    tell(port, "v 1 -0.5")
    deadline = time.monotonic() + 60
    while not (abs(feedback(port, 0)[1] - 0.5) < 0.02 and abs(feedback(port, 1)[1] + 0.5) < 0.02):
        assert time.monotonic() < deadline
    (left, _), (right, _) = feedback(port, 0), feedback(port, 1)
    assert left > 0 > right and abs(left + right) < 0.1, (left, right)

    # The watchdog releases a motor that is not fed.
    tell(port, "w axis0.config.watchdog_timeout 0.5")
    tell(port, "u 0")
    tell(port, "w axis0.config.enable_watchdog 1")
    deadline = time.monotonic() + 60
    while ask(port, "r axis0.error") != "2048":
        assert time.monotonic() < deadline
    assert ask(port, "r axis0.current_state") == "1"
    tell(port, "v 1 0")
    while any(feedback(port, axis)[1] for axis in (0, 1)):
        assert time.monotonic() < deadline
    tell(port, "w axis0.config.enable_watchdog 0")
    tell(port, "sc")
    assert ask(port, "r axis0.error") == "0"
print("ok")
