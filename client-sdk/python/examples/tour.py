"""Goes round the rooms of the demo's flat."""

import amber

ROOMS = {
    "kitchen": amber.Target(1.4, 1.0),  # metres on the map, y down
    "bath": amber.Target(3.35, 1.0),
    "bedroom": amber.Target(5.5, 1.0),
    "hall": amber.Target(3.5, 2.6),
}

with amber.Robot() as robot:
    drive = robot.drive_to_point()
    for room, target in ROOMS.items():
        print(f"{room}: {drive.drive_to(target)}")  # arrived, or why not
