"""Reads the simulated RPLIDAR A1 at the port argv[1].

Prints "ok" on success. argv[2] is the model, and further arguments are for foreign_walls.
"""

import contextlib
import itertools
import sys
import time

import serial
from foreign_walls import is_on_wall
from lds2d import Lidar
from pyrplidar import PyRPlidar

port, model = sys.argv[1:3]

# A pseudo-terminal has no such lines.
serial.Serial._update_dtr_state = lambda _: None
serial.Serial._update_rts_state = lambda _: None


def check(points):
    """Whether nearly all of these points, angles and distances, are on a wall."""
    measured = [point for point in points if point[1] > 0]
    wrong = [point for point in measured if not is_on_wall(*point)]
    assert len(measured) > 0.9 * len(points), (len(measured), len(points))
    assert len(wrong) < 0.01 * len(points), wrong


def read_with_lds2d():
    """Single nodes."""
    with Lidar.open(f"RPLIDAR-{model.upper()}", port) as lidar:
        scans = list(itertools.islice(lidar.scans(), 10))
        lidar.stop()
    check([(point.angle_deg, point.dist_mm) for scan in scans for point in scan.points])


def read_with_pyrplidar():
    """Questions, single nodes, and the capsules of the modes Express and Sensitivity."""
    lidar = PyRPlidar()
    lidar.connect(port=port, baudrate=115200, timeout=3)
    lidar.stop()
    time.sleep(0.1)
    lidar.lidar_serial._serial.reset_input_buffer()
    info = lidar.get_info()
    assert (info.model, info.firmware_major, info.firmware_minor) == (0x18, 1, 29), str(info)
    assert info.serialnumber == "92D8ED93C0EA98C9A5E698F207064669"
    assert lidar.get_health().status == 0
    rate = lidar.get_samplerate()
    assert (rate.t_standard, rate.t_express) == (508, 254), str(rate)
    names = [mode.name for mode in lidar.get_scan_modes()]
    assert names == ["Standard", "Express", "Boost", "Sensitivity", "Stability"], names
    assert lidar.get_scan_mode_typical() == 3
    for mode in (None, 1, 3):
        scan = lidar.start_scan() if mode is None else lidar.start_scan_express(mode)
        points = list(itertools.islice(scan(), 4000))
        check([(point.angle, point.distance) for point in points])
        lidar.stop()
        time.sleep(0.1)
        lidar.lidar_serial._serial.reset_input_buffer()
    lidar.disconnect()


# It prints what it does.
with contextlib.redirect_stdout(sys.stderr):
    read_with_lds2d()
    read_with_pyrplidar()
print("ok")
