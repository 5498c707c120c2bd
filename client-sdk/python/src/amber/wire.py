"""The standard output of a driver, which carries frames and nothing else. IO.

``import amber`` reserves it at once in a process that a mediator of this
project has started as a driver. In all other processes, :func:`amber.serve`
or :func:`claim_stdout` does.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from typing import BinaryIO

_STDOUT = 1
_STDERR = 2

_wire: BinaryIO | None = None


def claim_stdout() -> BinaryIO:
    """Reserves stdout for frames and returns it as an unbuffered binary file.

    From then on ``print``, libraries in C and child processes write to stderr,
    which goes to the log of the mediator. Further calls return the same file.
    """
    global _wire
    if _wire is None:
        wire = os.fdopen(os.dup(_STDOUT), "wb", buffering=0)
        os.dup2(_STDERR, _STDOUT)
        # Text that is still in the buffer of the old object also goes to stderr.
        sys.stdout = sys.stderr
        _wire = wire
    return _wire


def claim_stdout_of_driver() -> None:
    """Reserves stdout if a mediator of this project started this process."""
    # Fails only with a closed stdout or stderr; `serve` reports that.
    with contextlib.suppress(OSError):
        if _is_driver():
            claim_stdout()


def _is_driver() -> bool:
    # Children of a driver inherit the variable, but not its process group.
    return (
        "AMBER_DEVICE" in os.environ
        and os.name == "posix"
        and os.getpgrp() == os.getpid()
        and stat.S_ISFIFO(os.fstat(_STDOUT).st_mode)
    )
