"""Remote read: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

_RPC_DO: Final = (
    "Look at the call and those before it on the same handle: `msmqwire dissect FILE --table`. Fix the "
    "client; if the client is unknown, treat the calls as a probe."
)

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "MQRR-3.1.4-01-GAPS",
        "Nothing is wrong: the gaps between parameters have no meaning, and servers ignore them. Old clients"
        " leave in them what was in their memory.",
        "Nothing. Who worries about what leaks from the client looks at the bytes.",
    ),
    (
        "MQRR-2.2.(6|7)-.*",
        "The message comes in sections with sizes. By wrong ones the client gets a message that is cut, or "
        "none.",
        "Look at the server: its version and whether its store was damaged.",
    ),
    (
        "MQRR-3.1.4.(4-06|7-29|11-14)",
        "The server answers with a value that the client can't use in its next call: 0 stands for no cursor "
        "and no queue, and of an identifier only 7 bytes count. The client gets an error, or asks for "
        "another message.",
        "Look at the server: its version, and whether it is Windows.",
    ),
    (
        "MQRR-3.1.4.(2|11)-(06|08|09|11|12|17)",
        "The server judges by these values how many clients it serves, and how they have to authenticate "
        "themselves. It may refuse the client, or count it as another kind.",
        _RPC_DO,
    ),
    (
        "MQRR-3.1.4.*|MQRR-2.2.3-.*",
        "The server refuses the call, and the program that reads the queue gets an error or waits. A client "
        "that makes up handles and numbers shows it too.",
        _RPC_DO,
    ),
)
