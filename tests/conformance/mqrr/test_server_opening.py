"""Queues opened, closed and purged by remote readers, and cursors: [MS-MQRR] 3.1.4.1 to 3.1.4.6, 3.1.4.11."""

from __future__ import annotations

from types import SimpleNamespace
from uuid import UUID

import pytest

from msmqwire.constants import HResult
from msmqwire.errors import InvalidValue
from msmqwire.headers.security_descriptor import (
    ACCESS_ACE_BODY,
    ACL,
    SID,
    DescriptorParts,
    build_descriptor,
    sid_bytes,
)
from msmqwire.names import parse_format_name
from msmqwire.qm.model import access
from msmqwire.qm.model.caller import Caller, user_sid
from msmqwire.qm.model.elements import QueueManager
from msmqwire.qm.model.enumerations import QueueAccessType, QueueShareMode
from msmqwire.qm.protocols.remote_read.configuration import Limit, RemoteReadConfiguration
from msmqwire.qm.runtime.queue_access import RightsOn, access_changes, changed_access
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.remote_read.constants import Access, Action, Opnum, ShareMode
from msmqwire.rpc.handles import NULL_HANDLE, ContextHandle
from msmqwire.rpc.queue_format import QUEUE_FORMAT, queue_format_of
from tests.support.engine_harness import OWN_ADDRESS, OWN_ID, PEER_QUEUE
from tests.support.qm.queue_contents import bodies
from tests.support.rpc.remote_read_harness import (
    ANNE,
    ANONYMOUS,
    BAD_HANDLE,
    BOB,
    DENIED,
    FULL,
    INVALID,
    NO_MESSAGE,
    OK,
    ORDERS,
    Fault,
    RemoteReadHarness,
    lookup_identifiers,
)

NOT_FOUND = 0xC00E0003
MISMATCH = 0x1C00001A
STRANGE = ContextHandle(0, UUID(int=0xBAD))


def refused(harness: RemoteReadHarness, *args, client=None, **options) -> int:
    """The status of the fault that opening a queue gives."""
    with pytest.raises(Fault) as caught:
        (client or harness.client()).open(*args, **options)
    return caught.value.status


def set_entries(harness: RemoteReadHarness, *entries: tuple[int, int, bytes]) -> None:
    """Let the descriptor of the queue have these entries."""
    harness.find_queue().security = descriptor_of(*entries)


def descriptor_of(*entries: tuple[int, int, bytes]) -> bytes:
    """A descriptor with entries: type, rights and SID."""
    aces = [
        {"AceType": kind, "Body": ACCESS_ACE_BODY.build({"Mask": mask, "Sid": SID.parse(sid)})}
        for kind, mask, sid in entries
    ]
    parts = DescriptorParts(access.LOCAL_SYSTEM, None, None, ACL.build({"Aces": aces}))
    return build_descriptor(parts)


# -- the interface -------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-3.1.4.1-02", "MQRR-3.1.4.1-03", "MQRR-3.1.4.1-07")
def test_any_caller_gets_the_port_or_zero_before_there_is_one(harness):
    client = harness.client(caller=ANONYMOUS)
    assert client.call(Opnum.R_GetServerPort).status == 0
    harness.core.remote_read.port = 2114
    assert client.call(Opnum.R_GetServerPort).status == 2114


@pytest.mark.requirement("MQRR-3.1.4-03", "MQRR-3.1.4-04")
@pytest.mark.parametrize("opnum", [1, 16, 0xFFFF])
def test_other_opnums_are_out_of_range(harness, opnum):
    harness.core.remote_read.called(7, 1, ANNE, opnum, None)
    harness.run()
    assert harness.answers == {7: 0x1C010002}


# -- R_OpenQueue ---------------------------------------------------------------------------------------------

GUID_NAME = UUID(int=0x77)


