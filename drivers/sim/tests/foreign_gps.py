"""Reads the simulated GPS receiver at the port argv[1] with pynmea2 and pynmeagps.

The other arguments are the true latitude and longitude, the largest error in
degrees, and the quality in GGA. The robot stands still. Prints "ok" on success.
"""

import datetime
import sys

import pynmea2
import serial
from pynmeagps import NMEAReader

port = sys.argv[1]
latitude, longitude, error = map(float, sys.argv[2:5])
quality = int(sys.argv[5])


def is_there(lat, lon):
    return abs(lat - latitude) <= error and abs(lon - longitude) <= error


lost = found = 0
kinds = set()
with serial.Serial(port, 9600, timeout=5) as stream:
    # The first sentence may have lost its beginning.
    stream.readline()
    while found < 3:
        line = stream.readline()
        # Both check the sum, and raise errors.
        one = pynmea2.parse(line.decode(), check=True)
        other = NMEAReader.parse(line)
        assert one.sentence_type == other.msgID, line
        kinds.add(one.sentence_type)
        if one.sentence_type == "GGA" and one.gps_qual == 0:
            assert one.lat == "" and other.lat == "", line
            lost += 1
        elif one.sentence_type == "GGA":
            assert is_there(one.latitude, one.longitude), line
            assert is_there(other.lat, other.lon), line
            assert one.gps_qual == other.quality == quality, line
            assert int(one.num_sats) == other.numSV == 11, line
            assert one.altitude == other.alt == 223.4, line
            assert float(one.geo_sep) == other.sep == 39.6, line
            found += 1
        elif one.sentence_type == "RMC" and one.status == "A":
            assert is_there(one.latitude, one.longitude), line
            assert is_there(other.lat, other.lon), line
            assert one.spd_over_grnd == other.spd == 0, line
            assert one.datestamp == other.date == datetime.date(2026, 6, 1), line
            assert one.timestamp.hour == other.time.hour == 8, line
        elif one.sentence_type == "GSA" and found > 0:
            assert one.mode_fix_type == "3" and other.navMode == 3, line
            assert float(one.vdop) == other.VDOP == 1.32, line
        elif one.sentence_type == "GST":
            assert one.std_dev_latitude == other.stdLat == 0.01, line
            assert one.std_dev_altitude == other.stdAlt == 0.02, line
assert {"RMC", "GGA", "GSA", "VTG"} <= kinds, kinds
assert ("GST" in kinds) == (quality == 4), kinds
assert lost > 0, "at first it has no position"
print("ok")
