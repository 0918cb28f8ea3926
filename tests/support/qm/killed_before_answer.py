"""``python -m tests.support.qm.killed_before_answer``: a server that dies between a commit and its answer.

While the file named by `FLAG` exists, the process ends, as by a kill, once messages of the API, or a
transaction, are durable and before anybody is told.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from msmqwire.cli import main
from msmqwire.qm.runtime.api.token_session import TokenSession

FLAG: Final = "MSMQWIRE_TEST_KILLED_BEFORE_ANSWER"


def _dies(work: Any) -> Any:
    async def then_die(self: TokenSession, *told: Any) -> Any:
        result = await work(self, *told)
        if Path(os.environ[FLAG]).exists():
            os._exit(9)
        return result

    return then_die


if __name__ == "__main__":
    TokenSession.send = _dies(TokenSession.send)  # type: ignore[method-assign]
    TokenSession.commit = _dies(TokenSession.commit)  # type: ignore[method-assign]
    main()
