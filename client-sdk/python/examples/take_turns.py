"""Turns the robot once nobody else drives it. Start it twice."""

import time

import amber

with amber.Robot() as robot:
    print("waiting")
    with robot.take_wheels("take_turns", wait=True):
        print("driving")
        robot.wheels().drive(amber.WheelSpeeds.sides(150, -150))  # mm/s
        time.sleep(2)
        print("done")
    # The lease is released: the wheels stop.
