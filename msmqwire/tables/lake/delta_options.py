"""The options of stores for the library that writes the log of a lake: it names them in another way than
pyarrow, whose names ours are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msmqwire.capture.stores import StorageOptions, has_credentials
from msmqwire.errors import UnsupportedStore

_Translated = Callable[[str], Mapping[str, str]]


def _named(name: str) -> _Translated:
    return lambda value: {name: value}


def _if_true(name: str) -> _Translated:
    return lambda value: {name: "true"} if value in ("true", "1") else {}


def _seconds(name: str) -> _Translated:
    return lambda value: {name: f"{value}s"}


_S3: Final[Mapping[str, _Translated]] = {
    "access_key": _named("AWS_ACCESS_KEY_ID"),
    "secret_key": _named("AWS_SECRET_ACCESS_KEY"),
    "session_token": _named("AWS_SESSION_TOKEN"),
    "region": _named("AWS_REGION"),
    "endpoint_override": _named("AWS_ENDPOINT_URL"),
    "scheme": lambda value: {"AWS_ALLOW_HTTP": "true"} if value == "http" else {},
    "anonymous": _if_true("AWS_SKIP_SIGNATURE"),
    "force_virtual_addressing": _if_true("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"),
    "connect_timeout": _seconds("connect_timeout"),
    "request_timeout": _seconds("timeout"),
}
_GCS: Final[Mapping[str, _Translated]] = {"anonymous": _if_true("google_skip_signature")}
_AZURE: Final[Mapping[str, _Translated]] = {
    "account_name": _named("azure_storage_account_name"),
    "account_key": _named("azure_storage_account_key"),
    "sas_token": _named("azure_storage_sas_token"),
    "tenant_id": _named("azure_tenant_id"),
    "client_id": _named("azure_client_id"),
    "client_secret": _named("azure_client_secret"),
}
_STORES: Final = {"s3": _S3, "gs": _GCS, "gcs": _GCS, "abfs": _AZURE, "abfss": _AZURE}


def is_lake_store(url: str) -> None:
    """Raise UnsupportedStore for a URL of a store that can't have lakes, and for one with credentials."""
    scheme = url.partition(":")[0].lower()
    if has_credentials(url):
        raise UnsupportedStore(f"{scheme}: credentials in a URL would be shown; pass them as storage options")
    if scheme not in _STORES:
        raise UnsupportedStore(
            f"{url}: a lake is in a local folder, or in s3://, gs:// or abfss://, which write a file only if"
            " there is none"
        )


def delta_options(url: str, options: StorageOptions) -> dict[str, str]:
    """Return the options of the library for a URL.

    Raises:
        UnsupportedStore: the library has no such option.
    """
    scheme = url.partition(":")[0].lower()
    known = _STORES[scheme]
    result: dict[str, str] = {}
    for name, value in options.items():
        if name not in known:
            raise UnsupportedStore(
                f"{scheme}: a lake has no storage option {name}; it has {', '.join(sorted(known))}"
            )
        result.update(known[name](_text(value)))
    if "AWS_ENDPOINT_URL" in result and "://" not in result["AWS_ENDPOINT_URL"]:
        scheme = "http" if "AWS_ALLOW_HTTP" in result else "https"
        result["AWS_ENDPOINT_URL"] = f"{scheme}://{result['AWS_ENDPOINT_URL']}"
    if result.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        result["AWS_ALLOW_HTTP"] = "true"
    return result


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
