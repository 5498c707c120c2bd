"""Turns the robot once nobody else drives it. Start it twice."""

import time

import amber

with amber.Client() as robot:
    print("waiting")
    with robot.device("roboclaw").lease("take_turns", wait=True):
        print("driving")
        robot.roboclaw().drive(amber.WheelSpeeds.sides(150, -150))  # mm/s
        time.sleep(2)
        print("done")
    # The lease is released: the wheels stop.
