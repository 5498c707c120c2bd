#!/usr/bin/env python3
"""Queries a thermometer, and subscribes to it for some seconds.

    python3 thermometer_client.py [HOST[:PORT]]
"""

import os
import sys

import amber

HERE = os.path.dirname(os.path.abspath(__file__))
thermometer = amber.load_proto(os.path.join(HERE, "..", "thermometer.proto"))


def show(temperature):
    if temperature.HasField("celsius"):
        print(f"{temperature.celsius:.1f} degrees ({temperature.sensor})")
    else:
        print("no sensor")


def main():
    with amber.Client(sys.argv[1] if len(sys.argv) > 1 else None) as robot:
        device = thermometer.Thermometer(robot, 0)
        show(device.temperature())
        with device.temperatures() as temperatures:
            for _ in range(3):
                show(temperatures.next(timeout=5.0))


if __name__ == "__main__":
    try:
        main()
    except (amber.AmberError, TimeoutError) as error:
        sys.exit(f"error: {error}")
