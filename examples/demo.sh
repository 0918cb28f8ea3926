#!/bin/sh
# What msmqwire makes of a small capture; `make demo` runs this. Each command is printed before its output.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

show() {
    printf '\n$ msmqwire %s\n' "$*"
    "$python" -m msmqwire "$@"
}

printf 'A session between two queue managers, packet by packet:\n'
show dissect examples/session.pcap --table

printf '\nOne packet in full, every field beside its bytes:\n'
show dissect examples/session.pcap --hexdump --kind UserMessage

printf '\nWhat in the session departs from the specifications, by requirement id:\n'
show lint examples/session.pcap

printf '\nShapes of attack in a second, hostile capture:\n'
show dissect examples/hostile.pcapng --findings ATTACK --table
