"""Reads the simulated LSM6DSOX (or relative) argv[2] on the bus at the Unix socket argv[1].

The code for the chips is Adafruit's; only the bus is replaced, in simbus.py. Prints "ok" on success.
"""

import math
import sys
import time

from simbus import Bus, mean, near

import adafruit_lis3mdl
import adafruit_lsm6ds
from adafruit_lsm6ds.lsm6ds33 import LSM6DS33
from adafruit_lsm6ds.lsm6dsox import LSM6DSOX

path, model = sys.argv[1:]
bus = Bus(path)

sensor = (LSM6DS33 if model == "lsm6ds33" else LSM6DSOX)(bus)
for rate in ("accelerometer_data_rate", "gyro_data_rate"):
    setattr(sensor, rate, adafruit_lsm6ds.Rate.RATE_416_HZ)
for reach in (2, 4, 8, 16):
    sensor.accelerometer_range = getattr(adafruit_lsm6ds.AccelRange, f"RANGE_{reach}G")
    accel = mean(lambda: sensor.acceleration)
    assert near(accel, (0, 0, 9.8), 0.2), (reach, accel)
rates = []
for reach in (125, 250, 500, 1000, 2000):
    sensor.gyro_range = getattr(adafruit_lsm6ds.GyroRange, f"RANGE_{reach}_DPS")
    rates.append([math.degrees(axis) for axis in mean(lambda: sensor.gyro)])
# At rest the reading is the bias, whatever the range.
assert near(rates[0], (0, 0, 0), 5.5), rates
assert all(near(rate, rates[0], 0.2) for rate in rates), rates

if model == "alone":
    try:
        adafruit_lis3mdl.LIS3MDL(bus)
        raise AssertionError("there is a magnetometer")
    except ValueError:
        pass
else:
    magnet = adafruit_lis3mdl.LIS3MDL(bus)
    fields = []
    for reach in range(4):
        magnet.range = reach
        time.sleep(0.02)
        fields.append(mean(lambda: magnet.magnetic))
    # 20 uT to the north and 45 uT down, and up to 10 uT from the robot itself. The robot faces east, so
    # north is on its left.
    assert near(fields[0], (-20, 0, -45), 11), fields
    assert all(near(field, fields[0], 0.6) for field in fields), fields

print("ok")
