"""An administrator of a queue manager without I/O: each call goes through stubs, as over a network."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msmqwire.constants import MQ_OK
from msmqwire.management.constants import Opnum
from msmqwire.management.interface import build_request, build_response, parse_request, parse_response
from msmqwire.management.variants import plain
from msmqwire.qm.model.enumerations import ManageAccess
from msmqwire.qm.protocols.management.standing import Standing
from msmqwire.rpc.ndr import NDR20
from tests.support.engine_harness import EngineHarness
from tests.support.peers.administrator import MACHINE, info_arguments, queue_named

USER, CALLER, STRANGER = Standing(True, True), Standing(True, False), Standing(False, False)


class Manager:
    """Asks and acts.

    Attributes:
        harness: the queue manager.
        standing: what it knows of this administrator.
    """

    def __init__(
        self,
        harness: EngineHarness,
        access: ManageAccess = ManageAccess.CALLERS,
        standing: Standing = CALLER,
    ) -> None:
        self.harness, self.standing = harness, standing
        harness.core.management.access = access

    def info(self, managed: Any, *identifiers: int, given: Iterable[Any] | None = None) -> Any:
        """Call R_QMMgmtGetInfo; return its results. `given` replaces the VT_NULL of each value."""
        stub = build_request(Opnum.R_QMMgmtGetInfo, info_arguments(managed, identifiers, given), NDR20)
        arguments = parse_request(Opnum.R_QMMgmtGetInfo, stub, NDR20)
        results = self.harness.core.management.get_info(self.standing, arguments)
        answer = build_response(Opnum.R_QMMgmtGetInfo, results, NDR20)
        return parse_response(Opnum.R_QMMgmtGetInfo, answer, NDR20)

    def variants(self, managed: Any, *identifiers: int) -> list[Any]:
        """The PROPVARIANTs of properties, which are there."""
        results = self.info(_object(managed), *identifiers)
        assert results.status == MQ_OK, f"{results.status:#010x}"
        return list(results.apVar)

    def values(self, managed: Any, *identifiers: int) -> list[Any]:
        """The values of properties, which are there."""
        return [plain(value) for value in self.variants(managed, *identifiers)]

    def value(self, managed: Any, identifier: int) -> Any:
        """The value of a property."""
        (value,) = self.values(managed, identifier)
        return value

    def status(self, managed: Any, *identifiers: int) -> int:
        """The status of a call for properties."""
        status: int = self.info(_object(managed), *identifiers).status
        return status

    def act(self, managed: Any, action: str) -> int:
        """Call R_QMMgmtAction; return its status."""
        call = {"pObjectFormat": _object(managed), "lpwszAction": action}
        arguments = parse_request(
            Opnum.R_QMMgmtAction, build_request(Opnum.R_QMMgmtAction, call, NDR20), NDR20
        )
        results = self.harness.core.management.act(self.standing, arguments)
        self.harness.run()
        answer = build_response(Opnum.R_QMMgmtAction, results, NDR20)
        status: int = parse_response(Opnum.R_QMMgmtAction, answer, NDR20).status
        return status


def _object(managed: Any) -> Any:
    return queue_named(managed) if isinstance(managed, str) else managed


__all__ = ["CALLER", "MACHINE", "STRANGER", "USER", "Manager"]
