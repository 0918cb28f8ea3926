"""``msmqwire netware``: NetWare's queue services, a server of them and a client, and their bindery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from msmqwire.cli.commands import LazyGroup

_CLIENT: Final = ("queues", "jobs", "show", "submit", "hold", "release", "position", "move", "remove")


class _NetwareGroup(LazyGroup):
    """The commands of NetWare's queue services."""

    places: ClassVar[Mapping[str, tuple[str, str]]] = {
        "serve": ("netware.serve", "command"),
        "object": ("netware.objects", "app"),
        "queue": ("netware.queues", "app"),
        "files": ("netware.files", "command"),
        **{name: ("netware.client", name) for name in _CLIENT},
        "service": ("netware.service", "command"),
    }
    titles: ClassVar[Mapping[str, str]] = {
        "serve": "A queue service",
        "queues": "A file server",
    }
    summaries: ClassVar[Mapping[str, str]] = {
        "serve": (
            "Run the queue service of a NetWare file server: its bindery, its queues and their jobs,"
            " over NCP."
        ),
        "object": "Administer the objects of the bindery.",
        "queue": "Administer the queues of the bindery.",
        "files": "Show the bytes of all files, and whose they are.",
        "queues": "List the queues of a file server, with the status of those that the user may use.",
        "jobs": "List the jobs of a queue in their order.",
        "show": "Show a queue, or a job of it.",
        "submit": (
            "Submit a job. Its number is printed once it is started; after an error nothing of the job stays."
        ),
        "hold": "Hold a job: it advances in the queue, but is not serviced; for its owner and operators.",
        "release": "Release a job that was held; for its owner and operators.",
        "position": "Give a job another place in its queue; for operators.",
        "move": "Move a job to another queue, where it has another number; for operators of both.",
        "remove": (
            "Remove a job; for its owner and operators. If a queue server has it, its service is aborted."
        ),
        "service": "Service jobs as a queue server, the job at the head of the queue first.",
    }


app = _NetwareGroup(
    "netware",
    "Run, administer and use NetWare's queue services: a server with its bindery and queues, and a client.",
)
