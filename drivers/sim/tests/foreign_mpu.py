"""Reads the simulated motion sensor argv[2] on the bus at the Unix socket argv[1].

The code for the chips is that of others; only the bus is replaced, in
simbus.py. argv[3] names the library. Prints "ok" on success.
"""

import math
import sys
import time

from simbus import Bus, SMBus, mean, near

path, model, library = sys.argv[1:]
SMBus.path = path
# The largest bias of the gyroscope, and 28 degrees.
most_bias = 20.5 if model == "mpu6050" else 5.5

if library == "adafruit_mpu6050":
    import adafruit_mpu6050

    sensor = adafruit_mpu6050.MPU6050(Bus(path))
    rates = []
    for reach in range(4):
        sensor.accelerometer_range = reach
        sensor.gyro_range = reach
        accel = mean(lambda: sensor.acceleration)
        assert near(accel, (0, 0, 9.8), 0.25), (reach, accel)
        rates.append([math.degrees(axis) for axis in mean(lambda: sensor.gyro)])
    # At rest the reading is the bias, whatever the range.
    assert near(rates[0], (0, 0, 0), most_bias), rates
    assert all(near(rate, rates[0], 0.2) for rate in rates), rates
    assert abs(sensor.temperature - 28) < 0.1, sensor.temperature
    sensor.sleep = True
    frozen = sensor.acceleration
    assert near(mean(lambda: sensor.acceleration), frozen, 1e-6)
elif library == "mpu6050":
    import mpu6050

    sensor = mpu6050.mpu6050(0x68)
    # It reads the two bytes of a value one after the other: 50 samples per second seldom change between.
    for register, value in ((0x1A, 3), (0x19, 19)):
        sensor.bus.write_byte_data(0x68, register, value)
    time.sleep(0.1)
    rates = []
    for accel_range, gyro_range in ((0x00, 0x00), (0x08, 0x08), (0x10, 0x10), (0x18, 0x18)):
        sensor.set_accel_range(accel_range)
        sensor.set_gyro_range(gyro_range)
        time.sleep(0.03)

        def read(values):
            return values["x"], values["y"], values["z"]

        accel = mean(lambda: read(sensor.get_accel_data(g=True)))
        assert near(accel, (0, 0, 1), 0.1), accel
        rates.append(mean(lambda: read(sensor.get_gyro_data()), 50))
    assert near(rates[0], (0, 0, 0), most_bias), rates
    assert all(near(rate, rates[0], 1) for rate in rates), rates
    # A copy has another scale.
    assert abs(sensor.get_temp() - 28) < 0.1 or model == "copy", sensor.get_temp()
else:
    assert library == "mpu9250_jmdev.mpu_9250"
    from mpu9250_jmdev import registers
    from mpu9250_jmdev.mpu_9250 import MPU9250

    sensor = MPU9250(
        address_ak=registers.AK8963_ADDRESS,
        address_mpu_master=registers.MPU9050_ADDRESS_68,
        address_mpu_slave=None,
        bus=1,
        gfs=registers.GFS_500,
        afs=registers.AFS_4G,
        mfs=registers.AK8963_BIT_16,
        mode=registers.AK8963_MODE_C100HZ,
    )
    sensor.configure()
    assert near(mean(sensor.readAccelerometerMaster), (0, 0, 1), 0.03)
    assert near(mean(sensor.readGyroscopeMaster), (0, 0, 0), most_bias)
    assert abs(sensor.readTemperatureMaster() - 28) < 0.5
    # 20 uT to the north and 45 uT down, and up to 10 uT from the robot itself. The robot faces east, so
    # north is on its left. The magnetometer has x ahead, y to the right and z down.
    field = mean(sensor.readMagnetometerMaster)
    assert near(field, (0, -20, 45), 11), field

print("ok")
