#!/usr/bin/env python3
"""Lets the demo's robot drive a tour of the flat with each laser scanner, and counts what it reached
and what it touched.

  scripts/bench tours [--amber PATH] [--runs N] [--json] [SCANNER...]

Everything runs in real time, and with the real drivers: a tour takes a minute or two. It exits with 1
if a target was not reached or a wall was touched.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from bus import ROOT, Robot

SCANNERS = {
    "urg-04lx": "hokuyo = true",
    "ld06": 'ldrobot = "ld06"',
    "ld19": 'ldrobot = "ld19"',
    "stl-27l": 'ldrobot = "stl-27l"',
    "ld14p": 'ldrobot = "ld14p"',
    "a1": 'rplidar = "a1"',
    "a2": 'rplidar = "a2"',
    "a3": 'rplidar = "a3"',
    "c1": 'rplidar = "c1"',
    "s1": 'rplidar = "s1"',
    "s2": 'rplidar = "s2"',
    "s3": 'rplidar = "s3"',
    "x2": 'ydlidar = "x2"',
    "x4": 'ydlidar = "x4"',
    "x4-pro": 'ydlidar = "x4-pro"',
    "g2": 'ydlidar = "g2"',
    "g4": 'ydlidar = "g4"',
    "t-mini": 'ydlidar = "t-mini"',
}
#: Rooms of the flat: bath, hall, the room that is farthest, and back.
TOUR = [("3.35", "1"), ("3.5", "2.6"), ("5.7", "4.4"), ("1.4", "1")]
#: A target takes half a minute at most.
PATIENCE_S = 180.0


class Demo:
    """A demo of a robot with this scanner."""

    def __init__(self, amber, folder, scanner):
        self.amber = amber
        self.environment = {**os.environ, "AMBER_SIM_DIR": os.path.join(folder, "sim")}
        self.environment.pop("AMBER_MEDIATOR", None)
        file = os.path.join(folder, "robot.toml")
        with open(file, "w", encoding="utf-8") as out:
            out.write(f'name = "tours"\n[parts]\ndiffdrive = "bridge"\n{SCANNERS[scanner]}\n')
        self.process = subprocess.Popen(
            [amber, "demo", "--robot", file, "--port", "0", "--no-dashboard"], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=self.environment)
        found = None
        for line in self.process.stdout:
            found = re.search(r"listening on (127\.0\.0\.1:\d+)", line)
            if found:
                break
        if not found:
            raise SystemExit("error: the demo did not start")
        self.address = found.group(1)
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def run(self, *words):
        """What a command prints; None if it fails."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                [self.amber, "-m", self.address, *words], capture_output=True, text=True,
                env=self.environment, timeout=PATIENCE_S, check=False)
            if done.returncode == 0:
                return done.stdout
            print(f"  {' '.join(words)}: {done.stderr.strip()}", file=sys.stderr)
        return None

    def has_pose(self):
        command = [self.amber, "-m", self.address, "call", "location", "pose", "--json"]
        done = subprocess.run(command, capture_output=True, env=self.environment, check=False)
        return done.returncode == 0 and json.loads(done.stdout).get("p", 0) > 0.9

    def contacts(self):
        command = [self.amber, "sim", "state", "--json"]
        done = subprocess.run(command, capture_output=True, env=self.environment, check=True)
        return json.loads(done.stdout)["contacts"]

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=30)


def tour(amber, scanner):
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(amber, folder, scanner)
        try:
            Robot.wait_for("a pose", demo.has_pose, 60.0)
            began = time.monotonic()
            reached = sum(demo.run("goto", x, y) is not None for x, y in TOUR)
            return reached, demo.contacts(), time.monotonic() - began
        finally:
            demo.close()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = os.path.join(ROOT, "target/dist/amber")
    parser.add_argument("scanners", nargs="*", metavar="SCANNER", help=f"of: {', '.join(SCANNERS)}")
    parser.add_argument("--amber", default=usual, help="the program to measure")
    parser.add_argument("--runs", type=int, default=20, help="tours with each [default: 20]")
    parser.add_argument("--json", action="store_true", help="one object per scanner")
    options = parser.parse_args()
    wrong = [scanner for scanner in options.scanners if scanner not in SCANNERS]
    if wrong:
        parser.error(f"no such scanner: {wrong[0]}; there are {', '.join(SCANNERS)}")
    if not options.json:
        print("| scanner | tours | targets reached | contacts | mean time of a tour |")
        print("|---|---|---|---|---|")
    is_good = True
    for scanner in options.scanners or SCANNERS:
        tours = [tour(options.amber, scanner) for _ in range(options.runs)]
        reached, contacts = (sum(one[index] for one in tours) for index in (0, 1))
        mean_s = sum(one[2] for one in tours) / len(tours)
        targets = len(TOUR) * options.runs
        is_good &= reached == targets and contacts == 0
        if options.json:
            row = {"scanner": scanner, "tours": options.runs, "targets": targets,
                   "reached": reached, "contacts": contacts, "mean_s": round(mean_s, 1)}
            print(json.dumps(row), flush=True)
        else:
            print(f"| {scanner} | {options.runs} | {reached} of {targets} | {contacts} "
                  f"| {mean_s:.0f} s |", flush=True)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
