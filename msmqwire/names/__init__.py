r"""The names of queues: [MS-MQMQ] 2.1.

Format names (``DIRECT=OS:host\PRIVATE$\orders``) and path names (``host\private$\orders``) from text and
back, and format names from and to their forms in headers and calls. Everything here raises only
``msmqwire.errors.InvalidName``.
"""

from __future__ import annotations

from msmqwire.names.formats import (
    ConnectorName,
    DirectName,
    DistributionListName,
    ElementName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PrivateName,
    PublicName,
    SingleName,
    kind_of,
    parse_format_name,
    split_elements,
)
from msmqwire.names.header_names import (
    Role,
    from_mqf_element,
    from_user_header_queue,
    to_mqf_element,
    to_user_header_queue,
)
from msmqwire.names.paths import PathName, parse_path_name
from msmqwire.names.queue_format import from_queue_format, to_queue_format

__all__ = [
    "ConnectorName",
    "DirectName",
    "DistributionListName",
    "ElementName",
    "FormatName",
    "MachineName",
    "MulticastName",
    "MultipleElementName",
    "PathName",
    "PrivateName",
    "PublicName",
    "Role",
    "SingleName",
    "from_mqf_element",
    "from_queue_format",
    "from_user_header_queue",
    "kind_of",
    "parse_format_name",
    "parse_path_name",
    "split_elements",
    "to_mqf_element",
    "to_queue_format",
    "to_user_header_queue",
]
