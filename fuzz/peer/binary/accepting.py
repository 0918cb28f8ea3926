"""Sessions that the peer opens to this side: the answers, and a check that it keeps its window."""

from __future__ import annotations

from uuid import UUID

from fuzz.peer.binary import messages
from fuzz.peer.binary.session import PeerSession
from fuzz.peer.failure import PeerFailure
from msmqwire.names.printable import agreeing, counted
from msmqwire.packets import CONNECTION_PARAMETERS, ESTABLISH_CONNECTION
from msmqwire.schema import Record


def answer(session: PeerSession, packet: Record, identity: UUID, deadline: float) -> None:
    """Answer the opening packets of a session that the peer wants. Raises PeerFailure."""
    header = packet.get("EstablishConnectionHeader")
    asked = packet.get("ConnectionParametersHeader")
    if header is not None:
        if header.ServerGuid not in (UUID(int=0), identity):
            text = f"ServerGuid of a request to a direct name is {header.ServerGuid}"
            raise PeerFailure(("MQQB-2.2.3.1-04",), text, "echo")
        response = ESTABLISH_CONNECTION.make(
            {
                "EstablishConnectionHeader": {
                    **header,
                    "ServerGuid": identity,
                    "OperatingSystem": {"SE": int(header.OperatingSystem.SE)},
                    "Padding": messages.PADDING,
                }
            }
        )
    elif asked is not None:
        own = {**asked, "WindowSize": messages.WINDOW}
        response = CONNECTION_PARAMETERS.make({"ConnectionParametersHeader": own})
    else:
        return
    session.channel.send(response.to_bytes(), deadline)


def judge_window(session: PeerSession) -> None:
    """Judge that the peer keeps its own window. Raises PeerFailure."""
    waiting = session.received - session.received_acknowledged
    if not session.ours and session.window and waiting > session.window:
        text = (
            f"{counted(waiting, 'message')} of the peer {agreeing(waiting, 'are')} not acknowledged,"
            f" with a window of {session.window}"
        )
        raise PeerFailure(("MQQB-3.1.7.1-03",), text, "window")
