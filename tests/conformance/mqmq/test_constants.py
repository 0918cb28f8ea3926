"""The numbers of [MS-MQMQ] 2.2 to 2.4, copied independently from the specification."""

from __future__ import annotations

import pytest

from msmqwire import constants
from msmqwire.constants import (
    MQCNACCESSMASK,
    MQENTACCESSMASK,
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    MQSITEACCESSMASK,
    QUEUE_FORMAT_TYPE,
    QUEUE_SUFFIX_TYPE,
    SECURITY_INFORMATION,
    AddressType,
    EncryptionAlgorithm,
    HashAlgorithm,
    KeyAlgorithm,
    MessageClass,
    PrivacyLevel,
    ProviderType,
    VarEnum,
    class_name,
    is_about_receive,
    is_legal_class,
    is_negative,
    variant_name,
)


def proving(table, name=lambda row: row[1]):
    """The rows of a table as parameters, each marked with the requirement in its first column."""
    return [pytest.param(*row[1:], marks=pytest.mark.requirement(row[0]), id=str(name(row))) for row in table]


# requirement, enumeration, member, number
MEMBERS = [
    ("MQMQ-2.2.3-01", SECURITY_INFORMATION, "OWNER_SECURITY_INFORMATION", 0x00000001),
    ("MQMQ-2.2.3-02", SECURITY_INFORMATION, "GROUP_SECURITY_INFORMATION", 0x00000002),
    ("MQMQ-2.2.3-03", SECURITY_INFORMATION, "DACL_SECURITY_INFORMATION", 0x00000004),
    ("MQMQ-2.2.3-04", SECURITY_INFORMATION, "SACL_SECURITY_INFORMATION", 0x00000008),
    ("MQMQ-2.2.6-01", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_UNKNOWN", 0),
    ("MQMQ-2.2.6-02", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_PUBLIC", 1),
    ("MQMQ-2.2.6-03", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_PRIVATE", 2),
    ("MQMQ-2.2.6-04", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_DIRECT", 3),
    ("MQMQ-2.2.6-05", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_MACHINE", 4),
    ("MQMQ-2.2.6-06", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_CONNECTOR", 5),
    ("MQMQ-2.2.6-07", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_DL", 6),
    ("MQMQ-2.2.6-08", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_MULTICAST", 7),
    ("MQMQ-2.2.6-09", QUEUE_FORMAT_TYPE, "QUEUE_FORMAT_TYPE_SUBQUEUE", 8),
    ("MQMQ-2.2.11-01", QUEUE_SUFFIX_TYPE, "QUEUE_SUFFIX_TYPE_NONE", 0),
    ("MQMQ-2.2.11-02", QUEUE_SUFFIX_TYPE, "QUEUE_SUFFIX_TYPE_JOURNAL", 1),
    ("MQMQ-2.2.11-03", QUEUE_SUFFIX_TYPE, "QUEUE_SUFFIX_TYPE_DEADLETTER", 2),
    ("MQMQ-2.2.11-04", QUEUE_SUFFIX_TYPE, "QUEUE_SUFFIX_TYPE_DEADXACT", 3),
    ("MQMQ-2.2.11-05", QUEUE_SUFFIX_TYPE, "QUEUE_SUFFIX_TYPE_XACTONLY", 4),
    ("MQMQ-2.2.11-06", QUEUE_SUFFIX_TYPE, "QUEUE_SUFFIX_TYPE_SUBQUEUE", 5),
    ("MQMQ-2.2.12-01", VarEnum, "VT_EMPTY", 0),
    ("MQMQ-2.2.12-02", VarEnum, "VT_NULL", 1),
    ("MQMQ-2.2.12-03", VarEnum, "VT_I2", 2),
    ("MQMQ-2.2.12-04", VarEnum, "VT_I4", 3),
    ("MQMQ-2.2.12-05", VarEnum, "VT_BOOL", 11),
    ("MQMQ-2.2.12-06", VarEnum, "VT_VARIANT", 12),
    ("MQMQ-2.2.12-07", VarEnum, "VT_I1", 16),
    ("MQMQ-2.2.12-08", VarEnum, "VT_UI1", 17),
    ("MQMQ-2.2.12-09", VarEnum, "VT_UI2", 18),
    ("MQMQ-2.2.12-10", VarEnum, "VT_UI4", 19),
    ("MQMQ-2.2.12-11", VarEnum, "VT_I8", 20),
    ("MQMQ-2.2.12-12", VarEnum, "VT_UI8", 21),
    ("MQMQ-2.2.12-13", VarEnum, "VT_LPWSTR", 31),
    ("MQMQ-2.2.12-14", VarEnum, "VT_BLOB", 65),
    ("MQMQ-2.2.12-15", VarEnum, "VT_CLSID", 72),
    ("MQMQ-2.2.12-16", VarEnum, "VT_VECTOR", 0x1000),
    ("MQMQ-2.2.18.1.6-01", MessageClass, "MQMSG_CLASS_NORMAL", 0x0000),
    ("MQMQ-2.2.18.1.6-02", MessageClass, "MQMSG_CLASS_REPORT", 0x0001),
    ("MQMQ-2.2.18.1.6-03", MessageClass, "MQMSG_CLASS_ACK_REACH_QUEUE", 0x0002),
    ("MQMQ-2.2.18.1.6-04", MessageClass, "MQMSG_CLASS_ORDER_ACK", 0x00FF),
    ("MQMQ-2.2.18.1.6-05", MessageClass, "MQMSG_CLASS_ACK_RECEIVE", 0x4000),
    ("MQMQ-2.2.18.1.6-06", MessageClass, "MQMSG_CLASS_NACK_BAD_DST_Q", 0x8000),
    ("MQMQ-2.2.18.1.6-07", MessageClass, "MQMSG_CLASS_NACK_DELETED", 0x8001),
    ("MQMQ-2.2.18.1.6-08", MessageClass, "MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT", 0x8002),
    ("MQMQ-2.2.18.1.6-09", MessageClass, "MQMSG_CLASS_NACK_Q_EXCEED_QUOTA", 0x8003),
    ("MQMQ-2.2.18.1.6-10", MessageClass, "MQMSG_CLASS_NACK_ACCESS_DENIED", 0x8004),
    ("MQMQ-2.2.18.1.6-11", MessageClass, "MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED", 0x8005),
    ("MQMQ-2.2.18.1.6-12", MessageClass, "MQMSG_CLASS_NACK_BAD_SIGNATURE", 0x8006),
    ("MQMQ-2.2.18.1.6-13", MessageClass, "MQMSG_CLASS_NACK_BAD_ENCRYPTION", 0x8007),
    ("MQMQ-2.2.18.1.6-14", MessageClass, "MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q", 0x8009),
    ("MQMQ-2.2.18.1.6-15", MessageClass, "MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG", 0x800A),
    ("MQMQ-2.2.18.1.6-16", MessageClass, "MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER", 0x800B),
    ("MQMQ-2.2.18.1.6-17", MessageClass, "MQMSG_CLASS_NACK_Q_DELETED", 0xC000),
    ("MQMQ-2.2.18.1.6-18", MessageClass, "MQMSG_CLASS_NACK_Q_PURGED", 0xC001),
    ("MQMQ-2.2.18.1.6-19", MessageClass, "MQMSG_CLASS_NACK_RECEIVE_TIMEOUT", 0xC002),
    ("MQMQ-2.2.18.1.6-20", MessageClass, "MQMSG_CLASS_NACK_RECEIVE_REJECTED", 0xC004),
    ("MQMQ-2.2.23-01", MQQMACCESSMASK, "MQSEC_DELETE_DEADLETTER_MESSAGE", 0x00000001),
    ("MQMQ-2.2.23-02", MQQMACCESSMASK, "MQSEC_PEEK_DEADLETTER_MESSAGE", 0x00000002),
    ("MQMQ-2.2.23-03", MQQMACCESSMASK, "MQSEC_CREATE_QUEUE", 0x00000004),
    ("MQMQ-2.2.23-04", MQQMACCESSMASK, "MQSEC_SET_MACHINE_PROPERTIES", 0x00000010),
    ("MQMQ-2.2.23-05", MQQMACCESSMASK, "MQSEC_GET_MACHINE_PROPERTIES", 0x00000020),
    ("MQMQ-2.2.23-06", MQQMACCESSMASK, "MQSEC_DELETE_JOURNAL_QUEUE_MESSAGE", 0x00000040),
    ("MQMQ-2.2.23-07", MQQMACCESSMASK, "MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE", 0x00000080),
    ("MQMQ-2.2.23-08", MQQMACCESSMASK, "MQSEC_DELETE_MACHINE", 0x00010000),
    ("MQMQ-2.2.23-09", MQQMACCESSMASK, "MQSEC_GET_MACHINE_PERMISSIONS", 0x00020000),
    ("MQMQ-2.2.23-10", MQQMACCESSMASK, "MQSEC_CHANGE_MACHINE_PERMISSIONS", 0x00040000),
    ("MQMQ-2.2.23-11", MQQMACCESSMASK, "MQSEC_TAKE_MACHINE_OWNERSHIP", 0x00080000),
    ("MQMQ-2.2.23-12", MQQMACCESSMASK, "MQSEC_RECEIVE_DEADLETTER_MESSAGE", 0x00000003),
    ("MQMQ-2.2.23-13", MQQMACCESSMASK, "MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE", 0x000000C0),
    ("MQMQ-2.2.23-14", MQQMACCESSMASK, "MQSEC_MACHINE_GENERIC_READ", 0x000200E3),
    ("MQMQ-2.2.23-15", MQQMACCESSMASK, "MQSEC_MACHINE_GENERIC_WRITE", 0x00020024),
    ("MQMQ-2.2.23-16", MQQMACCESSMASK, "MQSEC_MACHINE_GENERIC_ALL", 0x000F00F7),
    ("MQMQ-2.2.23-17", MQQMACCESSMASK, "MQSEC_MACHINE_WORLD_RIGHTS", 0x00020020),
    ("MQMQ-2.2.24-01", MQQUEUEACCESSMASK, "MQSEC_DELETE_MESSAGE", 0x00000001),
    ("MQMQ-2.2.24-02", MQQUEUEACCESSMASK, "MQSEC_PEEK_MESSAGE", 0x00000002),
    ("MQMQ-2.2.24-03", MQQUEUEACCESSMASK, "MQSEC_WRITE_MESSAGE", 0x00000004),
    ("MQMQ-2.2.24-04", MQQUEUEACCESSMASK, "MQSEC_DELETE_JOURNAL_MESSAGE", 0x00000008),
    ("MQMQ-2.2.24-05", MQQUEUEACCESSMASK, "MQSEC_SET_QUEUE_PROPERTIES", 0x00000010),
    ("MQMQ-2.2.24-06", MQQUEUEACCESSMASK, "MQSEC_GET_QUEUE_PROPERTIES", 0x00000020),
    ("MQMQ-2.2.24-07", MQQUEUEACCESSMASK, "MQSEC_DELETE_QUEUE", 0x00010000),
    ("MQMQ-2.2.24-08", MQQUEUEACCESSMASK, "MQSEC_GET_QUEUE_PERMISSIONS", 0x00020000),
    ("MQMQ-2.2.24-09", MQQUEUEACCESSMASK, "MQSEC_CHANGE_QUEUE_PERMISSIONS", 0x00040000),
    ("MQMQ-2.2.24-10", MQQUEUEACCESSMASK, "MQSEC_TAKE_QUEUE_OWNERSHIP", 0x00080000),
    ("MQMQ-2.2.24-11", MQQUEUEACCESSMASK, "MQSEC_RECEIVE_MESSAGE", 0x00000003),
    ("MQMQ-2.2.24-12", MQQUEUEACCESSMASK, "MQSEC_RECEIVE_JOURNAL_MESSAGE", 0x0000000A),
    ("MQMQ-2.2.24-13", MQQUEUEACCESSMASK, "MQSEC_QUEUE_GENERIC_READ", 0x0002002B),
    ("MQMQ-2.2.24-14", MQQUEUEACCESSMASK, "MQSEC_QUEUE_GENERIC_WRITE", 0x00020024),
    ("MQMQ-2.2.24-15", MQQUEUEACCESSMASK, "MQSEC_QUEUE_GENERIC_ALL", 0x000F003F),
    ("MQMQ-2.2.25-01", MQSITEACCESSMASK, "MQSEC_CREATE_FRS", 0x00000001),
    ("MQMQ-2.2.25-02", MQSITEACCESSMASK, "MQSEC_CREATE_BSC", 0x00000002),
    ("MQMQ-2.2.25-03", MQSITEACCESSMASK, "MQSEC_CREATE_MACHINE", 0x00000004),
    ("MQMQ-2.2.25-04", MQSITEACCESSMASK, "MQSEC_SET_SITE_PROPERTIES", 0x00000010),
    ("MQMQ-2.2.25-05", MQSITEACCESSMASK, "MQSEC_GET_SITE_PROPERTIES", 0x00000020),
    ("MQMQ-2.2.25-06", MQSITEACCESSMASK, "MQSEC_DELETE_SITE", 0x00010000),
    ("MQMQ-2.2.25-07", MQSITEACCESSMASK, "MQSEC_GET_SITE_PERMISSIONS", 0x00020000),
    ("MQMQ-2.2.25-08", MQSITEACCESSMASK, "MQSEC_CHANGE_SITE_PERMISSIONS", 0x00040000),
    ("MQMQ-2.2.25-09", MQSITEACCESSMASK, "MQSEC_TAKE_SITE_OWNERSHIP", 0x00080000),
    ("MQMQ-2.2.25-10", MQSITEACCESSMASK, "MQSEC_SITE_GENERIC_READ", 0x00020020),
    ("MQMQ-2.2.25-11", MQSITEACCESSMASK, "MQSEC_SITE_GENERIC_WRITE", 0x00020024),
    ("MQMQ-2.2.25-12", MQSITEACCESSMASK, "MQSEC_SITE_GENERIC_ALL", 0x000F0037),
    ("MQMQ-2.2.26-01", MQENTACCESSMASK, "MQSEC_CREATE_USER", 0x00000001),
    ("MQMQ-2.2.26-02", MQENTACCESSMASK, "MQSEC_CREATE_SITE", 0x00000002),
    ("MQMQ-2.2.26-03", MQENTACCESSMASK, "MQSEC_CREATE_CN", 0x00000004),
    ("MQMQ-2.2.26-04", MQENTACCESSMASK, "MQSEC_SET_ENTERPRISE_PROPERTIES", 0x00000010),
    ("MQMQ-2.2.26-05", MQENTACCESSMASK, "MQSEC_GET_ENTERPRISE_PROPERTIES", 0x00000020),
    ("MQMQ-2.2.26-06", MQENTACCESSMASK, "MQSEC_DELETE_ENTERPRISE", 0x00010000),
    ("MQMQ-2.2.26-07", MQENTACCESSMASK, "MQSEC_GET_ENTERPRISE_PERMISSIONS", 0x00020000),
    ("MQMQ-2.2.26-08", MQENTACCESSMASK, "MQSEC_CHANGE_ENTERPRISE_PERMISSIONS", 0x00040000),
    ("MQMQ-2.2.26-09", MQENTACCESSMASK, "MQSEC_TAKE_ENTERPRISE_OWNERSHIP", 0x00080000),
    ("MQMQ-2.2.26-10", MQENTACCESSMASK, "MQSEC_ENTERPRISE_GENERIC_READ", 0x00020021),
    ("MQMQ-2.2.26-11", MQENTACCESSMASK, "MQSEC_ENTERPRISE_GENERIC_WRITE", 0x00020027),
    ("MQMQ-2.2.26-12", MQENTACCESSMASK, "MQSEC_ENTERPRISE_GENERIC_ALL", 0x000F0037),
    ("MQMQ-2.2.27-01", MQCNACCESSMASK, "MQSEC_CN_OPEN_CONNECTOR", 0x00000001),
    ("MQMQ-2.2.27-02", MQCNACCESSMASK, "MQSEC_SET_CN_PROPERTIES", 0x00000010),
    ("MQMQ-2.2.27-03", MQCNACCESSMASK, "MQSEC_GET_CN_PROPERTIES", 0x00000020),
    ("MQMQ-2.2.27-04", MQCNACCESSMASK, "MQSEC_DELETE_CN", 0x00010000),
    ("MQMQ-2.2.27-05", MQCNACCESSMASK, "MQSEC_GET_CN_PERMISSIONS", 0x00020000),
    ("MQMQ-2.2.27-06", MQCNACCESSMASK, "MQSEC_CHANGE_CN_PERMISSIONS", 0x00040000),
    ("MQMQ-2.2.27-07", MQCNACCESSMASK, "MQSEC_TAKE_CN_OWNERSHIP", 0x00080000),
    ("MQMQ-2.2.27-08", MQCNACCESSMASK, "MQSEC_CN_GENERIC_READ", 0x00020020),
    ("MQMQ-2.2.27-09", MQCNACCESSMASK, "SEC_CN_GENERIC_ALL", 0x000F0031),
]


@pytest.mark.parametrize("kind, name, number", proving(MEMBERS, name=lambda row: row[2]))
def test_a_member_has_its_number(kind, name, number):
    assert kind[name] == number
    assert kind(number) == kind[name]


@pytest.mark.parametrize(
    "kind", sorted({row[1] for row in MEMBERS} - {VarEnum}, key=lambda kind: kind.__name__)
)
def test_there_is_no_other_member(kind):
    assert set(kind.__members__) == {name for _, of, name, _ in MEMBERS if of is kind}


@pytest.mark.requirement("MQMQ-2.2.3-05")
@pytest.mark.parametrize("number", range(0x10))
def test_security_information_is_any_set_of_four_flags(number):
    names = [flag.name for flag in SECURITY_INFORMATION(number)]
    expected = ["OWNER", "GROUP", "DACL", "SACL"]
    assert names == [
        f"{word}_SECURITY_INFORMATION" for bit, word in enumerate(expected) if number & (1 << bit)
    ]


@pytest.mark.requirement("MQMQ-2.2.14-01")
def test_variant_true_is_all_ones():
    assert constants.VARIANT_TRUE == 0xFFFF


@pytest.mark.requirement("MQMQ-2.2.14-02")
def test_variant_false_is_zero():
    assert constants.VARIANT_FALSE == 0


@pytest.mark.requirement("MQMQ-2.2.7-03")
def test_the_flags_of_queue_format():
    assert constants.QUEUE_FORMAT_FLAG_NOT_SYSTEM == 0x00
    assert constants.QUEUE_FORMAT_FLAG_SYSTEM == 0x80


@pytest.mark.requirement("MQMQ-2.2.18.1.6-22")
@pytest.mark.parametrize(
    "value, legal",
    [(0, True), (0xE1FF, True), (0x0100, True), (0x2000, True)]
    + [(1 << bit, False) for bit in (9, 10, 11, 12, 16)]
    + [(0xFFFF, False), (0x8200, False), (-1, False)],
)
def test_classes_that_applications_may_use(value, legal):
    assert is_legal_class(value) is legal


@pytest.mark.requirement("MQMQ-2.2.18.1.6-23")
def test_bits_tell_the_kind_of_a_class():
    assert {member.name for member in MessageClass if is_negative(member)} == {
        member.name for member in MessageClass if "_NACK_" in member.name
    }
    assert {
        member.name.removeprefix("MQMSG_CLASS_") for member in MessageClass if is_about_receive(member)
    } == {
        "ACK_RECEIVE",
        "NACK_Q_DELETED",
        "NACK_Q_PURGED",
        "NACK_RECEIVE_TIMEOUT",
        "NACK_RECEIVE_REJECTED",
    }
    assert class_name(0x8008) == "0x8008"
    assert class_name(0xC003) == "0xC003"


@pytest.mark.parametrize(
    "value, name",
    [
        (0x0000, "NORMAL"),
        (0x0002, "ACK_REACH_QUEUE"),
        (0x8000, "NACK_BAD_DST_Q"),
        (0x1234, "0x1234"),
        (5, "0x0005"),
    ],
)
def test_the_name_of_a_class(value, name):
    assert class_name(value) == name


@pytest.mark.parametrize(
    "kind, members",
    [
        (
            HashAlgorithm,
            {
                "CALG_MD2": 0x8001,
                "CALG_MD4": 0x8002,
                "CALG_MD5": 0x8003,
                "CALG_SHA1": 0x8004,
                "CALG_SHA_256": 0x800C,
                "CALG_SHA_512": 0x800E,
            },
        ),
        (
            EncryptionAlgorithm,
            {
                "CALG_RC2": 0x6602,
                "CALG_AES_128": 0x660E,
                "CALG_AES_192": 0x660F,
                "CALG_AES_256": 0x6610,
                "CALG_RC4": 0x6801,
            },
        ),
        (KeyAlgorithm, {"CALG_RSA_SIGN": 0x2400, "CALG_RSA_KEYX": 0xA400}),
        (
            PrivacyLevel,
            {
                "MQMSG_PRIV_LEVEL_NONE": 0,
                "MQMSG_PRIV_LEVEL_BODY_BASE": 1,
                "MQMSG_PRIV_LEVEL_BODY_ENHANCED": 3,
                "MQMSG_PRIV_LEVEL_BODY_AES": 5,
            },
        ),
        (ProviderType, {"PROV_RSA_FULL": 1, "PROV_RSA_AES": 0x18}),
        (
            AddressType,
            {
                "IP_ADDRESS_TYPE": 1,
                "IP_RAS_ADDRESS_TYPE": 2,
                "IPX_ADDRESS_TYPE": 3,
                "FOREIGN_ADDRESS_TYPE": 5,
                "IPV6_ADDRESS_TYPE": 6,
            },
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_numbers_of_algorithms_and_addresses(kind, members):
    assert {name: int(member) for name, member in kind.__members__.items()} == members


@pytest.mark.parametrize(
    "value, name",
    [
        pytest.param(8, "VT_BSTR", marks=pytest.mark.requirement("MQMQ-2.2.12-17")),
        (0x1011, "VT_UI1 | VT_VECTOR"),
        (0x2011, "VT_UI1 | VT_ARRAY"),
        (0x300, "0x0300"),
        (0x1300, "0x1300"),
    ],
)
def test_the_name_of_a_variant_type(value, name):
    assert variant_name(value) == name


def test_everything_public_is_there():
    assert all(hasattr(constants, name) for name in constants.__all__)
