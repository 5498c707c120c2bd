"""Reads the simulated ICM-20948 on the bus at the Unix socket argv[1].

The code for the sensor is Adafruit's; only the bus is replaced, in simbus.py. It reads the magnetometer
by the sensor's own bus. Prints "ok" on success.
"""

import math
import sys
import time

from simbus import Bus, mean, near

import adafruit_icm20x

sensor = adafruit_icm20x.ICM20948(Bus(sys.argv[1]))
sensor.accelerometer_data_rate_divisor = 4
sensor.gyro_data_rate_divisor = 4
for reach in (2, 4, 8, 16):
    sensor.accelerometer_range = getattr(adafruit_icm20x.AccelRange, f"RANGE_{reach}G")
    time.sleep(0.02)
    accel = mean(lambda: sensor.acceleration)
    assert near(accel, (0, 0, 9.8), 0.2), (reach, accel)
rates = []
for reach in (250, 500, 1000, 2000):
    sensor.gyro_range = getattr(adafruit_icm20x.GyroRange, f"RANGE_{reach}_DPS")
    rates.append([math.degrees(axis) for axis in mean(lambda: sensor.gyro, 50)])
# At rest the reading is the bias, whatever the range.
assert near(rates[0], (0, 0, 0), 5.5), rates
assert all(near(rate, rates[0], 0.2) for rate in rates), rates

# 20 uT to the north and 45 uT down, and up to 10 uT from the robot itself. The robot faces east, so
# north is on its left. The magnetometer has x to the right, y back and z down.
field = mean(lambda: sensor.magnetic)
assert near(field, (-20, 0, 45), 11), field

print("ok")
