"""SPNEGO of a server that has several providers: what it takes of what a client offers."""

from __future__ import annotations

import pytest

pytest.importorskip("spnego")
from spnego import ContextReq
from spnego._context import GSSMech
from spnego._spnego import NegState, NegTokenInit, NegTokenResp, unpack_token
from spnego.exceptions import BadMechanismError

from msmqwire.errors import AuthenticationFailed
from msmqwire.qm.runtime.rpc.ntlm import KERBEROS_ONLY, NtlmAcceptor, RpcUsers
from msmqwire.qm.runtime.rpc.security import PyspnegoContext, acceptors, initiator
from msmqwire.qm.runtime.rpc.spnego import SpnegoAcceptor
from msmqwire.rpc.constants import AuthLevel, AuthType
from tests.support.rpc.rpc_pair import PASSWORD, USER, Pair
from tests.support.rpc.rpc_users import USERS

KERBEROS, NTLM, OTHER = GSSMech.kerberos, GSSMech.ntlm, "1.3.6.1.4.1.311.2.2.30"


class Unwanted:
    """A provider that nobody asks."""

    _is_wrapped = False


def acceptor(*mechs: GSSMech) -> SpnegoAcceptor:
    providers = {KERBEROS: Unwanted(), NTLM: NtlmAcceptor(USERS)}
    return SpnegoAcceptor(ContextReq.dce_style, {mech: providers[mech] for mech in mechs})


def test_who_offers_ntlm_alone_is_not_given_kerberos() -> None:
    level = AuthLevel.PKT_PRIVACY
    client = initiator(AuthType.GSS_NEGOTIATE, level, user=USER, password=PASSWORD)
    both = Pair(
        level,
        AuthType.GSS_NEGOTIATE,
        security=client,
        acceptor=lambda *_: PyspnegoContext(acceptor(KERBEROS, NTLM), level),
    )
    both.client.call(0, b"abc")
    both.exchange()
    assert (both.called[-1].stub, both.called[-1].identity) == (b"abc", USER)


@pytest.mark.parametrize("offered", [[KERBEROS.value, NTLM.value], [OTHER, NTLM.value]])
def test_the_token_of_a_provider_that_is_not_taken_is_left_out(offered: list[str]) -> None:
    answer = acceptor(NTLM).step(NegTokenInit(offered, mech_token=b"for the first").pack())
    token = unpack_token(answer)
    assert isinstance(token, NegTokenResp)
    assert (token.neg_state, token.supported_mech) == (NegState.request_mic, NTLM.value)
    assert token.response_token is None


@pytest.mark.parametrize("offered", [[OTHER], [KERBEROS.value], []])
def test_who_offers_nothing_that_is_here_is_refused(
    offered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NTLM_USER_FILE", __file__)
    with pytest.raises(BadMechanismError):
        acceptor(NTLM).step(NegTokenInit(offered, mech_token=b"token").pack())


@pytest.mark.parametrize("provider", [AuthType.WINNT, AuthType.GSS_NEGOTIATE])
def test_a_user_of_kerberos_alone_has_no_password(provider: AuthType) -> None:
    for given, works in ((PASSWORD, True), (KERBEROS_ONLY, False)):
        both = Pair(
            AuthLevel.PKT_PRIVACY, provider, password=given, acceptor=acceptors(RpcUsers({USER: given}))
        )
        if both.client.bound:  # the last token of NTLM alone has no answer
            both.client.call(0, b"abc")
            both.exchange()
        assert isinstance(getattr(both.called[-1], "error", None), AuthenticationFailed) == (not works)
