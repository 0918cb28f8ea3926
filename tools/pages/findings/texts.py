"""The importance of each finding and advice about it, by patterns of ids: the first that fits an id
counts.
"""

from __future__ import annotations

from typing import Final

RESERVED: Final = (
    "Receivers ignore these bits, so the packet is taken all the same. A sender that sets them has not "
    "cleared its memory, speaks a later version, or carries something that nobody is meant to see.",
    "Compare packets of the same sender: one value in all of them is a habit, values that change deserve a "
    "look at the bytes. In your own sender, write zero.",
)
"""For reserved and unused bits and fields."""
MEASURED: Final = (
    "The value decides how the bytes after it are read, so that a packet that can be parsed never shows "
    "this. It is of bytes that are malformed, or of a packet that a program has built with a value of its "
    "own: the receiver reads other fields than were meant, or closes the session.",
    "Leave the field out where you build the packet, and it is computed. In a capture, look for the attack "
    "or the other finding at the same bytes.",
)
"""For sizes, counts and bits of presence."""

_HANDSHAKE_DO: Final = (
    "Look at both packets of the exchange in the capture: `msmqwire dissect FILE --stream N --hexdump`. Two "
    "computers with one address, a device that rewrites packets, or a queue manager of another program are "
    "the usual causes."
)
_ACKNOWLEDGING_DO: Final = (
    "Look at the receiver's queue manager: what answers there is not Windows, or was changed on the way."
)
_SENDER_DO: Final = (
    "Mend the program or library that built the packet; Windows does not send it. If you do not know the "
    "sender, its queue manager GUID and address are in the report."
)
_SIGNATURE_DO: Final = (
    "Have the sender sign again: renew its certificate and send one message. If messages of one sender only "
    "are concerned, ask who else could have changed them."
)
_ENCRYPTED_DO: Final = (
    "Check the sender's encryption settings and the key that it was given for this receiver; send one "
    "message without encryption to see that all else works."
)
_XML_DO: Final = (
    "Compare the envelope with the example of the element in the page on [SRMP elements](srmp.md)."
)
_RPC_DO: Final = (
    "Look at the call and those before it on the same handle: `msmqwire dissect FILE --table`. Mend the "
    "client; if nobody knows the client, treat the calls as a probe."
)
_QMS_DO: Final = (
    "Look at the calls about the same queue and job before it. If all numbers look strange, the sender may "
    "write them in another byte order: the findings `READING-...` say so."
)
_PRINT_DO: Final = "Check the program that fills the job or creates the queue."
_ATTACK_DO: Final = (
    "Treat the sender as hostile until you know better: find it by its address, keep the capture, and see "
    "that the receiver has the security updates for Message Queuing."
)
_ANSWERS_DO: Final = "Look at what answers there: a proxy or another web server instead of Message Queuing."
_PROXY_DO: Final = (
    "Find out whether a proxy stands between sender and receiver and how it reads the head; block the sender"
    " if it is none of yours."
)

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "DMPR-3.1.1-05",
        "Machines that were cloned with MSMQ installed have the same GUID, and may number their messages "
        "alike: a receiver can take one of two messages for a copy and drop it, and acknowledgements can go "
        "to the other machine. It may also be a forged sender, or one machine with several addresses: a new "
        "lease of DHCP, NAT between two places of a capture, several networks.",
        "Ask whether both addresses are one machine. If not, and both are yours, give the clone a GUID of "
        "its own: stop its Message Queuing service, delete the value `QMId` under "
        "`HKLM\\Software\\Microsoft\\MSMQ\\Parameters\\MachineCache`, set the DWORD `SysPrep` under "
        "`HKLM\\Software\\Microsoft\\MSMQ\\Parameters` to 1, and start the service. Or remove Message "
        "Queuing there and install it again. `msmqwire fate` shows the messages of each address.",
    ),
    # -- attacks --
    (
        "ATTACK-SRMP-LENGTH",
        "The length of an envelope is used before it is checked in queue managers without the update of "
        "April 2023: memory outside the packet is read or written, and code of the sender may run.",
        _ATTACK_DO,
    ),
    (
        "ATTACK-(LENGTH|HTTP-BODY-SIZE|ELEMENT-COUNT|RPC-COUNT|NCP-COUNT|NCP-LENGTH)",
        "A reader that believes the number reads or allocates memory that the packet does not have. Honest "
        "senders never write it; fuzzers and exploits do.",
        _ATTACK_DO,
    ),
    (
        "ATTACK-BODY-RANGE",
        "A reader that adds the two numbers in 32 bits takes the body from elsewhere in its memory.",
        _ATTACK_DO,
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
        "Who reads the body with BinaryMessageFormatter makes objects of these types, and they run what "
        "the sender wants, whatever the receiver expected. Public write-ups show how; the finding names "
        "one.",
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
        _ATTACK_DO,
    ),
    (
        "ATTACK-PACKET-SIZE",
        "Readers find the next packet by this size: with a false one they take data of a message for "
        "packets, or wait for bytes that never come.",
        _ATTACK_DO,
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
        _ATTACK_DO,
    ),
    (
        "ATTACK-XML-(DEPTH|SIZE)",
        "Parsers of XML run out of stack or memory, or take minutes, for a document that is small on the "
        "wire.",
        _ATTACK_DO,
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
        _ATTACK_DO,
    ),
    (
        "ATTACK-RPC-(FRAGMENT|AUTH)",
        "A server that puts the pieces together without a check reads outside of them, or keeps them for "
        "ever.",
        _ATTACK_DO,
    ),
    (
        "ATTACK-RPC-HANDLE",
        "Handles are given to one client. Another client that has one guesses or has listened, and reads "
        "messages that are not meant for it if the server does not look.",
        _ATTACK_DO,
    ),
    (
        "ATTACK-NCP-(TRAILING|SEQUENCE)",
        "Requests that another computer slips into a connection look like this, and so do bytes that are "
        "carried past a scanner. A client that repeats a request sends the same one.",
        _ATTACK_DO,
    ),
    # -- multicast --
    (
        "PGM-CHECKSUM",
        "A receiver that verifies the checksum drops the datagram, and asks for it again. Network cards "
        "compute the checksums of TCP and UDP, not this one: it is what the sender has written.",
        "Capture on the sending side, too. If it is right there, something on the way damages or changes "
        "datagrams; if not, the sender's driver of PGM writes it so.",
    ),
    (
        "PGM-OPTIONS",
        "Receivers skip options by their lengths: with wrong ones they miss an option, or take data for one.",
        "Find out which driver of PGM sends it. What can be read of the datagram is shown.",
    ),
    (
        "PGM-TSDU-LENGTH",
        "Receivers take so many bytes as data: too many, and the message has bytes of the header or none; "
        "too few, and its end is lost. Some senders count the header.",
        "Nothing, if the receivers take the messages. The data are shown up to the end of the datagram.",
    ),
    # -- NetWare --
    (
        "READING-.*",
        "Nothing is wrong. Public descriptions of NCP disagree on this field, and the values of this sender "
        "fit the other of them: as it is read now, its numbers are shown wrong, or its size is noted as "
        "unusual.",
        "If the message of the finding ends in an option `--reading NAME=ORDER`, read the capture again with"
        " it. Without one there is nothing to do.",
    ),
    (
        "QMS-(submit|service|manage|ext-(03|05|16)).*",
        "Two servers that print one job, a job that is printed twice or one that never is: this is what "
        "users see of it. Calls that the capture does not have explain it as well.",
        _QMS_DO,
    ),
    (
        "QMS-ext-08",
        "Servers of NetWare hold no more: a server refuses what is beyond, or programs can't show it.",
        _QMS_DO,
    ),
    (
        "QMS-jobfields-(19|25|29|38)|QMS-flags-11",
        "Programs show this field to users or choose jobs by it: with a wrong value a job is shown with a "
        "wrong time or text, is given to another server, or waits for ever.",
        _PRINT_DO,
    ),
    (
        "QMS-(jobfields|monitor|ext).*",
        "Programs list and change jobs by this field. With a wrong value they show or change another job, "
        "or none.",
        _QMS_DO,
    ),
    (
        "QMS-(qobject|qdir|qprops|createq).*",
        "A queue without its type, directory or properties in their form can't be used: nobody may submit, "
        "operate or serve it.",
        _PRINT_DO,
    ),
    # -- messages: bodies and properties --
    (
        "MQMQ-2.2.19.3-12",
        "The queue manager does not look at BodyType; the program that receives the message chooses by it "
        "how to read the body. Types of COM, System.Messaging and WCF are known here; this is none of them.",
        "Ask which program sends it. If both ends agree on the number nothing is to be done; if not, the "
        "receiver fails with a body that it can't read.",
    ),
    (
        "MQMQ-2.2.12-06",
        "VT_VARIANT is the type of the elements of an array, each of which says its own. Alone it does not "
        "say how to read the body. The queue manager does not look at it.",
        "Have the sender use the type of the value itself, or VT_ARRAY or VT_VECTOR with VT_VARIANT.",
    ),
    (
        "MQMQ-2.2.19.2-26",
        "Acknowledgements go to the administration queue: without one none comes, though the sender asked "
        "for them, as Windows does in the example of [MS-MQQB] 4.1.7. If there is a queue and nothing was "
        "asked for, none comes either.",
        "If the sender waits for acknowledgements, have it set both the administration queue and the kinds "
        "(`AdministrationQueue` and `AcknowledgeType` in System.Messaging).",
    ),
    (
        "MQMQ-2.2.19.1-07",
        "Transactional messages are read in the order in which they were sent. A queue manager that goes by "
        "the priority changes their order.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.2-10",
        "Each router on the way adds one, and gives the message up when there are 29. No router writes more.",
        "Look for routers that send to each other in a circle, and at the program that built the packet.",
    ),
    (
        "MQMQ-2.2.19.2-(11|33)",
        "The receiver writes recoverable messages to disk and keeps express ones in memory. By a wrong value"
        " a message is lost in a restart that ought to survive it, or refused.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.2-30",
        "The value says that the response queue is on the computer of the administration queue. Without one,"
        " the answer has nowhere to go.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.2-34",
        "Without this bit there is no MessagePropertiesHeader, and so neither label nor body. The receiver "
        "refuses the packet.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.2-39",
        "Queue managers add these headers to messages that came over HTTP when they store them. On a session"
        " nobody sends them but exploits of CVE-2023-21554.",
        _ATTACK_DO,
    ),
    (
        "MQMQ-2.2.19.3-07",
        "Windows has room for 250 characters of a label, with the null. It refuses a longer one, and "
        "programs that trust the number write past their buffer.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.2-(22|24)",
        "The receiver can't know which form of name follows, and closes the session; all that waits on it is"
        " sent again later.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.2-03",
        "With a GUID beside a direct name, or none beside a name that needs it, a router sends the message "
        "elsewhere or not at all.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.3-43|MQMQ-2.2.20.7-0[48]|MQMQ-2.2.20.6-38|MQRR-2.2.5.1.2.1-05|MQRR-2.2.5.4-02",
        "Programs copy such texts up to the null: without one, or with one inside, they read too much or "
        "show only a part.",
        "Have the sender end the text with one null character, and count it where the field is a length.",
    ),
    (
        "MQMQ-2.2.18.1.6-22|MQRR-2.2.5.3-04|MQQB-2.2.(4-10|5-09)",
        "The class says whether this is a message or an acknowledgement, and of what. Programs that meet an "
        "unknown class drop it or take a refusal for an arrival.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.3-16-SIZE",
        "A reader that takes so many bytes for the body reads memory that is not of the packet.",
        _ATTACK_DO,
    ),
    (
        "MQMQ-2.2.19.3-16",
        "A receiver that makes room for the body by this number has too little, and refuses or cuts the "
        "message.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.3-46|MQMQ-2.2.18.1.5.2-03|MQMQ-2.2.20-11|MQMQ-2.2.20.6-21|MQRR-2.2.5.4-01",
        "The next header begins at a multiple of four: another amount of padding moves it, and a receiver "
        "that reckons with the rule reads it from the wrong bytes.",
        _SENDER_DO,
    ),
    # -- security --
    (
        "MQMQ-2.2.19.3-30|MQQB-3.1.7.1.5-06",
        "The algorithm is broken or weak: who can read and change the traffic can, with effort, forge the "
        "signature or read the body. Older versions of Windows use it by default.",
        "Choose SHA-512 and AES where the sender lets you (`HashAlgorithm`, `EncryptionAlgorithm`), or "
        "update it.",
    ),
    (
        "MQQB-3.1.5.8.3-06",
        "The message was changed on its way, or was signed with another key than that of the certificate in "
        "it. The receiver refuses it with NACK_BAD_SIGNATURE.",
        _SIGNATURE_DO,
    ),
    (
        "MQMQ-2.2.19.3-29|MQQB-3.1.5.8.3-0[35]|MQQB-3.1.7.1.4.*|MQMQ-2.2.20.6-(09|18|29|35|37)",
        "The receiver can't verify the signature: it refuses the message, or takes it as one without a "
        "sender.",
        _SIGNATURE_DO,
    ),
    (
        "MQMQ-2.2.19.3-(19|38|39|40)|MQQB-3.1.5.8.3-16|MQQB-3.1.7.1.5-01|MQMQ-2.2.20.6-07|MQQB-2.4.2.*",
        "The receiver can't decrypt the body, or believes that it is encrypted when it is not: it refuses "
        "the message, or somebody on the way can read what was meant to be secret.",
        _ENCRYPTED_DO,
    ),
    (
        "MQMQ-2.2.20.6-(06|13)",
        "The receiver sets this once it has verified the signature. One that takes it from the packet holds "
        "a forged message to be authenticated.",
        "Treat the sender as hostile unless you know the program that built the packet; verify the signature "
        "with `--cert`.",
    ),
    (
        "MQMQ-2.2.20.6-.*",
        "The receiver can't tell who sent the message: access to the queue is judged for an unknown sender, "
        "or the message is refused.",
        _SENDER_DO,
    ),
    # -- packets --
    (
        "MQMQ-2.2.19.1-(02|18|21)|MQQB-2.2.(1-04|2-01|2-02|3-01|3-02|6-01|6-02)|MQQB-3.1.5.1.3-01",
        "A receiver knows packets by this value, and closes the session with a packet that has another. If "
        "bytes are missing in the capture, what follows them looks like this too.",
        "See whether the capture has a gap before it. If not, the sender is no queue manager, or speaks "
        "another protocol on this port.",
    ),
    (
        "MQMQ-2.2.19.1-15",
        "TR asks for a trace of the message, and DebugHeader, which names the queue for it, is missing: the "
        "trace has nowhere to go.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.1-24",
        "Only messages expire. A program that goes by the time drops an acknowledgement or a packet of the "
        "session.",
        _SENDER_DO,
    ),
    (
        "MQQB-2.2.1-07",
        "CS refuses a connection while it is being opened. In a SessionAck it has no meaning: the receiver "
        "ignores it, or closes the session.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.19.1-(09|10|11|13)|MQMQ-2.2.20-04|MQQB-2.2.6-02-SH",
        "The bits say which headers follow and whether a packet is a message: the receiver reads other "
        "headers than were meant, or closes the session.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.20-12|MQMQ-2.2.19.1-19",
        "The receiver skips bytes that are in no header. They may hide data, or a second packet that a "
        "device which cuts the stream otherwise takes for a real one.",
        "Look at the bytes (`--hexdump`). An ExtensionHeader, which Windows sends there, is no finding.",
    ),
    (
        "MQMQ-2.2.18.1.(4-01|5.2-05)",
        "The receiver can't read the name of the queue, and closes the session.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.20.(1|2|3)-.*",
        "A message to several queues is taken apart by these values: a copy is lost or goes to the wrong "
        "queue.",
        _SENDER_DO,
    ),
    (
        "MQMQ-2.2.20.7-.*|MQMQ-2.2.20.8-.*|MQRR-2.2.5.1.2.*-0[12]",
        "The receiver takes the header for another, or does not find what it looks for in it.",
        _SENDER_DO,
    ),
    (
        "MQRR-2.2.5.1.2.1-04-UNIT",
        "Programs that count characters look for the next header twice as far away. Some senders count "
        "bytes, some characters.",
        "Nothing, if the receiver takes the message. In your own sender, count characters with the null.",
    ),
    (
        "MQRR-2.2.5.1.2.*",
        "A program that finds the body by these numbers reads other bytes than the sender meant. Windows "
        "finds the body in the HTTP message itself, and accepts other numbers.",
        "Nothing, if it is a note. Otherwise look at the HTTP message in the packet.",
    ),
    (
        "MQRR-2.2.5.*",
        "The client that reads the message remotely finds the headers after it by these values, and shows a "
        "wrong subqueue, address or dead-letter queue.",
        "Look at the server that stored the message: its version and whether its store was damaged.",
    ),
    # -- sessions --
    (
        "MQQB-2.2.1-08",
        "The sender asked for one queue manager and another one answers: another computer has the address "
        "now, or a copy of the machine. It should refuse the connection. If neither side notices, messages "
        "go to the wrong computer.",
        _HANDSHAKE_DO,
    ),
    (
        "MQQB-2.2.3.1-(09|18)",
        "Windows always writes this value. Nothing else depends on it, but a receiver may close a connection "
        "that has another.",
        "Nothing, if the connection opens. Another value is a sign that the queue manager is not Windows.",
    ),
    (
        "MQQB-3.1.5.3.1-.*|MQQB-2.2.3.1.*|MQQB-3.1.5.(2.3|3.2-06|4.1).*",
        "Both sides learn from this exchange whom they talk to and how. A side that sees something "
        "unexpected closes the connection and tries again: messages wait though the network is fine.",
        _HANDSHAKE_DO,
    ),
    (
        "MQQB-2.2.2.1-.*",
        "The timers decide how long messages wait for acknowledgement: too short, and they are sent twice; "
        "too long, and a dead connection is noticed late. A receiver may close the session instead.",
        "Check the settings of the queue manager that sends the packet.",
    ),
    (
        "MQQB-3.1.5.(3|4|5|6|7|8)-01|MQQB-3.1.5.3.2-03",
        "The receiver closes the session with a packet that comes out of its order. If the capture lacks the"
        " beginning of the connection, that explains it too.",
        _HANDSHAKE_DO,
    ),
    (
        "MQQB-3.1.6.3-02",
        "A sender that goes on though nobody answers fills a dead connection; its messages arrive only after"
        " a new one is opened.",
        "Look whether acknowledgements are missing in the capture. If not, see why the receiver is silent: a"
        " full disk, a paused service, a firewall that drops one direction.",
    ),
    (
        "MQMQ-2.2.20.4-(10|13)",
        "The receiver acknowledges by its own count of messages. If the sender counts otherwise, "
        "acknowledgements are taken for those of other messages: some are sent twice, some forgotten. A "
        "capture with lost frames shows it as well.",
        "See whether the capture has gaps. If not, mend the sender's count.",
    ),
    (
        "MQMQ-2.2.20.4-(06|07|09|14).*|MQQB-3.1.1.6.1-02|MQQB-3.1.7.1-03.*",
        "Acknowledgements and windows keep sender and receiver in step. Wrong ones make a sender forget "
        "messages that did not arrive, or stop sending. A capture with lost frames shows it as well.",
        "See whether the capture has gaps. If not, look at the side that acknowledges.",
    ),
    (
        "MQMQ-2.2.20.5-.*|MQQB-3.1.1.5-.*|MQQB-3.1.5.8.6-04",
        "Transactional messages are taken once and in order by these numbers: a message with a wrong one "
        "waits until the missing ones come, or is dropped as a duplicate. A restored or cloned machine that "
        "reuses its numbers shows it, and so does a capture with gaps.",
        "Look at the messages of the sequence before it. Two machines with one queue manager GUID need a new"
        " installation of Message Queuing on one of them.",
    ),
    (
        "MQQB-2.2.(4.1-03-SENT|5.1-03-SENT)",
        "The sender ignores an acknowledgement of what it has not sent, and the message that was meant stays "
        "unacknowledged. If the capture lacks that message, this explains it.",
        "See whether the capture has gaps. If not, look at the receiver's queue manager, or for somebody who "
        "forges acknowledgements.",
    ),
    (
        "MQQB-2.2.4.*",
        "The sender of transactional messages sends them again until they are acknowledged in order. It may "
        "not recognize an acknowledgement with wrong fields: the messages come again, and in the end are "
        "reported as undelivered.",
        _ACKNOWLEDGING_DO,
    ),
    (
        "MQQB-2.2.5.*",
        "By this acknowledgement the sender of a transactional message learns whether a program received it "
        "or the receiver refused it. It may not recognize one with wrong fields: the message counts as "
        "undelivered though it was received, or a refusal stays unknown.",
        _ACKNOWLEDGING_DO,
    ),
    (
        "MQQB-2.2.7-.*",
        "A sender asks by a ping whether it may connect. It ignores an answer that does not fit, takes the "
        "receiver for dead, and its messages wait.",
        "See who sends it: scanners probe this port with bytes of other protocols.",
    ),
    # -- remote read --
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
    # -- SRMP --
    (
        "SRMP-2.1.1-11",
        "The receiver finds the end of the message by Content-Length. Without a right one it waits for bytes "
        "that do not come, or refuses the request.",
        "Have the sender count all bytes after the head. A proxy that changes the encoding may leave the "
        "field out.",
    ),
    (
        "SRMP-2.1.1-12",
        "The sender goes by the status and ignores the rest: the message was accepted. Message Queuing "
        "answers without a text, so that something else may have answered, and the message never reached a "
        "queue.",
        _ANSWERS_DO,
    ),
    (
        "SRMP-2.1.3.1-15",
        "Multicast carries messages of at most 64 KiB: receivers drop this one.",
        "Have the program divide the message, or send where the data is instead of the data.",
    ),
    (
        "SRMP-2.1.2-03",
        "Receivers of a multicast know the message by the group that it came to. One that goes by the head "
        "drops it.",
        "Nothing, if the receivers take the message. In your own sender, write address and port of the group "
        "as the example in [MC-MQSRM] 4.5 has them.",
    ),
    (
        "SRMP-2.1.1-13",
        "The sender does not know by this status whether the message arrived: it sends it again, or gives it "
        "up.",
        _ANSWERS_DO,
    ),
    (
        "SRMP-2.1.1-.*",
        "Windows takes the request all the same. It was not made by Windows, or a proxy has changed its "
        "head.",
        "Nothing, if you know the sender. In your own sender, write the head as the examples of [MC-MQSRM] 4"
        " have it.",
    ),
    (
        "SRMP-2.2.2-1[12]-SOURCE",
        "Nothing is wrong: receivers know the part by what stands before the GUID. Windows writes the GUID "
        "of the sending queue manager, programs write any.",
        "Nothing.",
    ),
    (
        "SRMP-2.2.2-04",
        "Receivers take the body of a message from its part. What stands in the SOAP Body is not read.",
        "Have the sender put the body into a part of its own, as in [MC-MQSRM] 4.2.",
    ),
    (
        "SRMP-2.2.2-18",
        "Windows refuses messages of more than 4 MiB.",
        "Have the program divide the message, or send where the data is instead of the data.",
    ),
    (
        "SRMP-2.2.5.2.1-02",
        "A receiver that goes by the element keeps the message in memory only, and loses it in a restart: "
        "the stream then waits for it.",
        _XML_DO,
    ),
    (
        "SRMP-3.1.7.2.4-18",
        "No message has the number 0: the first one leaves the element out. A strict receiver refuses the "
        "message.",
        _XML_DO,
    ),
    (
        "SRMP-2.2.2-08",
        "A receipt is an envelope alone. The sender of the message may not take this for a receipt, and its "
        "message counts as lost.",
        _ANSWERS_DO,
    ),
    (
        "SRMP-2.2.2-(09|1[0-5])",
        "Receivers find the parts all the same. The message was not made by Windows, or a proxy has changed "
        "it.",
        "Nothing, if you know the sender. In your own sender, write the parts as the example in [MC-MQSRM] "
        "4.2 has them.",
    ),
    (
        "SRMP-2.2.2-07",
        "Receivers find body and extension by the names and the order of the parts. Where these differ, a "
        "receiver takes the message without them, or refuses it.",
        "Compare the parts with the example in [MC-MQSRM] 4.2, and mend the sender.",
    ),
    (
        "SRMP-3.1.5.1.6.*|SRMP-2.2.7.*|SRMP-3.1.7.2.4-37",
        "The receiver can't verify the signature of the message, and drops it.",
        _SIGNATURE_DO,
    ),
    (
        "SRMP-3.1.7.2.1-02",
        "The receiver drops the message as expired.",
        "Check the clock of the sender and the time that its program allows for the message.",
    ),
    (
        "SRMP-2.2.5.3.*|SRMP-3.1.7.2.4-15",
        "Messages of a stream are taken once and in order by these elements. With a wrong one the receiver "
        "waits for what never comes, or drops the message.",
        _XML_DO,
    ),
    (
        "SRMP-2.2.5.2-.*|SRMP-2.2.5.2.1-01",
        "services says whether the message is recoverable and which receipts the sender wants. A receiver "
        "that can't read it refuses the message.",
        _XML_DO,
    ),
    (
        "SRMP-2.2.5.(2|4|5|6).*|SRMP-3.1.5.1.5-.*|SRMP-3.1.7.2.4-13",
        "Receipts tell the sender what became of its message. It ignores one that does not fit, or never "
        "gets one that it asked for in a wrong way, and takes the message for lost.",
        _XML_DO,
    ),
    (
        "SRMP-(2.2.4-05|2.2.5-03|2.2.6-04|3.1.7.2.4-.*)",
        "Receivers are to take elements in any order; a strict one of another maker may refuse the message.",
        "Nothing, if it is taken. In your own sender, write the elements in the order of [MC-MQSRM] "
        "3.1.7.2.4.",
    ),
    (
        "SRMP-3.1.5.1.2-.*|SRMP-2.2.2-.*",
        "The receiver can't read the message, and drops it or answers 400.",
        _XML_DO,
    ),
    (
        "SRMP-2.2-01|SRMP-2.2.3-07",
        "Windows does not write it. A receiver may ignore it or refuse the message.",
        "Nothing, if the message is taken. In your own sender, leave it out.",
    ),
    (
        "SRMP-2.2(-|.3|.4|.5|.6).*",
        "Receivers find destination, identity and properties of the message in these elements. A receiver "
        "refuses the message because of a wrong one, or takes it with a default or another meaning in its "
        "place.",
        _XML_DO,
    ),
)
