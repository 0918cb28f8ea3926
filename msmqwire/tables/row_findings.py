"""The column of findings: the ids of the findings of rows, as they come from a scan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msmqwire.analysis.dissection import Item
from msmqwire.tables.arrow.values import finding_ids
from msmqwire.tables.compiled.scan_arrays import RowBlock
from msmqwire.tables.compiled.state import R_FILE, R_FRAME, R_IPV6, R_ORIGIN, R_SRC_HIGH, TUNNEL_BITS
from msmqwire.tables.row_judge import RowJudge, Sender
from msmqwire.tables.scanning.flow_keys import address_of


class RowFindings:
    """Finds the cells of the column of findings, block by block.

    Rows of sessions are judged here; items of the generic reader come with their findings.

    Args:
        tcp_ports: for each port whether its TCP connections are MSMQ.
        files: the names of the files, by the number that rows have.
    """

    def __init__(self, tcp_ports: Any, files: Sequence[str]) -> None:
        self._judge, self._files = RowJudge(tcp_ports), files
        self._of_items: dict[int, str] = {}  # by row of the next block

    def note(self, row: int, item: Item) -> None:
        """Note the findings of an item that becomes a row of the next block."""
        ids = finding_ids(item.findings)
        if ids is not None:
            self._of_items[row] = ids

    def cells(self, block: RowBlock) -> list[str]:
        """Return the cells of a block that are not null; R_ORIGIN of its rows is then their number, or -1.

        All blocks are to be judged, in their order, with all rows.
        """
        found, self._of_items = self._of_items, {}
        for r, suspect in self._judge.suspects(block):
            findings = self._judge.findings(suspect, partial(self._sender, block.rows, r))
            if findings and (ids := finding_ids(findings)) is not None:
                found[r] = ids
        block.rows[:, R_ORIGIN] = -1
        block.rows[list(found), R_ORIGIN] = range(len(found))
        return list(found.values())

    def _sender(self, rows: Any, r: int) -> Sender:
        row = rows[r].tolist()
        address = address_of(row[R_SRC_HIGH], row[R_SRC_HIGH + 1], row[R_IPV6])
        return Sender(address, self._files[row[R_FILE]], row[R_FRAME] >> TUNNEL_BITS)
