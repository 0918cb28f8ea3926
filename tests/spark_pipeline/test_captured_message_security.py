"""Signed and encrypted messages in captures: what is known of them with keys and certificates, or without."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import load_pem_x509_certificate

import msmqwire
from msmqwire.analysis.dissection.message_security import (
    SENDERS_MAX,
    SESSION_KEYS_MAX,
    Examiner,
    SignatureStatus,
    key_of,
)
from msmqwire.analysis.lint import lint_packet
from msmqwire.cli.captures import dissect as dissect_command
from msmqwire.cli.captures import lint as lint_command
from msmqwire.crypto.keys import read_private_key
from msmqwire.crypto.readings import Readings
from msmqwire.errors import InvalidValue
from msmqwire.tables import arrow_schema
from msmqwire.tables.arrow.rows import batches
from msmqwire.tables.columns import UNJUDGED
from spark_udfs import functions
from spark_udfs.jobs import decode
from spark_udfs.source.options import BadOption, Options
from tests.support import captures as c
from tests.support.capture import rpc_captures as r
from tests.support.capture.protected_captures import (
    ALICE,
    BOB_KEY,
    OUTCOMES,
    PROTECTED,
    QM_KEY,
    capture_of,
    given,
    packets,
    secured,
)
from tests.support.message_keys import elliptic_certificate
from tests.support.srmp.srmp_signatures import request_of, signed_request, unsigned_envelope

MESSAGES = [("kind", "==", "UserMessage")]
NAMES = [column.name for column in UNJUDGED]


def statuses(*data: bytes, **options: Any) -> list[tuple[SignatureStatus | None, bool | None]]:
    items = msmqwire.dissect(capture_of(*data), lint=False, **options)
    return [(item.signature_status, item.decrypted) for item in items]


# -- what is known of a message ------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [True, False])
@pytest.mark.parametrize("certificates", [True, False])
def test_every_outcome_in_items_and_columns(keys: bool, certificates: bool) -> None:
    options = given(keys=keys, certificates=certificates)
    items = [item for item in msmqwire.dissect(PROTECTED, **options) if item.kind == "UserMessage"]
    rows = msmqwire.read_capture(PROTECTED, where=MESSAGES, **options).to_pylist()
    assert [item.packet.MessagePropertiesHeader.Label for item in items] == list(OUTCOMES)
    for item, row, (best, least, encrypted, text) in zip(items, rows, OUTCOMES.values(), strict=True):
        can_open = keys and text is not None
        status = best if can_open or not encrypted else least
        if status == "valid" and not certificates:
            status = "unknown_sender"
        assert (item.signature_status, item.decrypted) == (status, encrypted and can_open)
        assert (row["signature_status"], row["decrypted"]) == (status, encrypted and can_open)
        sent = item.packet.MessagePropertiesHeader.MessageBody
        assert msmqwire.parse(item.raw) == item.packet
        if encrypted and can_open:
            assert item.body == text.encode("utf-16-le") != sent
            assert (row["body"], row["body_size"]) == (item.body, len(item.body))
        else:
            assert item.body is None
            assert (row["body"], row["body_size"]) == (sent, len(sent))


@pytest.mark.parametrize("options", [given(), given(keys=False), {}], ids=["both", "certificates", "nothing"])
def test_both_readers_give_the_same_columns(options: dict[str, Any]) -> None:
    """Also where batches end anywhere, and with a limit on bodies."""
    items = msmqwire.dissect(PROTECTED, lint=False, **options)
    expected = pa.Table.from_batches(
        batches(items, UNJUDGED, batch_rows=5, body_limit=3), arrow_schema(UNJUDGED)
    )
    reader = msmqwire.read_capture(PROTECTED, columns=NAMES, batch_rows=3, body_limit=3, **options)
    actual = reader.read_all()
    for name in NAMES:
        assert actual[name].to_pylist() == expected[name].to_pylist(), name


def test_conditions_on_what_was_found_out() -> None:
    where = [("signature_status", "in", ["invalid", "unknown_sender"]), ("decrypted", "==", False)]
    table = msmqwire.read_capture(PROTECTED, columns=["label"], where=where, **given())
    assert table["label"].to_pylist() == ["changed on its way", "signed by bob"]


def test_whole_packets_as_columns() -> None:
    raw = pa.array([packet.to_bytes() for packet in packets().values()] + [b"", None])
    parse = functions.ExaminedParser((QM_KEY.read_bytes(),), (ALICE.read_bytes(),))
    expected = [(status, e and text is not None) for status, _, e, text in OUTCOMES.values()]
    for parser in (parse, pickle.loads(pickle.dumps(parse))):
        rows = parser(raw).to_pylist()
        assert [(row["signature_status"], row["decrypted"]) for row in rows[:12]] == expected
        assert rows[10]["body"].decode("utf-16-le") == "eight barrels"
        assert (rows[12]["signature_status"], rows[12]["decrypted"], rows[13]) == (None, None, None)
    assert b"PRIVATE" not in repr(parse).encode()


def test_without_a_certificate_nobody_is_known() -> None:
    alone = secured(packets()["signed by alice"], SenderCert=b"").to_bytes()
    assert statuses(alone, **given()) == [("unknown_sender", False)]


def test_what_has_no_security_header_is_not_looked_at() -> None:
    several = packets()["MSMQ 3.0 for two queues"].replace(SecurityHeader=None).recomputed()
    assert statuses(several.to_bytes(), **given()) == [("none", False)]


def test_other_readings() -> None:
    big = Readings(signature_bytes="big")
    signed = packets()["signed by alice"]
    turned = secured(signed, Signature=signed.SecurityHeader.SecurityData.Signature[::-1]).to_bytes()
    assert statuses(signed.to_bytes(), turned, **given(), readings=big) == [
        ("invalid", False),
        ("valid", False),
    ]


def test_a_padding_that_is_wrong_leaves_the_body_as_it_is() -> None:
    packet = packets()["AES-256"]
    body = packet.MessagePropertiesHeader.MessageBody
    header = packet.MessagePropertiesHeader.replace(MessageBody=body[:-1] + bytes([body[-1] ^ 1]))
    changed = packet.replace(MessagePropertiesHeader=header).to_bytes()
    [row] = msmqwire.read_capture(capture_of(changed), where=MESSAGES, **given()).to_pylist()
    assert (row["decrypted"], row["body"]) == (False, header.MessageBody)


def test_a_body_in_clear_that_is_marked_as_encrypted() -> None:
    """As a server of remote read may give it out."""
    signed = packets()["signed by alice"]
    security = signed.SecurityHeader
    marked = signed.replace(SecurityHeader=security.replace(Flags=security.Flags.replace(EB=1)))
    assert statuses(marked.to_bytes(), **given()) == [("valid", False)]


def test_messages_of_remote_read() -> None:
    talk = r.Talk()
    talk.open()
    for number, label in enumerate(("signed by alice", "signed, AES-128", "AES-256"), 1):
        talk.receive(packets()[label].to_bytes(), dwRequestId=number)
    talk.receive(packets()["signed by alice"].to_bytes(), most=7, dwRequestId=9)
    data = c.pcap_bytes(talk.frames)
    items = [item for item in msmqwire.dissect(io.BytesIO(data), **given()) if item.signature_status]
    expected = [("valid", False), ("valid", True), ("none", True), ("unsupported", False)]
    assert [(item.signature_status, item.decrypted) for item in items] == expected
    rows = msmqwire.read_capture(io.BytesIO(data), **given()).to_pylist()
    rows = [row for row in rows if row["signature_status"]]
    assert [(row["signature_status"], row["decrypted"]) for row in rows] == expected
    assert [row["body_size"] for row in rows] == [22, 26, 24, 22]


def test_messages_of_srmp() -> None:
    examiner = Examiner()
    assert examiner.examine(signed_request()).signature_status == "unsupported"  # type: ignore[union-attr]
    assert examiner.examine(request_of(unsigned_envelope())).signature_status == "none"  # type: ignore[union-attr]


# -- cost ----------------------------------------------------------------------------------------------


def test_nothing_is_examined_unless_a_column_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Examiner, "_examine", None)
    names = [name for name in NAMES if name not in ("signature_status", "decrypted")]
    assert msmqwire.read_capture(PROTECTED, columns=names, certificates=ALICE).num_rows == 16
    bodies = msmqwire.read_capture(
        PROTECTED, columns=["body"], where=[("frame", "<", 26)], **given()
    )  # none of these is encrypted
    assert bodies.num_rows == 11
    several = packets()["MSMQ 3.0 for two queues"].MultiQueueFormatHeader
    unsigned = several.replace(Signature=several.Signature.replace(Signature=b"", Size=0))
    plain = packets()["neither signed nor encrypted"]
    for_two = plain.replace(MultiQueueFormatHeader=unsigned).recomputed()
    capture = capture_of(plain.to_bytes(), for_two.to_bytes())
    table = msmqwire.read_capture(capture, columns=NAMES, **given())
    assert table["signature_status"].to_pylist() == ["none", "none"]


@pytest.mark.parametrize("label", ["signed by alice", "MSMQ 3.0 for two queues"])
@pytest.mark.parametrize(
    ("certificate", "status"), [(b"", "unknown_sender"), (b"\x30\x80", "unsupported")], ids=["none", "junk"]
)
def test_signatures_without_a_key_are_judged_by_the_scan(
    label: str, certificate: bytes, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Examiner, "_examine", None)
    message = secured(packets()[label], SenderCert=certificate).to_bytes()
    plain = packets()["neither signed nor encrypted"].to_bytes()
    table = msmqwire.read_capture(capture_of(plain, message, plain), columns=NAMES, **given())
    assert table["signature_status"].to_pylist() == ["none", status, "none"]
    assert table["decrypted"].to_pylist() == [False] * 3


@pytest.mark.parametrize("size", [1, 127, 128, 256])
def test_signatures_by_another_key_are_judged_by_the_scan(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Examiner, "_examine", None)
    message = secured(packets()["signed by alice"], Signature=bytes([1]) * size).to_bytes()
    table = msmqwire.read_capture(capture_of(message), columns=NAMES, **given())
    assert table["signature_status"].to_pylist() == ["invalid"]


def test_what_is_kept_is_bounded() -> None:
    packet, examiner = packets()["AES-256"], Examiner.from_files(QM_KEY)
    key = packet.SecurityHeader.SecurityData.EncryptionKey
    for number in range(SESSION_KEYS_MAX + 1):
        blob = key[:12] + number.to_bytes(256, "little")
        assert not examiner.examine(msmqwire.parse(secured(packet, EncryptionKey=blob).to_bytes())).decrypted  # type: ignore[union-attr]
    assert len(examiner._session_keys) == SESSION_KEYS_MAX
    assert key_of.cache_info().maxsize == SENDERS_MAX


# -- hostile captures ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "items",
    [
        {"SenderCert": b"\x30" * 65_535},
        {"SenderCert": b"\x30\x84\xff\xff\xff\xff"},
        {"SenderCert": elliptic_certificate()},
        {"SenderCert": ALICE.read_bytes()},  # PEM
    ],
    ids=["junk", "a length", "another kind of key", "PEM"],
)
def test_certificates_that_can_not_be_read(items: dict[str, bytes]) -> None:
    signed = packets()["signed by alice"]
    bad = secured(signed, **items).to_bytes()
    assert statuses(bad, signed.to_bytes(), **given()) == [("unsupported", False), ("valid", False)]
    assert {finding.id for finding in lint_packet(msmqwire.parse(bad), bad)} == {"MQMQ-2.2.20.6-29"}


@pytest.mark.parametrize(
    "label, items, outcome",
    [
        ("signed by alice", {"Signature": b"\xff" * 256}, ("invalid", False)),
        ("signed by alice", {"Signature": b"\0"}, ("invalid", False)),
        ("signed by alice", {"Signature": b"\1" * 65_535}, ("invalid", False)),
        ("AES-256", {"EncryptionKey": b""}, ("none", False)),
        ("AES-256", {"EncryptionKey": b"\xff" * 268}, ("none", False)),
        ("AES-256", {"EncryptionKey": b"\0" * 65_535}, ("none", False)),
        ("RC4 with 128 bits", {"EncryptionKey": b"\x11" * 268}, ("none", False)),
    ],
)
def test_signatures_and_keys_that_can_not_be(
    label: str, items: dict[str, bytes], outcome: tuple[str, bool]
) -> None:
    bad, good = secured(packets()[label], **items).to_bytes(), packets()["signed by alice"].to_bytes()
    assert statuses(bad, good, **given()) == [outcome, ("valid", False)]


# -- files ---------------------------------------------------------------------------------------------


def test_keys_and_certificates_in_every_form(tmp_path: Path) -> None:
    key, certificate = QM_KEY.read_bytes(), ALICE.read_bytes()
    private = read_private_key(key)
    der_key = private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    traditional = private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    der = load_pem_x509_certificate(certificate).public_bytes(Encoding.DER)
    (tmp_path / "key.der").write_bytes(der_key)
    data = packets()["signed, AES-128"].to_bytes()
    for keys in (key, key.decode(), [der_key], tmp_path / "key.der", BOB_KEY.read_bytes() + traditional):
        for certificates in (certificate, [der], certificate.decode() * 2):
            assert statuses(data, keys=keys, certificates=certificates) == [("valid", True)]


def test_files_that_are_no_keys(tmp_path: Path) -> None:
    for name in ("keys", "certificates"):
        for content in (b"", b"junk", QM_KEY.read_bytes()[:99], elliptic_certificate()):
            with pytest.raises(InvalidValue):
                msmqwire.dissect(PROTECTED, **{name: content})
        with pytest.raises(FileNotFoundError):
            msmqwire.dissect(PROTECTED, **{name: tmp_path / "missing"})
    with pytest.raises(InvalidValue) as caught:
        msmqwire.dissect(PROTECTED, keys=ALICE)
    assert caught.value.path == str(ALICE)


@pytest.mark.parametrize(
    "text",
    [QM_KEY.read_text()[28:], "".join(QM_KEY.read_text().splitlines()[1:-1]), "a\0b"],
    ids=["without its first line", "without the last one too", "no key at all"],
)
def test_no_error_shows_a_key(text: str) -> None:
    """Also if somebody has left out its first line, or the last too, so that it looks like a path."""
    with pytest.raises(InvalidValue) as caught:
        msmqwire.dissect(PROTECTED, keys=text)
    with pytest.raises(BadOption) as refused:
        Options.parse({"path": "-", "keyFile": text})
    assert text[:9] not in f"{caught.value} {refused.value}"


# -- the commands --------------------------------------------------------------------------------------


def run(command: Any, status: int = 0, **options: Any) -> None:
    with pytest.raises(click.exceptions.Exit) as caught:
        command([str(PROTECTED)], **options)
    assert caught.value.exit_code == status


def test_dissect(capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"key": [str(QM_KEY)], "cert": [str(ALICE)]}
    run(dissect_command.command, as_json=True, **options)
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all("signature_status" not in item for item in objects[:4])
    for item, (status, _, encrypted, text) in zip(objects[4:], OUTCOMES.values(), strict=True):
        decrypted = encrypted and text is not None
        assert (item["signature_status"], item["decrypted"]) == (status, decrypted)
        assert item.get("decrypted_body") == (text.encode("utf-16-le").hex() if decrypted and text else None)
    run(dissect_command.command, table=True, **options)
    lines = capsys.readouterr().out.splitlines()[5:]
    assert lines[0].endswith('"neither signed nor encrypted" 20 bytes activex one barrel')
    assert " signature unknown_sender activex " in lines[5]
    assert [line.rsplit("bytes ")[-1] for line in lines[-3:]] == [
        "decrypted activex seven barrels", "decrypted, signature valid activex eight barrels",
        "encrypted, signature unsupported",
    ]  # fmt: skip
    run(dissect_command.command, dump=True, kind=["UserMessage"], **options)
    assert "f.i.v.e. .b.a.r." in capsys.readouterr().out


@pytest.mark.parametrize("name", ["dissect", "lint"])
def test_not_a_key(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = {"dissect": dissect_command, "lint": lint_command}[name].command
    run(command, 65, cert=[str(QM_KEY)])
    output = capsys.readouterr()
    assert (output.out, json.loads(output.err)["path"]) == ("", str(QM_KEY))
    for wrong in ("digest_info", "digest_info=perhaps"):
        with pytest.raises(click.BadParameter, match=wrong.replace("digest_info=", "")):
            run(command, reading=[wrong])
    run(command, 66, key=[str(tmp_path / "missing")])


def test_keys_go_with_captures(tmp_path: Path) -> None:
    file = tmp_path / "packet"
    file.write_bytes(packets()["signed by alice"].to_bytes())
    with pytest.raises(click.BadParameter, match="go with captures"):
        lint_command.command([str(file)], cert=[str(ALICE)])


def test_lint_with_a_certificate_finds_a_wrong_signature(capsys: pytest.CaptureFixture[str]) -> None:
    def found(**options: Any) -> list[tuple[str, int]]:
        run(lint_command.command, as_json=True, **options)
        findings = map(json.loads, capsys.readouterr().out.splitlines())
        return [(f["path"], f["offset"]) for f in findings if f["id"] == "MQQB-3.1.5.8.3-06"]

    assert found() == []
    assert found(cert=[str(ALICE)]) == [("SecurityHeader.SecurityData.Signature", 112)]
    assert len(found(cert=[str(ALICE)], reading=["digest_info=false"])) == 5


def test_a_wrong_signature_for_several_queues_has_its_place() -> None:
    several = packets()["MSMQ 3.0 for two queues"]
    header = several.MessagePropertiesHeader.replace(ApplicationTag=1)
    data = several.replace(MessagePropertiesHeader=header).to_bytes()
    [item] = msmqwire.dissect(capture_of(data), **given())
    [finding] = [finding for finding in item.findings if finding.id == "MQQB-3.1.5.8.3-06"]
    assert finding.path == "MultiQueueFormatHeader.Signature.Signature"
    assert data[finding.offset :][:256] == several.MultiQueueFormatHeader.Signature.Signature


# -- options of the data source ------------------------------------------------------------------------


def test_files_of_the_decode_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(PROTECTED), "--out", str(tmp_path / "out")]
    assert decode.main([*arguments, "--key", str(tmp_path / "missing.pem")]) == 66
    assert "missing.pem" in json.loads(capsys.readouterr().err)["error"]
    with pytest.raises(SystemExit) as caught:
        decode.main([*arguments, "--cert", str(QM_KEY)])
    assert caught.value.code == 2


def test_options_of_the_data_source() -> None:
    options = Options.parse({"path": "-", "keyFile": f"{QM_KEY}, {BOB_KEY}", "certfile": ALICE.read_text()})
    assert options.keys == (QM_KEY.read_bytes(), BOB_KEY.read_bytes())
    assert options.certificates == (ALICE.read_bytes(),)
    assert "PRIVATE" not in repr(options)
    readings = Options.parse({"path": "-", "readings": "signature_bytes=big, digest_info = false"}).readings
    assert readings == Readings(signature_bytes="big", digest_info=False)


@pytest.mark.parametrize(
    "option, value, why",
    [
        ("keyFile", "/missing.pem", "keyFile: /missing.pem"),
        ("keyFile", str(ALICE), "keyFile: "),
        ("certFile", str(QM_KEY), "certFile: "),
        ("readings", "signature_bytes", "readings: "),
        ("readings", "order=big", "readings: "),
    ],
)
def test_options_that_can_not_be(option: str, value: str, why: str) -> None:
    with pytest.raises(BadOption, match=why):
        Options.parse({"path": "-", option: value})
