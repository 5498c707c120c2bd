#!/usr/bin/env bash
# A complete driver in bash, as a demonstration: the Dummy device.
#
#     amber mediator --driver 'dummy:0=bash dummy_driver.sh'
#
# Bytes are kept as hexadecimal text, because bash cannot hold a zero byte.
# Every frame starts four processes, so this is too slow for a laser scanner.
set -u

enable=0
message=$(printf Message | od -An -v -tx1 | tr -d ' \n')
responses=0
subscribers=() # client numbers

# Reads N bytes from stdin into $hex; fails at the end of stdin. od reads no byte more than N.
take() {
  hex=$(od -An -v -tx1 -N "$1")
  hex=${hex//[[:space:]]/}
  [ ${#hex} -eq $(($1 * 2)) ]
}

# Reads the next part of a frame (a length and that many bytes) into $part.
take_part() {
  local hex
  part=
  take 2 || return 1
  ((16#$hex > 0)) || return 0
  take $((16#$hex)) || return 1
  part=$hex
}

# Takes one varint off the front of $rest into $value.
take_varint() {
  local shift=0 byte
  value=0
  while [ -n "$rest" ]; do
    byte=$((16#${rest:0:2}))
    rest=${rest:2}
    value=$((value | (byte & 127) << shift))
    ((byte < 128)) && return 0
    ((shift += 7, shift < 70)) || return 1
  done
  return 1
}

# Reads the fields of the message $1 into the map `fields`: numbers as they are, bytes as hex.
# Skips groups, a deprecated kind of embedded message.
read_fields() {
  local rest=$1 value key size groups=0
  fields=()
  while [ -n "$rest" ]; do
    take_varint || return 1
    key=$value
    case $((key & 7)) in
      0)
        take_varint || return 1
        ((groups)) || fields[key >> 3]=$value
        ;;
      1 | 5)
        size=$(((key & 7) == 1 ? 16 : 8))
        ((${#rest} >= size)) || return 1
        ((groups)) || fields[key >> 3]=${rest:0:size}
        rest=${rest:size}
        ;;
      2)
        take_varint || return 1
        size=$((value * 2))
        ((${#rest} >= size)) || return 1
        ((groups)) || fields[key >> 3]=${rest:0:size}
        rest=${rest:size}
        ;;
      3) ((++groups)) ;;
      4) ((groups-- > 0)) || return 1 ;;
      *) return 1 ;;
    esac
  done
  ((groups == 0))
}

# Reads the client ids in the header $1 into `clients`. Mediators always pack
# them into one field.
read_clients() {
  local rest value
  local -a fields
  clients=()
  read_fields "$1" || return 0
  rest=${fields[3]:-}
  while [ -n "$rest" ]; do
    take_varint || return 0
    clients+=("$value")
  done
}

varint() {
  local value=$1
  while ((value > 127)); do
    printf '%02x' $((value & 127 | 128))
    ((value >>= 7))
  done
  printf '%02x' "$value"
}

number() { varint $(($1 << 3)); varint "$2"; }             # field, value
bytes() { varint $(($1 << 3 | 2)); varint $((${#2} / 2)); printf '%s' "$2"; } # field, hex

# Sends a frame of a header and a message, both as hex, in one write.
send() {
  local hex at escaped=
  printf -v hex '%04x%s%04x%s' $((${#1} / 2)) "$1" $((${#2} / 2)) "$2"
  for ((at = 0; at < ${#hex}; at += 2)); do
    escaped+=\\x${hex:at:2}
  done
  printf '%b' "$escaped"
}

handle() { # header, message
  local header=$1 client ack=
  local -a fields
  local clients
  if ! read_fields "$2" || [ -z "${fields[2]+there}" ]; then
    echo "ignored a message that is not a DriverMsg: $2" >&2
    return
  fi
  read_clients "$header"
  [ -z "${fields[3]+there}" ] || ack=$(number 4 "${fields[3]}")
  case ${fields[2]} in
    2) send "$header" "$(number 2 3)$ack" ;; # PING: PONG
    1)                                       # DATA
      if [ -n "${fields[50]+there}" ]; then
        enable=${fields[50]}
      elif [ -n "${fields[51]+there}" ]; then
        message=${fields[51]}
      elif [ -n "${fields[52]+there}" ]; then
        [ -z "$ack" ] || send "$header" "$(number 2 1)$ack$(number 50 "$enable")$(bytes 51 "$message")"
      else
        echo "not a request for the dummy" >&2
      fi
      ;;
    6) # SUBSCRIBE
      for client in "${clients[@]}"; do
        forget "$client"
        subscribers+=("$client")
      done
      ;;
    4 | 7) # CLIENT_DIED, UNSUBSCRIBE
      for client in "${clients[@]}"; do forget "$client"; done
      ;;
  esac
}

forget() {
  local left=() one
  for one in "${subscribers[@]}"; do
    [ "$one" = "$1" ] || left+=("$one")
  done
  subscribers=("${left[@]}")
}

publish() {
  local packed= one text
  ((++responses))
  for one in "${subscribers[@]}"; do packed+=$(varint "$one"); done
  text=$(printf 'Response %d' "$responses" | od -An -v -tx1 | tr -d ' \n')
  # An ackNum of 0 marks published data.
  send "$(bytes 3 "$packed")" "$(number 2 1)$(number 4 0)$(bytes 51 "$text")"
}

# No trap for SIGTERM: bash would run it only after the command that waits for stdin, and it can
# lose a signal while it starts one. By default the signal ends the driver at any time.
while :; do
  # Only checks for input (or its end); reads nothing.
  if ((${#subscribers[@]} > 0)) && ! read -r -t 0; then
    publish
    sleep 0.1
    continue
  fi
  take_part || exit 0 # the end of stdin is the end of the driver
  header=$part
  take_part || exit 0
  handle "$header" "$part"
done
