"""Creating a queue server in the bindery, step by step as the chapter has it, by calls of the client."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable

import pytest

import msmqwire.netware
from msmqwire.errors import NcpLoginRefused, NcpRefused
from msmqwire.ncp.constants import ObjectType
from msmqwire.netware.client import FileServer
from tests.support.netware.netware_running import InMemory, in_memory
from tests.support.netware.netware_station import MemoryServer
from tests.support.sending import run

SERVER = {"ObjectType": 7, "ObjectName": "PS1"}
ITEM, SET = 0, 2


def scenario(
    running: InMemory, work: Callable[[FileServer], Awaitable[None]], name: str = "SUPERVISOR"
) -> None:
    async def logged_in() -> None:
        address = f"{running.address}:{running.port}"
        type_ = "print-server" if name == "PS1" else "user"
        async with msmqwire.netware.connect(address, name=name, type=type_) as server:
            await work(server)

    run(logged_in())


async def property_names(server: FileServer, type_: int, name: str) -> list[str]:
    """The properties of an object."""
    names: list[str] = []
    instance, more = 0xFFFFFFFF, True
    while more:
        try:
            found = await server.connection.call(
                "ScanProperty", ObjectType=type_, ObjectName=name, SearchInstance=instance, PropertyName="*"
            )
        except NcpRefused as exc:
            if exc.name != "NO_SUCH_PROPERTY":
                raise
            return names
        names.append(found.PropertyName)
        instance, more = found.SearchInstance, bool(found.MoreProperties)
    return names


async def add(server: FileServer, set_name: str, type_: int, name: str) -> None:
    await server.connection.call(
        "AddBinderyObjectToSet", **SERVER, PropertyName=set_name, MemberType=type_, MemberName=name
    )


@pytest.mark.requirement(
    "QMS-qservers-06", "QMS-qservers-08", "QMS-createqs-03", "QMS-createqs-05", "QMS-createqs-06",
    "QMS-createqs-08",
)  # fmt: skip
@pytest.mark.parametrize("accounting", [False, True])
def test_a_queue_server_is_created(accounting: bool) -> None:
    memory = MemoryServer()
    everyone = memory.add("EVERYONE", ObjectType.NWOT_GROUP)
    memory.add("FS1", ObjectType.NWOT_FILE_SERVER)

    async def work(server: FileServer) -> None:
        call = server.connection.call
        if accounting:
            await call("CreateProperty", ObjectType=4, ObjectName="FS1", PropertyFlags=SET,
                       PropertySecurity=0x33, PropertyName="ACCOUNT_SERVERS")  # fmt: skip
        await call("CreateBinderyObject", ObjectFlags=0, ObjectSecurity=0x31, **SERVER)
        created = await server.object_named("PS1", "print-server")
        assert await server.object_of_id(created.id) == ("PS1", 7, created.id)
        for name in ("PS_USERS", "PS_OPERATORS"):
            await call(
                "CreateProperty", **SERVER, PropertyFlags=SET, PropertySecurity=0x31, PropertyName=name
            )
        accounts = "ACCOUNT_SERVERS" in await property_names(server, 4, "FS1")
        assert accounts is accounting
        if accounts:
            await call("CreateProperty", **SERVER, PropertyFlags=ITEM, PropertySecurity=0x33,
                       PropertyName="ACCOUNT_BALANCE")  # fmt: skip
            await call("WritePropertyValue", **SERVER, SegmentNumber=1, MoreSegments=0,
                       PropertyName="ACCOUNT_BALANCE", PropertyValue=struct.pack(">i124x", 1000))  # fmt: skip
            value = await call("ReadPropertyValue", **SERVER, SegmentNumber=1, PropertyName="ACCOUNT_BALANCE")
            assert (value.PropertyValue[:4], value.PropertyFlags) == (struct.pack(">i", 1000), ITEM)
        assert ("ACCOUNT_BALANCE" in await property_names(server, 7, "PS1")) is accounting
        await add(server, "PS_OPERATORS", 1, "SUPERVISOR")
        await add(server, "PS_USERS", 2, "EVERYONE")
        members = {
            name: await call("ReadPropertyValue", **SERVER, SegmentNumber=1, PropertyName=name)
            for name in ("PS_OPERATORS", "PS_USERS")
        }
        assert {name: value.PropertyValue for name, value in members.items()} == {
            "PS_OPERATORS": server.own.id.to_bytes(4, "big").ljust(128, b"\0"),
            "PS_USERS": everyone.to_bytes(4, "big").ljust(128, b"\0"),
        }
        assert {value.PropertyFlags for value in members.values()} == {SET}

    with in_memory(memory) as running:
        scenario(running, work)


@pytest.mark.requirement("QMS-createqs-04")
def test_a_queue_servers_password_is_required_at_login() -> None:
    memory = MemoryServer()
    memory.add("PS1", ObjectType.NWOT_PRINT_SERVER)

    async def give_a_password(server: FileServer) -> None:
        await server.connection.call(
            "ChangeBinderyObjectPassword", **SERVER, OldPassword="", NewPassword="secret"
        )

    async def nothing(server: FileServer) -> None:
        assert server.own.name == "PS1"

    with in_memory(memory) as running:
        scenario(running, nothing, "PS1")
        scenario(running, give_a_password)
        assert "PASSWORD" in running.do(lambda: memory.service.objects.named("PS1", 7).properties)
        with pytest.raises(NcpLoginRefused):
            scenario(running, nothing, "PS1")
