"""Tests that the schemas in the package match those of the repository."""

import os
import pkgutil
import pydoc
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2

import amber
from amber import schemas

PROTO = os.path.join(os.path.dirname(__file__), "..", "..", "..", "proto")

try:
    import grpc_tools  # noqa: F401

    HAS_COMPILER = True
except ImportError:
    HAS_COMPILER = False

MINE = """
syntax = "proto2";
package mine;
import "drivermsg.proto";
extend amber.DriverMsg { optional Reading reading = 110; }
message Reading { optional double celsius = 1; }
"""

DESCRIBED = """
syntax = "proto2";
package described;
import "drivermsg.proto";
import "interface.proto";
extend amber.DriverMsg { optional int32 level = 127 [(amber.unit) = "mm"]; }
service Tank {
  option (amber.device) = { type: 212 name: "tank" };
  rpc Levels(amber.DriverMsg) returns (stream amber.DriverMsg) {
    option (amber.stream) = { data: "level" };
  }
}
"""


class Schemas(unittest.TestCase):
    def test_help_works_for_the_package_and_its_modules(self):
        self.assertIn("claim_stdout", pydoc.render_doc(amber))
        for module in pkgutil.iter_modules(amber.__path__):
            pydoc.render_doc(f"amber.{module.name}")
        pydoc.render_doc(schemas.roboclaw.MotorsSpeed)

    def test_bytes_of_an_extension(self):
        message = schemas.DriverMsg(type=schemas.DriverMsg.DATA)
        message.Extensions[schemas.roboclaw.motorsCommand].frontLeftSpeed = 5
        raw = message.SerializeToString()
        self.assertEqual(raw.hex(), "1001a201020805")
        again = schemas.DriverMsg.FromString(raw)
        self.assertEqual(again.Extensions[schemas.roboclaw.motorsCommand].frontLeftSpeed, 5)

    @unittest.skipUnless(HAS_COMPILER, "grpcio-tools is missing")
    @unittest.skipUnless(os.path.isdir(PROTO), "not in the repository")
    def test_the_bundle_matches_the_repository(self):
        """If this fails, run scripts/python-schemas."""
        files = sorted(name for name in os.listdir(PROTO) if name.endswith(".proto"))
        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "made.binpb")
            subprocess.run(
                [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}"]
                + [f"--descriptor_set_out={made}", *files],
                check=True,
            )
            with open(made, "rb") as file:
                made_set = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        bundled = descriptor_pb2.FileDescriptorSet.FromString(schemas._bundled())
        self.assertEqual(
            {file.name: file for file in bundled.file}, {file.name: file for file in made_set.file}
        )

    @unittest.skipUnless(HAS_COMPILER, "grpcio-tools is missing")
    def test_a_file_with_a_description(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "described.proto")
            with open(path, "w") as file:
                file.write(DESCRIBED)
            described = schemas.load(path)
            message = schemas.DriverMsg(type=schemas.DriverMsg.DATA)
            message.Extensions[described.level] = 5
            self.assertEqual(message.SerializeToString().hex(), "1001f80705")

    @unittest.skipUnless(HAS_COMPILER, "grpcio-tools is missing")
    def test_a_user_defined_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mine.proto")
            with open(path, "w") as file:
                file.write(MINE)
            mine = schemas.load(path)
            self.assertEqual(mine.Reading, schemas.load(path).Reading)
            message = schemas.DriverMsg(type=schemas.DriverMsg.DATA)
            message.Extensions[mine.reading].celsius = 21.5
            again = schemas.DriverMsg.FromString(message.SerializeToString())
            self.assertEqual(again.Extensions[mine.reading].celsius, 21.5)
            with open(os.path.join(folder, "bad.proto"), "w") as file:
                file.write(MINE.replace("double", "doubel").replace("mine", "bad"))
            with self.assertRaisesRegex(ValueError, "doubel"):
                schemas.load(os.path.join(folder, "bad.proto"))
        with self.assertRaises(FileNotFoundError):
            schemas.load(path)


if __name__ == "__main__":
    unittest.main()
