"""All headers and structures, each declared once in the vocabulary of `msmqwire.schema`."""

from msmqwire.headers.acknowledgements import FINAL_ACK_BODY, ORDER_ACK_BODY
from msmqwire.headers.base import BASE_HEADER
from msmqwire.headers.debug import DEBUG_HEADER
from msmqwire.headers.directory_structures import (
    MESSAGE_IDENTIFIER,
    MQDSPUBLICKEY,
    MQDSPUBLICKEYS,
    MQUSERSIGNCERT,
    MQUSERSIGNCERTS,
    OBJECTID,
    SEQUENCE_INFO,
    TA_ADDRESS,
    XACTUOW,
)
from msmqwire.headers.internal import (
    CONNECTION_PARAMETERS_HEADER,
    ESTABLISH_CONNECTION_HEADER,
    INTERNAL_HEADER,
)
from msmqwire.headers.keys import PUBLICKEYBLOB, SIMPLEBLOB
from msmqwire.headers.multiqueue import MQF_SIGNATURE_HEADER, MULTI_QUEUE_FORMAT_HEADER
from msmqwire.headers.properties import MESSAGE_PROPERTIES_HEADER
from msmqwire.headers.propvariant import (
    BLOB,
    CACLSID,
    CAL,
    CALPWSTR,
    CAPROPVARIANT,
    CAUB,
    CAUH,
    CAUI,
    CAUL,
    PROPVARIANT,
    ULARGE_INTEGER,
)
from msmqwire.headers.queue_format import DL_ID, MULTICAST_ID, QUEUE_FORMAT
from msmqwire.headers.queue_format_names import MQF_FORMAT_NAME_ELEMENT
from msmqwire.headers.remote import (
    DEAD_LETTER_HEADER,
    EXTENDED_ADDRESS_HEADER,
    EXTENSION_HEADER,
    SOURCE_ADDRESS,
    SUBQUEUE_HEADER,
    source_address,
)
from msmqwire.headers.security import SECURITY_HEADER
from msmqwire.headers.security_descriptor import ACCESS_ACE_BODY, ACE, ACL, SECURITY_DESCRIPTOR, SID
from msmqwire.headers.session import SESSION_HEADER
from msmqwire.headers.soap import SOAP_HEADER
from msmqwire.headers.srmp import COMPOUND_MESSAGE_HEADER, SRMP_ENVELOPE_HEADER
from msmqwire.headers.transaction import TRANSACTION_HEADER, TX_SEQUENCE_ID
from msmqwire.headers.user import USER_HEADER

__all__ = [
    "ACCESS_ACE_BODY",
    "ACE",
    "ACL",
    "BASE_HEADER",
    "BLOB",
    "CACLSID",
    "CAL",
    "CALPWSTR",
    "CAPROPVARIANT",
    "CAUB",
    "CAUH",
    "CAUI",
    "CAUL",
    "COMPOUND_MESSAGE_HEADER",
    "CONNECTION_PARAMETERS_HEADER",
    "DEAD_LETTER_HEADER",
    "DEBUG_HEADER",
    "DL_ID",
    "ESTABLISH_CONNECTION_HEADER",
    "EXTENDED_ADDRESS_HEADER",
    "EXTENSION_HEADER",
    "FINAL_ACK_BODY",
    "INTERNAL_HEADER",
    "MESSAGE_IDENTIFIER",
    "MESSAGE_PROPERTIES_HEADER",
    "MQDSPUBLICKEY",
    "MQDSPUBLICKEYS",
    "MQF_FORMAT_NAME_ELEMENT",
    "MQF_SIGNATURE_HEADER",
    "MQUSERSIGNCERT",
    "MQUSERSIGNCERTS",
    "MULTICAST_ID",
    "MULTI_QUEUE_FORMAT_HEADER",
    "OBJECTID",
    "ORDER_ACK_BODY",
    "PROPVARIANT",
    "PUBLICKEYBLOB",
    "QUEUE_FORMAT",
    "SECURITY_DESCRIPTOR",
    "SECURITY_HEADER",
    "SEQUENCE_INFO",
    "SESSION_HEADER",
    "SID",
    "SIMPLEBLOB",
    "SOAP_HEADER",
    "SOURCE_ADDRESS",
    "SRMP_ENVELOPE_HEADER",
    "SUBQUEUE_HEADER",
    "TA_ADDRESS",
    "TRANSACTION_HEADER",
    "TX_SEQUENCE_ID",
    "ULARGE_INTEGER",
    "USER_HEADER",
    "XACTUOW",
    "source_address",
]
