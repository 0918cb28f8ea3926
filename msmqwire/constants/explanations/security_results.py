"""Results about rights, users, certificates and cryptography, explained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msmqwire.constants.explanations.explanation import Texts
from msmqwire.constants.hresult import HResult


def _cryptography(what: str) -> Texts:
    return Texts(
        what,
        "The cryptographic provider or its keys do not work for this user, or lack the hash algorithm.",
        "Check the certificate, its private key and the hash algorithm; register the certificate again.",
    )


SECURITY_RESULTS: Final[Mapping[int, Texts]] = {
    HResult.MQ_INFORMATION_INTERNAL_USER_CERT_EXIST: Texts(
        "this user has an internal certificate already",
        "It was made at an earlier logon.",
        "No action is needed; renew it only if it is damaged.",
    ),
    HResult.MQ_ERROR_ILLEGAL_USER: Texts(
        "the user is not valid",
        "The account is unknown there, or was deleted.",
        "Name a user of the domain or of that computer.",
    ),
    HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR: Texts(
        "the security descriptor is not valid",
        "It is cut, lacks its owner, or is not self-relative.",
        "Build it again with the functions of Windows.",
    ),
    HResult.MQ_ERROR_CANNOT_IMPERSONATE_CLIENT: Texts(
        "the server could not find out who calls",
        "The logon of the call failed or is anonymous.",
        "Call as a user that the server knows.",
    ),
    HResult.MQ_ERROR_ACCESS_DENIED: Texts(
        "access is denied",
        "The user lacks the right on the queue or the computer; management needs an administrator of it; or "
        "the server takes no such calls from the network.",
        "Grant the right in the security of the queue, or call as another user (--user). A server of ours "
        "needs --rpc-manage for management.",
    ),
    HResult.MQ_ERROR_PRIVILEGE_NOT_HELD: Texts(
        "the user lacks a privilege of Windows",
        "Reading or writing the audit part of a security descriptor needs the security privilege.",
        "Run it as an administrator.",
    ),
    HResult.MQ_ERROR_INVALID_CERTIFICATE: Texts(
        "the certificate is not valid",
        "It is damaged, expired, or not an X.509 certificate.",
        "Renew the certificate and register it again.",
    ),
    HResult.MQ_ERROR_CORRUPTED_INTERNAL_CERTIFICATE: Texts(
        "the internal certificate of the user is damaged",
        "Its store or the profile of the user was damaged or restored.",
        "Renew the internal certificate on the security page of Message Queuing.",
    ),
    HResult.MQ_ERROR_INTERNAL_USER_CERT_EXIST: Texts(
        "this user has an internal certificate already",
        "A program registers it a second time.",
        "Use the one that is there, or delete it first.",
    ),
    HResult.MQ_ERROR_NO_INTERNAL_USER_CERT: Texts(
        "this user has no internal certificate",
        "The user never logged on where it would have been made, as a service account.",
        "Register one on the security page of Message Queuing, or send without a signature.",
    ),
    HResult.MQ_ERROR_CORRUPTED_SECURITY_DATA: _cryptography("a cryptographic function failed"),
    HResult.MQ_ERROR_CORRUPTED_PERSONAL_CERT_STORE: Texts(
        "the user's store of certificates is damaged",
        "The profile of the user is damaged.",
        "Repair the profile, then register a certificate again.",
    ),
    HResult.MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION: Texts(
        "the computer can't encrypt messages",
        "It lacks a cryptographic provider, its keys, or the public key of the destination.",
        "Install the provider and renew the keys of Message Queuing, or send without encryption.",
    ),
    HResult.MQ_ERROR_BAD_SECURITY_CONTEXT: Texts(
        "the security context is not valid",
        "It was freed before the message was sent, or is of another process.",
        "Get a new one by MQGetSecurityContext.",
    ),
    HResult.MQ_ERROR_COULD_NOT_GET_USER_SID: Texts(
        "the SID of the user can't be found out",
        "The thread has no token, or the process may not read it.",
        "Check the account that the program runs as.",
    ),
    HResult.MQ_ERROR_COULD_NOT_GET_ACCOUNT_INFO: Texts(
        "the account of the user can't be looked up",
        "No domain controller is reachable, or the account was deleted.",
        "Check the connection to the domain, and the account.",
    ),
    HResult.MQ_ERROR_INVALID_OWNER: Texts(
        "the owner of the object is not valid",
        "The account in the security descriptor may not own it.",
        "Name the caller or a group of administrators as the owner.",
    ),
    HResult.MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED: Texts(
        "the cryptographic provider is not supported",
        "The message names one that this version of Message Queuing does not use.",
        "Use the base or the enhanced provider of Microsoft.",
    ),
    HResult.MQ_ERROR_CANNOT_SET_CRYPTO_SEC_DESCR: Texts(
        "the rights on the cryptographic keys can't be set",
        "The service may not change the folder of the machine keys.",
        "Check the rights of the service's account on the machine keys, and renew them.",
    ),
    HResult.MQ_ERROR_CERTIFICATE_NOT_PROVIDED: Texts(
        "a message was to be signed without a certificate",
        "The user has no registered certificate.",
        "Register a certificate, or send without authentication.",
    ),
    HResult.MQ_ERROR_CANNOT_CREATE_CERT_STORE: Texts(
        "the store for the internal certificate can't be made",
        "The registry of the user may not be written.",
        "Check the rights on the profile of the user.",
    ),
    HResult.MQ_ERROR_CANNOT_OPEN_CERT_STORE: Texts(
        "the store of the internal certificate can't be opened",
        "The profile of the user is not loaded, or damaged.",
        "Log on as the user once, or register a certificate again.",
    ),
    HResult.MQ_ERROR_PUBLIC_KEY_NOT_FOUND: Texts(
        "the public key of the destination computer is not found",
        "It is not in the directory, or the directory can't be reached; in workgroup mode there is none.",
        "Renew the keys of that computer, or send without encryption.",
    ),
    HResult.MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST: Texts(
        "the destination computer has no public key",
        "It has no keys for this provider.",
        "Renew the keys of that computer, or use another provider.",
    ),
    HResult.MQ_ERROR_CANNOT_HASH_DATA_EX: _cryptography("the message can't be hashed"),
    HResult.MQ_ERROR_CANNOT_SIGN_DATA_EX: _cryptography("the message can't be signed"),
    HResult.MQ_ERROR_CANNOT_CREATE_HASH_EX: _cryptography("no hash can be made for the message"),
    HResult.MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX: Texts(
        "the signature of the message is not valid",
        "The message was changed on its way, or signed with another key or hash algorithm.",
        "Sign it with the registered certificate and a hash algorithm that the destination takes.",
    ),
    HResult.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED: Texts(
        "the queue takes signed messages only",
        "The sender does not sign, or its signature was not verified.",
        "Send with authentication, or let the queue take messages that are not signed.",
    ),
}
"""By code."""
