"""Decrypted messages and groups, as remote readers see them: [MS-MQRR] 3.1.4.2 and 3.1.4.7."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from msmqwire.constants import MQQUEUEACCESSMASK, HResult
from msmqwire.headers.security_descriptor import ACCESS_ACE_BODY, ACL, SID, DescriptorParts, build_descriptor
from msmqwire.packets import parse
from msmqwire.qm.directory.embedded import EmbeddedDirectory
from msmqwire.qm.model.access import EVERYONE, LOCAL_SYSTEM, sid_bytes
from msmqwire.qm.model.directory_objects import User
from tests.support.qm.message_security import AES256, Sealed, rsa_key
from tests.support.qm.secured_harness import ALICE, configuration
from tests.support.rpc.remote_read_harness import ANNE, NO_MESSAGE, Fault, RemoteReadHarness

STAFF = sid_bytes("S-1-5-21-1-2-3-513")


@pytest.mark.parametrize("recoverable", [False, True])
def test_readers_get_a_decrypted_body_that_says_so(recoverable):
    harness = RemoteReadHarness(security=configuration())
    queue = harness.queue()
    sealed = Sealed(recipient=rsa_key("aes").public_key(), recoverable=recoverable, kind=0)
    harness.accept_session().send_message(**sealed.fields())
    assert [position.recoverable for position in queue.positions] == [recoverable]
    client = harness.client()
    (section,) = client.answer(client.start(client.open())).ppPacketSections
    packet = parse(section.pSectionBuffer, protocol="remote_read")
    assert packet.MessagePropertiesHeader.MessageBody == b"secret body"
    assert not packet.SecurityHeader.Flags.EB
    assert packet.MessagePropertiesHeader.EncryptionAlgorithm == AES256  # it came so
    assert packet.MessagePropertiesHeader.PrivacyLevel == 5


@pytest.mark.parametrize("groups", [(), (STAFF,)])
def test_a_caller_has_the_groups_of_its_sid(groups):
    """Here a group is denied what everybody may."""
    users = EmbeddedDirectory()
    users.create_directory_object(User(UUID(int=7), security_identifier=ALICE, groups=list(groups)))
    harness = RemoteReadHarness(security=configuration(users=users))
    receive = int(MQQUEUEACCESSMASK.MQSEC_RECEIVE_MESSAGE)
    aces = [
        {"AceType": kind, "Body": ACCESS_ACE_BODY.build({"Mask": receive, "Sid": SID.parse(sid)})}
        for kind, sid in ((1, STAFF), (0, EVERYONE))
    ]
    dacl = ACL.build({"Aces": aces})
    harness.queue(security=build_descriptor(DescriptorParts(LOCAL_SYSTEM, None, None, dacl)))
    client = harness.client(caller=replace(ANNE, sid=ALICE))
    if groups:
        with pytest.raises(Fault) as denied:
            client.open()
        assert denied.value.status == HResult.MQ_ERROR_ACCESS_DENIED
    else:
        assert client.read(client.open()) == NO_MESSAGE
