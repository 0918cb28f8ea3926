"""The output of ``msmqwire queue why`` and ``msmqwire manage HOST --why``."""

from __future__ import annotations

from msmqwire.json_text import dumps
from msmqwire.management.advice import Advice
from msmqwire.management.reports import QueueReport
from msmqwire.management.why import why_json, why_text


def print_why(report: QueueReport, advice: tuple[Advice, ...], *, as_json: bool) -> None:
    """Print why a queue is stuck: for people, or its report with the advice as one JSON object."""
    print(dumps(why_json(report, advice)) if as_json else why_text(report, advice), flush=True)