@pytest.mark.requirement("MQRR-3.1.4.2-21", "MQRR-3.1.4.2-26", "MQRR-2.2.3-01", "MQRR-2.2.3-02")
@pytest.mark.parametrize(
    "name",
    [
        ORDERS,
        rf"DIRECT=TCP:{OWN_ADDRESS}\PRIVATE$\orders",
        rf"PRIVATE={OWN_ID}\{{0.private_queue_number:08x}}",
        rf"{ORDERS};JOURNAL",
        rf"{ORDERS};done",
        "PUBLIC={0.identifier}",
        f"MACHINE={OWN_ID};DEADLETTER",
    ],
)
def test_a_queue_is_opened_by_each_kind_of_name(harness, name):
    queue = harness.queue()
    done, manager = harness.queue("orders;done"), harness.core.queue_manager
    manager.security = descriptor_of((ALLOW, access.RIGHTS_OF[QueueManager].all, access.EVERYONE))
    handle = harness.client().open(name.format(queue))
    assert handle.attributes == 0
    assert handle.uuid.int
    meant = {";JOURNAL": queue.journal, ";done": done}.get(name.removeprefix(ORDERS), queue)
    if name.startswith("MACHINE"):
        meant = manager.system_deadletter_queue
    (descriptor,) = meant.descriptors.values()
    assert descriptor.access_type is QueueAccessType.RECEIVE_ACCESS


@pytest.mark.requirement("MQRR-3.1.4.2-24", "MQRR-3.1.4.2-22", "MQRR-2.2.3-01", "MQRR-2.2.3-02")
@pytest.mark.parametrize(
    "form",
    [
        QUEUE_FORMAT.value(m_qft=0),
        queue_format_of(parse_format_name(f"PUBLIC={GUID_NAME}")),
        queue_format_of(parse_format_name("MULTICAST=234.1.1.1:8001")),
        queue_format_of(parse_format_name(f"DL={GUID_NAME}")),
        queue_format_of(parse_format_name(f"CONNECTOR={GUID_NAME}")),
        queue_format_of(parse_format_name(r"DIRECT=HTTP://here/msmq/private$/orders")),
        queue_format_of(parse_format_name(r"DIRECT=HTTPS://here/msmq/private$/orders")),
        queue_format_of(parse_format_name(r"DIRECT=IPX:00000001:000000000002\private$\orders")),
        QUEUE_FORMAT.value(m_qft=3, arm=None),
        QUEUE_FORMAT.value(m_qft=3, arm="OS:"),
        QUEUE_FORMAT.value(m_qft=3, m_SuffixAndFlags=0x0F, arm=r"OS:here\private$\orders"),
        QUEUE_FORMAT.value(m_qft=8, arm=r"OS:here\private$\orders"),
        QUEUE_FORMAT.value(m_qft=3, arm=r"OS:here\private$\orders,OS:here\private$\orders"),
    ],
    ids=[
        "none",
        "unknown",
        "multicast",
        "list",
        "connector",
        "http",
        "https",
        "ipx",
        "null",
        "cut",
        "suffix",
        "no subqueue",
        "two",
    ],
)
def test_names_that_no_queue_can_be_opened_by(harness, form):
    harness.queue()
    assert refused(harness, form) == (NOT_FOUND if form.m_qft == 1 else INVALID)
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-2.2.3-03")
def test_reserved_bytes_of_a_name_are_not_used(harness):
    queue = harness.queue()
    form = QUEUE_FORMAT.value(m_qft=3, m_reserved=0xFFFF, arm=r"OS:here\private$\orders")
    harness.client().open(form)
    assert len(queue.descriptors) == 1


@pytest.mark.requirement("MQRR-3.1.4.2-25", "MQRR-3.1.4.2-22")
@pytest.mark.parametrize(
    "name",
    [
        r"DIRECT=OS:here\private$\others",
        r"DIRECT=OS:there\private$\orders",
        rf"{ORDERS};new",
        rf"PRIVATE={UUID(int=1)}\00000005",
    ],
)
def test_a_queue_that_is_not_there(harness, name):
    harness.queue()
    assert refused(harness, name) == NOT_FOUND
    assert harness.find_queue().subqueues == {}


