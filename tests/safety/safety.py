"""Measures how long the simulated robot drives on when a process on the way of a command is killed
or frozen, or when the network of a client is cut.

  scripts/safety [--amber PATH] [--amber-zenoh PATH] [--runs N] [--jobs N] [--only TEXT] [--quick]
                 [--json]

Each row starts a demo, lets it drive, harms one process, and reads the speeds of the wheels from the
simulated world itself until they stand. The goal of each row: the wheels slow down within 0.6 s, and
then stand after their braking ramp, or roll out if the motors are released. --quick runs a part of the
rows once. Rows of operators need amber-zenoh, and rows with a browser the packages in
client-sdk/dashboard/tests/browser; without them, these rows are skipped.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import math
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import typing

from programs import (
    ROOT,
    Apollo,
    Browser,
    Galileo,
    JsonRelay,
    Processes,
    Relay,
    RflySim,
    StreamRelay,
    dashboard,
    rosbridge,
)

#: The time until the wheels must slow down.
GOAL_S = 0.6
#: The time in which they then stand, also if the motors are released and the wheels roll out.
BRAKES_S = 2.0
#: The wheels stand below this speed, in mm/s.
STANDS_MM_S = 2.0
#: The wheels slow down when they have less than this part of their speed.
SLOWS = 0.95
#: Longer than the idle stop of the wheels.
PATIENCE_S = 12.0
TURN = ["drive", "--left", "-150", "--right", "150", "--for", "20s"]
GOTO = ["goto", "1.4", "1"]
EXPLORE = ["map", "make", "--explore", "--json", "--force", "-o"]
MAP = os.path.join(ROOT, "drivers/map/maps/flat.roson")
#: Lets the gateway for Apollo take wheel speeds.
APOLLO = """send = []
[[receive]]
message = "raw"
device = "roboclaw:0"
bind = "127.0.0.1:0"
peer = "127.0.0.1"
"""
#: Runs a driver the first time that it is started. Later, it is a driver that never comes up.
ONCE = """#!/bin/sh
mkdir "$1" 2>/dev/null || exec sleep 3600
shift
exec "$@"
"""
#: Vehicles of demos that run at the same time have different ports; 4500 is the highest number.
VEHICLES = itertools.cycle(range(100 + os.getpid() % 4000, 4501))


class Demo:
    """A simulated robot with all its processes. The simulation is no child of the mediator, so that it
    outlives it."""

    def __init__(self, amber, folder, is_once=False):
        self.amber = amber
        self.folder = folder
        self.sim = os.path.join(folder, "sim")
        self.environment = {**os.environ, "AMBER_SIM_DIR": self.sim}
        self.environment.pop("AMBER_MEDIATOR", None)
        self.clients = []
        #: Processes of this script by name.
        self.pids = {}
        arguments = ["sim", "--dir", self.sim, "--map", MAP]
        self.simulation = self._background(arguments, subprocess.DEVNULL)
        control = os.path.join(self.sim, "control")
        self.wait_for("the simulation", lambda: os.path.exists(control))
        apollo, once = os.path.join(folder, "apollo.toml"), os.path.join(folder, "once")
        for path, text in [(apollo, APOLLO), (once, ONCE)]:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(once, 0o755)
        drivers = {
            "roboclaw:0": f"roboclaw --port {self.sim}/roboclaw",
            "hokuyo:0": f"hokuyo --port {self.sim}/hokuyo",
            "location:0": f"location --laser-offset-mm 0 --map {MAP}",
            "drive-to-point:0": f"drive_to_point --laser-offset-mm 0 --map {MAP}",
            "collision-avoidance:0": "collision_avoidance --laser-offset-mm 0",
            "mapping:0": "mapping --laser-offset-mm 0",
            "gateway:0": "galileo --listen 127.0.0.1:0",
            "gateway:1": "rosbridge --listen 127.0.0.1:0",
            "gateway:2": "json-relay --listen 127.0.0.1:0",
            "gateway:3": f"apollo --config {apollo}",
            "gateway:4": f"rflysim --vehicle {next(VEHICLES)} --allow-arm",
        }
        self.devices = set(drivers)
        arguments = ["mediator", "--listen", "127.0.0.1:0"]
        for device, driver in drivers.items():
            first = f"{once} {folder}/{device} {amber}" if is_once else "amber"
            arguments += ["--driver", f"{device}={first} driver {driver}"]
        self.process = self._background(arguments, subprocess.PIPE)
        found = None
        for line in self.process.stdout:
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if found:
                break
        if not found:
            raise SystemExit("error: the mediator did not start")
        self.mediator = ("127.0.0.1", int(found.group(1)))
        self.pids["mediator"] = self.process.pid
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def _background(self, arguments, output):
        # The log of the mediator and its address are on both streams.
        merged = subprocess.STDOUT if output == subprocess.PIPE else output
        return subprocess.Popen(
            [self.amber, *arguments],
            stdout=output,
            stderr=merged,
            stdin=subprocess.DEVNULL,
            env=self.environment,
            text=True,
        )

    def start(self, arguments, address=None):
        """Starts a client command."""
        address = address or "%s:%d" % self.mediator
        client = subprocess.Popen(
            [self.amber, "--mediator", address, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env=self.environment,
        )
        self.clients.append(client)
        return client

    def zenoh(self, name, arguments):
        """Starts a part of a fleet."""
        process = subprocess.Popen(
            [Operator.needs, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env=self.environment,
        )
        self.clients.append(process)
        self.pids[name] = process.pid

    def listening(self, gateway):
        """Where a gateway listens."""
        host, port = self.json("call", gateway, "status")["listening"][0].rsplit(":", 1)
        return host, int(port)

    def dashboard(self):
        """Starts a dashboard, and returns its address."""
        arguments = ["--mediator", "%s:%d" % self.mediator, "dashboard", "--listen", "127.0.0.1:0"]
        process = self._background(arguments, subprocess.PIPE)
        self.clients.append(process)
        found = re.search(r"http://([\d.]+):(\d+)", process.stdout.readline())
        self.pids["dashboard"] = process.pid
        return found.group(1), int(found.group(2))

    def json(self, *arguments):
        address = "%s:%d" % self.mediator
        done = subprocess.run(
            [self.amber, "--mediator", address, *arguments, "--json"],
            capture_output=True,
            env=self.environment,
            check=False,
        )
        return json.loads(done.stdout) if done.returncode == 0 else None

    def fastest_mm_s(self):
        """The true speed of the fastest wheel."""
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(5)
            control.connect(os.path.join(self.sim, "control"))
            control.sendall(b'{"do":"state"}\n')
            answer = control.makefile().readline()
        wheels = json.loads(answer)["state"]["wheels_mm_per_s"]
        return max(abs(speed) for speed in wheels.values())

    def wait_for(self, what, is_so, why=lambda: "", seconds=30.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if is_so():
                return
            time.sleep(0.005)
        raise RuntimeError(f"{what}: not within {seconds:g} s {why()}".strip())

    def pid_of(self, device):
        devices = self.json("devices")["devices"]
        return next(row["pid"] for row in devices if row["device"] == device)

    def lacks(self):
        """What is not ready yet, for people."""
        devices = (self.json("devices") or {"devices": []})["devices"]
        up = {row["device"] for row in devices if row["state"] == "up"}
        down = self.devices - up
        if down:
            return f"{sorted(down)}: {[row for row in devices if row['device'] in down]}"
        pose = self.json("call", "location", "pose")
        return "" if pose and pose["p"] > 0.8 else f"pose: {pose}"

    def end(self):
        pids = [it.pid for it in (*self.clients, self.process, self.simulation)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        for client in self.clients:
            client.kill()
            client.wait()
        for process in (self.process, self.simulation):
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Stop(typing.NamedTuple):
    """The seconds from the harm until the wheels slow down, and until they stand."""

    slows_s: float
    stands_s: float


NEVER = Stop(math.inf, math.inf)


def stop_after(demo, harm):
    """Does harm, and waits until the wheels stand."""
    slow_mm_s = SLOWS * demo.fastest_mm_s()
    began = time.monotonic()
    harm()
    slows = began
    stands = None
    while time.monotonic() - began < PATIENCE_S:
        at, speed_mm_s = time.monotonic(), demo.fastest_mm_s()
        if speed_mm_s > slow_mm_s:
            slows = at
        if speed_mm_s > STANDS_MM_S:
            stands = None
        elif stands is None:
            stands = at
        elif at - stands > 0.3:
            return Stop(slows - began, stands - began)
        time.sleep(0.003)
    return NEVER


class Operator(Processes):
    """An operator of a fleet who drives, with a router and the bridge of the robot."""

    #: The program amber-zenoh.
    needs = None

    def __init__(self, demo):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        router = f"tcp/127.0.0.1:{port}"
        demo.zenoh("router", ["router", "--listen", router])
        mediator = "%s:%d" % demo.mediator
        robot = ["robot", "--name", "r1", "--mediator", mediator, "--connect", router]
        demo.zenoh("bridge", robot)
        self.relay = StreamRelay(("127.0.0.1", port))
        via = ["--connect", f"tcp/{self.relay.address}", "--operator", "bob", "--robot", "r1"]
        command = [self.needs, "with", *via, "--devices", "roboclaw:0", "--", demo.amber, *TURN]
        # The bridge may not be there yet.
        again = ["sh", "-c", 'until "$@"; do sleep 0.2; done', "again", *command]
        # amber-zenoh starts a mediator of its own.
        path = os.path.dirname(demo.amber) + os.pathsep + os.environ["PATH"]
        environment = {**demo.environment, "PATH": path}
        super().__init__(again, environment, stdout=subprocess.DEVNULL)

    def cut(self):
        self.relay.is_cut = True

    def close(self):
        super().close()
        self.relay.close()


class Row:
    """One process, and what happens to it."""

    def __init__(self, what, command, target, how, is_quick=False, is_once=False):
        self.what, self.command, self.target, self.how = what, command, target, how
        self.is_quick = is_quick
        #: Drivers that were killed do not come back.
        self.is_once = is_once

    @property
    def name(self):
        how = self.how if isinstance(self.how, str) else self.how.name
        return f"{self.what}, {how}"

    @property
    def missing(self):
        """What is needed and not there."""
        if self.command is Operator and Operator.needs is None:
            return "--amber-zenoh PATH"
        if self.command is Browser and not os.path.exists(Browser.needs):
            return Browser.needs
        return None

    def run(self, amber):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as last:
            demo = Demo(amber, folder, self.is_once)
            last.callback(demo.end)
            demo.wait_for("the demo is ready", lambda: not demo.lacks(), demo.lacks)
            harm = self.begin(demo, last)
            demo.wait_for("it drives", lambda: demo.fastest_mm_s() > 60)
            time.sleep(0.5)
            if harm is None:
                pid = demo.pids.get(self.target) or demo.pid_of(self.target)
                if self.how == STOP:
                    last.callback(thaw, pid)
                return stop_after(demo, lambda: os.kill(pid, self.how))
            return stop_after(demo, harm)

    def begin(self, demo, last):
        """Starts the client, and returns what harms it if it is the target."""
        if callable(self.command):
            program = self.command(demo)
            last.callback(program.close)
            harms = {STOP: program.freeze, KILL: program.kill, CUT: program.cut}
            return harms[self.how] if self.target == "client" else None
        command = self.command
        if command is EXPLORE:
            command = [*command, os.path.join(demo.folder, "map")]
        if self.how != CUT:
            demo.pids["client"] = demo.start(command).pid
            return None
        relay = Relay(demo.mediator)
        last.callback(relay.close)
        demo.start(command, relay.address)
        return lambda: setattr(relay, "is_cut", True)


def thaw(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


STOP, KILL, CUT = signal.SIGSTOP, signal.SIGKILL, "network cut"
TWIST = {"op": "publish", "topic": "/cmd_vel", "msg": {"angular": {"z": 0.7}}}
GOAL = {"op": "publish", "topic": "/goal", "msg": {"pose": {"position": {"x": 1.4, "y": -1}}}}
STICK = {"t": "drive", "left": -150, "right": 150, "guard": False}
GUARDED = {**STICK, "guard": True}
TARGET = {"t": "goal", "id": 1, "x": 1.4, "y": 1}

def rows_of(what, command, target, quick=(), hows=(STOP, KILL, CUT), **more):
    return [Row(what, command, target, how, how in quick, **more) for how in hows]


def driver_rows(what, command, device, quick=(), **more):
    """Rows of a driver. One that is killed starts again at once, and the robot may drive on: so it is
    kept from coming back."""
    frozen = rows_of(what, command, device, quick, [STOP], **more)
    killed = rows_of(f"{what}, not restarted", command, device, quick, [KILL], is_once=True, **more)
    return frozen + killed


ROWS = [
    *rows_of("amber drive", TURN, "client", [STOP, CUT]),
    *rows_of("amber goto", GOTO, "client", [STOP]),
    *rows_of("amber map make", EXPLORE, "client", [STOP]),
    *rows_of("Galileo program", Galileo, "client", [CUT], [CUT]),
    *rows_of("rosbridge page", rosbridge(TWIST), "client", hows=[CUT, KILL]),
    *rows_of("rosbridge page with a goal", rosbridge(None, GOAL), "client", [CUT], [CUT, KILL]),
    *rows_of("JSON relay program", JsonRelay, "client", hows=[CUT]),
    *rows_of("Apollo program", Apollo, "client", hows=[CUT]),
    *rows_of("RflySim program", RflySim, "client", hows=[CUT]),
    *rows_of("dashboard page", dashboard(STICK), "client", hows=[CUT, KILL]),
    *rows_of("dashboard page with a target", dashboard(None, TARGET), "client", [CUT], [CUT, KILL]),
    *rows_of("browser with the dashboard", Browser, "client"),
    *rows_of("operator of a fleet", Operator, "client"),
    *rows_of("dashboard under its page", dashboard(STICK), "dashboard", [STOP], [STOP, KILL]),
    *rows_of("dashboard with a target", dashboard(None, TARGET), "dashboard", hows=[STOP, KILL]),
    *driver_rows("gateway under a Galileo program", Galileo, "gateway:0", [STOP]),
    *driver_rows("gateway under a rosbridge page", rosbridge(TWIST), "gateway:1"),
    *driver_rows("gateway under a goal of rosbridge", rosbridge(None, GOAL), "gateway:1"),
    *driver_rows("gateway under a JSON relay program", JsonRelay, "gateway:2"),
    *driver_rows("gateway under an Apollo program", Apollo, "gateway:3"),
    *driver_rows("gateway under a RflySim program", RflySim, "gateway:4"),
    *rows_of("bridge under an operator", Operator, "bridge", hows=[STOP, KILL]),
    *rows_of("router under an operator", Operator, "router", hows=[STOP, KILL]),
    *rows_of("mediator under amber drive", TURN, "mediator", [STOP], [STOP]),
    # The drivers end, which releases the motors.
    *rows_of("mediator under amber drive", TURN, "mediator", hows=[KILL]),
    *rows_of("mediator under amber goto", GOTO, "mediator", hows=[STOP]),
    *rows_of("mediator under amber goto", GOTO, "mediator", hows=[KILL]),
    *rows_of("mediator under a Galileo program", Galileo, "mediator", hows=[STOP]),
    *rows_of("mediator under a dashboard page", dashboard(STICK), "mediator", hows=[STOP]),
    *driver_rows("guard under a dashboard page", dashboard(GUARDED), "collision-avoidance:0"),
    *driver_rows("drive-to-point under amber goto", GOTO, "drive-to-point:0", [STOP]),
    *driver_rows("location under amber goto", GOTO, "location:0"),
    *driver_rows("laser under amber goto", GOTO, "hokuyo:0"),
    *driver_rows("mapping under amber map make", EXPLORE, "mapping:0"),
    *driver_rows("laser under amber map make", EXPLORE, "hokuyo:0"),
    *rows_of("mediator under amber map make", EXPLORE, "mediator", hows=[STOP]),
    # The motor controllers have a time limit of their own, and release the motors.
    *driver_rows("wheels under amber drive", TURN, "roboclaw:0", [STOP]),
    *driver_rows("wheels under amber goto", GOTO, "roboclaw:0"),
]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--amber", metavar="PATH", help="the program to test")
    parser.add_argument("--amber-zenoh", metavar="PATH", help="for the rows of operators")
    parser.add_argument("--jobs", type=int, default=1, help="rows at the same time (default 1)")
    parser.add_argument("--runs", type=int, default=1, help="runs of each row (default 1)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only rows with this text")
    parser.add_argument("--quick", action="store_true", help="a part of the rows, for CI")
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    options = parser.parse_args()
    amber = options.amber
    if amber is None:
        subprocess.run(["cargo", "build", "--quiet", "-p", "amber-mediator"], cwd=ROOT, check=True)
        amber = os.path.join(ROOT, "target/debug/amber")
    amber = os.path.abspath(amber)
    if options.amber_zenoh is not None:
        Operator.needs = os.path.abspath(options.amber_zenoh)
    rows = [row for row in ROWS if options.only in row.name]
    rows = [row for row in rows if row.is_quick or not options.quick]
    if not options.json:
        print(f"goal: the wheels slow down within {GOAL_S} s; {options.runs} runs each")
        print(f"{'':60} {'SLOWS':^13}  {'STANDS':^13}")
        print(f"{'ROW':60} {'MEDIAN':>6} {'WORST':>6}  {'MEDIAN':>6} {'WORST':>6}", flush=True)
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        started = [
            (row, row.missing or [pool.submit(row.run, amber) for _ in range(options.runs)])
            for row in rows
        ]
        for row, runs in started:
            if isinstance(runs, str):
                print(f"SKIP {row.name}: needs {runs}", file=sys.stderr, flush=True)
                continue
            stops, errors = [], []
            for run in runs:
                try:
                    stops.append(run.result())
                except RuntimeError as error:
                    errors.append(error)
            for error in errors:
                print(f"NOT MEASURED {row.name}: {error}", file=sys.stderr, flush=True)
            missed += bool(errors) or not report(row, stops, options.json)
    sys.exit(1 if missed else 0)


def report(row, stops, as_json):
    """Prints the times of a row, and returns whether all meet the goal."""
    slows, stands = zip(*stops)
    is_met = all(it.slows_s <= GOAL_S and it.stands_s <= it.slows_s + BRAKES_S for it in stops)
    if as_json:
        told = {"row": row.name, "slows_s": slows, "stands_s": stands, "met": is_met}
        print(json.dumps(told), flush=True)
        return is_met
    shown = "  ".join(
        f"{statistics.median(times):6.2f} {max(times):6.2f}" for times in (slows, stands)
    )
    print(f"{row.name:60} {shown}  {'met' if is_met else 'MISSED'}", flush=True)
    return is_met


if __name__ == "__main__":
    main()
