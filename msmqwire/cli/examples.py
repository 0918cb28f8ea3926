"""Two examples of each command, for its help and the manual page: each can be pasted into a shell."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
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
    "top": ("msmqwire top --data ./qm", "msmqwire top --data ./qm --once --json"),
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
    "netware serve": (
        "msmqwire netware serve --data ./nw",
        "msmqwire netware serve --data ./nw --listen 127.0.0.1:5240",
    ),
    "netware object create": (
        "msmqwire netware object create ALICE --type user --data ./nw",
        "msmqwire netware object create PS1 --type print-server --data ./nw",
    ),
    "netware object list": (
        "msmqwire netware object list --data ./nw",
        "msmqwire netware object list --type user --data ./nw --json",
    ),
    "netware object show": (
        "msmqwire netware object show ALICE --data ./nw",
        "msmqwire netware object show PS1:print-server --data ./nw --json",
    ),
    "netware object delete": (
        "msmqwire netware object delete ALICE --data ./nw",
        "msmqwire netware object delete PS1:print-server --data ./nw",
    ),
    "netware queue create": (
        "msmqwire netware queue create LASER --type print --path SYS:SYSTEM --data ./nw",
        "msmqwire netware queue create PLOT --type print --path SYS:SYSTEM --user ALICE --data ./nw",
    ),
    "netware queue list": (
        "msmqwire netware queue list --data ./nw",
        "msmqwire netware queue list --data ./nw --json",
    ),
    "netware queue show": (
        "msmqwire netware queue show LASER --data ./nw",
        "msmqwire netware queue show LASER --data ./nw --json",
    ),
    "netware queue delete": (
        "msmqwire netware queue delete LASER --data ./nw",
        "msmqwire netware queue delete LASER --data ./nw --yes",
    ),
    "netware queue grant": (
        "msmqwire netware queue grant LASER --property Q_USERS --member ALICE --data ./nw",
        "msmqwire netware queue grant LASER --property Q_SERVERS --member PS1:print-server --data ./nw",
    ),
    "netware queue revoke": (
        "msmqwire netware queue revoke LASER --property Q_USERS --member ALICE --data ./nw",
        "msmqwire netware queue revoke LASER --property Q_SERVERS --member PS1:print-server --data ./nw",
    ),
    "netware queues": (
        "msmqwire netware queues --connect 127.0.0.1:5240 --as ALICE",
        "msmqwire netware queues --type print --connect 127.0.0.1:5240 --as ALICE --json",
    ),
    "netware jobs": (
        "msmqwire netware jobs LASER --connect 127.0.0.1:5240 --as ALICE",
        "msmqwire netware jobs LASER --connect 127.0.0.1:5240 --as PS1:print-server --json",
    ),
    "netware show": (
        "msmqwire netware show LASER --connect 127.0.0.1:5240 --as ALICE",
        "msmqwire netware show LASER 1 --connect 127.0.0.1:5240 --as ALICE",
    ),
    "netware submit": (
        "msmqwire netware submit LASER --body-file README.md --connect 127.0.0.1:5240 --as ALICE",
        "echo hello | msmqwire netware submit LASER --body-file - --hold --connect 127.0.0.1:5240 --as ALICE",
    ),
    "netware hold": (
        "msmqwire netware hold LASER 1 --connect 127.0.0.1:5240 --as ALICE",
        "msmqwire netware hold LASER 1 --operator --connect 127.0.0.1:5240 --as OLGA",
    ),
    "netware release": (
        "msmqwire netware release LASER 1 --connect 127.0.0.1:5240 --as ALICE",
        "msmqwire netware release LASER 1 --operator --connect 127.0.0.1:5240 --as OLGA",
    ),
    "netware position": (
        "msmqwire netware position LASER 3 1 --connect 127.0.0.1:5240 --as OLGA",
        "msmqwire netware position LASER 3 1 --connect 127.0.0.1:5240 --as OLGA --json",
    ),
    "netware move": (
        "msmqwire netware move LASER 3 PLOT --connect 127.0.0.1:5240 --as OLGA",
        "msmqwire netware move LASER 3 PLOT --connect 127.0.0.1:5240 --as OLGA --json",
    ),
    "netware remove": (
        "msmqwire netware remove LASER 1 --connect 127.0.0.1:5240 --as ALICE",
        "msmqwire netware remove LASER 1 --connect 127.0.0.1:5240 --as OLGA --json",
    ),
    "netware service": (
        "msmqwire netware service LASER --command cat --connect 127.0.0.1:5240 --as PS1:print-server",
        "msmqwire netware service LASER --command lpr --wait 60 --connect beta:524 --as PS1:print-server",
    ),
}
"""Examples by command; the files are those of a checkout, or come from the commands beside them."""
