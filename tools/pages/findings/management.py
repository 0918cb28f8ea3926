"""Queue management: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

_CLIENT_DO: Final = (
    "Look at the call and its answer: `msmqwire dissect FILE --table`. Fix the program that asks; if it is "
    "unknown, treat the calls as a probe of the queue manager."
)
_SERVER_DO: Final = (
    "Look at the server: its version, and whether it is Windows. Count the value as not reported until "
    "that is known."
)

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "MQMR-3.1.4-01-GAPS",
        "Nothing is wrong: the gaps between parameters have no meaning, and servers ignore them. Old clients"
        " leave in them what was in their memory.",
        "Nothing. Who worries about what leaks from the client looks at the bytes.",
    ),
    (
        "MQMR-2.2-01",
        "The interface knows NDR alone: a server that keeps to the specification refuses NDR64, and one that "
        "accepts it is not Windows as it was specified, or is no queue manager.",
        "Compare with other connections of the same hosts. Calls in NDR64 are read all the same.",
    ),
    (
        "MQMR-2.2.3.[12]-.*|MQMR-3.2.4-06",
        "A value that is not of the type, or is no word, of its property tells nothing: programs show it as "
        "not available, or misread it.",
        _SERVER_DO,
    ),
    (
        "MQMR-2.2.3-.*",
        "The value of a property is inconsistent. One side refuses the whole call or answer, so that nothing "
        "is known of the object; nested and counted values are also how readers are attacked.",
        "Look at the bytes and at who sent them. In an answer, look at the server; in a call, at the client.",
    ),
    (
        "MQMR-3.1.4.1-(02|08|09|14)|MQMR-3.1.4.2-(06|08|09)|MQMR-2.2.1.2-06|MQMR-3.1.4-05",
        "The server answers as the specification forbids: a client can't tell whether it succeeded, or which "
        "value is of which property.",
        _SERVER_DO,
    ),
    (
        "MQMR-3.1.4.2-13",
        "An action of the machine is asked of a queue, or the reverse. A server that refuses it does "
        "nothing; one that obeys may act on more than was meant.",
        _CLIENT_DO,
    ),
    (
        "MQMR-3.1.4.*|MQMR-2.2.1.*",
        "The server refuses the call: it names no queue, no property or no action of the interface, or its "
        "bytes are inconsistent. A client that makes up bytes shows it too.",
        _CLIENT_DO,
    ),
)
