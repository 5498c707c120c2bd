# For the scripts here: `step COMMAND...` prints the command, runs it, and prints how long it took.

step() {
  printf '\n== %s\n' "$*"
  local began=$SECONDS
  "$@"
  printf -- '-- %s s: %s\n' "$((SECONDS - began))" "$*"
}
