"""The invariants of a run."""

from __future__ import annotations

from enum import StrEnum


class JobInvariant(StrEnum):
    """The invariants of a run, in the words of its report."""

    NO_ERRORS = "no errors"
    KEPT = "a job that was submitted is finished, removed, or still there"
    GONE = "a job that was finished or removed does not come back"
    FLAGS = "a job follows its flags when its connection or the server is lost"
    ONE_SERVER = "a job is in service at one server"
    ELIGIBLE = "only a job that may be serviced is serviced"
    TRUTHFUL = "jobs and their data are as they were reported"
    ORDER = "positions are 1 to n, in the reported order"
    FILES = "each job has its file, and there are no other files"
    REFUSED = "nothing is refused without a reason"
    REPEATED = "a repeated request has the same reply and no second effect"
    ENDS = "everything comes to its end"
