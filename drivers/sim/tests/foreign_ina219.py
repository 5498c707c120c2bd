"""Reads the simulated INA219 on the bus at the Unix socket argv[1].

The code for the chip is Adafruit's; only the bus is replaced, in simbus.py.
The sensor measures 12.104 V, and 320 mA into the battery. Prints "ok" on
success.
"""

import sys
import time

from simbus import Bus, near

from adafruit_ina219 import INA219, ADCResolution, BusVoltageRange, Gain, Mode

sensor = INA219(Bus(sys.argv[1]))


def values():
    """Volts, and milliamperes, as the calibration of the library says."""
    time.sleep(0.01)
    return sensor.bus_voltage, sensor.shunt_voltage, sensor.current


# Their calibrations for a shunt of 100 mohm. The last two have a range of 16 V, and 40 mV.
for calibrate in ("32V_2A", "32V_1A", "16V_400mA"):
    getattr(sensor, f"set_calibration_{calibrate}")()
    assert near(values(), (12.104, -0.032, -320), 1e-6), (calibrate, values())
    assert abs(sensor.power - 3.873) < 0.003, (calibrate, sensor.power)
    assert sensor.raw_shunt_voltage == -3200 and sensor.raw_bus_voltage == 3026
    assert sensor.overflow == 0

sensor.set_calibration_32V_2A()
assert sensor.calibration == 0x1000 and sensor.raw_current == -3200
assert sensor.bus_voltage_range == BusVoltageRange.RANGE_32V
assert sensor.gain == Gain.DIV_8_320MV

# The mean of 128 samples takes 0.14 s, and the flag says when it is there.
sensor.bus_adc_resolution = ADCResolution.ADCRES_12BIT_128S
sensor.shunt_adc_resolution = ADCResolution.ADCRES_12BIT_128S
begin = time.monotonic()
while not sensor.conversion_ready:
    assert time.monotonic() - begin < 5
assert time.monotonic() - begin > 0.1
assert near(values(), (12.104, -0.032, -320), 1e-6), values()

# Asleep, it keeps its values.
sensor.mode = Mode.POWERDOWN
assert near(values(), (12.104, -0.032, -320), 1e-6), values()

# A reset loses the calibration.
sensor.reset = 1
assert sensor._raw_calibration == 0 and sensor.raw_current == 0
assert sensor.mode == Mode.SANDBVOLT_CONTINUOUS

print("ok")