@pytest.mark.requirement("MQRR-3.1.4.2-25")
def test_messages_to_other_queue_managers_are_not_for_readers(harness):
    harness.send(b"1")
    assert refused(harness, PEER_QUEUE) == NOT_FOUND


@pytest.mark.requirement("MQRR-3.1.4.2-05", "MQRR-3.1.4.2-06", "MQRR-3.1.4.2-26", "MQRR-3.1.4.7-12")
@pytest.mark.parametrize("wanted", [0, 2, Access.MQ_MOVE_ACCESS, Access.PEEK_ACCESS, 0x21])
def test_any_other_access_is_for_peeking(harness, wanted):
    queue = harness.queue()
    harness.enqueue(queue, b"1")
    client = harness.client()
    handle = client.open(access=wanted)
    assert client.read(handle, Action.MQ_ACTION_PEEK_CURRENT) == b"1"
    assert client.read(handle) == DENIED
    assert client.read(handle, Action.MQ_LOOKUP_RECEIVE_NEXT, lookup=1) == DENIED
    assert bodies(queue) == [b"1"]


@pytest.mark.requirement("MQRR-3.1.4.2-07", "MQRR-3.1.4.2-24", "MQRR-3.1.4.2-26", "MQRR-3.1.4.2-27")
def test_exclusive_access(harness):
    harness.queue()
    client, other = harness.client(), harness.client(2, BOB)
    shared = client.open()
    assert refused(harness, share=ShareMode.MQ_DENY_SHARE, client=other) == 0xC00E0009
    other.close(other.open())
    client.close(shared)
    exclusive = other.open(share=ShareMode.MQ_DENY_SHARE)
    assert refused(harness) == 0xC00E0009
    other.close(exclusive)
    client.open()
    assert refused(harness, share=2) == INVALID


@pytest.mark.requirement(
    "MQRR-3.1.4.2-09", "MQRR-3.1.4.2-12", "MQRR-3.1.4.2-16", "MQRR-3.1.4.11-07", "MQRR-3.1.4.11-08",
    "MQRR-3.1.4.11-11",
)  # fmt: skip
@pytest.mark.parametrize(
    "changed",
    [
        {"pClientId": UUID(int=1)},
        {"fNonRoutingServer": 0},
        {"fNonRoutingServer": -1, "fWorkgroup": -5},
        {"Major": 255, "Minor": 255, "BuildNumber": 0xFFFF},
    ],
)
def test_what_clients_say_about_themselves_is_ignored(harness, changed):
    harness.enqueue(harness.queue(), b"1")
    client = harness.client()
    assert client.read(client.open(**changed)) == b"1"
    assert client.open_for_move(ORDERS, **changed)[0]


# -- handles -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MQRR-2.2.4.1-02", "MQRR-2.2.4.2-02")
@pytest.mark.parametrize(
    "who", [(2, ANNE), (1, BOB), (1, ANONYMOUS)], ids=["association", "user", "anonymous"]
)
def test_handles_of_others_are_refused(harness, who):
    queue = harness.queue()
    harness.enqueue(queue, b"1")
    owner, thief = harness.client(), harness.client(*who)
    handle = owner.open()
    number, _ = owner.open_for_move(ORDERS)
    cursor = owner.create_cursor(handle)
    for attempt in (
        lambda: thief.read(handle),
        lambda: thief.close(handle),
        lambda: thief.purge(handle),
        lambda: thief.create_cursor(handle),
        lambda: thief.close_cursor(handle, cursor),
        lambda: thief.end(handle, 1),
        lambda: thief.cancel(handle, 1),
        lambda: thief.move(handle, number, 1),
        lambda: thief.reject(handle, 1),
    ):
        with pytest.raises(Fault) as caught:
            attempt()
        assert caught.value.status == MISMATCH
    assert bodies(queue) == [b"1"]
    assert owner.read(handle, cursor=cursor) == b"1"


