"""The request of administrators about the bytes of all files, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msmqwire.netware.rules.service import QueueService
from msmqwire.netware.runtime.bindery_requests import full_name

_LIST_MAX: Final = 20


def show(service: QueueService, _: Mapping[str, Any]) -> dict[str, Any]:
    """Show the bytes of all files, and those of objects and addresses that have a share.

    Of objects and addresses those with the most bytes are listed.
    """
    space = service.files.space
    return {
        "bytes": space.used,
        "limit": space.by_object.limit,
        "share": space.by_object.per_origin,
        "known_bytes": space.by_object.used_by(""),
        "objects": [
            {"object": _name(service, who), "bytes": used} for who, used in _most(space.by_object.by_origin())
        ],
        "addresses": [{"address": who, "bytes": used} for who, used in _most(space.by_origin.by_origin())],
    }


def _most(used: Mapping[str, int]) -> list[tuple[str, int]]:
    shown = sorted(((who, count) for who, count in used.items() if who), key=lambda pair: -pair[1])
    return shown[:_LIST_MAX]


def _name(service: QueueService, object_id: str) -> str:
    """Return the name of an object, or its ID once it has been deleted."""
    found = service.objects.get(int(object_id, 16))
    return object_id if found is None else full_name(found)
