"""Results about queues, messages and transactions, explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants.explanations.explanation import Texts
from msmqwire.constants.hresult import HResult

QUEUE_RESULTS: Final[Mapping[int, Texts]] = {
    HResult.MQ_ERROR: Texts(
        "the call failed, and no code is more precise",
        "Old versions answer so where newer ones have a code of their own; a refused action does, too.",
        "Look into the event log of that computer for the time of the call.",
    ),
    HResult.MQ_ERROR_QUEUE_NOT_FOUND: Texts(
        "there is no such queue",
        "The name is mistyped, the queue was deleted, or it is public and the directory is not asked; "
        "servers also answer so to hide a queue from callers without rights.",
        r"List the queues there: msmqwire manage HOST queues. A private queue needs private$\ in its name.",
    ),
    HResult.MQ_ERROR_QUEUE_NOT_ACTIVE: Texts(
        "the queue is not open, or does not exist",
        "Windows answers management calls so for a queue that nobody has open and that holds no message.",
        "Ask again once it is open or holds a message; a queue that answers so holds none.",
    ),
    HResult.MQ_ERROR_QUEUE_EXISTS: Texts(
        "there is a queue with this name",
        "The program creates a queue at each start, or another one made it before.",
        "Use the queue that is there; check that it is transactional or not, as the program needs it.",
    ),
    HResult.MQ_ERROR_INVALID_HANDLE: Texts(
        "the handle is not that of an open queue or cursor",
        "The queue was closed before, or the handle belongs to another process.",
        "Open the queue again, and close it once only.",
    ),
    HResult.MQ_ERROR_OPERATION_CANCELLED: Texts(
        "the wait for a message was cancelled",
        "The reader closed its queue, or the queue manager stopped, while the read waited.",
        "Read again; nothing was received.",
    ),
    HResult.MQ_ERROR_SHARING_VIOLATION: Texts(
        "another client has exclusive access to the queue",
        "A reader opened it with MQ_DENY_RECEIVE_SHARE, or this one asks for that while others read.",
        "Close the other reader, or open the queue without exclusive access.",
    ),
    HResult.MQ_ERROR_SERVICE_NOT_AVAILABLE: Texts(
        "the Message Queuing service does not run",
        "The service is stopped, has not finished its start, or is not installed.",
        "Start it, as by net start msmq on Windows; if it ends again, its event log says why.",
    ),
    HResult.MQ_ERROR_MACHINE_NOT_FOUND: Texts(
        "there is no such computer in the directory",
        "The name is mistyped, or the computer has no Message Queuing that is registered in the directory.",
        "Check the name, or use a direct format name, which needs no directory.",
    ),
    HResult.MQ_ERROR_IO_TIMEOUT: Texts(
        "no message has come in time",
        "The queue was empty for as long as the reader waited; this is the usual end of a wait.",
        "Wait again. If messages should be there, look where they are: msmqwire manage HOST outgoing.",
    ),
    HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION: Texts(
        "the cursor is not at a message, or waits for one",
        "The program asks for the next message before it has peeked at the current one.",
        "Peek at the current message first, then at the next one.",
    ),
    HResult.MQ_ERROR_MESSAGE_ALREADY_RECEIVED: Texts(
        "the message was received by another reader",
        "Several readers share the queue, and another one was faster.",
        "Go on with the next message.",
    ),
    HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION: Texts(
        "a queue with such a name can't be used for this",
        "Reading from HTTP, multicast and distribution list names, or deleting by a direct one, is not "
        "possible.",
        "Use another name of the queue: DIRECT=OS: or DIRECT=TCP: for reads, a path name to delete it.",
    ),
    HResult.MQ_ERROR_INSUFFICIENT_RESOURCES: Texts(
        "the queue manager has no room left for the message or call",
        "The quota of the computer is used up by unread messages, journals and dead letters; or the disk, "
        "the kernel's memory or the number of open queues is; or the message has more than 4 MB.",
        "Find the full queues by msmqwire manage HOST queues, read or purge them, journals too, and raise "
        "the quota of the computer or free the disk.",
    ),
    HResult.MQ_ERROR_MESSAGE_STORAGE_FAILED: Texts(
        "a recoverable message could not be written to the disk, or not be read from it",
        "The disk is full or fails, or the files of the service may not be written.",
        "Free the disk of the storage folder and check it; the message was not sent.",
    ),
    HResult.MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER: Texts(
        "the server that owns the object gave no answer",
        "The computer is off or unreachable, or its service hangs.",
        "Check that it runs, and call again.",
    ),
    HResult.MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE: Texts(
        "the server that owns the object can't be reached",
        "The computer is off, or a firewall is in between.",
        "Check that it runs and that its ports are open, and call again.",
    ),
    HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE: Texts(
        "the queue of the other computer can't be read any more",
        "The queue was deleted, or the connection to its computer was lost during a remote read.",
        "Check that the computer and the queue are there, and open it again.",
    ),
    HResult.MQ_ERROR_DTC_CONNECT: Texts(
        "the transaction coordinator (MS DTC) does not answer",
        "Its service is stopped, or network access to it is off.",
        "Start the coordinator and allow network transactions, or use an internal transaction.",
    ),
    HResult.MQ_ERROR_TRANSACTION_IMPORT: Texts(
        "the transaction can't be taken over from its coordinator",
        "The coordinators of the computers do not reach or do not trust each other.",
        "Check the settings of MS DTC on both computers, its firewall rules and names.",
    ),
    HResult.MQ_ERROR_TRANSACTION_USAGE: Texts(
        "a transactional queue takes transactional messages only, and only such a queue takes them",
        "The sender uses no transaction for a transactional queue, or one for another queue; a peek has "
        "one; or a queue elsewhere is read in a transaction.",
        "Send with the right kind of transaction: msmqwire send --transactional for a transactional queue.",
    ),
    HResult.MQ_ERROR_TRANSACTION_SEQUENCE: Texts(
        "the transaction has ended",
        "The program uses a transaction after its commit or abort, or ends it twice.",
        "Begin a new transaction.",
    ),
    HResult.MQ_ERROR_MISSING_CONNECTOR_TYPE: Texts(
        "the connector type is missing",
        "A program sets a class, a signature or a key by itself, which only connectors may.",
        "Set the property of the connector type as well, or leave these to the queue manager.",
    ),
    HResult.MQ_ERROR_STALE_HANDLE: Texts(
        "the handle is older than the last start of the service",
        "The Message Queuing service was restarted while the program had queues open.",
        "Close the queue and open it again.",
    ),
    HResult.MQ_ERROR_TRANSACTION_ENLIST: Texts(
        "the queue manager could not join the transaction",
        "It needs a coordinator (MS DTC) on both computers, and one is missing or refuses.",
        "Check the coordinators, or do it without a distributed transaction.",
    ),
    HResult.MQ_ERROR_QUEUE_DELETED: Texts(
        "the queue was deleted",
        "Somebody deleted it while the program had it open.",
        "Close it; create it again if it is needed.",
    ),
    HResult.MQ_ERROR_LABEL_TOO_LONG: Texts(
        "the label of the message is too long",
        "It has more than 249 characters.",
        "Shorten the label; put long values into the body or the extension.",
    ),
    HResult.MQ_CORRUPTED_QUEUE_WAS_DELETED: Texts(
        "the file of a queue was damaged and is deleted",
        "The disk failed, or the computer went off, while the service wrote the file in its LQS folder.",
        "Create the queue again with its rights, and check the disk.",
    ),
    HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE: Texts(
        "the other computer can't be reached",
        "It is off, its service does not run, its name has the wrong address, or a firewall drops the calls.",
        "Try msmqwire ping HOST; messages need TCP port 1801, remote read and management port 135 and "
        "others.",
    ),
    HResult.MQ_ERROR_MESSAGE_NOT_FOUND: Texts(
        "there is no such message to be read",
        "It was received or deleted meanwhile, has expired, or the lookup identifier is of another queue.",
        "Go on with the next message.",
    ),
    HResult.MQ_ERROR_OPERATION_NOT_SUPPORTED_BY_REMOTE_COMPUTER: Texts(
        "the other computer can't do this",
        "Its version of Message Queuing is older: moves, subqueues and remote transactions came with 4.0.",
        "Do it without these, or on that computer itself.",
    ),
    HResult.MQ_ERROR_RESOLVE_ADDRESS: Texts(
        "the name of the computer has no address",
        "The name is mistyped, or DNS does not know it from there.",
        "Look the name up on that computer; use DIRECT=TCP: with an address to do without DNS.",
    ),
    HResult.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION: Texts(
        "another transaction is using the message",
        "A reader has received it in a transaction that has not ended.",
        "Wait for the end of that transaction, or end the reader that holds it.",
    ),
}
"""By code."""
