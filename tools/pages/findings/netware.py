"""Calls of NetWare and its print queues: the importance of each finding and advice about it."""

from __future__ import annotations

from typing import Final

_QMS_DO: Final = (
    "Look at the calls about the same queue and job before it. If all numbers look strange, the sender may "
    "write them in another byte order: the findings `READING-...` say so."
)
_PRINT_DO: Final = "Check the program that fills the job or creates the queue."

TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "READING-.*",
        "Nothing is wrong. Public descriptions of NCP disagree on this field, and the values of this sender "
        "fit the other of them: as it is read now, its numbers are shown wrong, or its size is noted as "
        "unusual.",
        "If the message of the finding ends in an option `--reading NAME=ORDER`, read the capture again with"
        " it. Without one there is nothing to do.",
    ),
    (
        "QMS-(submit|service|manage|ext-(03|05|16)).*",
        "Two servers that print one job, a job that is printed twice or one that never is: this is what "
        "users see of it. Calls that the capture does not have explain it as well.",
        _QMS_DO,
    ),
    (
        "QMS-ext-08",
        "Servers of NetWare hold no more: a server refuses what is beyond, or programs can't show it.",
        _QMS_DO,
    ),
    (
        "QMS-jobfields-(19|25|29|38)|QMS-flags-11",
        "Programs show this field to users or choose jobs by it: with a wrong value a job is shown with a "
        "wrong time or text, is given to another server, or waits for ever.",
        _PRINT_DO,
    ),
    (
        "QMS-(jobfields|monitor|ext).*",
        "Programs list and change jobs by this field. With a wrong value they show or change another job, "
        "or none.",
        _QMS_DO,
    ),
    (
        "QMS-(qobject|qdir|qprops|createq).*",
        "A queue without its type, directory or properties in their form can't be used: no object may submit "
        "to, operate or serve it.",
        _PRINT_DO,
    ),
)
