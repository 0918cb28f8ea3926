"""``msmqwire send``: a message to a queue of any computer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID

from click import BadParameter
from click.exceptions import Exit

from msmqwire.cli.body_types import BodyType, body_type_of
from msmqwire.cli.body_values import (
    FORMATS,
    FORMATS_HELP,
    HEADERS_FORMATS,
    HeadersFormat,
    TypeName,
    encoded,
    format_of,
    headers_format_of,
    headers_of,
)
from msmqwire.cli.captures.readings import Reading
from msmqwire.cli.common import EX_TEMPFAIL, EX_UNAVAILABLE, read_input, readable, say
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.network_options import Pgm, PgmInterface, TlsAuthorities, TlsVerify, address_overrides
from msmqwire.cli.options import Argument, Option
from msmqwire.cli.send_outcome import ASKED, Confirmation, DirectSending, print_sent
from msmqwire.cli.send_protection import (
    Cert,
    Encrypt,
    Hash,
    Key,
    Legacy,
    PeerKey,
    Protection,
    Sid,
    Sign,
    Signature,
)
from msmqwire.cli.serving import parse_endpoint
from msmqwire.errors import InvalidValue, OutcomeUnknown
from msmqwire.names.meant import wanted_format_name
from msmqwire.ping import PING_PORT
from msmqwire.qm.client import Outcome, connect
from msmqwire.qm.client.local_queues import outgoing
from msmqwire.qm.client.properties import VT_BSTR, Properties
from msmqwire.qm.runtime.addresses import TCP_PORT
from msmqwire.qm.runtime.local import attach
from msmqwire.qm.runtime.message_json import ACKNOWLEDGEMENTS
from msmqwire.service.control.server import BATCH_MAX

_REQUEST_BYTES: Final = 8 << 20
"""The approximate maximum of bytes of the messages in one request to a folder."""


def command(
    format_name: Annotated[
        str, Argument(metavar="FORMATNAME", help=r"The queue: DIRECT=TCP:10.0.0.5\private$\orders.")
    ],
    body: Annotated[str | None, Option(help="The body, a text.")] = None,
    file: Annotated[
        str | None, Option(metavar="PATH", help="File with the body; - is standard input.")
    ] = None,
    bstr: Annotated[bool, Option("--bstr", help="Send the text as VT_BSTR, UTF-16, not as UTF-8.")] = False,
    body_type: BodyType = None,
    value_format: Annotated[
        str | None,
        Option(
            "--format",
            metavar="FORMAT",
            help="The text or file is a JSON value, or a text alone; its body is"
            f" {FORMATS_HELP}: docs/bodies.md.",
            complete=lambda: FORMATS,
        ),
    ] = None,
    type_name: TypeName = None,
    headers: Annotated[
        str | None,
        Option(metavar="PATH", help="File with a JSON object: headers of nservicebus or rebus by name."),
    ] = None,
    headers_format: HeadersFormat = None,
    extension: Annotated[
        str | None, Option(metavar="PATH", help="File with the extension of the message, bytes.")
    ] = None,
    label: Annotated[str, Option(help="A text of up to 249 characters.")] = "",
    recoverable: Annotated[
        bool, Option("--recoverable", help="Keep the message on disk: it survives a restart.")
    ] = False,
    transactional: Annotated[
        bool, Option("--transactional", help="Deliver it exactly once, to a transactional queue.")
    ] = False,
    ack: Annotated[
        list[str] | None,
        Option(
            metavar="KIND",
            help=f"Acknowledgements to ask for, more than once for several: {', '.join(ACKNOWLEDGEMENTS)}.",
        ),
    ] = None,
    admin_queue: Annotated[
        str | None, Option(metavar="FORMATNAME", help="Queue for the acknowledgements.")
    ] = None,
    response_queue: Annotated[str | None, Option(metavar="FORMATNAME", help="Queue for answers.")] = None,
    correlation: Annotated[
        str | None, Option(metavar=r"GUID\NUMBER", help="The message that this one answers.")
    ] = None,
    priority: Annotated[int | None, Option(help="0 to 7.")] = None,
    message_class: Annotated[int | None, Option("--class", help="A class of the application.")] = None,
    application: Annotated[int | None, Option(help="A number of the application.")] = None,
    journal: Annotated[bool, Option("--journal", help="Keep a copy in the journal of this side.")] = False,
    dead_letter: Annotated[
        bool,
        Option("--dead-letter", help="Keep it in the dead-letter queue when it can't be delivered."),
    ] = False,
    reach_within: Annotated[int | None, Option(metavar="SECONDS", help="Time to reach the queue.")] = None,
    receive_within: Annotated[int | None, Option(metavar="SECONDS", help="Time to be received.")] = None,
    count: Annotated[int, Option(min=1, max=BATCH_MAX, help="Number of times to send it.")] = 1,
    data: Annotated[
        Path | None, Option(help="Send through the queue manager of this folder, which keeps it.")
    ] = None,
    sign: Sign = False,
    signature: Signature = None,
    hash_name: Hash = None,
    cert: Cert = None,
    key: Key = None,
    sid: Sid = None,
    encrypt: Encrypt = None,
    peer_key: PeerKey = None,
    legacy: Legacy = False,
    reading: Reading = None,
    host: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=ADDR[:PORT]",
            help="Address of another computer, also GUID=ADDR for names PRIVATE=; without --data.",
        ),
    ] = None,
    port: Annotated[
        int, Option(metavar="PORT", help="TCP port of the other side; without --data.")
    ] = TCP_PORT,
    listen: Annotated[
        str | None,
        Option(metavar="ADDR:PORT", help="Address to receive acknowledgements at; without --data."),
    ] = None,
    tls_ca: TlsAuthorities = None,
    tls_verify: TlsVerify = True,
    pgm: Pgm = None,
    pgm_interface: PgmInterface = None,
    timeout: Annotated[float, Option(min=0, metavar="SECONDS", help="Time to wait for the transfer.")] = 30.0,
    confirm: Annotated[
        float | None,
        Option(
            min=0,
            metavar="SECONDS",
            help="Time to wait after the transfer for the acknowledgement of its queue: 5 by default.",
        ),
    ] = None,
    no_confirm: Annotated[
        bool, Option("--no-confirm", help="Do not ask the queue for an acknowledgement.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="One JSON object a message.")] = False,
) -> None:
    """Send a message: with --data through a queue manager here, else straight to the computer of the queue.

    Prints the identifier of each message and its outcome: confirmed, if its queue has acknowledged it;
    refused, with the reason; transferred, if its computer has it and its queue has not acknowledged it;
    unknown, if nothing has acknowledged it; with --data stored, as soon as the folder has it. Ends with 69 if
    a message was refused or no computer answers, with 75 if it is not known whether the queue has it.

    Without --data it asks for an acknowledgement of the arrival and waits for it, once for all messages; not
    so with --no-confirm and --admin-queue. With --ack it asks only for those acknowledgements, and waits for
    the positive ones.
    """
    if body is not None and file is not None:
        raise BadParameter("--body and --file do not go together")
    chosen = _value_format(value_format, type_name, headers, headers_format, extension, bstr, body_type)
    if chosen is not None and body is None and file is None:
        raise BadParameter("its value is missing: a JSON text in --body or --file", param_hint="--format")
    if no_confirm and confirm is not None:
        raise BadParameter("--confirm and --no-confirm do not go together")
    protection = Protection(sign, signature, hash_name, cert, key, sid, encrypt, peer_key, legacy, reading)
    protection.check(data)
    if recoverable and transactional:
        recoverable = False  # implied by transactional
    properties: Properties = {"label": label}
    options: dict[str, Any] = {
        "acknowledge": ack,
        "admin_queue": admin_queue,
        "response_queue": response_queue,
        "correlation": correlation,
        "priority": priority,
        "message_class": message_class,
        "application": application,
        "journal": journal or None,
        "dead_letter": dead_letter or None,
        "time_to_reach_queue": reach_within,
        "time_to_be_received": receive_within,
        "recoverable": recoverable or None,
        "body_type": VT_BSTR if bstr and body_type is None else body_type_of(body_type),
    }
    properties.update({name: value for name, value in options.items() if value is not None})  # type: ignore[typeddict-item]

    def run() -> None:
        content = os.fsencode(body or "") if file is None else read_input(file)
        if bstr:
            content = _utf16(content)
        if extension is not None:
            properties["extension"] = read_input(extension)
        if chosen is not None:
            of_file = None if headers is None else headers_of(read_input(headers))
            content, number, made = encoded(content, chosen, type_name, of_file, headers_format, bare=True)
            properties["body_type"] = number
            if made:
                properties["extension"] = made
        properties.update(protection.properties(data))  # type: ignore[typeddict-item]
        if data is not None:
            _send_by_folder(data, format_name, content, properties, transactional, count, as_json)
            return
        hosts = address_overrides(host or [], port, PING_PORT).hosts
        listen_at = None if listen is None else parse_endpoint(listen, 0)
        readable(tls_ca)
        connection = connect(
            format_name, port=port, hosts=hosts, listen=listen_at, drain=timeout,
            tls_ca=tls_ca, tls_verify=tls_verify, pgm=pgm, pgm_interface=pgm_interface,
        )  # fmt: skip
        name = wanted_format_name(format_name)
        confirmation = Confirmation.of(name, ack, admin_queue, confirm, without=no_confirm)
        if confirmation.asked:
            properties["acknowledge"] = ASKED
        every = {"transactional": transactional, **properties}
        sending = DirectSending(name, confirmation, timeout)
        status = sending.send(connection, content, every, count, as_json=as_json)
        if status:
            raise Exit(status)

    run_reporting_errors(run)


def _value_format(
    name: str | None,
    type_name: str | None,
    headers: str | None,
    headers_format: str | None,
    extension: str | None,
    bstr: bool,
    body_type: str | None,
) -> str | None:
    """Return the format in which a JSON value is sent, None for a body as it is. Raises BadParameter."""
    if name is None:
        given_of = {"--type": type_name, "--headers": headers, "--headers-format": headers_format}
        for option, given in given_of.items():
            if given is not None:
                raise BadParameter("it goes with --format", param_hint=option)
        return None
    found = format_of(name)
    if bstr or body_type is not None:
        raise BadParameter(
            "it sets the body type: without --bstr and --body-type, with --type", param_hint="--format"
        )
    headers_format_of(found, headers, headers_format, "")
    if (found in HEADERS_FORMATS or headers_format is not None) and extension is not None:
        raise BadParameter(f"{found} makes the extension from --headers", param_hint="--extension")
    return found


def _utf16(text: bytes) -> bytes:
    """Convert UTF-8 text to UTF-16. Raises InvalidValue."""
    try:
        return text.decode("utf-8").encode("utf-16-le")
    except UnicodeDecodeError as exc:
        raise InvalidValue("not a text in UTF-8", path="body", offset=exc.start) from None


def _send_by_folder(
    data: Path,
    format_name: str,
    body: bytes,
    properties: Properties,
    transactional: bool,
    count: int,
    as_json: bool,
) -> None:
    with attach(data) as local:
        queue_manager = UUID(local.call("status")["identifier"])
        try:
            _, message, peer_keys = outgoing(
                format_name, body, properties, queue_manager, transactional=transactional
            )
        except InvalidValue as exc:
            path = {"message_class": "class"}.get(exc.path, exc.path)  # as the option and the request have it
            raise InvalidValue(exc.why, path=path, offset=exc.offset) from None
        batch = max(1, _REQUEST_BYTES // (len(message["body"]) + _REQUEST_BYTES // BATCH_MAX))
        if peer_keys is not None:
            local.call("keep_peer_keys", **peer_keys)
        for sent in range(0, count, batch):
            part = [message] * min(batch, count - sent)
            try:
                answer = local.call("send", to=format_name, messages=part)
            except OutcomeUnknown as exc:
                say(str(exc))
                raise Exit(EX_TEMPFAIL) from None
            for identifier in answer["sent"]:
                print_sent(identifier, Outcome("stored"), as_json=as_json)
            if "refused" in answer:
                say(answer["refused"])
                raise Exit(EX_UNAVAILABLE)
