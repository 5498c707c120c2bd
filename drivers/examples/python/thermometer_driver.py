#!/usr/bin/env python3
"""A driver for a user-defined device: the warmest sensor of this computer.

    amber mediator --driver '201:0=python3 thermometer_driver.py'

Its messages are in ../thermometer.proto. Needs the package `amber`.
"""

import glob
import os

import amber

HERE = os.path.dirname(os.path.abspath(__file__))
thermometer = amber.load_proto(os.path.join(HERE, "..", "thermometer.proto"))


class Thermometer(amber.Driver):
    period = 1.0  # seconds between two publications

    def request(self, request):
        if request.message.HasExtension(thermometer.get_temperature):
            return self.publish()
        return super().request(request)

    def publish(self):
        message = amber.DriverMsg()
        temperature = message.Extensions[thermometer.temperature]
        temperature.SetInParent()  # present even if no sensor can be read
        readings = list(read_sensors())
        if readings:
            temperature.celsius, temperature.sensor = max(readings)
        return message


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
