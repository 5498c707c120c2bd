"""Reads the simulated YDLIDAR at the port argv[1], of the model argv[2].

Prints "ok" on success. Further arguments are for foreign_walls.
"""

import sys

from foreign_walls import is_on_wall
from lds2d import Lidar

port, model = sys.argv[1:3]
# A G4 sends what an X4 sends, but faster.
name, points_of_a_turn, takes_commands = {
    "x2": ("X2", 429, False),
    "x4": ("X4", 714, True),
    "x4-pro": ("X4-PRO", 714, False),
    "g4": ("X4", 1285, True),
}[model]

with Lidar.open(f"YDLIDAR-{name}", port) as lidar:
    if takes_commands:
        lidar.start()
    scans = lidar.scans()
    # The first turn is not complete.
    for _ in range(2):
        next(scans)
    for _ in range(10):
        scan = next(scans)
        # At its ends, angles that are corrected for the sideways view may change their order.
        assert abs(len(scan) - points_of_a_turn) < 30, len(scan)
        measured = [point for point in scan.points if point.dist_mm > 0]
        wrong = [point for point in measured if not is_on_wall(point.angle_deg, point.dist_mm)]
        assert len(measured) > 0.9 * len(scan), (len(measured), len(scan))
        assert len(wrong) < 0.01 * len(scan), wrong
    if takes_commands:
        lidar.stop()
print("ok")
