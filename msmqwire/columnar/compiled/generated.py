"""Where the fields of packets stand. Made by tools/columnar_code.py: not to be edited.

Each function looks at the bytes from ``p0`` to ``e0`` and notes in row ``r`` of ``at``, relative to
``p0``, where the parts begin and end that have no constant place; -1 for what is not there. It returns
the end of the packet, MALFORMED, or UNSURE for what only the generic reader can judge. With ``trusted``
the bytes are known to be well-formed and nothing is left to it.
"""

from __future__ import annotations

from typing import Any, Final

from msmqwire.columnar.compiled.jit import ends_on_null, jit, u8, u16, u32

MALFORMED: Final = -1
UNSURE: Final = -2

SLOTS: Final = 16
"""Slots of a packet, at most."""
PLACES: Final[dict[str, dict[str, tuple[int, ...]]]] = {
    "UserMessage": {
        "BaseHeader.VersionNumber": (0, 0, 1),
        "BaseHeader.Flags": (0, 2, 2),
        "BaseHeader.Signature": (0, 4, 4),
        "BaseHeader.PacketSize": (0, 8, 4),
        "BaseHeader.TimeToReachQueue": (0, 12, 4),
        "UserHeader.SourceQueueManager": (0, 16, 16),
        "UserHeader.QueueManagerAddress": (0, 32, 16),
        "UserHeader.TimeToBeReceived": (0, 48, 4),
        "UserHeader.SentTime": (0, 52, 4),
        "UserHeader.MessageID": (0, 56, 4),
        "UserHeader.Flags": (0, 60, 4),
        "UserHeader.DestinationQueue": (0, 64, 0),
        "UserHeader.AdminQueue": (1, 0, 0),
        "UserHeader.ResponseQueue": (2, 0, 0),
        "UserHeader.ConnectorType": (3, 0, 16),
        "TransactionHeader.Flags": (4, 0, 4),
        "TransactionHeader.TxSequenceID.Ordinal": (4, 4, 4),
        "TransactionHeader.TxSequenceID.TimeStamp": (4, 8, 4),
        "TransactionHeader.TxSequenceNumber": (4, 12, 4),
        "TransactionHeader.PreviousTxSequenceNumber": (4, 16, 4),
        "SecurityHeader.Flags": (5, 0, 2),
        "SecurityHeader.SignatureSize": (5, 6, 2),
        "SecurityHeader.SecurityData.SecurityID": (5, 16, 6, 0),
        "SecurityHeader.SecurityData.SenderCert": (7, 0, 8, 0),
        "SecurityHeader.SecurityData.ProviderInfo.ProviderName": (9, 4, 10, 0),
        "MessagePropertiesHeader.Flags": (11, 0, 1),
        "MessagePropertiesHeader.MessageClass": (11, 2, 2),
        "MessagePropertiesHeader.CorrelationID": (11, 4, 20),
        "MessagePropertiesHeader.BodyType": (11, 24, 4),
        "MessagePropertiesHeader.ApplicationTag": (11, 28, 4),
        "MessagePropertiesHeader.MessageSize": (11, 32, 4),
        "MessagePropertiesHeader.PrivacyLevel": (11, 40, 4),
        "MessagePropertiesHeader.HashAlgorithm": (11, 44, 4),
        "MessagePropertiesHeader.EncryptionAlgorithm": (11, 48, 4),
        "MessagePropertiesHeader.Label": (11, 56, 12, 0),
        "MessagePropertiesHeader.ExtensionData": (12, 0, 13, 0),
        "MessagePropertiesHeader.MessageBody": (13, 0, 14, 0),
        "SessionHeader.AckSequenceNumber": (15, 0, 2),
        "SessionHeader.RecoverableMsgAckSeqNumber": (15, 2, 2),
        "SessionHeader.RecoverableMsgAckFlags": (15, 4, 4),
        "SessionHeader.UserMsgSequenceNumber": (15, 8, 2),
        "SessionHeader.RecoverableMsgSeqNumber": (15, 10, 2),
        "SessionHeader.WindowSize": (15, 12, 2),
    },
    "SessionAck": {
        "BaseHeader.VersionNumber": (0, 0, 1),
        "BaseHeader.Flags": (0, 2, 2),
        "BaseHeader.Signature": (0, 4, 4),
        "BaseHeader.PacketSize": (0, 8, 4),
        "BaseHeader.TimeToReachQueue": (0, 12, 4),
        "InternalHeader.Flags": (0, 18, 2),
        "SessionHeader.AckSequenceNumber": (0, 20, 2),
        "SessionHeader.RecoverableMsgAckSeqNumber": (0, 22, 2),
        "SessionHeader.RecoverableMsgAckFlags": (0, 24, 4),
        "SessionHeader.UserMsgSequenceNumber": (0, 28, 2),
        "SessionHeader.RecoverableMsgSeqNumber": (0, 30, 2),
        "SessionHeader.WindowSize": (0, 32, 2),
    },
    "EstablishConnection": {
        "BaseHeader.VersionNumber": (0, 0, 1),
        "BaseHeader.Flags": (0, 2, 2),
        "BaseHeader.Signature": (0, 4, 4),
        "BaseHeader.PacketSize": (0, 8, 4),
        "BaseHeader.TimeToReachQueue": (0, 12, 4),
        "InternalHeader.Flags": (0, 18, 2),
        "EstablishConnectionHeader.ClientGuid": (0, 20, 16),
        "EstablishConnectionHeader.ServerGuid": (0, 36, 16),
        "EstablishConnectionHeader.TimeStamp": (0, 52, 4),
        "EstablishConnectionHeader.OperatingSystem": (0, 56, 2),
    },
    "ConnectionParameters": {
        "BaseHeader.VersionNumber": (0, 0, 1),
        "BaseHeader.Flags": (0, 2, 2),
        "BaseHeader.Signature": (0, 4, 4),
        "BaseHeader.PacketSize": (0, 8, 4),
        "BaseHeader.TimeToReachQueue": (0, 12, 4),
        "InternalHeader.Flags": (0, 18, 2),
        "ConnectionParametersHeader.RecoverableAckTimeout": (0, 20, 4),
        "ConnectionParametersHeader.AckTimeout": (0, 24, 4),
        "ConnectionParametersHeader.WindowSize": (0, 30, 2),
    },
    "Ping": {
        "Flags": (0, 0, 2),
        "Signature": (0, 2, 2),
        "Cookie": (0, 4, 4),
        "QMGuid": (0, 8, 16),
    },
}
"""Of each field: slot, distance, size; of one of variable size: slot and distance of both ends."""
QUEUE: Final = {
    "PrivateQueueFormatNameId.PrivateQueueIdentifier": 0,
    "PublicQueueFormatName.PublicQueueIdentifier": 0,
    "DirectQueueFormatName.Count": 0,
    "DirectQueueFormatName.DirectFormatName": 2,
    "PrivateQueueFormatName.SourceQueueManager": 0,
    "PrivateQueueFormatName.PrivateQueueIdentifier": 16,
}
"""Of each field of a queue in a UserHeader: its distance from where the queue starts."""


