#!/usr/bin/env python3
"""A driver for a user-defined device: the warmest sensor of this computer.

    amber mediator --driver '201:0=python3 thermometer_driver.py'

Its description is in ../thermometer.proto. Needs the package `amber`.
"""

import glob
import os

import amber

HERE = os.path.dirname(os.path.abspath(__file__))
thermometer = amber.load_proto(os.path.join(HERE, "..", "thermometer.proto"))


class Thermometer(thermometer.ThermometerDriver):
    period = 1.0  # seconds between two publications

    def temperature(self):
        readings = list(read_sensors())
        if not readings:
            return thermometer.Temperature()
        celsius, sensor = max(readings)
        return thermometer.Temperature(celsius=celsius, sensor=sensor)

    def temperatures(self):
        return self.temperature()


def read_sensors():
    """The temperature and name of each sensor in Linux."""
    for zone in glob.glob("/sys/class/thermal/thermal_zone*"):
        try:
            with open(os.path.join(zone, "temp")) as file:
                celsius = int(file.read()) / 1000.0  # the kernel reports thousandths
            with open(os.path.join(zone, "type")) as file:
                yield celsius, file.read().strip()
        except (OSError, ValueError):
            continue


if __name__ == "__main__":
    amber.serve(Thermometer())
