#!/bin/sh
# What msmqwire makes of small captures, and a message sent and received; `make demo` runs this.
# Each command is printed as it is run, and can be typed again in the checkout. What they write is in build/demo.
set -eu
cd "$(dirname "$0")/.."
if [ -n "${PYTHON:-}" ]; then PATH=$(dirname "$PYTHON"):$PATH; fi
rm -rf build/demo && mkdir -p build/demo

run() {
    printf '\n$ %s\n' "$1"
    eval "$1"
}

printf '\n# A session between two queue managers, packet by packet\n'
run 'msmqwire dissect examples/session.pcap'

printf '\n# What in it departs from the specifications; without tail each with its field and byte\n'
run 'msmqwire lint examples/session.pcap | tail -n 6'

printf '\n# Attacks in another capture, and all of it as a page for the browser\n'
run 'msmqwire dissect examples/hostile.pcapng --findings ATTACK'
run 'msmqwire report examples/hostile.pcapng -o build/demo/report.html'

printf '\n# A queue manager, a message that is sent to it over TCP, and the message received\n'
run "msmqwire serve --data build/demo/qm --listen 127.0.0.1:18010 --ping off --queue 'private\$\\orders' --log error &"
server=$!
trap 'kill "$server" 2>/dev/null && wait "$server" || true' EXIT
until python3 -c 'import socket; socket.create_connection(("127.0.0.1", 18010)).close()' 2>/dev/null; do
    kill -0 "$server"
    sleep 0.1
done
run "msmqwire send 'DIRECT=TCP:127.0.0.1\\private\$\\orders' --port 18010 --body hello --label 'order 7' --recoverable"
run "msmqwire receive 'private\$\\orders' --data build/demo/qm"

printf '\n# NetWare is read as well: msmqwire dissect examples/netware.pcap\n'
