"""SPNEGO for servers of remote calls: [RFC4178], with messages and state of pyspnego.

As an acceptor, pyspnego takes its first provider, whether or not the client offers it, and passes it the
client's first token, whatever provider that is for. Here the client's order decides, and a token for another
provider is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spnego import ContextReq
from spnego._context import GSSMech
from spnego._negotiate import NegotiateProxy
from spnego.exceptions import BadMechanismError


class SpnegoAcceptor(NegotiateProxy):
    """The server's end of a negotiation."""

    def __init__(self, request: ContextReq, providers: Mapping[GSSMech, Any]) -> None:
        """Choose among the acceptors that are given."""
        for context in providers.values():
            context._is_wrapped = True
        # With DCE style pyspnego would require a mechListMIC where [RFC4178] 5 leaves it to the client.
        request &= ~ContextReq.dce_style
        super().__init__(usage="accept", context_req=request, _negotiate_contexts=dict(providers))
        self._offered: list[str] = []

    def _rebuild_context_list(
        self, mech_types: list[str] | None = None, channel_bindings: Any = None
    ) -> list[str]:
        """Keep the common providers, in the client's order. Raises BadMechanismError if there is none."""
        self._offered = mech_types or []
        known = self._available_contexts or {}
        common = {
            mech: known[mech] for oid in self._offered for mech in known if self._is_same_mech(mech, oid)
        }
        if not common:
            raise BadMechanismError(context_msg="none of the client's providers is available")
        self._available_contexts = common
        result: list[str] = super()._rebuild_context_list(mech_types, channel_bindings)
        return result

    def _preferred_mech_list(self) -> list[GSSMech]:
        return list(self._available_contexts or ())

    def _step_spnego_input(
        self, in_token: bytes | None = None, channel_bindings: Any = None
    ) -> tuple[bytes | None, bytes | None, bool]:
        is_first = not self._offered
        token, mic, is_spnego = super()._step_spnego_input(in_token, channel_bindings)
        if is_first and is_spnego and not self._is_same_mech(self._chosen_mech, self._offered[0]):
            token = None
        return token, mic, is_spnego
