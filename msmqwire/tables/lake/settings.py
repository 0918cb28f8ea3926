"""The settings that all runs of a lake have in common."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

from msmqwire.errors import LakeDamaged, LakeMismatch
from msmqwire.tables import Condition, Expression, chosen_columns
from msmqwire.tables.columns import FINDING_IDS
from msmqwire.tables.lake.partitions import By
from msmqwire.tables.lake.place import Place
from msmqwire.tables.lake.state import LakeState
from msmqwire.tables.parts import Splits

_SHOWN: Final = 8
"""Entries of a list of settings that a message shows."""
Settings = Mapping[str, Any]
"""JSON values by name."""


def settings_of(
    *,
    columns: Sequence[str] | None,
    findings: bool,
    where: Sequence[Condition],
    ports: Collection[int],
    body_limit: int | None,
    by: By | None,
    splits: Splits | None,
) -> Settings:
    """Return the settings of a run; see `write_lake`. Columns are None for all, or for the lake's; without
    ``splits`` those of the lake are meant.
    """
    settings = {
        "columns": None if columns is None else list(columns),
        "findings": findings,
        "where": [c.text if isinstance(c, Expression) else list(c) for c in where],
        "ports": sorted(set(ports)),
        "body_limit": body_limit,
        "by": by,
        **({} if splits is None else settings_of_splits(splits)),
    }
    return cast(dict[str, Any], json.loads(json.dumps(settings, default=repr)))


def settings_of_splits(splits: Splits) -> Settings:
    """Return the setting of a way to divide captures."""
    return {"splits": "exact" if splits == "exact" else None}


def stream_settings(columns: Sequence[str] | None, by: By | None) -> Settings:
    """Return the settings of a lake that a stream fills; see `settings_of`."""
    settings = settings_of(
        columns=columns, findings=False, where=(), ports=(), body_limit=None, by=by, splits="walked"
    )
    return {**settings, "stream": True}


def is_exact(state: LakeState) -> bool:
    """Whether a lake has the rows of one reader of all its captures."""
    return state.settings.get("splits") == "exact"


def check_settings(state: LakeState, settings: Settings, place: Place) -> None:
    """Refuse a run with other settings than the lake has.

    Raises:
        LakeMismatch: there is a difference.
        LakeDamaged: the lake has columns that there are not.
    """
    names = lake_columns(state.settings, place)
    is_stream = state.settings.get("stream") is True
    if is_stream != (settings.get("stream") is True):
        raise LakeMismatch(
            "a stream fills the lake, and knows alone what it has read: write captures into another one"
            if is_stream
            else "the lake is made of captures: let the stream fill another one",
            file=place.shown,
        )
    if settings["findings"] and settings["columns"] is None and FINDING_IDS not in names:
        raise LakeMismatch(
            "the lake was begun without findings: leave them out, or start another one", file=place.shown
        )
    wanted = {name: value for name, value in settings.items() if name not in ("columns", "findings")}
    had = {name: state.settings.get(name) for name in wanted}
    if settings["columns"] is not None:
        wanted["columns"], had["columns"] = list(lake_columns(settings, place)), list(names)
    for name, value in wanted.items():
        if had[name] != value:
            raise LakeMismatch(
                f"the lake was begun with {name} {_shown(name, had[name])}, not {_shown(name, value)}:"
                " use the same, or start another one",
                file=place.shown,
            )


def lake_columns(settings: Settings, place: Place) -> tuple[str, ...]:
    """Return the names of the columns of a lake: without any in its settings, all of this version.

    Raises:
        LakeDamaged: it has columns that there are not.
    """
    try:
        names = tuple(column.name for column in chosen_columns(settings["columns"]))
        finds = settings.get("findings") is True
    except (KeyError, TypeError, ValueError):
        raise LakeDamaged("the state is damaged: settings: no such columns", file=place.shown) from None
    return (*names, FINDING_IDS) if finds and FINDING_IDS not in names else names


def _shown(name: str, value: Any) -> str:
    """A setting as a message has it: of a long list, its length and the first."""
    if name == "splits" and value is None:
        return "walked or searched"
    if isinstance(value, list) and len(value) > _SHOWN:
        return f"{json.dumps(value[:_SHOWN])[:-1]} and {len(value) - _SHOWN} more]"
    return json.dumps(value)
