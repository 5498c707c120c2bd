"""The program ``amber``, which this package contains."""

from __future__ import annotations

import os
import sys
import sysconfig


def find_amber() -> str:
    """The path of the program. Raises FileNotFoundError if it is not where pip has put it."""
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", f"{os.name}_user"),
        # pip install --target FOLDER
        os.path.join(beside, "bin"),
        # pip install --prefix FOLDER: this is in FOLDER/lib/pythonX.Y/site-packages
        os.path.join(beside, "..", "..", "..", "bin"),
    ]
    for folder in folders:
        path = os.path.join(folder, "amber")
        if os.path.isfile(path):
            return path
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    raise FileNotFoundError(
        f"the program amber is in none of {', '.join(folders)}; "
        f"install it again: python{version} -m pip install --force-reinstall amber-robot-mediator"
    )