@pytest.mark.requirement(
    "MQRR-3.1.4.3-03", "MQRR-3.1.4.4-03", "MQRR-3.1.4.5-04", "MQRR-3.1.4.6-03", "MQRR-3.1.4.7-41",
    "MQRR-3.1.4.8-04", "MQRR-3.1.4.9-10", "MQRR-3.1.4.10-08", "MQRR-3.1.4.13-31", "MQRR-3.1.4.14-07",
    "MQRR-3.1.4.15-10", "MQRR-2.2.4.1-02", "MQRR-2.2.4.2-02", "MQRR-3.1.4.7-38", "MQRR-3.1.4.13-27",
)  # fmt: skip
@pytest.mark.parametrize("kind", ["strange", "null", "closed", "attributes"])
def test_handles_that_are_not_there(harness, kind):
    queue = harness.queue()
    harness.enqueue(queue, b"1")
    client = harness.client()
    mine = client.open()
    number, _ = client.open_for_move(rf"{ORDERS};done")  # of a move only the source is wrong
    lookup = lookup_identifiers(queue)[0]
    handle = {
        "strange": STRANGE,
        "null": NULL_HANDLE,
        "closed": mine,
        "attributes": mine._replace(attributes=1),
    }[kind]
    if kind == "closed":
        assert client.close(mine) == (0, NULL_HANDLE)
    assert client.close(handle) == (BAD_HANDLE, handle)
    assert client.call(Opnum.R_CreateCursor, phContext=handle).status == BAD_HANDLE
    results = [
        client.close_cursor(handle, 1), client.purge(handle), client.read(handle), client.cancel(handle, 1),
        client.end(handle, 1), client.move(handle, number, lookup), client.read(handle, tx=bytes(15) + b"1"),
        client.reject(handle, 1), client.end(handle, 1, transactional=True),
    ]  # fmt: skip
    assert set(results) == {BAD_HANDLE}
    assert bodies(queue) == [b"1"]


# -- R_CloseQueue --------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQRR-3.1.4.3-04", "MQRR-3.1.4.3-05", "MQRR-3.1.4.3-06", "MQRR-3.1.4.3-07", "MQRR-2.2.4.1-01",
    "MQRR-2.2.4.2-02", "MQRR-3.1.4.7-45", "MQRR-3.1.4.7-47", "MQRR-3.1.4.7-48",
)  # fmt: skip
def test_closing_ends_what_waits_and_returns_what_was_not_ended(harness):
    queue = harness.queue()
    harness.enqueue(queue, b"1")
    client, other = harness.client(), harness.client(2, BOB)
    handle, theirs = client.open(), other.open()
    cursor = client.create_cursor(handle)
    assert client.read(handle, Action.MQ_ACTION_PEEK_CURRENT, cursor=cursor) == b"1"
    descriptor = next(iter(queue.descriptors.values()))
    assert len(descriptor.cursors) == 1
    assert client.read(handle) == b"1"
    waiting = [client.start(handle, timeout=1_000) for _ in range(2)]
    peek = client.start(handle, Action.MQ_ACTION_PEEK_CURRENT, timeout=1_000)
    following = client.start(handle, Action.MQ_ACTION_PEEK_NEXT, cursor=cursor, timeout=1_000)
    foreign = other.start(theirs, timeout=2_000, request=5)
    assert client.close(handle) == (0, NULL_HANDLE)
    assert descriptor.cursors == {}
    cancelled = HResult.MQ_ERROR_OPERATION_CANCELLED
    assert [client.result(call) for call in (*waiting, peek, following)] == [cancelled] * 4
    assert other.result(foreign) == b"1"
    assert other.end(theirs, 5) == 0
    assert bodies(queue) == []
    other.close(theirs)
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-2.2.4.2-01")
def test_calls_that_close_a_handle_run_one_by_one(harness):
    """Both have come before either is answered: the second finds what the first has left."""
    harness.queue()
    handle = harness.client().open()
    for call in (98, 99):
        harness.opnums[call] = Opnum.R_CloseQueue
        arguments = SimpleNamespace(pphContext=handle)
        harness.core.remote_read.called(call, 1, ANNE, Opnum.R_CloseQueue, arguments)
    harness.run()
    assert [harness.answers[call].status for call in (98, 99)] == [OK, BAD_HANDLE]


