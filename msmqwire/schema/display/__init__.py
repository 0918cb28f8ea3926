"""Packets and messages as tables: HTML for notebooks, and tables of rich.

`View` is the picture of one, in bounded size; `to_html` and `to_rich` show it. `Table` has a row for each of
many. All of it may come from a peer: no character of it is markup, and none hides text.
"""

from __future__ import annotations

from msmqwire.schema.display.as_html import to_html
from msmqwire.schema.display.as_rich import to_rich
from msmqwire.schema.display.table import Table, Tabular
from msmqwire.schema.display.view import Found, PlacedField, View, line, view_of

__all__ = ["Found", "PlacedField", "Table", "Tabular", "View", "line", "to_html", "to_rich", "view_of"]
