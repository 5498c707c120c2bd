"""Runs ``amber`` with the arguments of ``python3 -m amber_robot_mediator``."""

import os
import sys

from . import find_amber

if __name__ == "__main__":
    program = find_amber()
    sys.stdout.flush()
    os.execv(program, [program, *sys.argv[1:]])