@pytest.mark.requirement("MQRR-3.1.4.11-17")
@pytest.mark.parametrize(
    "share, mode",
    [(0, QueueShareMode.DENY_NONE), (1, QueueShareMode.DENY_RECEIVE), (7, QueueShareMode.DENY_RECEIVE)],
)
@pytest.mark.parametrize("wanted", [0, *Access])
def test_a_destination_is_opened_for_moves(harness, share, mode, wanted):
    queue = harness.queue()
    harness.client().open_for_move(ORDERS, dwAccess=wanted, dwShareMode=share)
    (descriptor,) = queue.descriptors.values()
    assert (descriptor.access_type, descriptor.share_mode) == (QueueAccessType.MOVE_ACCESS, mode)


# -- cursors -------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "MQRR-3.1.4.4-04", "MQRR-3.1.4.4-06", "MQRR-3.1.4.5-05", "MQRR-3.1.4.7-42", "MQRR-3.1.4.5-04"
)
def test_cursors_have_numbers_of_their_own_and_are_closed_once(harness):
    harness.queue()
    client = harness.client()
    handle, other = client.open(), client.open()
    cursors = [client.create_cursor(handle) for _ in range(20)]
    assert len(set(cursors)) == 20
    assert 0 not in cursors
    invalid = 0xC0000008
    assert client.close_cursor(other, cursors[0]) == invalid
    assert client.read(other, cursor=cursors[0]) == invalid
    assert client.close_cursor(handle, cursors[0]) == 0
    assert client.close_cursor(handle, cursors[0]) == invalid
    assert client.read(handle, cursor=cursors[0]) == invalid
    assert client.read(handle, Action.MQ_ACTION_PEEK_CURRENT, cursor=cursors[1]) == NO_MESSAGE
    client.close(handle)
    client.close(other)
    assert harness.nothing_is_left()


@pytest.mark.requirement("MQRR-3.1.4.5-05", "MQRR-3.1.4.4-04")
def test_closing_a_cursor_ends_the_read_that_waits_at_it(harness):
    harness.queue()
    client = harness.client()
    handle = client.open()
    cursor = client.create_cursor(handle)
    call = client.start(handle, cursor=cursor, timeout=1_000)
    assert client.close_cursor(handle, cursor) == 0
    assert client.result(call) == HResult.MQ_ERROR_OPERATION_CANCELLED


# -- R_PurgeQueue --------------------------------------------------------------------------------------------


@pytest.mark.requirement("DMPR-3.1.1.17-04")
@pytest.mark.requirement("MQRR-3.1.4.6-04", "MQRR-3.1.4.6-05", "MQRR-4.1-02")
def test_purging_needs_a_queue_opened_to_receive(harness):
    queue = harness.queue()
    for body in (b"1", b"2"):
        harness.enqueue(queue, body)
    client = harness.client()
    denied = 0xC0000022
    assert client.purge(client.open(access=Access.PEEK_ACCESS)) == denied
    assert client.purge(client.open_for_move(ORDERS)[1]) == denied
    assert bodies(queue) == [b"1", b"2"]
    assert client.purge(client.open()) == 0
    assert bodies(queue) == []


@pytest.mark.requirement("MQRR-3.1.4.6-04")
def test_purging_takes_messages_of_readers_at_their_end(harness):
    queue = harness.queue()
    harness.enqueue(queue, b"1")
    client = harness.client()
    handle = client.open()
    client.read(handle, request=1)
    assert client.purge(handle) == 0
    assert client.end(handle, 1, 1) == 0
    assert bodies(queue) == []


