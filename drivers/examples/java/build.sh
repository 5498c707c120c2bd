#!/bin/sh
# Compiles the classes: build.sh [FOLDER]. Needs JDK 17 or newer, protoc, and protobuf.jar
# (Debian: openjdk-17-jdk-headless protobuf-compiler libprotobuf-dev libprotobuf-java).
set -eu
cd "$(dirname "$0")"
out=${1:-classes}
jar=${PROTOBUF_JAR:-/usr/share/java/protobuf.jar}

mkdir -p "$out/source"
protoc -Iproto --java_out="$out/source" \
  drivermsg.proto interface.proto dummy.proto thermometer.proto camera.proto
javac -cp "$jar" -d "$out" $(find "$out/source" -name '*.java') ./*.java
