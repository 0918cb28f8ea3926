"""The severities of lint's checks of SRMP, and the places that they are about."""

from __future__ import annotations

import pytest

from msmqwire.analysis.lint import checks

HEADER, PARTS = "Envelope.Header", "Multipart.Parts"
COMMITMENT = f"{HEADER}.services.commitmentReceiptRequest"
ANYWHERE = {
    "SHOULD": (
        "2.1.1-04", "2.1.1-05", "2.1.1-06", "2.1.1-07", "2.1.1-08", "2.1.1-09", "2.1.1-10", "2.1.1-11",
        "2.1.1-13", "2.1.2-03", "2.1.3.1-15", "2.2.2-09", "2.2.2-10", "2.2.2-11", "2.2.2-12", "2.2.2-13",
        "2.2.2-14", "2.2.2-15", "2.2.3-07", "2.2.4.3-04", "2.2.4.4-05", "2.2.5-03", "2.2.5.3-06",
    ),
    "NOTE": ("2.2.2-11-SOURCE", "2.2.2-12-SOURCE", "2.2.4-05"),
    "MUST": ("2.2.2-04", "2.2.2-07", "2.2.2-17", "2.2.4.1-02", "2.2.4.3-07", "2.2.5.2.1-02", "2.2.5.3-03"),
}  # fmt: skip
AT_A_PLACE = [
    ("2.1.1-04-TARGET", "SHOULD", "RequestLine"),
    ("2.1.1-06-TO", "SHOULD", "HeaderFields.Host"),
    ("2.1.1-12", "SHOULD", "Entity"),
    ("2.2-01", "SHOULD", "Envelope"),
    ("2.2.2-08", "MUST", PARTS),
    ("2.2.2-18", "SHOULD", PARTS),
    ("2.2.4-02", "MUST", f"{HEADER}.path"),
    ("2.2.4.1-06", "MUST", f"{HEADER}.path.action"),
    ("2.2.4.1-07", "MUST", f"{HEADER}.path.action"),
    ("2.2.4.4-03-URI", "SHOULD", f"{HEADER}.path.rev.via"),
    ("2.2.5.2.3-04-QUEUES", "SHOULD", f"{COMMITMENT}.sendTo"),
    ("2.2.5.2.3-09", "SHOULD", COMMITMENT),
]


def marked(id: str, severity: str, path: str = ""):
    row = "-".join(["SRMP", *id.split("-")[:2]])
    return pytest.param(f"SRMP-{id}", severity, path, marks=pytest.mark.requirement(row), id=id)


@pytest.mark.parametrize(
    "id, severity, path",
    [
        *(marked(id, severity) for severity, ids in ANYWHERE.items() for id in ids),
        *(marked(*case) for case in AT_A_PLACE),
    ],
)
def test_the_severity_of_a_check_and_its_place(id, severity, path):
    assert [(check.severity, check.path) for check in checks() if check.id == id] == [(severity, path)]