@jit
def user_message(buf: Any, p0: int, e0: int, at: Any, r: int, trusted: bool) -> int:
    """UserMessage: [MS-MQMQ] 2.2.20."""
    at[r, 0] = 0
    at[r, 1] = -1
    at[r, 2] = -1
    at[r, 3] = -1
    at[r, 4] = -1
    at[r, 5] = -1
    at[r, 6] = -1
    at[r, 7] = -1
    at[r, 8] = -1
    at[r, 9] = -1
    at[r, 10] = -1
    at[r, 11] = -1
    at[r, 12] = -1
    at[r, 13] = -1
    at[r, 14] = -1
    at[r, 15] = -1
    if p0 + 12 > e0:
        return MALFORMED
    v3 = u16(buf, p0 + 2)
    v5 = u32(buf, p0 + 8)
    e6 = p0 + v5
    if not p0 + 12 <= e6 <= e0:
        return MALFORMED
    if p0 + 16 > e6:
        return MALFORMED
    if p0 + 64 > e6:
        return MALFORMED
    v11 = u32(buf, p0 + 60)
    q12 = p0 + 64
    if (v11 >> 10 & 0x7) == 0:
        pass
    elif (v11 >> 10 & 0x7) == 3:
        if p0 + 68 > e6:
            return MALFORMED
        q12 = p0 + 68
    elif (v11 >> 10 & 0x7) == 5:
        if p0 + 80 > e6:
            return MALFORMED
        q12 = p0 + 80
    elif (v11 >> 10 & 0x7) == 7:
        if p0 + 66 > e6:
            return MALFORMED
        v14 = u16(buf, p0 + 64)
        p15 = p0 + 66 + v14
        if p15 > e6:
            return MALFORMED
        if not ends_on_null(buf, p0 + 66, p15):
            return MALFORMED
        p16 = min(p15 + (p0 + 16 - (p15)) % 4, e6)
        q12 = p16
    else:
        return MALFORMED
    at[r, 1] = q12 - p0
    q17 = q12
    if (v11 >> 13 & 0x7) == 0:
        pass
    elif (v11 >> 13 & 0x7) == 2 or (v11 >> 13 & 0x7) == 3:
        if q12 + 4 > e6:
            return MALFORMED
        q17 = q12 + 4
    elif (v11 >> 13 & 0x7) == 5:
        if q12 + 16 > e6:
            return MALFORMED
        q17 = q12 + 16
    elif (v11 >> 13 & 0x7) == 6:
        if q12 + 20 > e6:
            return MALFORMED
        q17 = q12 + 20
    elif (v11 >> 13 & 0x7) == 7:
        if q12 + 2 > e6:
            return MALFORMED
        v20 = u16(buf, q12)
        p21 = q12 + 2 + v20
        if p21 > e6:
            return MALFORMED
        if not ends_on_null(buf, q12 + 2, p21):
            return MALFORMED
        p22 = min(p21 + (p0 + 16 - (p21)) % 4, e6)
        q17 = p22
    else:
        return MALFORMED
    at[r, 2] = q17 - p0
    q23 = q17
    if (v11 >> 16 & 0x7) == 0 or (v11 >> 16 & 0x7) == 1:
        pass
    elif (v11 >> 16 & 0x7) == 2 or (v11 >> 16 & 0x7) == 3 or (v11 >> 16 & 0x7) == 4:
        if q17 + 4 > e6:
            return MALFORMED
        q23 = q17 + 4
    elif (v11 >> 16 & 0x7) == 5:
        if q17 + 16 > e6:
            return MALFORMED
        q23 = q17 + 16
    elif (v11 >> 16 & 0x7) == 6:
        if q17 + 20 > e6:
            return MALFORMED
        q23 = q17 + 20
    elif (v11 >> 16 & 0x7) == 7:
        if q17 + 2 > e6:
            return MALFORMED
        v26 = u16(buf, q17)
        p27 = q17 + 2 + v26
        if p27 > e6:
            return MALFORMED
        if not ends_on_null(buf, q17 + 2, p27):
            return MALFORMED
        p28 = min(p27 + (p0 + 16 - (p27)) % 4, e6)
        q23 = p28
    else:
        return MALFORMED
    q29 = q23
    if (v11 >> 22 & 0x1) != 0:
        p30 = q23
        at[r, 3] = p30 - p0
        if p30 + 16 > e6:
            return MALFORMED
        q29 = p30 + 16
    q31 = q29
    if (v11 >> 20 & 0x1) != 0:
        p32 = q29
        at[r, 4] = p32 - p0
        if p32 + 4 > e6:
            return MALFORMED
        v33 = u32(buf, p32)
        if p32 + 12 > e6:
            return MALFORMED
        if p32 + 20 > e6:
            return MALFORMED
        q38 = p32 + 20
        if (v33 >> 0 & 0x1) != 0:
            p39 = p32 + 20
            if p39 + 16 > e6:
                return MALFORMED
            q38 = p39 + 16
        q31 = q38
    q40 = q31
    if (v11 >> 19 & 0x1) != 0:
        p41 = q31
        at[r, 5] = p41 - p0
        if p41 + 16 > e6:
            return MALFORMED
        v43 = u16(buf, p41 + 2)
        v44 = u16(buf, p41 + 4)
        v45 = u16(buf, p41 + 6)
        v46 = u32(buf, p41 + 8)
        v47 = u32(buf, p41 + 12)
        p48 = p41 + 16 + v43
        if p48 > e6:
            return MALFORMED
        at[r, 6] = p48 - p0
        p49 = min(p48 + (p41 + 16 - (p48)) % 4, e6)
        p50 = p49 + v44
        if p50 > e6:
            return MALFORMED
        p51 = min(p50 + (p41 + 16 - (p50)) % 4, e6)
        p52 = p51 + v45
        if p52 > e6:
            return MALFORMED
        p53 = min(p52 + (p41 + 16 - (p52)) % 4, e6)
        p54 = p53 + v46
        if p54 > e6:
            return MALFORMED
        at[r, 7] = p53 - p0
        at[r, 8] = p54 - p0
        p55 = min(p54 + (p41 + 16 - (p54)) % 4, e6)
        q56 = p55
        if v47 != 0:
            p57 = p55
            e58 = p57 + v47
            if e58 > e6:
                return MALFORMED
            if p57 + 4 > e58:
                return MALFORMED
            if p57 + 4 > e58:
                return MALFORMED
            p60 = e58
            at[r, 9] = p57 - p0
            at[r, 10] = p60 - p0
            if p60 != e58:
                return MALFORMED
            q56 = p60
        p61 = min(q56 + (p41 + 16 - (q56)) % 4, e6)
        q40 = p61
    at[r, 11] = q40 - p0
    if q40 + 56 > e6:
        return MALFORMED
    v63 = u8(buf, q40 + 1)
    if not 0 <= v63 < 251:
        return MALFORMED
    v67 = u32(buf, q40 + 32)
    v68 = u32(buf, q40 + 36)
    v72 = u32(buf, q40 + 52)
    p73 = q40 + 56 + v63 * 2
    if p73 > e6:
        return MALFORMED
    at[r, 12] = p73 - p0
    p74 = p73 + v72
    if p74 > e6:
        return MALFORMED
    at[r, 13] = p74 - p0
    p75 = p74 + v67
    if p75 > e6:
        return MALFORMED
    at[r, 14] = p75 - p0
    p76 = p75 + max(0, v68 - v67)
    if p76 > e6:
        return MALFORMED
    p77 = min(p76 + (q40 - (p76)) % 4, e6)
    q78 = p77
    if (v3 >> 5 & 0x1) != 0:
        p79 = p77
        if p79 + 4 > e6:
            return MALFORMED
        v80 = u16(buf, p79)
        q82 = p79 + 4
        if (v80 >> 0 & 0x3) == 1:
            p83 = p79 + 4
            if p83 + 16 > e6:
                return MALFORMED
            q82 = p83 + 16
        q78 = q82
    q84 = q78
    if (v11 >> 25 & 0x1) != 0 or (v11 >> 28 & 0x1) != 0 or (v11 >> 23 & 0x1) != 0:
        if not trusted:
            return UNSURE
        q84 = e6
    if q84 != e6:
        return MALFORMED
    q85 = q84
    if (v3 >> 4 & 0x1) != 0:
        p86 = q84
        at[r, 15] = p86 - p0
        if p86 + 16 > e0:
            return MALFORMED
        q85 = p86 + 16
    return q85


