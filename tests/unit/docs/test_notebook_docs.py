"""What the guide shows of notebooks is what they show."""

from __future__ import annotations

import re

import msmqwire
from tests.support.paths import EXAMPLES, ROOT


def test_the_ladder_of_the_guide() -> None:
    guide = (ROOT / "docs" / "guide-captures.md").read_text(encoding="utf-8")
    section = guide.partition("### In a notebook")[2]
    shown = re.search(r"```text\n(.*?)\n```", section, re.DOTALL)
    assert shown is not None
    assert shown[1] == str(msmqwire.ladder(EXAMPLES / "session.pcap"))
