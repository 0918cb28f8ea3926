"""The configuration of SRMP besides `Settings`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msmqwire.qm.protocols.srmp.redirections import Redirections

if TYPE_CHECKING:
    from msmqwire.srmp.certificates import Signer, Trust


@dataclass(frozen=True, slots=True)
class SrmpConfiguration:
    """The configuration of SRMP.

    Attributes:
        redirections: the redirections of HTTP messages.
        signer: the signer of messages; None to sign none.
        trust: the trusted signers; None for none.
    """

    redirections: Redirections = field(default_factory=Redirections)
    signer: Signer | None = None
    trust: Trust | None = None
