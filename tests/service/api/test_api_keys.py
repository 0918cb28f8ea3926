"""Keys and certificates by the API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from msmqwire.qm.runtime.new_keys import pem_of
from tests.support.qm.api_client import WithApi, with_api

PEER = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
SID = "S-1-5-21-1-2-3-1001"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithApi]:
    with with_api(tmp_path_factory.mktemp("keys") / "data") as running:
        yield running


def test_keys_are_made_used_and_listed(api: WithApi) -> None:
    made = api.own.told("POST", "/keys", {"bits": 1024, "providers": ["enhanced"]}, 201)["items"]
    assert [(key["use"], key["bits"], key["current"], key["peer"]) for key in made] == [
        ("exchange", 1024, True, None),
        ("signature", 1024, True, None),
    ]
    assert api.server.server.driver is not None
    configuration = api.server.server.driver.core.protection.configuration
    assert [len(keys) for keys in configuration.exchange_keys.values()] == [1]
    listed = api.own.told("GET", "/keys")["items"]
    assert {(key["use"], key["created"]) for key in made} <= {(key["use"], key["created"]) for key in listed}


def test_a_private_key_is_taken_over_and_not_shown(api: WithApi) -> None:
    pem = pem_of(generate_private_key(65537, 1024)).decode()
    answer = api.own.ask("POST", "/keys", {"private_key": pem, "use": "exchange", "providers": ["aes"]})
    assert (answer.status, answer.told["items"][0]["provider"]) == (201, "aes")
    shown = answer.body + api.own.ask("GET", "/keys").body
    assert pem.splitlines()[1].encode() not in shown


def test_a_key_of_another_queue_manager(api: WithApi) -> None:
    public = generate_private_key(65537, 1024).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    made = api.own.told("POST", "/keys", {"peer": PEER, "public_key": pem}, 201)["items"]
    assert {key["peer"] for key in made} == {PEER}
    listed = api.own.told("GET", "/keys?limit=200")["items"]
    assert [key for key in listed if key["peer"] is not None] == sorted(made, key=lambda key: key["provider"])


@pytest.mark.parametrize(
    ("told", "path"),
    [
        ({"bits": 512}, "bits"),
        ({"bits": 1 << 60}, "bits"),
        ({"providers": []}, "providers"),
        ({"private_key": "x"}, "keys.json"),
        ({"peer": "x", "public_key": "x"}, "peer"),
        ({"peer": PEER, "public_key": "\ud800"}, None),
        ({"peer": PEER}, "public_key"),
    ],
    ids=str,
)
def test_keys_that_can_not_be_are_400(api: WithApi, told: object, path: str | None) -> None:
    answer = api.own.ask("POST", "/keys", told)
    assert answer.status == 400
    assert path is None or answer.told["path"] == path


def test_a_certificate_is_made_and_revoked(api: WithApi) -> None:
    made = api.own.told("POST", "/certificates", {"sid": SID, "subject": "anne", "bits": 1024}, 201)
    assert (made["sid"], made["key"], made["revoked"]) == (SID, True, False)
    assert made in api.own.told("GET", "/certificates")["items"]
    path = f"/certificates/{made['digest']}"
    assert api.own.ask("DELETE", path).status == 204
    assert {**made, "revoked": True} in api.own.told("GET", "/certificates")["items"]
    for digest in ("0" * 32, "x", "%00"):
        assert api.own.ask("DELETE", f"/certificates/{digest}").status == 404


def test_a_certificate_is_registered_unless_revoked(api: WithApi) -> None:
    from msmqwire.qm.runtime.key_ring import KeyFile
    from msmqwire.qm.runtime.message_signers import pem_of_certificate

    first = api.own.told("POST", "/certificates", {"sid": SID, "bits": 1024}, 201)
    der = KeyFile(api.server.data).read().certificates[0].certificate
    told = {"sid": "S-1-5-21-9-9-9-9", "certificate": pem_of_certificate(der).decode()}
    again = api.own.told("POST", "/certificates", told, 201)
    assert (again["digest"], again["sid"]) == (first["digest"], "S-1-5-21-9-9-9-9")
    assert api.own.ask("POST", "/certificates", {**told, "certificate": "x"}).status == 400
    assert api.own.ask("POST", "/certificates", {**told, "sid": "anne"}).status == 400
    api.own.ask("DELETE", f"/certificates/{first['digest']}")
    answer = api.own.ask("POST", "/certificates", told)
    assert (answer.status, "revoked" in answer.told["detail"]) == (400, True)
