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

printf '\nThe same capture as a page for the browser:\n'
mkdir -p build
show report examples/session.pcap -o build/session.html

printf '\nShapes of attack in a second, hostile capture:\n'
show dissect examples/hostile.pcapng --findings ATTACK --table

printf '\nA queue read from another computer, anonymously and by a user whose calls are encrypted:\n'
show dissect examples/remote_read.pcap --table

printf '\nA print job in a NetWare queue, from its submission to its end:\n'
show dissect examples/netware.pcap --table

printf '\nA queue manager, a message sent to it over TCP, and the message received:\n'
folder=$(mktemp -d)
server=
trap 'kill "$server" 2>/dev/null && wait "$server" || true; rm -rf "$folder"' EXIT
printf '\n$ %s\n' "msmqwire serve --data $folder/qm --listen 127.0.0.1:0 --queue 'private\$\orders' &"
"$python" -m msmqwire serve --data "$folder/qm" --name demo --listen 127.0.0.1:0 --ping off --queue 'private$\orders' \
    --log error >"$folder/ready" &
server=$!
until [ -s "$folder/ready" ]; do
    kill -0 "$server"
    sleep 0.1
done
cat "$folder/ready"
port=$(sed 's/.*tcp=[^ ]*:\([0-9]*\) .*/\1/' "$folder/ready")
show send 'DIRECT=TCP:127.0.0.1\private$\orders' --port "$port" --body hello --label 'order 7' --recoverable --ack full_reach_queue
show receive 'private$\orders' --data "$folder/qm"
