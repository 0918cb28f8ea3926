"""Results of MSMQ calls, [MS-MQMQ] 2.4, copied independently from the specification."""

from __future__ import annotations

import pytest

from msmqwire.constants import MQ_OK, HResult, hresult_name, is_failure
from msmqwire.rpc.constants import FaultStatus


def proving(table, name=lambda row: row[1]):
    """The rows of a table as parameters, each marked with the requirement in its first column."""
    return [pytest.param(*row[1:], marks=pytest.mark.requirement(row[0]), id=str(name(row))) for row in table]


# requirement, codes
RESULTS = [
    ("MQMQ-2.4-03", {"MQ_INFORMATION_PROPERTY": 0x400E0001}),
    ("MQMQ-2.4-04", {"MQ_INFORMATION_ILLEGAL_PROPERTY": 0x400E0002}),
    ("MQMQ-2.4-05", {"MQ_INFORMATION_PROPERTY_IGNORED": 0x400E0003}),
    ("MQMQ-2.4-06", {"MQ_INFORMATION_UNSUPPORTED_PROPERTY": 0x400E0004}),
    ("MQMQ-2.4-07", {"MQ_INFORMATION_DUPLICATE_PROPERTY": 0x400E0005}),
    ("MQMQ-2.4-08", {"MQ_INFORMATION_OPERATION_PENDING": 0x400E0006}),
    ("MQMQ-2.4-09", {"MQ_INFORMATION_FORMATNAME_BUFFER_TOO_SMALL": 0x400E0009}),
    ("MQMQ-2.4-10", {"MQ_INFORMATION_INTERNAL_USER_CERT_EXIST": 0x400E000A}),
    ("MQMQ-2.4-11", {"MQ_INFORMATION_OWNER_IGNORED": 0x400E000B}),
    ("MQMQ-2.4-12", {"MQ_ERROR": 0xC00E0001}),
    ("MQMQ-2.4-13", {"MQ_ERROR_PROPERTY": 0xC00E0002}),
    ("MQMQ-2.4-14", {"MQ_ERROR_QUEUE_NOT_FOUND": 0xC00E0003}),
    ("MQMQ-2.4-15", {"MQ_ERROR_QUEUE_NOT_ACTIVE": 0xC00E0004}),
    ("MQMQ-2.4-16", {"MQ_ERROR_QUEUE_EXISTS": 0xC00E0005}),
    ("MQMQ-2.4-17", {"MQ_ERROR_INVALID_PARAMETER": 0xC00E0006}),
    ("MQMQ-2.4-18", {"MQ_ERROR_INVALID_HANDLE": 0xC00E0007}),
    ("MQMQ-2.4-19", {"MQ_ERROR_OPERATION_CANCELLED": 0xC00E0008}),
    ("MQMQ-2.4-20", {"MQ_ERROR_SHARING_VIOLATION": 0xC00E0009}),
    ("MQMQ-2.4-21", {"MQ_ERROR_SERVICE_NOT_AVAILABLE": 0xC00E000B}),
    ("MQMQ-2.4-22", {"MQ_ERROR_MACHINE_NOT_FOUND": 0xC00E000D}),
    (
        "MQMQ-2.4-23",
        {
            "MQ_ERROR_ILLEGAL_SORT": 0xC00E0010,
            "MQ_ERROR_ILLEGAL_SORT_PROPID": 0xC00E005C,
            "MQ_ERROR_ILLEGAL_RELATION": 0xC00E003A,
            "MQ_ERROR_ILLEGAL_RESTRICTION_PROPID": 0xC00E003C,
            "MQ_ERROR_MULTI_SORT_KEYS": 0xC00E008D,
        },
    ),
    ("MQMQ-2.4-24", {"MQ_ERROR_ILLEGAL_USER": 0xC00E0011}),
    ("MQMQ-2.4-25", {"MQ_ERROR_NO_DS": 0xC00E0013}),
    ("MQMQ-2.4-26", {"MQ_ERROR_ILLEGAL_QUEUE_PATHNAME": 0xC00E0014}),
    ("MQMQ-2.4-27", {"MQ_ERROR_ILLEGAL_PROPERTY_VALUE": 0xC00E0018}),
    ("MQMQ-2.4-28", {"MQ_ERROR_ILLEGAL_PROPERTY_VT": 0xC00E0019}),
    ("MQMQ-2.4-29", {"MQ_ERROR_BUFFER_OVERFLOW": 0xC00E001A}),
    ("MQMQ-2.4-30", {"MQ_ERROR_IO_TIMEOUT": 0xC00E001B}),
    ("MQMQ-2.4-31", {"MQ_ERROR_ILLEGAL_CURSOR_ACTION": 0xC00E001C}),
    ("MQMQ-2.4-32", {"MQ_ERROR_MESSAGE_ALREADY_RECEIVED": 0xC00E001D}),
    ("MQMQ-2.4-33", {"MQ_ERROR_ILLEGAL_FORMATNAME": 0xC00E001E}),
    ("MQMQ-2.4-34", {"MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL": 0xC00E001F}),
    ("MQMQ-2.4-35", {"MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION": 0xC00E0020}),
    ("MQMQ-2.4-36", {"MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR": 0xC00E0021}),
    (
        "MQMQ-2.4-37",
        {
            "MQ_ERROR_SENDERID_BUFFER_TOO_SMALL": 0xC00E0022,
            "MQ_ERROR_SENDER_CERT_BUFFER_TOO_SMALL": 0xC00E002B,
            "MQ_ERROR_RESULT_BUFFER_TOO_SMALL": 0xC00E0046,
            "MQ_ERROR_LABEL_BUFFER_TOO_SMALL": 0xC00E005E,
            "MQ_ERROR_SYMM_KEY_BUFFER_TOO_SMALL": 0xC00E0061,
            "MQ_ERROR_SIGNATURE_BUFFER_TOO_SMALL": 0xC00E0062,
            "MQ_ERROR_PROV_NAME_BUFFER_TOO_SMALL": 0xC00E0063,
        },
    ),
    ("MQMQ-2.4-38", {"MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL": 0xC00E0023}),
    (
        "MQMQ-2.4-39",
        {
            "MQ_ERROR_CANNOT_IMPERSONATE_CLIENT": 0xC00E0024,
            "MQ_ERROR_COULD_NOT_GET_USER_SID": 0xC00E0036,
            "MQ_ERROR_COULD_NOT_GET_ACCOUNT_INFO": 0xC00E0037,
        },
    ),
    ("MQMQ-2.4-40", {"MQ_ERROR_ACCESS_DENIED": 0xC00E0025}),
    ("MQMQ-2.4-41", {"MQ_ERROR_PRIVILEGE_NOT_HELD": 0xC00E0026}),
    ("MQMQ-2.4-42", {"MQ_ERROR_INSUFFICIENT_RESOURCES": 0xC00E0027}),
    ("MQMQ-2.4-43", {"MQ_ERROR_USER_BUFFER_TOO_SMALL": 0xC00E0028}),
    ("MQMQ-2.4-44", {"MQ_ERROR_MESSAGE_STORAGE_FAILED": 0xC00E002A}),
    (
        "MQMQ-2.4-45",
        {
            "MQ_ERROR_INVALID_CERTIFICATE": 0xC00E002C,
            "MQ_ERROR_CORRUPTED_INTERNAL_CERTIFICATE": 0xC00E002D,
            "MQ_ERROR_INTERNAL_USER_CERT_EXIST": 0xC00E002E,
            "MQ_ERROR_NO_INTERNAL_USER_CERT": 0xC00E002F,
            "MQ_ERROR_CORRUPTED_PERSONAL_CERT_STORE": 0xC00E0031,
            "MQ_ERROR_CANNOT_CREATE_CERT_STORE": 0xC00E006F,
            "MQ_ERROR_CANNOT_OPEN_CERT_STORE": 0xC00E0070,
        },
    ),
    (
        "MQMQ-2.4-46",
        {"MQ_ERROR_CORRUPTED_SECURITY_DATA": 0xC00E0030, "MQ_ERROR_BAD_SECURITY_CONTEXT": 0xC00E0035},
    ),
    (
        "MQMQ-2.4-47",
        {
            "MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION": 0xC00E0033,
            "MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED": 0xC00E006B,
            "MQ_ERROR_CANNOT_SET_CRYPTO_SEC_DESCR": 0xC00E006C,
        },
    ),
    (
        "MQMQ-2.4-48",
        {
            "MQ_ERROR_ILLEGAL_MQCOLUMNS": 0xC00E0038,
            "MQ_ERROR_ILLEGAL_MQQUEUEPROPS": 0xC00E003D,
            "MQ_ERROR_ILLEGAL_MQQMPROPS": 0xC00E0041,
            "MQ_ERROR_ILLEGAL_MQPRIVATEPROPS": 0xC00E007B,
        },
    ),
    ("MQMQ-2.4-49", {"MQ_ERROR_ILLEGAL_PROPID": 0xC00E0039}),
    ("MQMQ-2.4-50", {"MQ_ERROR_ILLEGAL_PROPERTY_SIZE": 0xC00E003B}),
    ("MQMQ-2.4-51", {"MQ_ERROR_PROPERTY_NOTALLOWED": 0xC00E003E}),
    ("MQMQ-2.4-52", {"MQ_ERROR_INSUFFICIENT_PROPERTIES": 0xC00E003F}),
    ("MQMQ-2.4-53", {"MQ_ERROR_MACHINE_EXISTS": 0xC00E0040}),
    (
        "MQMQ-2.4-54",
        {
            "MQ_ERROR_DS_IS_FULL": 0xC00E0042,
            "MQ_ERROR_DELETE_CN_IN_USE": 0xC00E0048,
            "MQ_ERROR_MQIS_SERVER_EMPTY": 0xC00E005F,
            "MQ_ERROR_MQIS_READONLY_MODE": 0xC00E0060,
            "MQ_ERROR_WRITE_NOT_ALLOWED": 0xC00E0065,
        },
    ),
    ("MQMQ-2.4-55", {"MQ_ERROR_DS_ERROR": 0xC00E0043}),
    ("MQMQ-2.4-56", {"MQ_ERROR_INVALID_OWNER": 0xC00E0044}),
    ("MQMQ-2.4-57", {"MQ_ERROR_UNSUPPORTED_ACCESS_MODE": 0xC00E0045}),
    (
        "MQMQ-2.4-58",
        {
            "MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER": 0xC00E0049,
            "MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE": 0xC00E004A,
        },
    ),
    ("MQMQ-2.4-59", {"MQ_ERROR_QUEUE_NOT_AVAILABLE": 0xC00E004B}),
    (
        "MQMQ-2.4-60",
        {
            "MQ_ERROR_DTC_CONNECT": 0xC00E004C,
            "MQ_ERROR_TRANSACTION_IMPORT": 0xC00E004E,
            "MQ_ERROR_TRANSACTION_ENLIST": 0xC00E0058,
        },
    ),
    ("MQMQ-2.4-61", {"MQ_ERROR_TRANSACTION_USAGE": 0xC00E0050}),
    ("MQMQ-2.4-62", {"MQ_ERROR_TRANSACTION_SEQUENCE": 0xC00E0051}),
    ("MQMQ-2.4-63", {"MQ_ERROR_MISSING_CONNECTOR_TYPE": 0xC00E0055}),
    ("MQMQ-2.4-64", {"MQ_ERROR_STALE_HANDLE": 0xC00E0056}),
    ("MQMQ-2.4-65", {"MQ_ERROR_QUEUE_DELETED": 0xC00E005A}),
    ("MQMQ-2.4-66", {"MQ_ERROR_ILLEGAL_CONTEXT": 0xC00E005B}),
    ("MQMQ-2.4-67", {"MQ_ERROR_LABEL_TOO_LONG": 0xC00E005D}),
    ("MQMQ-2.4-68", {"MQ_ERROR_ILLEGAL_OPERATION": 0xC00E0064}),
    (
        "MQMQ-2.4-69",
        {"MQ_ERROR_WKS_CANT_SERVE_CLIENT": 0xC00E0066, "MQ_ERROR_DEPEND_WKS_LICENSE_OVERFLOW": 0xC00E0067},
    ),
    ("MQMQ-2.4-70", {"MQ_CORRUPTED_QUEUE_WAS_DELETED": 0xC00E0068}),
    ("MQMQ-2.4-71", {"MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE": 0xC00E0069}),
    ("MQMQ-2.4-72", {"MQ_ERROR_UNSUPPORTED_OPERATION": 0xC00E006A}),
    ("MQMQ-2.4-73", {"MQ_ERROR_CERTIFICATE_NOT_PROVIDED": 0xC00E006D}),
    (
        "MQMQ-2.4-74",
        {
            "MQ_ERROR_Q_DNS_PROPERTY_NOT_SUPPORTED": 0xC00E006E,
            "MQ_ERROR_Q_ADS_PROPERTY_NOT_SUPPORTED": 0xC00E0091,
        },
    ),
    (
        "MQMQ-2.4-75",
        {
            "MQ_ERROR_CANNOT_LOAD_MSMQOCM": 0xC00E0073,
            "MQ_ERROR_NO_ENTRY_POINT_MSMQOCM": 0xC00E0074,
            "MQ_ERROR_CANNOT_LOAD_MQAD": 0xC00E0085,
            "MQ_ERROR_CANNOT_LOAD_MQDSSRV": 0xC00E0086,
        },
    ),
    (
        "MQMQ-2.4-76",
        {
            "MQ_ERROR_NO_MSMQ_SERVERS_ON_DC": 0xC00E0075,
            "MQ_ERROR_CANNOT_CREATE_ON_GC": 0xC00E0077,
            "MQ_ERROR_NO_GC_IN_DOMAIN": 0xC00E007C,
            "MQ_ERROR_NO_MSMQ_SERVERS_ON_GC": 0xC00E007D,
            "MQ_ERROR_GC_NEEDED": 0xC00E008E,
            "MQ_ERROR_DS_BIND_ROOT_FOREST": 0xC00E008F,
            "MQ_ERROR_DS_LOCAL_USER": 0xC00E0090,
            "MQ_ERROR_NO_MQUSER_OU": 0xC00E0084,
        },
    ),
    (
        "MQMQ-2.4-77",
        {
            "MQ_ERROR_CANNOT_JOIN_DOMAIN": 0xC00E0076,
            "MQ_ERROR_GUID_NOT_MATCHING": 0xC00E0078,
            "MQ_ERROR_CANNOT_GET_DN": 0xC00E007E,
            "MQ_ERROR_CANNOT_GRANT_ADD_GUID": 0xC00E0072,
            "MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION": 0xC00E0071,
        },
    ),
    (
        "MQMQ-2.4-78",
        {"MQ_ERROR_PUBLIC_KEY_NOT_FOUND": 0xC00E0079, "MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST": 0xC00E007A},
    ),
    (
        "MQMQ-2.4-79",
        {
            "MQ_ERROR_CANNOT_HASH_DATA_EX": 0xC00E007F,
            "MQ_ERROR_CANNOT_SIGN_DATA_EX": 0xC00E0080,
            "MQ_ERROR_CANNOT_CREATE_HASH_EX": 0xC00E0081,
            "MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX": 0xC00E0082,
        },
    ),
    (
        "MQMQ-2.4-80",
        {
            "MQ_ERROR_CANNOT_DELETE_PSC_OBJECTS": 0xC00E0083,
            "MQ_ERROR_CANNOT_CREATE_PSC_OBJECTS": 0xC00E0095,
            "MQ_ERROR_CANNOT_UPDATE_PSC_OBJECTS": 0xC00E0096,
        },
    ),
    ("MQMQ-2.4-81", {"MQ_ERROR_PROPERTIES_CONFLICT": 0xC00E0087}),
    ("MQMQ-2.4-82", {"MQ_ERROR_MESSAGE_NOT_FOUND": 0xC00E0088}),
    ("MQMQ-2.4-83", {"MQ_ERROR_CANT_RESOLVE_SITES": 0xC00E0089}),
    ("MQMQ-2.4-84", {"MQ_ERROR_NOT_SUPPORTED_BY_DEPENDENT_CLIENTS": 0xC00E008A}),
    ("MQMQ-2.4-85", {"MQ_ERROR_OPERATION_NOT_SUPPORTED_BY_REMOTE_COMPUTER": 0xC00E008B}),
    (
        "MQMQ-2.4-86",
        {
            "MQ_ERROR_UNINITIALIZED_OBJECT": 0xC00E0094,
            "MQ_ERROR_UNSUPPORTED_CLASS": 0xC00E0093,
            "MQ_ERROR_NOT_A_CORRECT_OBJECT_CLASS": 0xC00E008C,
            "MQ_ERROR_BAD_XML_FORMAT": 0xC00E0092,
        },
    ),
    ("MQMQ-2.4-87", {"MQ_ERROR_RESOLVE_ADDRESS": 0xC00E0099}),
    ("MQMQ-2.4-88", {"MQ_ERROR_TOO_MANY_PROPERTIES": 0xC00E009A}),
    ("MQMQ-2.4-89", {"MQ_ERROR_MESSAGE_NOT_AUTHENTICATED": 0xC00E009B}),
    ("MQMQ-2.4-90", {"MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION": 0xC00E009C}),
    ("MQMQ-2.4-91", {"MQDS_UNKNOWN_SOURCE": 0xC00E0504}),
]


