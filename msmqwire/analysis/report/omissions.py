"""Packets and details beyond the limits of a report, in sentences for its page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msmqwire.analysis.report.collecting import Collector
from msmqwire.analysis.report.lives import Lives
from msmqwire.names.printable import counted

_TABLES: Final = {"managers": "queue managers", "endpoints": "computers", "queues": "queues"}


def omissions(collector: Collector, lives: Lives, attempts: int) -> Iterator[str]:
    """Yield a sentence for each limit that was reached; ``attempts`` to connect found no place."""
    limits, table, details = collector.limits, collector.table, collector.details
    beyond = collector.packets - table.count
    if beyond:
        yield (
            f"{counted(beyond, 'packet', 'are')} counted, but not in the table of packets: it has the first"
            f" {limits.packets:,}, and examples of findings. --packets takes in more."
        )
    if len(details.rows) < table.count:
        yield (
            "Fields and bytes are shown of the first"
            f" {counted(min(limits.details, len(details.rows)), 'packet')},"
            f" and of up to {limits.examples} for each requirement. --details takes in more."
        )
    if collector.details_left_out:
        yield f"Fields and bytes of {collector.details_left_out:,} of these packets took too much room."
    if collector.sessions.left_out:
        yield (
            f"{counted(collector.sessions.left_out, 'packet', 'are')} of sessions"
            f" beyond the first {limits.sessions:,}, which are not listed one by one."
        )
    for name, packets in collector.tallies.left_out.items():
        if packets:
            most = getattr(limits, name)
            table_of = _TABLES[name]
            yield (
                f"The table of {table_of} has the first {most:,};"
                f" there are more in {counted(packets, 'packet')}."
            )
    if attempts:
        yield (
            f"The table of failed attempts to connect leaves out {counted(attempts, 'attempt')}:"
            " there are too many clients and ports."
        )
    if collector.body_types.left_out:
        yield (
            f"The table of bodies leaves out {counted(collector.body_types.left_out, 'message')}:"
            " there are too many queues or types."
        )
    if collector.requirements.left_out:
        yield (
            f"{counted(collector.requirements.left_out, 'finding', 'are')} of requirements beyond the first"
            f" {limits.requirements:,}."
        )
    if table.texts.left_out or table.names.left_out or lives.texts.left_out:
        yield "Some labels, names and summaries are left out: there are too many different ones."
    if collector.identities == limits.identities:
        known = counted(limits.identities, "message")
        yield f"Whether a message was sent again is known of the first {known}."
    if lives.count > limits.lives:
        yield (
            f"The life of {counted(lives.count - limits.lives, 'message')} is summed up, but not shown;"
            f" that of the first {limits.lives:,} is."
        )
