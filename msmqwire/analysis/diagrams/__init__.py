"""Captures at a glance, for notebooks and terminals: a session as a ladder, items as a table."""

from __future__ import annotations

from msmqwire.analysis.diagrams.session_ladder import Ladder, Rung, ladder
from msmqwire.analysis.diagrams.tables import table
from msmqwire.schema.display import Table

__all__ = ["Ladder", "Rung", "Table", "ladder", "table"]
