"""Remote calls by Kerberos, with tickets of a KDC of MIT Kerberos: our client, and that of impacket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("gssapi", reason="msmqwire[kerberos] is not installed")
pytest.importorskip("krb5", reason="msmqwire[kerberos] is not installed")
import spnego

from msmqwire.errors import AuthenticationFailed
from msmqwire.qm.runtime.limits import Limits
from msmqwire.qm.runtime.rpc.kerberos import KerberosAcceptor, caller_name, without_frame
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.qm.runtime.rpc.ntlm import KERBEROS_ONLY, RpcUsers
from msmqwire.qm.runtime.rpc.security import PyspnegoContext, acceptors, initiator
from msmqwire.rpc.constants import AuthLevel, AuthType
from tests.support.peers.remote_reader import DCERPCException, Reader
from tests.support.rpc.kerberos_realm import (
    AES_SHA1,
    AES_SHA2,
    RC4,
    REALM,
    SERVICE,
    Realm,
    kerberos_realm,
    needs_kerberos,
)
from tests.support.rpc.rpc_pair import Pair
from tests.support.running import ADDRESS, ORDERS, options, served

rpcrt = pytest.importorskip("impacket.dcerpc.v5.rpcrt")

needs_kerberos()

PASSWORDS = {"alice": "secret7", "bob": "secret8"}
ALICE = rf"{REALM}\alice"
LEVELS = [AuthLevel.CONNECT, AuthLevel.PKT_INTEGRITY, AuthLevel.PKT_PRIVACY]
PROVIDERS = [AuthType.GSS_KERBEROS, AuthType.GSS_NEGOTIATE]
BODY, RESULTS = b"arguments " * 1000, bytes(range(256)) * 40


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with kerberos_realm(tmp_path_factory.mktemp("realm"), PASSWORDS) as running:
        yield running


@pytest.fixture(scope="module")
def alices_tickets(realm: Realm) -> Path:
    return realm.log_in("alice", PASSWORDS["alice"])


@pytest.fixture
def tickets(alices_tickets: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of alice, in use."""
    monkeypatch.setenv("KRB5CCNAME", str(alices_tickets))
    return alices_tickets


def pair(provider: AuthType, level: AuthLevel, security: PyspnegoContext, users: RpcUsers) -> Pair:
    return Pair(level, provider, security=security, acceptor=acceptors(users))


def check_call(both: Pair, identity: str) -> None:
    call = both.client.call(0, BODY)
    both.exchange()
    called = both.called[-1]
    assert (called.call, called.stub, called.identity) == (call, BODY, identity)
    both.server.answer(call, RESULTS)
    both.exchange()
    assert both.told[-1].stub == RESULTS


@pytest.mark.requirement("MQRR-1.7-03")
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_both_ends_at_every_level_by_a_ticket(tickets: Path, provider: AuthType, level: AuthLevel) -> None:
    client = initiator(provider, level, user=None, password=None, host=SERVICE)
    both = pair(provider, level, client, RpcUsers({}))
    for _ in range(2):
        check_call(both, ALICE)
    sent = b"".join(data for _, data in both.pdus)
    assert (BODY[:100] in sent) == (RESULTS[:256] in sent) == (level < AuthLevel.PKT_PRIVACY)
    if level > AuthLevel.CONNECT:
        both.client.call(0, BODY[:100])
        both.exchange(change=lambda data: data[:30] + bytes([data[30] ^ 1]) + data[31:])
        assert isinstance(both.called[-1].error, AuthenticationFailed)


@pytest.mark.parametrize(
    "provider, user",
    [
        (AuthType.GSS_KERBEROS, f"alice@{REALM}"),
        (AuthType.GSS_KERBEROS, ALICE),
        (AuthType.GSS_NEGOTIATE, f"alice@{REALM}"),
    ],
)
def test_a_password_instead_of_a_ticket(realm: Realm, provider: AuthType, user: str) -> None:
    level = AuthLevel.PKT_PRIVACY
    client = initiator(provider, level, user=user, password=PASSWORDS["alice"], host=SERVICE)
    check_call(pair(provider, level, client, RpcUsers({})), ALICE)
    if provider == AuthType.GSS_KERBEROS:
        with pytest.raises(AuthenticationFailed):
            initiator(provider, level, user=user, password="wrong", host=SERVICE)


def test_ntlm_within_spnego_of_a_server_that_has_kerberos_too(realm: Realm) -> None:
    provider, level = AuthType.GSS_NEGOTIATE, AuthLevel.PKT_PRIVACY
    for secret, works in (("secret9", True), (KERBEROS_ONLY, False)):
        client = initiator(provider, level, user=ALICE, password=secret, host=SERVICE)
        both = pair(provider, level, client, RpcUsers({ALICE: secret}))
        if works:
            check_call(both, ALICE)
        else:
            assert isinstance(both.called[-1].error, AuthenticationFailed)


