"""The session of commands in docs/scapy.md does what the page says."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
from scapy.config import conf

from tests.support.capture.scapy_layers import registered_alone
from tests.support.paths import ROOT


def test_the_session_in_the_docs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    registered_alone(monkeypatch)
    monkeypatch.setattr(conf, "dcerpc_session_enable", False)
    page = (ROOT / "docs/scapy.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = [block.partition("```")[0] for block in page.split("```pycon\n")[1:]]
    session = doctest.DocTestParser().get_doctest("".join(blocks), names, "docs/scapy.md", None, 0)
    assert len(session.examples) > 40
    results = doctest.DocTestRunner().run(session)
    assert results == (0, len(session.examples))
