"""Takes a picture."""

from pathlib import Path

import amber

with amber.Robot() as robot:
    picture = robot.camera().picture()
    Path("picture.jpg").write_bytes(picture.data)
    print(f"picture.jpg has {picture.width} x {picture.height} pixels")
