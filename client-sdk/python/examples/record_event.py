"""Keeps what happened before and after the robot came close to something."""

import subprocess
import time

import amber

with amber.Robot() as robot:
    for scan in robot.laser().scans():
        near = scan.nearest(-30, 30)
        if near and near.distance_mm < 400:
            print(f"{near.distance_mm} mm ahead")
            time.sleep(2)  # record what happens next
            subprocess.run(["amber", "snapshot", "close"], check=True)
            break
