"""Presentation contexts, as the server of an association negotiates them: [MS-RPCE] 3.3.1.5.6."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msmqwire.rpc.constants import BIND_TIME_FEATURES, ContextResult, ProviderReason, SyntaxId, features_of
from msmqwire.rpc.pdus import syntax_fields, syntax_of

CONTEXTS_MAX: Final = 64
"""The presentation contexts of an association."""

NO_SYNTAXES: Final[Mapping[SyntaxId, Sequence[SyntaxId]]] = MappingProxyType({})
"""All interfaces of a server have all of its transfer syntaxes."""


class PresentationContext(NamedTuple):
    """An accepted presentation context.

    Attributes:
        interface: the server's.
        proposed: the interface as the client named it, its minor version maybe lower.
    """

    interface: SyntaxId
    proposed: SyntaxId
    transfer_syntax: SyntaxId


class PresentationContexts:
    """The presentation contexts of an association by their ids.

    Attributes:
        accepted: the transfer syntaxes that were last accepted, by interface.
    """

    def __init__(
        self,
        interfaces: Collection[SyntaxId],
        transfer_syntaxes: Sequence[SyntaxId],
        of_interfaces: Mapping[SyntaxId, Sequence[SyntaxId]] = NO_SYNTAXES,
    ) -> None:
        """`of_interfaces` has the transfer syntaxes of interfaces that do not have all of them."""
        self._interfaces, self._transfer_syntaxes = interfaces, transfer_syntaxes
        self._of_interfaces = of_interfaces
        self._contexts: dict[int, PresentationContext] = {}
        self.accepted: dict[SyntaxId, SyntaxId] = {}

    def get(self, context_id: int) -> PresentationContext | None:
        """Return the context of that id."""
        return self._contexts.get(context_id)

    def negotiate(self, elements: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the results of a bind or alter_context, in the order of its elements.

        Of the transfer syntaxes that are proposed for an interface, in one element or in several, one is
        accepted: the one that the server likes best.
        """
        offered = [
            (syntax_of(e.abstract_syntax), [syntax_of(t) for t in e.transfer_syntaxes]) for e in elements
        ]
        chosen: dict[SyntaxId, SyntaxId] = {}
        for syntax in reversed(self._transfer_syntaxes):
            chosen.update(
                {
                    abstract: syntax
                    for abstract, transfers in offered
                    if syntax in transfers and syntax in self._syntaxes_of(abstract)
                }
            )
        results = []
        for element, (abstract, transfers) in zip(elements, offered, strict=True):
            features = features_of(transfers[0]) if len(transfers) == 1 else None
            if features is not None:
                results.append(_result(ContextResult.NEGOTIATE_ACK, features & BIND_TIME_FEATURES))
                continue
            results.append(self._result(element.p_cont_id, abstract, transfers, chosen.get(abstract)))
        return results

    def _known(self, abstract: SyntaxId) -> SyntaxId | None:
        return next((known for known in self._interfaces if _serves(known, abstract)), None)

    def _syntaxes_of(self, abstract: SyntaxId) -> Sequence[SyntaxId]:
        interface = self._known(abstract)
        if interface is None:
            return ()
        return self._of_interfaces.get(interface, self._transfer_syntaxes)

    def _result(
        self, context_id: int, abstract: SyntaxId, transfers: list[SyntaxId], chosen: SyntaxId | None
    ) -> dict[str, Any]:
        interface = self._known(abstract)
        reason = None
        if interface is None:
            reason = ProviderReason.ABSTRACT_SYNTAX_NOT_SUPPORTED
        elif chosen is None or chosen not in transfers:
            reason = ProviderReason.PROPOSED_TRANSFER_SYNTAXES_NOT_SUPPORTED
        elif len(self._contexts) >= CONTEXTS_MAX and context_id not in self._contexts:
            reason = ProviderReason.LOCAL_LIMIT_EXCEEDED
        if reason is not None or interface is None or chosen is None:
            return _result(ContextResult.PROVIDER_REJECTION, reason or 0)
        # A context id keeps its meaning while calls may use it: [C706] 12.6.4.1.
        context = PresentationContext(interface, abstract, chosen)
        if self._contexts.setdefault(context_id, context) != context:
            return _result(ContextResult.PROVIDER_REJECTION, ProviderReason.REASON_NOT_SPECIFIED)
        self.accepted[interface] = chosen
        return _result(ContextResult.ACCEPTANCE, 0, chosen)


def _serves(known: SyntaxId, asked: SyntaxId) -> bool:
    return (known.uuid, known.major) == (asked.uuid, asked.major) and asked.minor <= known.minor


def _result(result: int, reason: int, syntax: SyntaxId | None = None) -> dict[str, Any]:
    fields = {"result": result, "reason": reason}
    return {**fields, "transfer_syntax": syntax_fields(syntax)} if syntax else fields
