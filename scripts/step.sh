# For the scripts here.

# `step COMMAND...` prints the command, runs it, and prints how long it took.
step() {
  printf '\n== %s\n' "$*"
  local began=$SECONDS
  "$@"
  printf -- '-- %s s: %s\n' "$((SECONDS - began))" "$*"
}

# `finished PID LOG WHAT` waits for a job in the background, and prints its output.
finished() {
  local status=0
  wait "$1" || status=$?
  cat "$2"
  [ "$status" = 0 ] || echo "error: $3 failed" >&2
  return "$status"
}

# From now on, Clippy compiles the workspace: it does what rustc does and checks the code, so that the
# checks need no compilation of their own. A warning is an error. The tests of a workspace include
# all features.
clippy_compiles() {
  export RUSTC_WORKSPACE_WRAPPER=clippy-driver
  export CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
}
