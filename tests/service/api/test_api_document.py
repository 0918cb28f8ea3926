"""The OpenAPI document: valid, and true of what the server answers; found out by programs of others."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from msmqwire.qm.runtime.api.all_routes import described_routes
from msmqwire.qm.runtime.api.document import document
from tests.support.installed import library
from tests.support.nightly import NIGHTLY
from tests.support.patience import limit
from tests.support.qm.api_client import with_api
from tests.support.running import LEDGER, ORDERS

APART = {
    "sample_events", "stream_messages",  # have no end
    "receive_messages",  # waits for up to a minute
    "add_keys", "add_certificate",  # take seconds of computation each
    "set_drain",  # all that follows would be refused
    "log_in", "log_out",  # of browsers
}  # fmt: skip
"""Endpoints that are not called with everything that the document allows."""
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "negative_data_rejection,unsupported_method,ignored_auth"
)
EXAMPLES, PHASES = ("100", "coverage,fuzzing") if NIGHTLY else ("2", "fuzzing")


def test_the_document_is_valid() -> None:
    """As an independent reader of OpenAPI 3.1 has it."""
    library("openapi_spec_validator").validate(document(described_routes()))


def test_the_server_gives_out_the_same_document(tmp_path: Path) -> None:
    with with_api(tmp_path / "data") as api:
        assert api.client().told("GET", "/openapi.json") == document(described_routes())
    file = Path(__file__).parents[3] / "docs" / "openapi.json"
    assert json.loads(file.read_text(encoding="utf-8")) == document(described_routes())


def test_each_operation_has_a_name_and_answers() -> None:
    for path, operations in document(described_routes())["paths"].items():
        for method, operation in operations.items():
            assert {"operationId", "summary", "tags", "responses"} <= operation.keys(), (method, path)
            assert operation["responses"].keys() & {"200", "201", "204"}, (method, path)


def test_the_server_answers_as_the_document_says(tmp_path: Path) -> None:
    """Schemathesis: values that the document allows, and others, in all places of each endpoint."""
    if importlib.util.find_spec("schemathesis") is None:
        pytest.skip("schemathesis is not installed")
    with with_api(tmp_path / "data", ORDERS, f"{LEDGER};transactional") as api:
        command = [
            str(Path(sys.executable).with_name("schemathesis")), "run",
            f"http://{api.own.address}:{api.own.port}/api/v1/openapi.json",
            "--header", f"Authorization: Bearer {api.own.token}",
            "--checks", CHECKS, "--max-examples", EXAMPLES, "--phases", PHASES,
            "--request-timeout", str(limit(10)), "--continue-on-failure", "--generation-deterministic",
            "--no-color", "--warnings", "off",
        ]  # fmt: skip
        for name in sorted(APART):
            command += ["--exclude-operation-id", name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[:30_000] + done.stderr[-2000:]
        assert api.own.ask("GET", "/queues").status == 200