# -- who may -------------------------------------------------------------------------------------------------

RIGHTS = int(access.QUEUE_RIGHTS.all)
EVERYBODY = (0, RIGHTS, access.EVERYONE)
ALLOW, DENY = 0, 1
GROUP = sid_bytes("S-1-5-32-544")


@pytest.mark.requirement("MQRR-2.1-05", "MQRR-2.1-06", "MQRR-2.1-07")
def test_listed_users_receive_and_anonymous_ones_by_setting(harness):
    harness.enqueue(harness.queue(), b"1")
    assert refused(harness, client=harness.client(2, ANONYMOUS)) == DENIED
    anonymous = RemoteReadHarness(anonymous=True)
    anonymous.enqueue(anonymous.queue(), b"1")
    for each, caller in ((harness, ANNE), (anonymous, ANONYMOUS), (anonymous, ANNE)):
        client = each.client(3, caller)
        handle = client.open()
        assert client.read(handle) == b"1"
        client.close(handle)


@pytest.mark.requirement("MQRR-2.1-07")
@pytest.mark.parametrize(
    "entries, allowed",
    [
        ([(DENY, RIGHTS, user_sid(r"home\ANNE")), (ALLOW, RIGHTS, access.LOCAL_SYSTEM)], {"bob", "sid"}),
        ([(ALLOW, RIGHTS, user_sid(r"HOME\anne"))], {"anne"}),
        ([(ALLOW, RIGHTS, GROUP)], {"bob"}),
        ([EVERYBODY], {"anne", "bob", "sid"}),
        ([(ALLOW, RIGHTS, sid_bytes("S-1-5-21-1-2-3-1001"))], {"sid"}),
        ([], set()),
    ],
    ids=["denied", "by name", "by group", "everybody", "by SID", "nobody"],
)
def test_the_descriptor_decides(harness, entries, allowed):
    harness.enqueue(harness.queue(), b"1")
    set_entries(harness, *entries)
    callers = {
        "anne": ANNE,
        "bob": Caller(BOB.name, groups=frozenset({GROUP})),
        "sid": Caller(r"HOME\carl", sid_bytes("S-1-5-21-1-2-3-1001")),
    }
    for name, caller in callers.items():
        client = harness.client(3, caller)
        if name in allowed:
            client.close(client.open())
            client.close(client.open_for_move(ORDERS)[1])
        else:
            assert refused(harness, client=client) == DENIED
            assert refused(harness, access=Access.PEEK_ACCESS, client=client) == DENIED
    assert harness.nothing_is_left()


@pytest.mark.requirement("DMPR-3.1.7.1.16-01", "MQRR-3.1.4.11-17", "MQRR-3.1.4.11-18")
@pytest.mark.parametrize("name", ["JOURNAL", "DEADLETTER", "DEADXACT"])
def test_no_right_opens_a_system_queue_for_moves(harness, name):
    """So that nothing is moved to it, in a transaction or not."""
    client, manager = harness.client(), harness.core.queue_manager
    manager.security = descriptor_of((ALLOW, access.RIGHTS_OF[QueueManager].all, access.EVERYONE))
    for form in (f"MACHINE={OWN_ID};{name}", rf"DIRECT=OS:here\SYSTEM$;{name}"):
        client.close(client.open(form))
        with pytest.raises(Fault) as caught:
            client.open_for_move(form)
        assert caught.value.status == DENIED


JOURNAL, DEADLETTER = r"DIRECT=OS:here\SYSTEM$;JOURNAL", r"DIRECT=OS:here\SYSTEM$;DEADLETTER"


