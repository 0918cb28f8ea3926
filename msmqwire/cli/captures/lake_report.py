"""The result of a commit of a lake, and the damages of captures that it was made of."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from msmqwire.capture.not_read import to_json
from msmqwire.cli.common import say
from msmqwire.json_text import dumps

if TYPE_CHECKING:
    from msmqwire.tables.lake import LakeCommit


def say_damages(commit: LakeCommit) -> None:
    """Report the captures that could not be read to their ends."""
    for error in commit.damages:
        say(f"{error.file}: {error.why}", offset=error.offset)


def commit_json(commit: LakeCommit) -> str:
    """Return the result as JSON, on one line."""
    data: dict[str, Any] = {field.name: getattr(commit, field.name) for field in fields(commit)}
    data["frames_not_read"] = to_json(commit.frames_not_read)
    data["damages"] = [{"file": e.file, "offset": e.offset, "error": e.why} for e in commit.damages]
    return dumps(data)
