#!/bin/sh
# Writes *_pb2.py anew; needed only after a change to a .proto file.
#
# The compiler is an old one on purpose: what it writes runs with every
# protobuf package from 3.20 on, while newer compilers write for newer ones only.
set -e
cd "$(dirname "$0")"
python3 -m venv .venv
.venv/bin/pip install --quiet 'grpcio-tools==1.49.1' 'protobuf<4.22' 'setuptools<81'
.venv/bin/python -m grpc_tools.protoc -I ../../../proto --python_out=. drivermsg.proto dummy.proto
