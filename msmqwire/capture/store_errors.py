"""Errors of stores as OSError with the URL, in one line and without credentials, and the calls repeated."""

from __future__ import annotations

import errno
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from msmqwire.errors import MsmqError

ATTEMPTS: Final = 4
"""The number of times a read is tried before its error is passed on."""
FIRST_WAIT: Final = 0.1
"""Seconds before the second attempt, at most; twice as many before each following one."""
WHY_MAX: Final = 300
"""Characters of a store's own message that are passed on."""

_DENIED: Final = re.compile(
    r"\b(ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|EXPIRED_TOKEN"
    r"|UNRECOGNIZED_CLIENT|MISSING_AUTHENTICATION_TOKEN|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken"
    r"|PERMISSION_DENIED|UNAUTHENTICATED|AuthenticationFailed|AuthorizationFailure|HTTP status (401|403))\b"
)
_MISSING: Final = re.compile(r"\b(NO_SUCH_BUCKET|NO_SUCH_KEY|ContainerNotFound|BlobNotFound)\b")
_SECRET: Final = re.compile(r"key|secret|token|pass|credential|sas|auth", re.IGNORECASE)
_SECRET_SIZE_MIN: Final = 4
_PERMANENT: Final = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)

Result = TypeVar("Result")


class FileChanged(MsmqError, OSError):
    """A file of a store was replaced or changed while it was read: the bytes read may be of two files."""


@contextmanager
def store_errors(url: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Turn every error of a store's library into an OSError whose ``filename`` is the URL.

    File systems of fsspec pass on the exceptions of their own libraries, which have no common type.
    """
    try:
        yield
    except MsmqError:
        raise
    except Exception as exc:
        raise translated(exc, url, options) from None


def translated(exc: Exception, url: str, options: Mapping[str, Any]) -> OSError:
    """Return an exception of a store's library as an OSError with errno, reason and URL."""
    text = one_line(exc, options)
    if isinstance(exc, OSError) and exc.filename == url:
        return exc
    if isinstance(exc, FileNotFoundError) or _MISSING.search(text):
        why = "no such bucket" if "BUCKET" in text or "Container" in text else "no such file"
        return FileNotFoundError(errno.ENOENT, why, url)
    if isinstance(exc, PermissionError) or _DENIED.search(text):
        return PermissionError(errno.EACCES, f"access denied: {text}", url)
    if isinstance(exc, (IsADirectoryError, NotADirectoryError)):
        return type(exc)(exc.errno, os.strerror(exc.errno or errno.ENOTDIR), url)
    return OSError(errno.EIO, text, url)


def one_line(exc: Exception, options: Mapping[str, Any]) -> str:
    """Return the first line of an error's message without the values of secret options."""
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    text = lines[0] if lines else type(exc).__name__
    for secret in _secrets(options):
        text = text.replace(secret, "***")
    return text[:WHY_MAX]


def _secrets(options: Mapping[str, Any], inside_secret: bool = False) -> Iterator[str]:
    for name, value in options.items():
        is_secret = inside_secret or _SECRET.search(name) is not None
        if isinstance(value, Mapping):
            yield from _secrets(value, is_secret)
        elif is_secret and isinstance(value, str) and len(value) >= _SECRET_SIZE_MIN:
            yield value


def retried(call: Callable[[], Result], sleep: Callable[[float], None] = time.sleep) -> Result:
    """Return the result of a call, which is repeated up to `ATTEMPTS` times after transient errors.

    Raises:
        OSError: the last attempt failed, or any for a reason that stays: a missing file, no permission,
            a changed file.
    """
    wait = FIRST_WAIT
    for _ in range(ATTEMPTS - 1):
        try:
            return call()
        except (FileChanged, *_PERMANENT):
            raise
        except OSError:
            sleep(wait * random.uniform(0.5, 1))
            wait *= 2
    return call()
