"""Drives a square of 30 cm by time and speed alone."""

import time

import amber

with amber.Robot() as robot:
    wheels = robot.wheels()
    for _ in range(4):
        wheels.drive(amber.WheelSpeeds.all(250))  # mm/s
        time.sleep(1.2)
        wheels.drive(amber.WheelSpeeds.sides(250, -250))  # to the right
        time.sleep(1.32)
# The client has left: the wheels stop.
