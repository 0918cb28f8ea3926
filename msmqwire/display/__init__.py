"""Packets and messages as tables: HTML for notebooks, and tables of rich.

`View` is what is shown, in bounded size; `to_html` and `to_rich` show it. Everything in one may come from a
peer: no character of it is markup, and none hides what is there.
"""

from __future__ import annotations

from msmqwire.display.as_html import to_html
from msmqwire.display.as_rich import to_rich
from msmqwire.display.view import Found, PlacedField, View, view_of

__all__ = ["Found", "PlacedField", "View", "to_html", "to_rich", "view_of"]
