"""Turns the servos of the simulated PCA9685 on the bus at the Unix socket argv[1].

The code for the chip and for the servos is Adafruit's; only the bus is
replaced, in simbus.py. Prints "ok" on success.
"""

import sys

from simbus import Bus

import adafruit_pca9685
from adafruit_motor import servo

ADDRESS = 0x40


def registers(first, count):
    """What the chip has, read without the library."""
    return list(bus.transfer(ADDRESS, bytes([first]), count))


bus = Bus(sys.argv[1])
chip = adafruit_pca9685.PCA9685(bus)
for hertz, prescale in ((60, 0x65), (1000, 0x05), (50, 0x79)):
    chip.frequency = hertz
    # The library may round to the next value.
    assert registers(0xFE, 1)[0] - prescale in (0, 1), (hertz, registers(0xFE, 1))
# Awake, with auto-increment.
assert registers(0x00, 1)[0] & 0x30 == 0x20, registers(0x00, 1)

turns = servo.Servo(chip.channels[3], min_pulse=600, max_pulse=2400)
for angle, us in ((0, 600), (90, 1500), (180, 2400)):
    turns.angle = angle
    assert abs(turns.angle - angle) < 0.5, turns.angle
    on_low, on_high, off_low, off_high = registers(0x06 + 4 * 3, 4)
    steps = off_low + 256 * off_high
    # Of 4096 steps in 20 ms.
    assert on_low == on_high == 0 and abs(steps * 20_000 / 4096 - us) <= 5, (angle, steps)
turns.angle = None
assert chip.channels[3].duty_cycle == 0

motor = servo.ContinuousServo(chip.channels[5], min_pulse=1000, max_pulse=2000)
for throttle, us in ((1, 2000), (0, 1500), (-1, 1000)):
    motor.throttle = throttle
    steps = registers(0x06 + 4 * 5 + 2, 2)
    assert abs((steps[0] + 256 * steps[1]) * 20_000 / 4096 - us) <= 5, (throttle, steps)

# Always on and always off.
chip.channels[15].duty_cycle = 0xFFFF
assert registers(0x42, 4) == [0x00, 0x10, 0x00, 0x00], registers(0x42, 4)
chip.channels[15].duty_cycle = 0
assert registers(0x42, 4) == [0x00, 0x00, 0x00, 0x10], registers(0x42, 4)

# A reset by the library: the chip is awake, without auto-increment.
chip.reset()
assert registers(0x00, 1) == [0x00], registers(0x00, 1)

print("ok")
