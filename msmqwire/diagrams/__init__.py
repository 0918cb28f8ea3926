"""Pictures of captures for notebooks and terminals: a session as a ladder."""

from __future__ import annotations

from msmqwire.diagrams.session_ladder import Ladder, Rung, ladder

__all__ = ["Ladder", "Rung", "ladder"]
