"""Types that public write-ups name as deserialization gadgets, and the types that a body names.

A receiver that deserializes a body with such a type runs code of the sender's choice. Here nothing is ever
deserialized; the names are only looked up.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from msmqwire.bodies import plain
from msmqwire.bodies.limits import DEFAULT, Budget
from msmqwire.bodies.nrbf.reading import HEADER, read_stream
from msmqwire.bodies.nrbf.stream import Stream

_YSOSERIAL: Final = "ysoserial.net, gadget "
_FORSHAW: Final = "J. Forshaw, Are You My Type?, Black Hat USA 2012"
_FRIDAY: Final = "A. Muñoz and O. Mirosh, Friday the 13th JSON Attacks, Black Hat USA 2017"
_GUIDE: Final = "Microsoft, Deserialization risks in use of BinaryFormatter and related types"

GADGETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Microsoft.Exchange.Management.SystemManager.WinForms.ExchangeSettingsProvider": _FRIDAY,
        "Microsoft.IdentityModel.Claims.WindowsClaimsIdentity": _YSOSERIAL + "WindowsClaimsIdentity",
        "Microsoft.VisualStudio.Text.Formatting.TextFormattingRunProperties": (
            _YSOSERIAL + "TextFormattingRunProperties"
        ),
        "Microsoft.Web.Design.RemoteXamlParser": _YSOSERIAL + "XamlImageInfo",
        "System.Activities.Presentation.WorkflowDesigner": _FRIDAY,
        "System.CodeDom.Compiler.TempFileCollection": _FORSHAW,
        "System.Collections.Generic.ComparisonComparer`1": _YSOSERIAL + "TypeConfuseDelegate",
        "System.Configuration.Install.AssemblyInstaller": _FRIDAY,
        "System.Configuration.SettingsPropertyValue": _YSOSERIAL + "GetterSettingsPropertyValue",
        "System.Data.Services.Internal.ExpandedWrapper`2": _YSOSERIAL + "DataSetOldBehaviour",
        "System.DelegateSerializationHolder": _FORSHAW,
        "System.DelegateSerializationHolder+DelegateEntry": _FORSHAW,
        "System.Diagnostics.Process": _YSOSERIAL + "TypeConfuseDelegate",
        "System.Diagnostics.ProcessStartInfo": _YSOSERIAL + "ObjectDataProvider",
        "System.Drawing.Design.ToolboxItemContainer": _YSOSERIAL + "ToolboxItemContainer",
        "System.Drawing.Design.ToolboxItemContainer+ToolboxItemSerializer": (
            _YSOSERIAL + "ToolboxItemContainer"
        ),
        "System.IO.DirectoryInfo": _FORSHAW,
        "System.IO.FileInfo": _FORSHAW,
        "System.IdentityModel.Tokens.SessionSecurityToken": _YSOSERIAL + "SessionSecurityToken",
        "System.Management.Automation.PSObject": _YSOSERIAL + "PSObject",
        "System.Management.IWbemClassObjectFreeThreaded": _FORSHAW,
        "System.Resources.ResourceSet": _YSOSERIAL + "ResourceSet",
        "System.Resources.ResXResourceSet": _YSOSERIAL + "ResourceSet",
        "System.Runtime.Remoting.ObjRef": _YSOSERIAL + "ObjRef",
        "System.Security.Claims.ClaimsIdentity": _YSOSERIAL + "ClaimsIdentity",
        "System.Security.Claims.ClaimsPrincipal": _YSOSERIAL + "ClaimsPrincipal",
        "System.Security.Principal.GenericIdentity": _YSOSERIAL + "GenericPrincipal",
        "System.Security.Principal.GenericPrincipal": _YSOSERIAL + "GenericPrincipal",
        "System.Security.Principal.WindowsIdentity": _YSOSERIAL + "WindowsIdentity",
        "System.Security.Principal.WindowsPrincipal": _YSOSERIAL + "WindowsPrincipal",
        "System.Security.SecurityException": _YSOSERIAL + "GetterSecurityException",
        "System.Web.Security.RolePrincipal": _YSOSERIAL + "RolePrincipal",
        "System.Web.UI.LosFormatter": _GUIDE,
        "System.Web.UI.MobileControls.SessionViewState+SessionViewStateHistoryItem": (
            _YSOSERIAL + "SessionViewStateHistoryItem"
        ),
        "System.Web.UI.ObjectStateFormatter": _GUIDE,
        "System.Windows.Data.ObjectDataProvider": _YSOSERIAL + "ObjectDataProvider",
        "System.Windows.Forms.AxHost+State": _YSOSERIAL + "AxHostState",
        "System.Windows.Forms.BindingSource": _FRIDAY,
        "System.Windows.Markup.XamlReader": _YSOSERIAL + "ObjectDataProvider",
        "System.Windows.ResourceDictionary": _FRIDAY,
        "System.Workflow.ComponentModel.Activity": _YSOSERIAL + "ActivitySurrogateDisableTypeCheck",
        "System.Workflow.ComponentModel.Serialization.ActivitySurrogateSelector": (
            _YSOSERIAL + "ActivitySurrogateSelector"
        ),
        "System.Workflow.ComponentModel.Serialization.ActivitySurrogateSelector+ObjectSurrogate+"
        "ObjectSerializedRef": _YSOSERIAL + "ActivitySurrogateSelector",
        "System.Xaml.XamlServices": _YSOSERIAL + "XamlAssemblyLoadFromFile",
    }
)
"""Types by name, without their assembly, with the write-up that names them.

