"""Results about the arguments of calls: names, properties and buffers, explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants.explanations.explanation import Texts
from msmqwire.constants.hresult import HResult


def _buffer(holds: str) -> Texts:
    return Texts(
        f"the buffer for {holds} is too small",
        "The program gave less room than the value takes.",
        "Call again with a buffer of the length that the call returned.",
    )


def _structure(name: str) -> Texts:
    return Texts(
        f"the structure {name} is missing or empty",
        "The program passes a null pointer, or a count of 0.",
        f"Fill {name} with at least one entry.",
    )


def _locate(what: str) -> Texts:
    return Texts(
        f"{what} of the search for queues is not valid",
        "The program asks for a property or order that queues can't be searched by.",
        "Correct the search: MQLocateBegin takes few properties, and one key of order.",
    )


def _unsupported_property(name: str) -> Texts:
    return Texts(
        f"the call can't return {name}",
        "This property is only for other calls.",
        "Leave it out, and ask for it by MQGetQueueProperties.",
    )


ARGUMENT_RESULTS: Final[Mapping[int, Texts]] = {
    HResult.MQ_INFORMATION_PROPERTY: Texts(
        "the call succeeded, and some property has a warning",
        "A property was not known, given twice, or not for this call.",
        "Look at the status of each property.",
    ),
    HResult.MQ_INFORMATION_ILLEGAL_PROPERTY: Texts(
        "a property is not known, and the call succeeded without it",
        "The identifier is wrong, or of a later version.",
        "Correct the identifier, or leave it out.",
    ),
    HResult.MQ_INFORMATION_PROPERTY_IGNORED: Texts(
        "a property was ignored, and the call succeeded without it",
        "It has no effect on this call.",
        "Leave it out.",
    ),
    HResult.MQ_INFORMATION_UNSUPPORTED_PROPERTY: Texts(
        "a property is not supported, and the call succeeded without it",
        "It can't be used with this call or this version.",
        "Leave it out, or use a version that has it.",
    ),
    HResult.MQ_INFORMATION_DUPLICATE_PROPERTY: Texts(
        "a property was given twice, and the second one was ignored",
        "The array of properties names it twice.",
        "Name it once.",
    ),
    HResult.MQ_INFORMATION_OPERATION_PENDING: Texts(
        "the read goes on in the background",
        "The program reads asynchronously; this is a success.",
        "Wait for its event or callback.",
    ),
    HResult.MQ_INFORMATION_FORMATNAME_BUFFER_TOO_SMALL: Texts(
        "the queue was created, and the buffer for its format name is too small",
        "The program gave less room than the name takes.",
        "Ask for the format name by the path name; do not create the queue again.",
    ),
    HResult.MQ_INFORMATION_OWNER_IGNORED: Texts(
        "the queue was created, and its owner was not set",
        "The security descriptor names an owner, which this call leaves out.",
        "Set the owner afterwards.",
    ),
    HResult.MQ_ERROR_PROPERTY: Texts(
        "one of the properties is not valid",
        "An identifier, type or value is wrong; another code says which where the caller gave room for it.",
        "Look at the status of each property.",
    ),
    HResult.MQ_ERROR_INVALID_PARAMETER: Texts(
        "an argument of the call is not valid",
        "A pointer, flag or name is wrong; of management: the action is not for this kind of object, as a "
        "pause of a local queue.",
        "Check the arguments; pause, resume and resend are for outgoing queues only.",
    ),
    HResult.MQ_ERROR_ILLEGAL_SORT: _locate("the order"),
    HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME: Texts(
        "the path name is not well formed",
        "A part is missing or too long, or it has characters that names may not have.",
        r"Write it as HOST\private$\QUEUE, or HOST\QUEUE for a public queue.",
    ),
    HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE: Texts(
        "the value of a property is not allowed",
        "It is outside the range of the property, as a priority above 7.",
        "Correct the value.",
    ),
    HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT: Texts(
        "the type of a value is not that of the property",
        "The program set another VARTYPE than the property has.",
        "Set the type that the property needs, or VT_NULL where the call fills it in.",
    ),
    HResult.MQ_ERROR_BUFFER_OVERFLOW: Texts(
        "the buffer for the body or another property is too small, and the message is still in the queue",
        "The message is larger than the program expects.",
        "Read again with a buffer of the size that the length property says.",
    ),
    HResult.MQ_ERROR_ILLEGAL_FORMATNAME: Texts(
        "the name means no queue",
        "The format name breaks the grammar, or is of a kind that the call does not take.",
        r"Write it as DIRECT=OS:HOST\private$\QUEUE or DIRECT=TCP:ADDRESS\private$\QUEUE.",
    ),
    HResult.MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL: _buffer("the format name"),
    HResult.MQ_ERROR_SENDERID_BUFFER_TOO_SMALL: _buffer("the sender's identifier"),
    HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL: _buffer("the security descriptor"),
    HResult.MQ_ERROR_USER_BUFFER_TOO_SMALL: _buffer("the result"),
    HResult.MQ_ERROR_SENDER_CERT_BUFFER_TOO_SMALL: _buffer("the sender's certificate"),
    HResult.MQ_ERROR_RESULT_BUFFER_TOO_SMALL: _buffer("the results of the search"),
    HResult.MQ_ERROR_LABEL_BUFFER_TOO_SMALL: _buffer("the label"),
    HResult.MQ_ERROR_SYMM_KEY_BUFFER_TOO_SMALL: _buffer("the symmetric key"),
    HResult.MQ_ERROR_SIGNATURE_BUFFER_TOO_SMALL: _buffer("the signature"),
    HResult.MQ_ERROR_PROV_NAME_BUFFER_TOO_SMALL: _buffer("the name of the cryptographic provider"),
    HResult.MQ_ERROR_ILLEGAL_MQCOLUMNS: _structure("MQCOLUMNS"),
    HResult.MQ_ERROR_ILLEGAL_PROPID: Texts(
        "the identifier of a property is not known",
        "It is wrong, or the asked computer has an older version that lacks it.",
        "Ask without it; old versions lack the connection history, subqueues and bytes of all queues.",
    ),
    HResult.MQ_ERROR_ILLEGAL_RELATION: _locate("a relation"),
    HResult.MQ_ERROR_ILLEGAL_PROPERTY_SIZE: Texts(
        "the identifier of a message or correlation has a wrong length",
        "It must have 20 bytes.",
        "Pass 20 bytes.",
    ),
    HResult.MQ_ERROR_ILLEGAL_RESTRICTION_PROPID: _locate("a property"),
    HResult.MQ_ERROR_ILLEGAL_MQQUEUEPROPS: _structure("MQQUEUEPROPS"),
    HResult.MQ_ERROR_PROPERTY_NOTALLOWED: Texts(
        "the property can't be given to this call",
        "It can be read only, or set only when the queue is created, as whether it is transactional.",
        "Leave it out; to change it, create a new queue.",
    ),
    HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES: Texts(
        "a property that the call needs is missing",
        "A queue can't be created without a path name, for one.",
        "Add the missing property.",
    ),
    HResult.MQ_ERROR_ILLEGAL_MQQMPROPS: _structure("MQQMPROPS"),
    HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE: Texts(
        "the queue can't be opened in this way",
        "The access is not one of peek, receive, send, move and administration, or is joined with another.",
        "Open the queue with one kind of access.",
    ),
    HResult.MQ_ERROR_ILLEGAL_CONTEXT: Texts(
        "the context of a search is not valid",
        "The program passes a context to MQLocateBegin, which must be null.",
        "Pass null.",
    ),
    HResult.MQ_ERROR_ILLEGAL_SORT_PROPID: _locate("the property of the order"),
    HResult.MQ_ERROR_ILLEGAL_MQPRIVATEPROPS: _structure("MQPRIVATEPROPS"),
    HResult.MQ_ERROR_Q_DNS_PROPERTY_NOT_SUPPORTED: _unsupported_property("the DNS form of the path name"),
    HResult.MQ_ERROR_PROPERTIES_CONFLICT: Texts(
        "two of the properties exclude each other",
        "They set the same thing in two ways, as the queues of an answer by two names.",
        "Leave one of them out.",
    ),
    HResult.MQ_ERROR_MULTI_SORT_KEYS: _locate("an order of several keys"),
    HResult.MQ_ERROR_Q_ADS_PROPERTY_NOT_SUPPORTED: _unsupported_property("the path in the directory"),
    HResult.MQ_ERROR_BAD_XML_FORMAT: Texts(
        "the value is not well formed XML",
        "A property that takes XML, as of an SRMP envelope, got something else.",
        "Correct the XML.",
    ),
    HResult.MQ_ERROR_UNINITIALIZED_OBJECT: Texts(
        "the object was used before its initialization",
        "A script uses MSMQManagement before it has called Init.",
        "Call Init with a computer and a queue first.",
    ),
    HResult.MQ_ERROR_TOO_MANY_PROPERTIES: Texts(
        "the call has more than 128 properties",
        "The program names too many, or some twice.",
        "Split the call.",
    ),
}
"""By code."""
