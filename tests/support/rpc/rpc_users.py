"""The user of a pair of RPC associations, as a server knows it. Takes the extra `qm`."""

from __future__ import annotations

from msmqwire.qm.runtime.rpc.ntlm import RpcUsers
from tests.support.rpc.rpc_pair import PASSWORD, USER

USERS = RpcUsers({USER: PASSWORD})
