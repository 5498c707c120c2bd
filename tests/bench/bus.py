#!/usr/bin/env python3
"""Measures how much of the serial bus to the wheels, and how much CPU time, the programs use that
follow the wheel speeds.

  scripts/bench bus [--amber PATH] [--seconds N] [--json]

It runs the simulated robot with its RoboClaw driver behind a relay that counts bytes, and 0, 1, 4 and
7 drivers that follow the wheel speeds. To compare two versions, run it with --amber for each.
"""

import argparse
import contextlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import threading
import time
import tty

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAP = os.path.join(ROOT, "drivers/map/maps/flat.roson")
LASER = "--laser-offset-mm 0"
#: What follows the wheel speeds, in this order.
USERS = [
    f"location:0=amber driver location {LASER} --map {MAP}",
    f"collision-avoidance:0=amber driver collision_avoidance {LASER}",
    f"drive-to-point:0=amber driver drive_to_point {LASER} --map {MAP}",
    f"pid-follow-trajectory:0=amber driver pid_follow_trajectory {LASER}",
    f"location:1=amber driver location {LASER} --map {MAP}",
    f"location:2=amber driver location {LASER} --map {MAP}",
    f"location:3=amber driver location {LASER} --map {MAP}",
]
COUNTS = [0, 1, 4, 7]
#: Bits per second of the bus of the Capo robot, and bits per byte on it.
BAUD = 38400
BITS = 10
#: Until all drivers have found their devices.
SETTLE_S = 5.0


class Tap:
    """A serial port that forwards to another one, and counts bytes and packets to the controllers."""

    def __init__(self, path):
        self.port = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.port)
        # The own end stays open, so that the driver may open and close its end.
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        self.path = os.ttyname(self.slave)
        self.sent = self.received = self.packets = 0
        self.is_closed = False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while not self.is_closed:
            ready, _, _ = select.select([self.port, self.master], [], [], 0.2)
            for one in ready:
                with contextlib.suppress(OSError):
                    data = os.read(one, 4096)
                    if one == self.master:
                        # The driver waits for each reply, so a read is a packet.
                        self.packets += 1
                        self.sent += len(data)
                        os.write(self.port, data)
                    else:
                        self.received += len(data)
                        os.write(self.master, data)

    def counts(self):
        return self.packets, self.sent + self.received

    def close(self):
        self.is_closed = True


class Robot:
    """The simulation, a mediator and its drivers."""

    def __init__(self, amber, folder, drivers):
        self.amber = amber
        self.environment = {**os.environ, "AMBER_SIM_DIR": os.path.join(folder, "sim")}
        self.environment.pop("AMBER_MEDIATOR", None)
        sim = self.environment["AMBER_SIM_DIR"]
        self.simulation = self._background(["sim", "--dir", sim, "--map", MAP], None)
        control = os.path.join(sim, "control")
        self.wait_for("the simulation", lambda: os.path.exists(control))
        self.tap = Tap(os.path.join(sim, "roboclaw"))
        arguments = ["mediator", "--listen", "127.0.0.1:0"]
        for driver in [
            f"roboclaw:0=amber driver roboclaw --port {self.tap.path}",
            f"hokuyo:0=amber driver hokuyo --port {sim}/hokuyo",
            *drivers,
        ]:
            arguments += ["--driver", driver]
        self.mediator = self._background(arguments, subprocess.PIPE)
        found = None
        for line in self.mediator.stdout:
            found = re.search(r"127\.0\.0\.1:\d+", line)
            if found:
                break
        if not found:
            raise SystemExit("error: the mediator did not start")
        self.address = found.group(0)
        threading.Thread(target=self.mediator.stdout.read, daemon=True).start()

    def _background(self, arguments, output):
        return subprocess.Popen(
            [self.amber, *arguments],
            stdout=output or subprocess.DEVNULL,
            stderr=subprocess.STDOUT if output else subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env=self.environment,
            text=True,
        )

    @staticmethod
    def wait_for(what, is_so, seconds=30.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if is_so():
                return
            time.sleep(0.01)
        raise SystemExit(f"error: {what}: not within {seconds:g} s")

    def pids(self):
        """The processes of the drivers by device."""
        command = [self.amber, "--mediator", self.address, "devices", "--json"]
        done = subprocess.run(command, capture_output=True, env=self.environment, check=True)
        rows = json.loads(done.stdout)["devices"]
        return {row["device"]: row["pid"] for row in rows if row["pid"]}

    def close(self):
        self.mediator.terminate()
        self.mediator.wait(timeout=20)
        self.tap.close()
        self.simulation.terminate()
        self.simulation.wait(timeout=20)


def cpu_s(pid):
    """The CPU time of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(amber, count, seconds):
    with tempfile.TemporaryDirectory() as folder:
        robot = Robot(amber, folder, USERS[:count])
        try:
            names = [user.split("=")[0] for user in USERS[:count]]
            robot.wait_for("all drivers", lambda: set(names) <= set(robot.pids()))
            time.sleep(SETTLE_S)
            pids = robot.pids()
            processes = {
                "wheels": [pids["roboclaw:0"]],
                "mediator": [robot.mediator.pid],
                "users": [pids[name] for name in names],
            }
            before = {name: sum(map(cpu_s, of)) for name, of in processes.items()}
            packets, count_bytes = robot.tap.counts()
            started = time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - started
            more_packets, more_bytes = robot.tap.counts()
            after = {name: sum(map(cpu_s, of)) for name, of in processes.items()}
            bytes_per_s = (more_bytes - count_bytes) / took
            return {
                "users": count,
                "packets_per_s": round((more_packets - packets) / took, 1),
                "bytes_per_s": round(bytes_per_s),
                "bus_percent": round(100 * bytes_per_s * BITS / BAUD, 1),
                **{
                    f"{name}_cpu_percent": round(100 * (after[name] - before[name]) / took, 2)
                    for name in processes
                },
            }
        finally:
            robot.close()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = os.path.join(ROOT, "target/dist/amber")
    parser.add_argument("--amber", default=usual, help="the program to measure")
    parser.add_argument("--seconds", type=float, default=20.0, help="per row [default: 20]")
    parser.add_argument("--json", action="store_true", help="one object per row")
    options = parser.parse_args()
    if not options.json:
        print("| programs that follow the speeds | packets/s | bytes/s | bus | CPU wheels "
              "| CPU mediator | CPU programs |")
        print("|---|---|---|---|---|---|---|")
    for count in COUNTS:
        row = measure(options.amber, count, options.seconds)
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            print(f"| {row['users']} | {row['packets_per_s']} | {row['bytes_per_s']} "
                  f"| {row['bus_percent']} % | {row['wheels_cpu_percent']} % "
                  f"| {row['mediator_cpu_percent']} % | {row['users_cpu_percent']} % |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
