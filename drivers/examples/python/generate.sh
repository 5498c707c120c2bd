#!/bin/sh
# Regenerates *_pb2.py; needed only after a change to a .proto file.
#
# Uses an old compiler on purpose: its output runs with every
# protobuf package from 3.20, while newer compilers require newer packages.
set -e
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet 'grpcio-tools==1.49.1' 'protobuf<4.22' 'setuptools<81'
.venv/bin/python -m grpc_tools.protoc -I ../../../proto --python_out=. \
  drivermsg.proto interface.proto dummy.proto
