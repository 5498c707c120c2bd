"""Reads the simulated laser scanner at the port argv[1], of the model argv[2], at the pose argv[3].

Prints "ok" on success. The pose is x, y and heading in the plane frame of the simulation: metres, and
radians counter-clockwise. Further arguments are the walls: x1,y1,x2,y2.
"""

import math
import sys

from lds2d import Lidar

port, model = sys.argv[1:3]
x, y, heading = (float(number) for number in sys.argv[3].split(","))
walls = [tuple(float(number) for number in wall.split(",")) for wall in sys.argv[4:]]


def distance_mm(degrees):
    """The distance of the nearest wall, in degrees clockwise from ahead."""
    angle = heading - math.radians(degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    nearest = math.inf
    for x1, y1, x2, y2 in walls:
        along_x, along_y = x2 - x1, y2 - y1
        cross = cos * along_y - sin * along_x
        if abs(cross) < 1e-12:
            continue
        way = ((x1 - x) * along_y - (y1 - y) * along_x) / cross
        part = ((x1 - x) * sin - (y1 - y) * cos) / cross
        if way > 0 and 0 <= part <= 1:
            nearest = min(nearest, way)
    return nearest * 1000


def is_true(point):
    """Whether a point is on a wall. At edges, its angle may be a little off."""
    offs = sorted(range(-6, 7), key=abs)
    return any(
        abs(distance_mm(point.angle_deg + off / 10) - point.dist_mm) < 40 for off in offs
    )


with Lidar.open(model, port) as lidar:
    # While the motor gets up to its speed, turns have more points.
    scans = (scan for scan in lidar.scans() if abs(scan.scan_freq_hz - 10) < 0.01)
    for _ in range(3):
        next(scans)
    for _ in range(10):
        scan = next(scans)
        assert 430 <= len(scan) <= 470, len(scan)
        points = scan.valid_points
        assert len(points) > 400, len(points)
        wrong = [point for point in points if not is_true(point)]
        # A few are ghosts, as those of the real scanner: near and weak.
        assert len(wrong) <= 5, wrong
        assert all(point.dist_mm < 80 and point.quality <= 80 for point in wrong), wrong
print("ok")
