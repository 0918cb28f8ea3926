"""Two examples of each command of NetWare's queue services."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
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
    "netware object password": (
        "msmqwire netware object password ALICE --data ./nw",
        "msmqwire netware object password PS1:print-server --remove --data ./nw",
    ),
    "netware object delete": (
        "msmqwire netware object delete ALICE --data ./nw",
        "msmqwire netware object delete PS1:print-server --data ./nw",
    ),
    "netware files": ("msmqwire netware files --data ./nw", "msmqwire netware files --data ./nw --json"),
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
