"""A short torture run of the NetWare queue service, and what its books find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.torture.netware_torture import Books, Torture, body_of


@pytest.mark.requirement("QMS-flags-04", "QMS-service-16", "QMS-manage-09", "QMS-files-08", "QMS-service-09")
def test_after_kills_every_job_is_accounted_for(tmp_path: Path) -> None:
    torture = Torture(tmp_path, kills=1, seed=1, between=(0.2, 0.4))
    assert torture.run() == []
    assert torture.books.submitted
    assert torture.books.finished >= torture.books.submitted - torture.books.finishing
    assert torture.books.counts["taken"] >= len(torture.books.finished) > 0


def test_the_books_find_what_is_wrong() -> None:
    books = Books(begun={"lost", "back", "twice", "cut"}, submitted={"lost", "back"}, finishing={"back"})
    books.finished.add("back")
    books.take("back", body_of("back"), 2)
    books.take("twice", body_of("twice"), 1)
    books.take("twice", body_of("twice"), 2)
    assert len(books.wrong) == 1
    books.take("twice", body_of("twice"), 2)
    books.take("cut", body_of("cut")[:-1], 2)
    books.take("never", body_of("never"), 2)
    assert books.balance() == [
        "back: it is back, though it was acknowledged as finished",
        "twice: two servers have it in life 2",
        f"cut: {len(body_of('cut')) - 1} bytes of data, not {len(body_of('cut'))}",
        "never: no client has submitted it",
        "lost: it is lost, though it was acknowledged as submitted",
    ]
