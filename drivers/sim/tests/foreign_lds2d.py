"""Reads the simulated laser scanner at the port argv[1], of the model argv[2].

Prints "ok" on success. Further arguments are for foreign_walls.
"""

import sys

from foreign_walls import is_on_wall
from lds2d import Lidar

port, model = sys.argv[1:3]

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
        wrong = [point for point in points if not is_on_wall(point.angle_deg, point.dist_mm)]
        # A few are ghosts, as those of the real scanner: near and weak.
        assert len(wrong) <= 5, wrong
        assert all(point.dist_mm < 80 and point.quality <= 80 for point in wrong), wrong
print("ok")