A DataSet is not among them, although it is the shell of a gadget: it becomes one by the types of the streams
and schemas within it, which `type_names` finds.
"""

_HOLDERS: Final = (
    "System.DelegateSerializationHolder",
    "System.UnitySerializationHolder",
    "System.Reflection.MemberInfoSerializationHolder",
    "System.Runtime.Remoting.",
)
_TYPE_MEMBERS: Final = ("type", "targetTypeName", "Data", "ClassName", "serverType")
"""Beginnings of names of classes that hold types as texts, and the members that do."""
_QUALIFIED: Final = re.compile(
    r"[^\s,<>\"]{1,1024},\s*[^\s,<>\"]{1,255}(?:,\s*(?:Version|Culture|PublicKeyToken)=[^,\s]*).*"
)
"""A name of a type with its whole assembly; a text with a comma alone may be anything."""
_IN_XML: Final = re.compile(r"(?:DataType|InstanceType|type)\s*=\s*[\"']([^\"'<>]{1,1024})[\"']")
_SEPARATORS: Final = re.compile(r"[\[\],*&\s]+")
_ENCODED: Final = "AAEAAAD"
"""The beginning of a stream in base64."""
_STREAMS_WITHIN: Final = 4
_STRING_MAX: Final = 4096


def dangerous(types: Iterable[str]) -> list[tuple[str, str]]:
    """Return those of some types that are known as gadgets, each with the write-up that names it.

    Args:
        types: names of types, with their assemblies and arguments or without, as `type_names` returns them.
    """
    found: dict[str, str] = {}
    for name in types:
        for part in _SEPARATORS.split(name.replace("\\", "")):
            source = GADGETS.get(part)
            if source is not None:
                found[part] = source
    return list(found.items())


def type_names(body: bytes) -> tuple[str, ...]:
    """Return the names of types that a body of BinaryMessageFormatter has, each once, in their order.

    They are those of classes, of members, of items of arrays and of their generic arguments, those that
    holders of delegates and types have as text, and all of these in streams within the body, in bytes or in
    base64. A body that can't be read to its end is searched for names of gadgets as well. A body of another
    format names none.
    """
    names: dict[str, None] = {}
    streams = [(body, _STREAMS_WITHIN)]
    while streams:
        data, within = streams.pop()
        if len(data) < HEADER.size or HEADER.unpack_from(data)[0] != 0:
            continue
        stream = read_stream(data, Budget(DEFAULT, len(data)))
        names.update(dict.fromkeys(_names(stream)))
        if stream.problems:
            names.update(dict.fromkeys(name for name in GADGETS if name.encode() in data))
        if within:
            streams += ((inner, within - 1) for inner in _streams(stream))
    return tuple(names)


def _names(stream: Stream) -> Iterator[str]:
    if stream.method is not None:
        yield str(stream.method.value.get("type", ""))
    for layout, _, _ in stream.classes.values():
        yield layout.name
        yield from layout.types
    yield from stream.types
    for value in stream.objects.values():
        if isinstance(value, str):
            if len(value) > _STRING_MAX or value.startswith("<"):
                yield from (match[1] for match in _IN_XML.finditer(value))
            elif "," in value and (value.partition(",")[0].strip() in GADGETS or _QUALIFIED.fullmatch(value)):
                yield value
        elif isinstance(value, dict) and str(value.get(plain.TYPE, "")).startswith(_HOLDERS):
            yield from _held(value, stream)


def _held(holder: dict[str, Any], stream: Stream) -> Iterator[str]:
    """Yield the names of types that a holder has as texts."""
    for name in _TYPE_MEMBERS:
        value = holder.get(name)
        if isinstance(value, bytes):
            value = stream.objects.get(int.from_bytes(value, "little", signed=True))
        if isinstance(value, str) and value and len(value) <= _STRING_MAX:
            yield value


def _streams(stream: Stream) -> Iterator[bytes]:
    """Yield the texts in a stream that look like another stream."""
    for value in stream.objects.values():
        if isinstance(value, str):
            if value.startswith(_ENCODED):
                try:
                    yield base64.b64decode(value, validate=True)
                except binascii.Error:
                    continue
        elif isinstance(value, dict):
            digits = value.get(plain.BYTES)
            if isinstance(digits, str) and digits.startswith("00"):
                yield bytes.fromhex(digits)
