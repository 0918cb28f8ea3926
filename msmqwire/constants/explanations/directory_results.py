"""Results about the directory, the setup and the services of a domain, explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants.explanations.explanation import Texts
from msmqwire.constants.hresult import HResult


def _setup(library: str) -> Texts:
    return Texts(
        f"{library} can't be used",
        "The setup of Message Queuing is incomplete or of another version.",
        "Repair or install Message Queuing again.",
    )


def _old_directory(what: str) -> Texts:
    return Texts(
        what,
        "This is of the directory of MSMQ 1.0 and 2.0 (MQIS), or of its move to Active Directory.",
        "Do it on the server of the primary site, or after the move has ended.",
    )


def _domain(what: str) -> Texts:
    return Texts(
        what,
        "Message Queuing looks for servers with its directory service on domain controllers, and finds none.",
        "Check that a domain controller is reachable, and use direct format names meanwhile.",
    )


DIRECTORY_RESULTS: Final[Mapping[int, Texts]] = {
    HResult.MQ_ERROR_NO_DS: Texts(
        "the directory can't be reached",
        "No domain controller answers, the computer is in workgroup mode, or the user has no rights there.",
        "Check the connection to a domain controller, or use direct format names and private queues.",
    ),
    HResult.MQ_ERROR_MACHINE_EXISTS: Texts(
        "the directory has an object of this computer already",
        "Message Queuing was installed on a computer of this name before.",
        "Delete the old msmq object of the computer, then start the service again.",
    ),
    HResult.MQ_ERROR_DS_IS_FULL: _old_directory("the directory is full"),
    HResult.MQ_ERROR_DS_ERROR: Texts(
        "the directory failed",
        "A domain controller refuses the request or has an inner error.",
        "Look into the event logs of the domain controller, and try again later.",
    ),
    HResult.MQ_ERROR_DELETE_CN_IN_USE: _old_directory("the connected network is in use and can't be deleted"),
    HResult.MQ_ERROR_MQIS_SERVER_EMPTY: _old_directory("the list of directory servers is empty"),
    HResult.MQ_ERROR_MQIS_READONLY_MODE: _old_directory("the directory can only be read"),
    HResult.MQ_ERROR_ILLEGAL_OPERATION: Texts(
        "this can't be done on a foreign system",
        "The computer stands in the directory for another messaging system, behind a connector.",
        "Do it in that system itself.",
    ),
    HResult.MQ_ERROR_WRITE_NOT_ALLOWED: _old_directory("the directory takes no changes now"),
    HResult.MQ_ERROR_WKS_CANT_SERVE_CLIENT: Texts(
        "this computer can't support dependent clients",
        "A dependent client names a workstation as its supporting server.",
        "Name a server of Message Queuing, or make the client independent.",
    ),
    HResult.MQ_ERROR_DEPEND_WKS_LICENSE_OVERFLOW: Texts(
        "the supporting server has no place for more dependent clients",
        "Its licences or its limit of clients are used up.",
        "Use another supporting server, or make clients independent.",
    ),
    HResult.MQ_ERROR_UNSUPPORTED_OPERATION: Texts(
        "this needs the directory, and the computer is in workgroup mode",
        "Public queues, encryption by the directory and internal certificates are not for workgroups.",
        "Use private queues and direct format names, or install the integration with the directory.",
    ),
    HResult.MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION: Texts(
        "this can't be done on the object of the enterprise",
        "A program tries to create or delete the MsmqServices object.",
        "Leave this object to the setup.",
    ),
    HResult.MQ_ERROR_CANNOT_GRANT_ADD_GUID: Texts(
        "the user can't be given the right to add a GUID",
        "The setup needs this right in the forest's root, and the user may not change it.",
        "Install as an administrator of the enterprise.",
    ),
    HResult.MQ_ERROR_CANNOT_LOAD_MSMQOCM: _setup("Msmqocm.dll"),
    HResult.MQ_ERROR_NO_ENTRY_POINT_MSMQOCM: _setup("a function of Msmqocm.dll"),
    HResult.MQ_ERROR_NO_MSMQ_SERVERS_ON_DC: _domain("no domain controller has a Message Queuing server"),
    HResult.MQ_ERROR_CANNOT_JOIN_DOMAIN: Texts(
        "the computer stays in workgroup mode, since it could not register in the directory",
        "The service may not create its object, or an old one with this name is there.",
        "Delete an old msmq object of the computer, check the rights, and start the service again.",
    ),
    HResult.MQ_ERROR_CANNOT_CREATE_ON_GC: _domain("the object was not made on the global catalog server"),
    HResult.MQ_ERROR_GUID_NOT_MATCHING: Texts(
        "the GUID in the directory is not that of the installation",
        "The computer was cloned, or its object was made anew.",
        "Remove Message Queuing and install it again; its messages are lost by that, so read them first.",
    ),
    HResult.MQ_ERROR_NO_GC_IN_DOMAIN: _domain("no global catalog server is found in the domain"),
    HResult.MQ_ERROR_NO_MSMQ_SERVERS_ON_GC: _domain("no global catalog server has a Message Queuing server"),
    HResult.MQ_ERROR_CANNOT_GET_DN: Texts(
        "the name of this computer in the directory can't be found out",
        "No domain controller answers, or the computer has no account.",
        "Check the membership of the domain.",
    ),
    HResult.MQ_ERROR_CANNOT_DELETE_PSC_OBJECTS: _old_directory("what a primary site owns can't be deleted"),
    HResult.MQ_ERROR_NO_MQUSER_OU: Texts(
        "the directory has no MSMQ Users container",
        "It keeps certificates of users from other domains, and was deleted or never made.",
        "Create the organizational unit MSMQ Users by hand.",
    ),
    HResult.MQ_ERROR_CANNOT_LOAD_MQAD: _setup("Mqad.dll"),
    HResult.MQ_ERROR_CANNOT_LOAD_MQDSSRV: _setup("Mqdssrv.dll"),
    HResult.MQ_ERROR_CANT_RESOLVE_SITES: Texts(
        "the site of the computer can't be found out",
        "Its subnet belongs to no site in Active Directory.",
        "Add the subnet to a site.",
    ),
    HResult.MQ_ERROR_NOT_SUPPORTED_BY_DEPENDENT_CLIENTS: Texts(
        "dependent clients can't do this",
        "The client has no queue manager of its own, and its supporting server has no such call.",
        "Make the client independent.",
    ),
    HResult.MQ_ERROR_NOT_A_CORRECT_OBJECT_CLASS: Texts(
        "the object in the directory is of another class",
        "The path names an object that is no queue, or no computer of Message Queuing.",
        "Correct the path.",
    ),
    HResult.MQ_ERROR_GC_NEEDED: _domain("an object with a given GUID can't be made without a global catalog"),
    HResult.MQ_ERROR_DS_BIND_ROOT_FOREST: Texts(
        "the root of the forest can't be reached",
        "DNS does not know the domain controllers of the root domain.",
        "Correct DNS, so that the root domain is found from this computer.",
    ),
    HResult.MQ_ERROR_DS_LOCAL_USER: Texts(
        "a local user has no access to the directory",
        "The program runs as a user of the computer, who is anonymous in the domain.",
        "Run it as a user of the domain, or use private queues and direct format names.",
    ),
    HResult.MQ_ERROR_UNSUPPORTED_CLASS: Texts(
        "the object in the directory is of a class that can't be used here",
        "A distribution list names objects that are neither queues nor aliases nor lists.",
        "Remove the object from the list.",
    ),
    HResult.MQ_ERROR_CANNOT_CREATE_PSC_OBJECTS: _old_directory("the object must be made by a primary site"),
    HResult.MQ_ERROR_CANNOT_UPDATE_PSC_OBJECTS: _old_directory("what a primary site owns can't be changed"),
    HResult.MQDS_UNKNOWN_SOURCE: _old_directory("the directory server that sent a change is not known"),
}
"""By code."""