@pytest.mark.parametrize("codes", proving(RESULTS, name=lambda row: next(iter(row[1]))))
def test_a_result_has_its_code_and_its_name(codes):
    assert {name: int(HResult[name]) for name in codes} == codes
    assert [hresult_name(code) for code in codes.values()] == list(codes)


def test_there_is_no_other_result():
    assert set(HResult.__members__) == {name for _, codes in RESULTS for name in codes}


@pytest.mark.requirement("MQMQ-2.4-01")
def test_all_results_have_the_facility_of_msmq():
    assert MQ_OK == 0
    assert hresult_name(0) == "MQ_OK"
    for member in HResult:
        assert member >> 16 == (0x400E if "_INFORMATION_" in member.name else 0xC00E)


@pytest.mark.requirement("MQMQ-2.4-02")
def test_information_codes_are_no_failures():
    assert not is_failure(MQ_OK)
    assert {member.name for member in HResult if not is_failure(member)} == {
        member.name for member in HResult if member.name.startswith("MQ_INFORMATION_")
    }


@pytest.mark.requirement("MQMQ-2.4-93")
@pytest.mark.parametrize("code", [0xC00E000A, 0xC00E000C, 0xC00E0012, 0xC00E0047, 0xC00E050F, 0x80070005])
def test_a_code_without_a_name_stays_a_number(code):
    assert hresult_name(code) == f"0x{code:08X}"


WIN32 = {
    "ERROR_ACCESS_DENIED": 0x05, "RPC_S_CALL_FAILED": 0x6BE, "RPC_S_CANNOT_SUPPORT": 0x6E4,
    "RPC_X_BAD_STUB_DATA": 0x6F7, "RPC_S_SEC_PKG_ERROR": 0x721, "EPT_S_NOT_REGISTERED": 0x6D9,
}  # fmt: skip
"""The codes of [MS-ERREF] 2.2 that are used."""


@pytest.mark.requirement("DMPR-1.8-02")
def test_codes_of_win32_have_their_meaning_and_no_other():
    """They are what faults of calls have below 0x10000; no HRESULT is made of one (facility 7)."""
    used = {member.name: member.value for member in FaultStatus if member < 0x10000}
    names = {"ACCESS_DENIED": "ERROR_ACCESS_DENIED", "WIN32_EPT_S_NOT_REGISTERED": "EPT_S_NOT_REGISTERED"}
    assert {names.get(name, name): value for name, value in used.items()} == WIN32
    assert {status >> 16 & 0x7FF for status in HResult} == {0x00E}