@pytest.mark.requirement("MQRR-2.1-07", "DMPR-3.1.1.1-25")
def test_the_manager_descriptor_guards_the_computers_queues(harness):
    """By default listed users may read them, and anonymous ones where these are let in."""
    manager = harness.core.queue_manager
    harness.enqueue(manager.system_journal_queue, b"j")
    harness.enqueue(manager.system_deadletter_queue, b"d")
    anne = harness.client()
    for name, body in ((JOURNAL, b"j"), (f"MACHINE={OWN_ID};DEADLETTER", b"d")):
        handle = anne.open(name)
        assert anne.read(handle) == body
        anne.close(handle)
    anonymous = RemoteReadHarness(anonymous=True)
    client = anonymous.client(3, ANONYMOUS)
    client.open(rf"{DEADLETTER[:-10]}DEADXACT")
    deny, allow = access_changes([r"HOME\anne:receive"], "deny"), access_changes(["callers:none"], "allow")
    changed = changed_access(manager.security, deny, on=RightsOn.JOURNAL)
    access.set_security(manager, changed_access(changed, (), allow, on=RightsOn.DEADLETTER))
    for name, may_peek in ((JOURNAL, True), (DEADLETTER, False)):
        assert refused(harness, name) == DENIED
        if may_peek:
            anne.close(anne.open(name, Access.PEEK_ACCESS))
        else:
            assert refused(harness, name, Access.PEEK_ACCESS) == DENIED
    harness.client(4, BOB).open(JOURNAL)


@pytest.mark.parametrize("name", ["order_queue$", "notify_queue$"])
def test_queues_of_the_queue_manager_itself_are_nobody_s(harness, name):
    queue = harness.core.queues.lookup.path(rf"here\private$\{name}")
    assert refused(harness, rf"DIRECT=OS:here\private$\{name}") == DENIED
    with pytest.raises(Fault) as caught:
        harness.client(2).open_for_move(rf"DIRECT=OS:here\private$\{name};new")
    assert (caught.value.status, queue.subqueues) == (DENIED, {})


@pytest.mark.requirement("MQRR-3.1.4.11-16")
def test_who_may_not_open_a_queue_creates_no_subqueue_in_it(harness):
    queue = harness.queue()
    set_entries(harness)
    with pytest.raises(Fault) as caught:
        harness.client().open_for_move(rf"{ORDERS};new")
    assert caught.value.status == DENIED
    assert queue.subqueues == {}


# -- limits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [Limit(2, 9), Limit(9, 2)], ids=["of a caller", "of all"])
def test_the_number_of_handles_and_cursors_is_limited(limit):
    harness = RemoteReadHarness(handles=limit, cursors=limit)
    harness.queue()
    client = harness.client()
    handles = [client.open(), client.open()]
    assert refused(harness, client=harness.client(2)) == FULL
    for _ in range(2):
        client.create_cursor(handles[0])
    assert client.call(Opnum.R_CreateCursor, phContext=handles[1]).status == FULL
    others = harness.client(4, BOB)
    if limit.total == 9:
        others.create_cursor(others.open())
    else:
        assert refused(harness, client=others) == FULL
    client.close(handles[0])
    client.create_cursor(client.open())
    harness.lose(1)
    harness.lose(4)
    assert harness.nothing_is_left()


def test_the_number_of_subqueues_is_limited():
    harness = RemoteReadHarness(subqueues_max=2)
    queue = harness.queue()
    client = harness.client()
    for name in ("a", "b", "a"):
        client.open_for_move(rf"{ORDERS};{name}")
    with pytest.raises(Fault) as caught:
        client.open_for_move(rf"{ORDERS};c")
    assert caught.value.status == FULL
    assert sorted(queue.subqueues) == ["a", "b"]


@pytest.mark.requirement("MQRR-3.1.2.2-02")
@pytest.mark.parametrize("name", ["pending_s", "call_timeout_s"])
def test_times_can_not_be_zero(name):
    with pytest.raises(InvalidValue):
        RemoteReadConfiguration(**{name: 0})
    assert getattr(RemoteReadConfiguration(**{name: 1}), name) == 1
    assert RpcOptions(("127.0.0.1", 0)).pending_s == RemoteReadConfiguration().pending_s == 300