@jit
def session_ack(buf: Any, p0: int, e0: int, at: Any, r: int, trusted: bool) -> int:
    """SessionAck: [MS-MQQB] 2.2.6."""
    at[r, 0] = 0
    if p0 + 12 > e0:
        return MALFORMED
    v5 = u32(buf, p0 + 8)
    e6 = p0 + v5
    if not p0 + 12 <= e6 <= e0:
        return MALFORMED
    if p0 + 16 > e6:
        return MALFORMED
    if p0 + 20 > e6:
        return MALFORMED
    if p0 + 36 > e6:
        return MALFORMED
    if p0 + 36 != e6:
        return MALFORMED
    return p0 + 36


@jit
def establish_connection(buf: Any, p0: int, e0: int, at: Any, r: int, trusted: bool) -> int:
    """EstablishConnection: [MS-MQQB] 2.2.3."""
    at[r, 0] = 0
    if p0 + 12 > e0:
        return MALFORMED
    v5 = u32(buf, p0 + 8)
    e6 = p0 + v5
    if not p0 + 12 <= e6 <= e0:
        return MALFORMED
    if p0 + 16 > e6:
        return MALFORMED
    if p0 + 20 > e6:
        return MALFORMED
    if p0 + 572 > e6:
        return MALFORMED
    if p0 + 572 != e6:
        return MALFORMED
    return p0 + 572


@jit
def connection_parameters(buf: Any, p0: int, e0: int, at: Any, r: int, trusted: bool) -> int:
    """ConnectionParameters: [MS-MQQB] 2.2.2."""
    at[r, 0] = 0
    if p0 + 12 > e0:
        return MALFORMED
    v5 = u32(buf, p0 + 8)
    e6 = p0 + v5
    if not p0 + 12 <= e6 <= e0:
        return MALFORMED
    if p0 + 16 > e6:
        return MALFORMED
    if p0 + 20 > e6:
        return MALFORMED
    if p0 + 32 > e6:
        return MALFORMED
    if p0 + 32 != e6:
        return MALFORMED
    return p0 + 32


@jit
def ping(buf: Any, p0: int, e0: int, at: Any, r: int, trusted: bool) -> int:
    """Ping: [MS-MQQB] 2.2.7."""
    at[r, 0] = 0
    if p0 + 24 > e0:
        return MALFORMED
    v2 = u16(buf, p0 + 2)
    if v2 != 0x5548:
        return MALFORMED
    return p0 + 24
