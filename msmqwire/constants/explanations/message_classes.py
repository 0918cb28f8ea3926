"""Message classes, explained: [MS-MQMQ] 2.2.18.1.6."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants.explanations.explanation import Texts
from msmqwire.constants.message_class import MessageClass

MESSAGE_CLASSES: Final[Mapping[int, Texts]] = {
    MessageClass.MQMSG_CLASS_NORMAL: Texts(
        "it is a message of an application",
        "A program sent it.",
        "No action is needed.",
    ),
    MessageClass.MQMSG_CLASS_REPORT: Texts(
        "a traced message passed a queue manager",
        "Its sender asked for a trace, and a report queue is set.",
        "Read the reports in the report queue; switch the trace off if they are too many.",
    ),
    MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE: Texts(
        "it is in its queue",
        "The message reached its queue, and its sender asked to be told.",
        "No action is needed; that it was read is another acknowledgement.",
    ),
    MessageClass.MQMSG_CLASS_ORDER_ACK: Texts(
        "its queue manager has it in the right order",
        "The destination acknowledges transactional messages so; no program sees it.",
        "No action is needed.",
    ),
    MessageClass.MQMSG_CLASS_ACK_RECEIVE: Texts(
        "an application has read it",
        "A reader took the message, and its sender asked to be told.",
        "No action is needed.",
    ),
    MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q: Texts(
        "there is no such queue",
        "The name is mistyped, the queue was deleted or never made, or the message went to the wrong "
        "computer.",
        r"Compare the format name with the queues there: msmqwire manage HOST queues; mind private$\.",
    ),
    MessageClass.MQMSG_CLASS_NACK_DELETED: Texts(
        "it was deleted before it got there",
        "Somebody purged the outgoing queue, or a file of a message was damaged.",
        "Ask who administers the computers on the way, and send it again.",
    ),
    MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT: Texts(
        "its time to reach the queue was over",
        "The destination was not reached in time, the time is very short, or the clocks differ.",
        "Look why the queue to it is stuck: msmqwire manage HOST --why QUEUE; or allow more time.",
    ),
    MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA: Texts(
        "the queue is full",
        "Its quota, or that of the computer, is used up: the reader is too slow or has stopped.",
        "Start the reader, read or purge what is not needed, or raise the quota of the queue.",
    ),
    MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED: Texts(
        "its sender may not send to the queue",
        "The sender is unknown or anonymous there and lacks the right to send, as across domains.",
        "Grant Everyone, or ANONYMOUS LOGON, the right to send, or the sender's own account.",
    ),
    MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED: Texts(
        "it was passed on too often",
        "Routing servers send it round in a circle, or the route has more than 15 hops.",
        "Check the sites and routing links; msmqwire fate shows the hops in a capture.",
    ),
    MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE: Texts(
        "its signature is not valid",
        "It was changed on its way, its certificate is not registered, the hash algorithm is refused, or "
        "the queue wants signed messages and this one is not.",
        "Register the certificate, sign with a hash that the destination takes, or let the queue take "
        "others.",
    ),
    MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION: Texts(
        "it can't be decrypted",
        "It was encrypted with an old key of the destination, or the queue wants encrypted messages only.",
        "Let the sender fetch the key of the destination anew, or change the privacy of the queue.",
    ),
    MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q: Texts(
        "it is transactional, and the queue is not",
        "The queue was created without transactions, which can't be changed.",
        "Send without a transaction, or create a transactional queue.",
    ),
    MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG: Texts(
        "the queue is transactional, and it is not",
        "The program sends without a transaction.",
        "Send in a transaction (msmqwire send --transactional), or create a queue without transactions.",
    ),
    MessageClass.MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER: Texts(
        "its cryptographic provider is not supported",
        "The destination lacks the provider or the cipher that the sender has used.",
        "Use the base or the enhanced provider on both sides.",
    ),
    MessageClass.MQMSG_CLASS_NACK_Q_DELETED: Texts(
        "the queue was deleted with it",
        "Somebody deleted the queue before the message was read.",
        "Create the queue again if it is needed, and send it again.",
    ),
    MessageClass.MQMSG_CLASS_NACK_Q_PURGED: Texts(
        "the queue was purged",
        "Somebody deleted all messages of the queue before this one was read.",
        "Send it again if it is still needed.",
    ),
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT: Texts(
        "nobody has read it in time",
        "It was in its queue, and its reader had stopped or was too slow.",
        "Start the reader, or allow more time to be received.",
    ),
    MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED: Texts(
        "the application has rejected it",
        "The reader marked the message as one that it can't use (MQMarkMessageRejected).",
        "Look into the log of the reader: its content or form is not what it takes.",
    ),
}
"""By number."""
