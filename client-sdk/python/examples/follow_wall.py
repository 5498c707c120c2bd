"""Keeps a wall 60 cm away on the right-hand side, until Ctrl-C."""

import amber


def nearest_mm(scan, from_deg, to_deg):
    nearest = scan.nearest(from_deg, to_deg)
    return nearest.distance_mm if nearest else 5000


# Without new scans, the wheels stop after half a second.
with amber.Robot(validity=0.5) as robot:
    wheels = robot.wheels()
    for scan in robot.laser().scans():
        if nearest_mm(scan, -25, 25) < 700:
            wheels.drive(amber.WheelSpeeds.sides(-100, 100))  # mm/s; turn left
        else:
            # Far from the wall, the left wheels are faster: to the right.
            turn = max(-100, min((nearest_mm(scan, 40, 120) - 600) / 4, 100))
            wheels.drive(amber.WheelSpeeds.sides(200 + turn, 200 - turn))
