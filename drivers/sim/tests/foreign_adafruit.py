"""Reads the simulated chips on the bus at the Unix socket argv[1].

The code for the chips is Adafruit's; only the bus and the parts of their
boards are replaced, in simbus.py. Prints "ok" on success.
"""

import math
import sys
import time

from simbus import Bus, mean, near

import adafruit_l3gd20
import adafruit_lsm303_accel
import adafruit_lsm303dlh_mag

bus = Bus(sys.argv[1])

# Their scale is the range divided by 2048; the scale of the data sheet is 2.4 % larger.
accel = adafruit_lsm303_accel.LSM303_Accel(bus)
assert accel._chip_id == 0x33
accel.data_rate = adafruit_lsm303_accel.Rate.RATE_400_HZ
for mode in (1, 0, 2):
    accel.mode = mode
    for reach in range(3):
        accel.range = reach
        time.sleep(0.02)
        seen = mean(lambda: accel.acceleration)
        # In eight bits, one step is up to 0.6 m/s^2.
        error = (0.45, 0.6, 1.0)[(1, 0, 2).index(mode)]
        assert near(seen, (0, 0, 9.8), error), (mode, reach, seen)

ranges = (
    adafruit_l3gd20.L3DS20_RANGE_250DPS,
    adafruit_l3gd20.L3DS20_RANGE_500DPS,
    adafruit_l3gd20.L3DS20_RANGE_2000DPS,
)
rates = []
for reach in ranges:
    gyro = adafruit_l3gd20.L3GD20_I2C(bus, rng=reach, rate=adafruit_l3gd20.L3DS20_RATE_800HZ)
    time.sleep(0.3)
    rates.append([math.degrees(axis) for axis in mean(lambda: gyro.gyro, 50)])
# At rest the reading is the bias, whatever the range.
assert near(rates[0], (0, 0, 0), 5.5), rates
assert near(rates[1], rates[0], 0.3) and near(rates[2], rates[0], 0.3), rates

magnet = adafruit_lsm303dlh_mag.LSM303DLH_Mag(bus)
magnet.mag_rate = adafruit_lsm303dlh_mag.MAGRATE_220
fields = []
for gain in (0x20, 0x40, 0x60, 0x80, 0xA0, 0xC0, 0xE0):
    magnet.mag_gain = gain
    time.sleep(0.02)
    fields.append(mean(lambda: magnet.magnetic))
# 20 uT to the north and 45 uT down, and up to 10 uT from the robot itself. The robot faces east, so
# north is on its left.
assert near(fields[0], (-20, 0, -45), 11), fields
assert all(near(field, fields[0], 0.6) for field in fields), fields

# Libraries use this register to tell a DLHC from a DLH.
assert bus.transfer(0x1E, b"\x0f", 1) == b"\x3c"

print("ok")
