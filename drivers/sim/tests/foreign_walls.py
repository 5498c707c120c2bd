"""The walls around a simulated laser scanner, for the scripts that read one.

Reads the pose argv[3] and the walls behind it. The pose is x, y and heading in the plane frame of the
simulation: metres, and radians counter-clockwise. Each wall is x1,y1,x2,y2.
"""

import math
import sys

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


def is_on_wall(degrees, mm):
    """Whether a point is on a wall. At edges, its angle may be a little off."""
    offs = sorted(range(-6, 7), key=abs)
    return any(abs(distance_mm(degrees + off / 10) - mm) < 40 for off in offs)
