#!/usr/bin/env bash
# What scripts/vivid does inside of its machine: the driver `camera` with /dev/video0 of vivid.
set -euo pipefail

amber=$1
cd /tmp
export HOME=/tmp

say() { printf '\n== %s\n' "$*"; }
fail() {
  echo "error: $*" >&2
  cat mediator.log >&2
  exit 1
}
# `until_ok WHAT COMMAND...` repeats a command until it succeeds.
until_ok() {
  local what=$1 try
  shift
  for try in $(seq 1 100); do
    if "$@" >last.log 2>&1; then return; fi
    sleep 0.3
  done
  cat last.log >&2
  fail "$what: waited in vain"
}
picture() {
  "$amber" camera -o picture.jpg "$@" && [ "$(od -An -tx1 -N3 picture.jpg | tr -d ' ')" = ffd8ff ]
}
no_trouble() { "$amber" status camera --json | tee status.json | grep -q '"troubles":\[\]'; }

say "start"
"$amber" mediator --listen 127.0.0.1:26233 --driver \
  "camera:0=$amber driver camera --device /dev/video0 --width 320 --height 180 --idle-s 1" \
  >mediator.log 2>&1 &
until_ok "the first picture" picture

say "the size is the one that was wanted"
"$amber" camera -o picture.jpg --json | tee picture.json
grep -q '"width":320' picture.json && grep -q '"height":180' picture.json || fail "another size"
"$amber" call camera info --json >info.json
grep -q '"YUYV"' info.json || fail "no modes: $(cat info.json)"

say "pictures come one after the other"
timeout 120 "$amber" camera --watch --rate 5 -n 10 --json >pictures.json
[ "$(wc -l <pictures.json)" = 10 ] || fail "too few: $(cat pictures.json)"

# The camera is on as long as somebody looks.
timeout 600 "$amber" camera --watch --rate 5 --json -n 100000 >long.json &
watching=$!
until_ok "a picture" test -s long.json

say "a control is set in the kernel"
"$amber" call camera set-control name=brightness value=77
v4l2-ctl -d /dev/video0 -C brightness | tee control.log
grep -q 77 control.log || fail "the kernel has another value"
! "$amber" call camera set-control name=brightness value=100000 || fail "this value is not valid"

say "a camera that is pulled out comes back"
v4l2-ctl -d /dev/video0 -c disconnect=1
before=$(wc -l <long.json)
more() { [ "$(wc -l <long.json)" -gt $((before + 3)) ]; }
until_ok "pictures after it was pulled out" more
grep -i "camera" mediator.log | tail -3
until_ok "no trouble is left" no_trouble

say "an error of the kernel in one picture"
before=$(wc -l <long.json)
v4l2-ctl -d /dev/video0 -c inject_v4l2_buf_flag_error=1
until_ok "pictures after an error" more
say "a fatal error of the stream"
before=$(wc -l <long.json)
v4l2-ctl -d /dev/video0 -c inject_fatal_streaming_error=1
until_ok "pictures after a fatal error" more
kill $watching

say "a camera that another program uses"
is_off() { "$amber" call camera info --json | tee info.json | grep -q '"is_on":false'; }
until_ok "the camera is off" is_off
v4l2-ctl -d /dev/video0 --stream-mmap --stream-count=100000 >other.log 2>&1 &
other=$!
until_ok "the other program" grep -q . other.log
if picture 2>refused.log; then fail "both had the camera"; fi
cat refused.log
grep -q "another program uses /dev/video0" refused.log || fail "it does not say why"
kill $other
until_ok "a picture when the other program has ended" picture

say "done"
kill %1 2>/dev/null || true
