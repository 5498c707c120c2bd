"""Drives the simulated Create 2 by pycreate2.

The argument is the serial port. Prints "ok" on success.
"""

import contextlib
import io
import sys
import time

import pycreate2

(path,) = sys.argv[1:]
MM_PER_COUNT = 0.444565


def ways_mm(before, after):
    """The ways of the left and the right wheel, from counts that wrap."""
    pairs = [
        (before.encoder_counts_left, after.encoder_counts_left),
        (before.encoder_counts_right, after.encoder_counts_right),
    ]
    return [((b - a + 0x8000) % 0x10000 - 0x8000) * MM_PER_COUNT for a, b in pairs]


# It prints what it does.
with contextlib.redirect_stdout(io.StringIO()):
    robot = pycreate2.Create2(path)
    robot.start()
    sensors = robot.get_sensors()
    assert sensors.open_interface_mode == 1, sensors
    assert 14000 < sensors.voltage < 15500, sensors
    assert -700 < sensors.current < -400, sensors
    assert (sensors.battery_charge, sensors.battery_capacity) == (2100, 2696), sensors
    assert not any(sensors.bumps_wheeldrops), sensors
    assert not any([sensors.cliff_left, sensors.cliff_front_left, sensors.cliff_right]), sensors
    assert not any(sensors.charger_available), sensors

    # Without safe mode, it does not obey.
    robot.drive_direct(100, 100)
    time.sleep(0.5)
    assert ways_mm(sensors, robot.get_sensors()) == [0, 0]

    # A curve to the left: the first number is that of the right wheel.
    robot.safe()
    robot.drive_direct(200, 100)
    time.sleep(1)
    began, before = time.monotonic(), robot.get_sensors()
    time.sleep(1)
    after, took = robot.get_sensors(), time.monotonic() - began
    assert after.open_interface_mode == 2, after
    assert (after.velocity_right, after.velocity_left) == (200, 100), after
    left_mm, right_mm = ways_mm(before, after)
    # On a busy machine the simulation is slower than real time.
    assert 0 < right_mm <= 220 * took, (right_mm, took)
    assert abs(right_mm / left_mm - 2) < 0.05, (left_mm, right_mm)
    assert abs(after.distance - (left_mm + right_mm) / 2) <= 2, (after, left_mm, right_mm)
    angle_deg = (right_mm - left_mm) / 235 * 57.2958
    assert abs(after.angle - angle_deg) <= 2, (after, angle_deg)

    robot.drive_stop()
    deadline = time.monotonic() + 20
    while ways_mm(robot.get_sensors(), robot.get_sensors()) != [0, 0]:
        assert time.monotonic() < deadline
    # Its end stops the robot, too.
    del robot
print("ok")
