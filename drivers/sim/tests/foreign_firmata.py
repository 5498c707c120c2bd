"""Uses the pins of the simulated Arduino at the port argv[1] by pyfirmata2.

Prints "ok" on success.
"""

import sys
import time

import pyfirmata2

states, abilities, channels = {}, [], []


def until(what, is_true, repeat=lambda: None):
    """Waits for a condition, and repeats something meanwhile."""
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline, what
        repeat()
        time.sleep(0.05)


def state(pin):
    """The mode and the last value of a pin, as the board says itself."""
    states.pop(pin, None)
    until(
        f"the state of pin {pin}",
        lambda: pin in states,
        lambda: board.send_sysex(pyfirmata2.PIN_STATE_QUERY, [pin]),
    )
    return states[pin]


def on_state(pin, mode, *value):
    states[pin] = mode, sum(byte << (7 * place) for place, byte in enumerate(value))


board = pyfirmata2.Arduino(sys.argv[1])
board.add_cmd_handler(pyfirmata2.PIN_STATE_RESPONSE, on_state)
board.add_cmd_handler(pyfirmata2.CAPABILITY_RESPONSE, lambda *data: abilities.extend(data))
board.add_cmd_handler(pyfirmata2.ANALOG_MAPPING_RESPONSE, lambda *data: channels.extend(data))
board.samplingOn()
until(
    "the firmware",
    lambda: board.firmware,
    lambda: board.send_sysex(pyfirmata2.REPORT_FIRMWARE, []),
)
assert board.firmware == "StandardFirmata.ino", board.firmware
assert board.firmware_version == (2, 5), board.firmware_version

board.send_sysex(pyfirmata2.CAPABILITY_QUERY, [])
board.send_sysex(pyfirmata2.ANALOG_MAPPING_QUERY, [])
until("the abilities", lambda: channels)
assert abilities.count(0x7F) == 20, abilities
assert channels == [0x7F] * 14 + [0, 1, 2, 3, 4, 5], channels

# A quarter of the battery, and one volt for each metre to the wall.
readings = {}
for channel in (0, 1):
    board.analog[channel].register_callback(
        lambda value, channel=channel: readings.setdefault(channel, []).append(value)
    )
    board.analog[channel].enable_reporting()
until("analog values", lambda: all(len(readings.get(it, [])) > 10 for it in (0, 1)))
assert all(12.0 <= value * 5 * 4 <= 12.7 for value in readings[0]), readings[0][-1]
assert all(0.15 < value * 5 < 5 for value in readings[1]), readings[1][-1]

# The robot touches nothing, so the switch is open.
levels = []
button = board.get_pin("d:2:u")
button.register_callback(levels.append)
board.digital_ports[0].enable_reporting()
until("a level", lambda: levels)
assert levels[-1] is True, levels
assert state(2) == (pyfirmata2.INPUT_PULLUP, 1), state(2)

led = board.get_pin("d:13:o")
for level in (1, 0, 1):
    led.write(level)
    assert state(13) == (pyfirmata2.OUTPUT, level), state(13)
motor = board.get_pin("d:5:p")
for duty, value in ((0.5, 128), (1.0, 255), (0.0, 0)):
    motor.write(duty)
    assert state(5) == (pyfirmata2.PWM, value), state(5)
pan = board.get_pin("d:9:s")
for angle in (90, 180, 45):
    pan.write(angle)
    assert state(9) == (pyfirmata2.SERVO, angle), state(9)
board.exit()
print("ok")
