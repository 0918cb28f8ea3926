"""The options of HTTP and HTTPS in a queue manager."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msmqwire.service.endpoints import Endpoint

if TYPE_CHECKING:
    from msmqwire.qm.protocols.srmp.configuration import SrmpConfiguration


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Options for messages by HTTP and HTTPS.

    Attributes:
        http, https: address and TCP port for messages by HTTP, by HTTPS; None for none.
        tls_cert, tls_key: files with the certificate of HTTPS and its key.
        tls_ca: file with the authorities of other computers' certificates; None for those of the system.
        tls_verify: whether the certificates of other computers are verified.
        srmp: redirections and signatures; None for none.
    """

    http: Endpoint | None = None
    https: Endpoint | None = None
    tls_cert: str | os.PathLike[str] | None = None
    tls_key: str | os.PathLike[str] | None = None
    tls_ca: str | os.PathLike[str] | None = None
    tls_verify: bool = True
    srmp: SrmpConfiguration | None = None


def client_options(arguments: Mapping[str, Any]) -> HttpOptions:
    """Return the options of a program that sends, from arguments of `msmqwire.connect`."""
    return HttpOptions(tls_ca=arguments["tls_ca"], tls_verify=arguments["tls_verify"])
