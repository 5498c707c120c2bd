"""Reads the simulated BNO055 on the bus at the Unix socket argv[1].

The code for the sensor is Adafruit's; only the bus is replaced, in simbus.py. Prints "ok" on success.
"""

import math
import sys
import time

from simbus import Bus, mean, near

import adafruit_bno055

time.sleep(0.5)
sensor = adafruit_bno055.BNO055_I2C(Bus(sys.argv[1]))
time.sleep(0.2)
assert near(mean(lambda: sensor.acceleration), (0, 0, 9.8), 0.2)
assert near(mean(lambda: sensor.gravity), (0, 0, 9.8), 0.2)
assert near(mean(lambda: sensor.linear_acceleration), (0, 0, 0), 0.1)
rates = [math.degrees(axis) for axis in mean(lambda: sensor.gyro)]
assert near(rates, (0, 0, 0), 1.2), rates
assert sensor.temperature == 28
# 20 uT to the north and 45 uT down, and up to 10 uT from the robot itself. The robot faces east, so
# north is on its left.
field = mean(lambda: sensor.magnetic)
assert near(field, (-20, 0, -45), 11), field
# The heading is as wrong as the field.
heading, roll, pitch = sensor.euler
seen = math.degrees(math.atan2(-field[0], field[1]))
assert abs(heading - seen) < 3, (heading, seen)
assert abs(roll) < 1 and abs(pitch) < 1, (roll, pitch)
w, x, y, z = sensor.quaternion
assert abs(w * w + x * x + y * y + z * z - 1) < 0.01
turned = (-2 * math.degrees(math.atan2(z, w))) % 360
assert abs(turned - heading) < 2, (turned, heading)

assert sensor.calibration_status[0] == 0
time.sleep(1.5)
# It has stood still, so its gyroscope is calibrated, and nothing else.
assert sensor.calibration_status == (0, 3, 0, 0), sensor.calibration_status
rates = [math.degrees(axis) for axis in mean(lambda: sensor.gyro)]
assert near(rates, (0, 0, 0), 0.2), rates
sensor.offsets_magnetometer = (7, -8, 9)
assert sensor.offsets_magnetometer == (7, -8, 9)
assert sensor.radius_accelerometer == 1000

print("ok")
