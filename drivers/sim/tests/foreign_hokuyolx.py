"""Reads the simulated laser scanner at 127.0.0.1, port argv[1], of the model argv[2].

Prints "ok" on success. The library checks every checksum.
"""

import sys
import time

from hokuyolx import HokuyoLX

model = sys.argv[2]
laser = HokuyoLX(addr=("127.0.0.1", int(sys.argv[1])), tsync=False)
laser.time_sync(N=3, dt=0.01)
laser.activate()
assert laser.laser_state()[0] == 3
assert laser.version()["PROT"] == "SCIP 2.0"
parameters = laser.sensor_parameters()
assert model in parameters["MODL"], parameters
assert laser.sensor_state()["LASR"] == "ON"

points = {"URG-04LX": 682, "UTM-30LX": 1081}[model]
nearest = {"URG-04LX": 20, "UTM-30LX": 23}[model]
_time, scan = laser.get_dist()
assert len(scan) == points, len(scan)
valid = [distance for distance in scan if distance >= nearest]
assert len(valid) > points // 2, len(valid)
# The library's angles are right only for models whose first step is 0.
assert model != "UTM-30LX" or len(laser.get_angles()) == points

# Each request gets its own scan, one per turn.
turn = {"URG-04LX": 100, "UTM-30LX": 25}[model]
begin = time.monotonic()
stamps = [laser.get_dist()[0] for _ in range(10)]
lasted = time.monotonic() - begin
assert all(later - sooner >= turn for sooner, later in zip(stamps, stamps[1:])), stamps
assert 8 * turn <= lasted * 1000, lasted

# The URG accepts requests for more steps than it measures.
if model == "URG-04LX":
    _time, scan = laser.get_dist(start=0, end=768)
    assert len(scan) == 769, len(scan)
    assert all(code == 19 for code in [*scan[:44], *scan[726:]]), scan

seen = [pending for _scan, _time, pending in laser.iter_dist(scans=3)]
assert seen == [2, 1, 0], seen

if model == "UTM-30LX":
    laser.activate()
    _time, scan = laser.get_intens()
    assert scan.shape == (points, 2), scan.shape
    times = [time for _scan, time, _pending in laser.iter_intens(scans=5)]
    assert all(20 <= later - sooner <= 30 for sooner, later in zip(times, times[1:])), times

laser.reset()

# It closes the connection on a reboot, and then accepts a new one.
laser.reboot()
laser._sock.settimeout(5)
assert laser._sock.recv(1) == b""
again = HokuyoLX(addr=("127.0.0.1", int(sys.argv[1])), tsync=False)
assert model in again.sensor_parameters()["MODL"]
again.close()
print("ok")
