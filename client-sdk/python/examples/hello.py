"""Says what is nearest to the robot, and how fast its wheels turn."""

import amber

with amber.Robot() as robot:
    nearest = robot.laser().scan().nearest()
    if nearest:
        print(f"an object is {nearest.distance_mm} mm away, at {nearest.angle_deg:.0f} degrees")
    print(robot.wheels().speeds())
