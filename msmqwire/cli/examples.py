"""Two examples of each command, for its help and the manual page: each can be pasted into a shell."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Final

from msmqwire.cli.protocols import protocols

_OWN: Final = {
    "parse": ("msmqwire parse packet.bin", "echo '10 00 03 00 4c 49 4f 52' | msmqwire parse --hex"),
    "build": (
        "msmqwire parse packet.bin | msmqwire build > same.bin",
        "msmqwire build --hex packet.json",
    ),
    "body decode": (
        "msmqwire body decode order.bin --body-type 0x300",
        "echo '68 00 69 00' | msmqwire body decode - --hex --body-type VT_BSTR --json",
    ),
    "body encode": (
        """echo '{"Number": 7}' | msmqwire body encode --format json > order.json""",
        """echo '"order 7"' | msmqwire body encode --format nrbf --output order.bin""",
    ),
    "dissect": (
        "msmqwire dissect examples/session.pcap",
        "msmqwire dissect examples/session.pcap --kind UserMessage --hexdump",
    ),
    "lint": (
        "msmqwire lint examples/session.pcap",
        "msmqwire lint --check --json examples/session.pcap examples/remote_read.pcap",
    ),
    "fate": ("msmqwire fate examples/remote_read.pcap", "msmqwire fate --stuck --json examples/session.pcap"),
    "pcap": (
        "msmqwire pcap examples/session.pcap -o messages.pcapng --kind UserMessage",
        "msmqwire pcap examples/session.pcap -o orders.pcap --label 'order*' --connections",
    ),
    "report": (
        "msmqwire report examples/session.pcap",
        "msmqwire report examples/protected.pcap --key examples/keys/queue-manager.pem -o protected.html",
    ),
    "lake": (
        "msmqwire lake examples/ --out lake",
        "msmqwire lake examples/session.pcap --out lake --kind UserMessage --columns time,label,body",
    ),
    "export wireshark": (
        "msmqwire export wireshark > msmq.lua",
        "msmqwire export wireshark > ~/.local/lib/wireshark/plugins/msmq.lua",
    ),
    "export man": (
        "msmqwire export man > msmqwire.1",
        "msmqwire export man > ~/.local/share/man/man1/msmqwire.1",
    ),
    "export completion": (
        "msmqwire export completion bash > ~/.local/share/bash-completion/completions/msmqwire",
        "msmqwire export completion fish > ~/.config/fish/completions/msmqwire.fish",
    ),
    "serve": (
        r"msmqwire serve --data ./qm --queue 'private$\orders'",
        "msmqwire serve --data ./qm --listen 0.0.0.0 --http 0.0.0.0:80 --console 127.0.0.1:8180",
    ),
    "exporter": (
        "msmqwire exporter --targets targets.toml",
        "msmqwire exporter --targets targets.toml --listen 0.0.0.0 --metrics-name exporter.example",
    ),
    "send": (
        r"msmqwire send 'DIRECT=TCP:127.0.0.1\private$\orders' --body hello --label 'order 7'",
        r"msmqwire send 'DIRECT=OS:beta\private$\orders' --file order.xml --recoverable --data ./qm",
    ),
    "receive": (
        r"msmqwire receive 'private$\orders' --data ./qm --timeout 10",
        r"msmqwire receive --remote 'DIRECT=OS:beta\private$\orders' --count 10 --json",
    ),
    "peek": (
        r"msmqwire peek 'private$\orders' --data ./qm --count 10",
        r"msmqwire peek --remote 'DIRECT=OS:beta\private$\orders' --json",
    ),
    "move": (
        r"msmqwire move 'private$\orders' 'private$\orders;poison' --data ./qm --count 5",
        r"msmqwire move --remote 'DIRECT=OS:beta\private$\orders;poison' 'DIRECT=OS:beta\private$\orders'",
    ),
    "purge": (
        r"msmqwire purge --remote 'DIRECT=OS:beta\private$\orders'",
        r"msmqwire purge --remote 'DIRECT=TCP:10.0.0.5\private$\orders' --rpc-port 2103 --yes",
    ),
    "queue create": (
        r"msmqwire queue create 'private$\orders' --data ./qm",
        r"msmqwire queue create 'private$\ledger' --data ./qm --transactional --journal --quota 102400",
    ),
    "queue list": ("msmqwire queue list --data ./qm", "msmqwire queue list --data ./qm --json"),
    "queue show": (
        r"msmqwire queue show 'private$\orders' --data ./qm",
        r"msmqwire queue show 'private$\orders' --data ./qm --json",
    ),
    "queue why": (
        r"msmqwire queue why 'private$\orders' --data ./qm",
        r"msmqwire queue why 'DIRECT=OS:beta\private$\orders' --data ./qm --json",
    ),
    "queue set": (
        r"msmqwire queue set 'private$\orders' --data ./qm --quota 102400 --label Orders",
        r"msmqwire queue set 'private$\orders' --data ./qm --deny 'HOME\bob:receive'",
    ),
    "queue purge": (
        r"msmqwire queue purge 'private$\orders' --data ./qm",
        r"msmqwire queue purge 'private$\orders' --data ./qm --yes",
    ),
    "queue delete": (
        r"msmqwire queue delete 'private$\orders' --data ./qm",
        r"msmqwire queue delete 'private$\orders' --data ./qm --yes --json",
    ),
    "manage": (
        r"msmqwire manage server7 --user 'HOME\anne' --password-file -",
        r"msmqwire manage server7 queue 'private$\orders' ';deadletter' --rpc-port 2103 --json",
    ),
    "check": ("msmqwire check ./qm --accept", "msmqwire check http://127.0.0.1:8180"),
    "drain": ("msmqwire drain ./qm --timeout 30", "msmqwire drain ./qm --cancel"),
    "definitions export": (
        "msmqwire definitions export ./qm",
        "msmqwire definitions export http://127.0.0.1:8180 --token-file admin.token",
    ),
    "definitions import": (
        "msmqwire definitions import ./qm qm.json --dry-run",
        "msmqwire definitions import http://127.0.0.1:8180 qm.json --token-file admin.token",
    ),
    "settings set": (
        "msmqwire settings set ack_delay_ms=50 ping=yes --data ./qm",
        "msmqwire settings set --host beta=10.0.0.5:1801 --data ./qm",
    ),
    "settings unset": (
        "msmqwire settings unset ack_delay_ms --data ./qm",
        "msmqwire settings unset beta --data ./qm",
    ),
    "settings list": ("msmqwire settings list --data ./qm", "msmqwire settings list --data ./qm --json"),
    "policy set": (
        "msmqwire policy set poison --pattern '*' --order 1 --delivery-limit 5 --data ./qm",
        "msmqwire policy set small --pattern 'private$\\tmp*' --order 2 --quota 1024 --data ./qm",
    ),
    "policy list": ("msmqwire policy list --data ./qm", "msmqwire policy list --data ./qm --json"),
    "policy show": (
        "msmqwire policy show poison --data ./qm",
        "msmqwire policy show small --data ./qm --json",
    ),
    "policy delete": (
        "msmqwire policy delete poison --data ./qm",
        "msmqwire policy delete small --data ./qm --json",
    ),
    "top": ("msmqwire top --data ./qm", "msmqwire top --data ./qm --once --json"),
    "explain": (
        "msmqwire explain 0xC00E0027 -1072824283 NACK_BAD_DST_Q",
        "msmqwire explain 'NEED VALIDATION' 0x80000004 --json",
    ),
    "ping": ("msmqwire ping 127.0.0.1", "msmqwire ping beta --session --count 1"),
    "fuzz": (
        r"msmqwire fuzz 127.0.0.1:1801 --time 60 --queue 'private$\orders'",
        "msmqwire fuzz 127.0.0.1:1801 --replay found/1/seed.json",
    ),
    "key create": ("msmqwire key create --data ./qm", "msmqwire key create --data ./qm --bits 4096"),
    "key import": (
        "msmqwire key import examples/keys/queue-manager.pem --data ./qm",
        "msmqwire key import beta.pub --peer 6f9619ff-8b86-d011-b42d-00c04fc964ff --data ./qm",
    ),
    "key list": ("msmqwire key list --data ./qm", "msmqwire key list --data ./qm --json"),
    "key show": (
        "msmqwire key show --public --data ./qm",
        "msmqwire key show --public --data ./qm > alpha.pub",
    ),
    "cert create": (
        "msmqwire cert create --data ./qm",
        "msmqwire cert create --data ./qm --sid S-1-5-21-1-2-3-1001 --days 365 --out anne.pem",
    ),
    "cert register": (
        "msmqwire cert register --cert examples/keys/alice.crt --sid S-1-5-21-1-2-3-1001 --data ./qm",
        "msmqwire cert register --cert anne.pem --sid S-1-5-21-1-2-3-1001 --group S-1-5-32-545 --data ./qm",
    ),
    "cert revoke": (
        "msmqwire cert revoke --cert examples/keys/alice.crt --data ./qm",
        "msmqwire cert revoke --digest 00112233445566778899aabbccddeeff --data ./qm",
    ),
    "cert list": ("msmqwire cert list --data ./qm", "msmqwire cert list --data ./qm --json"),
    "token create": (
        "msmqwire token create monitor --right read --data ./qm",
        "msmqwire token create orders --right read-write --data ./qm --json",
    ),
    "token list": ("msmqwire token list --data ./qm", "msmqwire token list --data ./qm --json"),
    "token revoke": (
        "msmqwire token revoke monitor --data ./qm",
        "msmqwire token revoke orders --data ./qm --json",
    ),
}
EXAMPLES: Final[dict[str, tuple[str, ...]]] = _OWN | {
    name: lines
    for protocol in protocols()
    if protocol.commands is not None
    for name, lines in resolve_name(protocol.commands.examples).items()
}
"""Examples by command; the files are those of a checkout, or come from the commands beside them."""