@pytest.mark.parametrize("cipher, more", [(AES_SHA1, 0), (AES_SHA2, 12)])
def test_sizes_of_signatures_by_cipher(
    tmp_path: Path, cipher: str, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[RFC4121] 4.2.6 with the checksums of [RFC3962], 12 bytes, and of [RFC8009], 24."""
    with kerberos_realm(tmp_path, PASSWORDS, cipher=cipher) as other:
        monkeypatch.setenv("KRB5CCNAME", str(other.log_in("alice", PASSWORDS["alice"])))
        for level, size in ((AuthLevel.PKT_INTEGRITY, 28), (AuthLevel.PKT_PRIVACY, 76)):
            client = initiator(AuthType.GSS_KERBEROS, level, user=None, password=None, host=SERVICE)
            check_call(pair(AuthType.GSS_KERBEROS, level, client, RpcUsers({})), ALICE)
            assert client.signature_size(level == AuthLevel.PKT_PRIVACY) == size + more


def test_a_key_of_rc4_is_refused_by_either_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with kerberos_realm(tmp_path, PASSWORDS, cipher=RC4) as other:
        monkeypatch.setenv("KRB5CCNAME", str(other.log_in("alice", PASSWORDS["alice"])))
        for refuses in ("server", "client"):
            client = initiator(AuthType.GSS_KERBEROS, LEVELS[1], user=None, password=None, host=SERVICE)
            server = acceptors(RpcUsers({}))(AuthType.GSS_KERBEROS, LEVELS[1])
            assert isinstance(server, PyspnegoContext)
            careless = client if refuses == "server" else server
            monkeypatch.setattr(careless, "_check_strength", lambda: None)
            with pytest.raises(AuthenticationFailed, match="AES"):
                server.step(client.step(server.step(client.step(b""))))


def test_a_client_without_dce_style_is_refused(tickets: Path) -> None:
    """By the library, which wants its token in a frame, and where it takes the token, by us."""
    mutual = spnego.ContextReq.mutual_auth
    for server in (KerberosAcceptor(mutual), spnego.server(protocol="kerberos", context_req=mutual)):
        client = spnego.client(hostname=SERVICE, protocol="kerberos", context_req=mutual)
        acceptor = PyspnegoContext(server, AuthLevel.CONNECT)
        with pytest.raises(AuthenticationFailed):
            acceptor.step(client.step())
        assert not acceptor.identity


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_changed_tokens_are_refused_without_other_effect(tickets: Path, provider: AuthType) -> None:
    """The library tells some errors only when it is asked for something else later."""

    def changed(token: bytes, at: int) -> bytes:
        return token[:at] + bytes([token[at] ^ 1]) + token[at + 1 :]

    def client() -> PyspnegoContext:
        return initiator(provider, LEVELS[1], user=None, password=None, host=SERVICE)

    def server() -> PyspnegoContext:
        made = acceptors(RpcUsers({}))(provider, LEVELS[1])
        assert isinstance(made, PyspnegoContext)
        return made

    first = client().step(b"")
    for at in (0, len(first) // 2, len(first) - 1):
        acceptor = server()
        with pytest.raises(AuthenticationFailed):
            acceptor.step(changed(first, at))
        assert (acceptor.complete, acceptor.identity) == (False, "")
    for who, leg in ((client(), 1), (client(), 2)):
        acceptor = server()
        second = acceptor.step(who.step(b""))
        taker, token = (who, second) if leg == 1 else (acceptor, who.step(second))
        with pytest.raises(AuthenticationFailed):
            taker.step(changed(token, len(token) - 1))
        assert (taker.complete, taker.identity) == (False, "")


def test_without_a_keytab_there_is_no_kerberos(
    tickets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KRB5_KTNAME", str(tmp_path / "none"))
    assert acceptors(RpcUsers({}))(AuthType.GSS_KERBEROS, AuthLevel.CONNECT) is None
    client = initiator(AuthType.GSS_NEGOTIATE, LEVELS[0], user=None, password=None, host=SERVICE)
    both = pair(AuthType.GSS_NEGOTIATE, LEVELS[0], client, RpcUsers({}))
    assert isinstance(both.called[-1].error, AuthenticationFailed)


@pytest.mark.requirement("MQRR-1.7-03", "MQRR-2.1-06")
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_queues_are_read_by_impacket_with_a_ticket(
    realm: Realm, tickets: Path, level: AuthLevel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its alter_context has bytes after the list of contexts, which are ignored."""
    rpc = RpcOptions((ADDRESS, 0), users={ALICE: KERBEROS_ONLY}, level=level)
    with served(options(tmp_path / "alpha", ORDERS, rpc=rpc, limits=Limits(close_s=0.2))) as server:
        port = server.do(lambda running: running.rpc_network.listen[1])
        reader = Reader(port, level, realm=REALM)
        reader.close(reader.open(rf"DIRECT=OS:alpha\{ORDERS}"))
        reader.disconnect()
        monkeypatch.setenv("KRB5CCNAME", str(realm.log_in("bob", PASSWORDS["bob"])))
        reader = Reader(port, level, user="bob", realm=REALM)
        with pytest.raises(DCERPCException, match="access_denied"):
            reader.open(rf"DIRECT=OS:alpha\{ORDERS}")


@pytest.mark.parametrize("principal", [r"a\@b@R", "alice", "@R", "alice@", r"al\\ice@R", ""])
def test_names_that_no_caller_can_have(principal: str) -> None:
    with pytest.raises(spnego.exceptions.InvalidTokenError):
        caller_name(principal)


def test_a_framed_token_loses_its_frame() -> None:
    prefix = bytes.fromhex("06092a864886f712010202 0100")
    for body in (b"n" * 10, b"n" * 150, b"n" * 300):
        inner = prefix + body
        size = len(inner)
        length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
        framed = b"\x60" + length + inner
        assert without_frame(framed) == body
        for other in (
            framed[:-1],
            framed + b"x",
            b"\x61" + framed[1:],
            framed[:2],
            b"\x60",
            b"\x60\xff",
            b"",
        ):
            assert without_frame(other) == other
