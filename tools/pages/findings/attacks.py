"""Attacks on readers: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

from tools.pages.findings.advice import ATTACK

_PROXY_DO: Final = (
    "Find out whether a proxy stands between sender and receiver and how it reads the head; block the sender"
    " if it is none of yours."
)

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "ATTACK-SRMP-LENGTH",
        "The length of an envelope is used before it is checked in queue managers without the update of "
        "April 2023: memory outside the packet is read or written, and code of the sender may run.",
        ATTACK,
    ),
    (
        "ATTACK-(LENGTH|HTTP-BODY-SIZE|ELEMENT-COUNT|RPC-COUNT|NCP-COUNT|NCP-LENGTH)",
        "A reader that believes the number reads or allocates memory that the packet does not have. Honest "
        "senders never write it; fuzzers and exploits do.",
        ATTACK,
    ),
    (
        "ATTACK-BODY-RANGE",
        "A reader that adds the two numbers in 32 bits takes the body from elsewhere in its memory.",
        ATTACK,
    ),
    (
        "ATTACK-BODY-DTD",
        "A receiver whose parser of XML takes document types lets entities grow to gigabytes, reads files "
        "and addresses of its network into the message, or hands them out. XmlMessageFormatter and "
        "NServiceBus never write one.",
        "Look at the body: `msmqwire dissect FILE --findings ATTACK-BODY-DTD --hexdump`. See that the "
        "receiver forbids document types (`DtdProcessing.Prohibit`). If a sender of yours writes one, "
        "have it leave it out.",
    ),
    (
        "ATTACK-BODY-GADGET",
        "A program that reads the body with BinaryMessageFormatter creates objects of these types, and "
        "they run code of the sender's choice, whatever the receiver expected. Public write-ups "
        "show how; the finding names one.",
        "Treat the sender as hostile until you know better, and the receiver as taken over if it has read "
        "the message. Have receivers read another format: XML or JSON.",
    ),
    (
        "ATTACK-BODY-BINARY",
        "BinaryMessageFormatter makes any objects that the bytes name, and some of them run programs when "
        "they are made. Who can reach the queue over HTTP can then run code in the receiver.",
        "Close the queue for HTTP from the Internet, or have its receivers read another format: XML or "
        "JSON. `msmqwire dissect FILE --findings ATTACK-BODY-BINARY --json` has the types in the body.",
    ),
    (
        "ATTACK-HEADER-ID",
        "A reader that goes by the id takes the bytes for another structure than one that goes by the place.",
        ATTACK,
    ),
    (
        "ATTACK-PACKET-SIZE",
        "Readers find the next packet by this size: with a false one they take data of a message for "
        "packets, or wait for bytes that never come.",
        ATTACK,
    ),
    (
        "ATTACK-TRUNCATED",
        "A reader that believes the announced size reads past the end. It is also what a connection shows "
        "that was closed inside a packet, and a capture that kept only the beginning of each frame.",
        "Look whether the connection ended there, and whether the capture was cut (`capinfos`, snap length)."
        " If neither, treat the sender as hostile.",
    ),
    (
        "ATTACK-HTTP-(LENGTH|LINE|CHUNK)",
        "A proxy and a server that read these bytes differently disagree on where a request ends: a second, "
        "hidden request passes the proxy unseen (request smuggling).",
        _PROXY_DO,
    ),
    (
        "ATTACK-MIME-PART",
        "A scanner and the queue manager that cut the parts differently see different messages.",
        _PROXY_DO,
    ),
    (
        "ATTACK-HTTP-FLOOD",
        "Each field and part costs the receiver memory and time before it knows whether it wants the "
        "message.",
        "Block the sender, or put a limit on the size of requests in front of the server.",
    ),
    (
        "ATTACK-XML-ENTITY",
        "Entities grow to gigabytes when they are resolved, or read files of the receiver and addresses of "
        "its network into the message. No message of SRMP has a document type.",
        ATTACK,
    ),
    (
        "ATTACK-XML-(DEPTH|SIZE)",
        "Parsers of XML run out of stack or memory, or take minutes, for a document that is small on the "
        "wire.",
        ATTACK,
    ),
    (
        "ATTACK-XML-ENCODING",
        "A scanner that takes the bytes for another encoding sees another document than the queue manager.",
        _PROXY_DO,
    ),
    (
        "ATTACK-RPC-ALLOC",
        "A server that believes the hint takes the memory before the stub comes, many times at once if asked"
        " to.",
        ATTACK,
    ),
    (
        "ATTACK-RPC-(FRAGMENT|AUTH)",
        "A server that puts the pieces together without a check reads outside of them, or keeps them for "
        "ever.",
        ATTACK,
    ),
    (
        "ATTACK-RPC-HANDLE",
        "Handles are given to one client. Another client that has one guesses or has listened, and reads "
        "messages that are not meant for it if the server does not look.",
        ATTACK,
    ),
    (
        "ATTACK-NCP-(TRAILING|SEQUENCE)",
        "Requests that another computer slips into a connection look like this, and so do bytes that are "
        "carried past a scanner. A client that repeats a request sends the same one.",
        ATTACK,
    ),
)
