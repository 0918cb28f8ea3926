"""Settings of the administrator, with the defaults of the specifications."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from msmqwire.headers.base import PACKET_SIZE_MAX
from msmqwire.qm.model.enumerations import AesCipher, LegacyCipher, Relay

RESEND_TIMES: Final = (30, 30, 30, 300, 300, 300, 1800, 1800, 1800, 21600)  # MQQB-3.1.1.3-12, -20 to -23
"""ResendTimerTable, seconds: MQQB-3.1.3.1-01."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a queue manager. Times whose names end in ``_ms`` are milliseconds, in ``_s`` seconds.

    Attributes:
        session_initialization_ms: [MS-MQQB] 3.1.2.1.
        session_cleanup_ms: [MS-MQQB] 3.1.2.2; usually 120,000 on routing servers.
        session_retry_connect_ms: [MS-MQQB] 3.1.2.3.
        round_trip_delay_ms: added to the times of a session: [MS-MQQB] 3.1.3.2.
        ack_wait_timeout_ms: AckWaitTimeout without the delay, 20,000 to 120,000.
        direct_ack_wait_factor: multiplies AckWaitTimeout for direct format names: [MS-MQQB] 3.1.2.4.
        window_size: messages that may be unacknowledged.
        unacknowledged_bytes_max: bytes of unacknowledged messages at which sending pauses.
        packet_size_max: the largest packet that a session accepts, in bytes, at most 4 MiB.
        recoverable_ack_delay_ms: the longest time before a recoverable message is acknowledged, if less than
            the sender asks for: [MS-MQQB] 3.1.2.5.
        ack_delay_ms: the longest time before any message is acknowledged, if less than half of
            AckWaitTimeout.
        acknowledge_at_window: the fraction of the window at which a session acknowledgement is sent at once.
        order_ack_timeout_ms, maximum_order_ack_delay_s: [MS-MQQB] 3.1.3.2.
        resend_timer_table: seconds between resends of transactional messages.
        remove_duplicate_size: entries of MessageIDHistoryTable.
        message_id_history_cleanup_ms: [MS-MQQB] 3.1.2.8.
        ping: whether an initiator pings before it connects: [MS-MQQB] 3.1.5.2.2.
        answer_pings: whether ping requests are answered.
        ping_response_ms: [MS-MQQB] 3.1.2.9.
        max_in_sessions: the number of incoming sessions accepted.
        incoming_sequences_max: the number of transactional sequences, by sender and the sender's name for the
            queue, and of queues for acknowledgements to the senders. Beyond it the longest idle one is
            discarded: messages that its sender repeats would be accepted again.
        relay: which messages of peers for queues elsewhere are forwarded: none; those to known places, which
            are in the directory, among the hosts that the core is given or in its fixed routes, or to which
            an application of this computer sends; or all. Other messages are refused with NACK_BAD_DST_Q.
        accept_other_names: whether a message is accepted although its ``DIRECT=OS:`` name is that of another
            computer, as when a container or an alias has another name. If not, it is refused with
            NACK_BAD_DST_Q, as Windows does unless its registry has IgnoreOSNameValidation.
        bind_senders: whether transactional sequences and the identifiers of MessageIDHistoryTable belong to
            the origin that they came from, so that no other peer can use up a sender's numbers.
        unreachable_max, unreachable_per_origin_max: limits of unreachable places that only messages of peers,
            or of one origin, have asked for. Beyond them the oldest place is given up for a new one.
        session_retry_connect_max_ms: the longest time between attempts to reach such a place: it doubles,
            beginning with `session_retry_connect_ms`.
        third_place_messages, third_place_bytes: limits of the acknowledgements and reports about messages of
            one origin that don't go back to it, and of their bytes, in a minute and at once.
        third_place_messages_total, third_place_bytes_total: the same for all origins together.
        memory: bytes of memory for everything that peers can make the queue manager keep: express messages,
            senders of transactional messages, MessageIDHistoryTable, outgoing queues. `MemoryPool` divides
            them.
        quota_per_origin_percent: the part of QueueManagerQuota, or of what the disk can hold if that is less,
            that the messages of one unknown origin may have.
        quota_reserve_percent: the part of QueueManagerQuota, or of what the disk can hold if that is less,
            that unknown origins leave to known ones and to applications of this computer. Origins that have
            little, up to a sixty-fourth, leave half of it.
        send_insecure_nacks: SendInsecureNacks, [MS-MQQB] 3.1.1.3: whether refusals that reveal information
            are acknowledged to senders.
        report_messages: EnableReportMessages of [MS-MQMQ] 2.2.20.8: whether reports are sent for the messages
            that ask for them. Windows sends none unless its registry says so.
        expire_in_doubt: follow figure 9 of [MS-MQQB] 3.1.1.1 literally: a transactional message whose
            TimeToReachQueue has passed is abandoned, and dead-lettered, even if its destination may have
            accepted it. If False it is sent again until its destination answers that it has refused or
            accepted it.
        lookup_priority_of_transactional: follow the text of [MS-MQDMPR] 3.1.7.1.9 literally: the high byte of
            LookupIdentifier contains the priority of transactional messages, not of non-transactional ones.
        directory_sites_update_ms, directory_site_gates_update_ms, directory_online_ms: [MS-MQDMPR] 3.1.2.
        retransmission_timeout_ms: RetransmissionTimeout of SRMP: [MC-MQSRM] 3.1.2.1.
        stream_receipt_delay_ms, stream_receipt_delay_max_ms: Stream Receipt Coalescing Timer, and the longest
            time that new messages can delay a stream receipt: [MC-MQSRM] 3.1.2.3, 3.1.5.1.6.3.
        retry_statuses: the HTTP status codes from 400 to 499 after which a message is sent again. After any
            other of these codes it is given up, as after 400; after 300 to 399 and from 500 on it is always
            sent again.
        transparent_store_and_forward: whether SRMP messages for other computers are forwarded to them:
            TransparentStoreAndForward of [MC-MQSRM] 3.1.1.1.7. If not, they are refused.
        queue_manager_query_ms: the lifetime of a routing table: [MS-MQBR] 3.1.3.
        keep_routing_table: whether a routing table is kept while the directory can't be read in whole. If
            False [MS-MQBR] 3.1.3.1 is followed literally: the table is emptied for that lifetime.
        memory_for_recoverable: bytes of recoverable messages in memory besides the store.
        local_owner: in workgroup mode an account of the machine owns the queues it creates. If False
            [MS-MQDMPR] 3.1.7.1.3.1 is followed literally: only a domain user does; everybody has full access
            to queues created by any other account.
        strangers_may_send: whether the default descriptor of a queue allows everybody to send to it, as for a
            queue that is reachable by SRMP and as on Windows.
        server_class: whether this is a server system: UserHeader of pings and OperatingSystem.OS.
        user_cert_cache_size: UserCertCacheSize, certificates of senders that were found in the directory.
        user_cert_lifetime_ms: UserCertLifetime: the time for which a certificate, or the groups of a user,
            are used after the directory has lost them.
        receive_symmetric_key_cache_size: ReceiveSymmetricKeyCacheSize, session keys of peers.
        send_symmetric_key_cache_size: SendSymmetricKeyCacheSize, session keys made here.
        symmetric_key_short_lifetime_ms: SymmetricKeyShortLifetime: the lifetime of a session key.
        symmetric_key_long_lifetime_ms: SymmetricKeyLongLifetime: the lifetime of a session key made here for
            the AES or the Enhanced provider, with `long_lived_keys`.
        long_lived_keys: whether these keys live that long, as on Windows XP and Server 2003.
        preferred_advanced_algorithm: PreferredAdvancedAlgorithm, the cipher for keys of the AES provider.
        preferred_enhanced_algorithm: PreferredEnhancedAlgorithm, the cipher for keys of the Enhanced
            provider.
        preferred_base_algorithm: PreferredBaseAlgorithm, the cipher for keys of the Base provider.
        send_enhanced_rc2_using_40_bit_keys: SendEnhancedRC2Using40BitKeys: RC2 keys of the Enhanced provider
            have 40 bits.
        reject_enhanced_rc2_using_40_bit_keys: RejectEnhancedRC2Using40BitKeys: messages under such keys are
            refused.
        reject_unknown_certificates: whether a signed message that names its sender is refused if the
            certificate is not registered for that sender, as [MS-MQQB] 3.1.5.8.3 has it. If False it is
            accepted like an unsigned one, except by queues for authenticated messages.
        send_md2, send_md4, send_md5, send_sha1: whether messages are sent whose signature uses this hash.
        send_rc2, send_rc4: whether messages are sent under this broken cipher. If so, a message that asks for
            it gets it even if its destination has a key for a better one.
        read_md2, read_md4, read_md5, read_sha1: whether signatures with this hash are trusted.
        read_rc2, read_rc4: whether bodies under this cipher are decrypted.
        security_per_origin_ms, security_total_ms: estimated milliseconds of computation with RSA keys, MD2
            and RC2 that messages of one origin, and of all unknown ones together, may cause in each second.
            Beyond it the session is closed.
    """

    session_initialization_ms: int = 60_000  # MQQB-3.1.2-01, MQQB-3.1.2.1-04
    session_cleanup_ms: int = 300_000  # MQQB-3.1.2-01, MQQB-3.1.2.2-02
    session_retry_connect_ms: int = 5_000  # MQQB-3.1.2-01, MQQB-3.1.2.3-02
    round_trip_delay_ms: int = 0
    ack_wait_timeout_ms: int = 20_000
    direct_ack_wait_factor: int = 2
    window_size: int = 64  # MQQB-3.1.3.2-08, MQMQ-2.2.20.4-17
    unacknowledged_bytes_max: int = 16 << 20
    packet_size_max: int = PACKET_SIZE_MAX  # MQMQ-2.2.19.1-21
    recoverable_ack_delay_ms: int = 120_000
    ack_delay_ms: int = 120_000
    acknowledge_at_window: float = 0.5
    order_ack_timeout_ms: int = 500
    maximum_order_ack_delay_s: int = 10
    resend_timer_table: tuple[int, ...] = field(default=RESEND_TIMES)
    remove_duplicate_size: int = 10_000
    message_id_history_cleanup_ms: int = 1_800_000  # MQQB-3.1.2-01, MQQB-3.1.2.8-02
    ping: bool = False
    answer_pings: bool = True
    ping_response_ms: int = 1_000  # MQQB-3.1.2-01, MQQB-3.1.2.9-02
    max_in_sessions: int = 0xFFFFFFFF  # MQQB-2.2.1-10
    incoming_sequences_max: int = 100_000
    relay: Relay = Relay.KNOWN
    accept_other_names: bool = True
    bind_senders: bool = False
    unreachable_max: int = 1_000
    unreachable_per_origin_max: int = 100
    session_retry_connect_max_ms: int = 600_000
    third_place_messages: int = 600
    third_place_bytes: int = 1 << 20
    third_place_messages_total: int = 6_000
    third_place_bytes_total: int = 8 << 20
    memory: int = 1 << 30
    quota_per_origin_percent: int = 25
    quota_reserve_percent: int = 25
    send_insecure_nacks: bool = False  # MQQB-3.1.1.3-19
    report_messages: bool = True
    expire_in_doubt: bool = False
    lookup_priority_of_transactional: bool = False
    directory_sites_update_ms: int = 43_200_000  # DMPR-3.1.2.1-01
    directory_site_gates_update_ms: int = 3_600_000  # DMPR-3.1.2.2-01
    directory_online_ms: int = 60_000  # DMPR-3.1.2.5-01
    retransmission_timeout_ms: int = 20_000
    stream_receipt_delay_ms: int = 500
    stream_receipt_delay_max_ms: int = 10_000
    retry_statuses: tuple[int, ...] = (408, 425, 429)
    transparent_store_and_forward: bool = False
    queue_manager_query_ms: int = 3_600_000
    keep_routing_table: bool = True
    memory_for_recoverable: int = 64 << 20
    local_owner: bool = True
    strangers_may_send: bool = True  # DMPR-3.1.7.1.3.1-09
    server_class: bool = True
    user_cert_cache_size: int = 53  # MQQB-3.1.3.1-04
    user_cert_lifetime_ms: int = 1_200_000  # MQQB-3.1.3.1-05
    receive_symmetric_key_cache_size: int = 127  # MQQB-3.1.3.1-07
    send_symmetric_key_cache_size: int = 53  # MQQB-3.1.3.1-09
    symmetric_key_short_lifetime_ms: int = 600_000  # MQQB-3.1.3.1-10
    symmetric_key_long_lifetime_ms: int = 43_200_000  # MQQB-3.1.3.1-11
    long_lived_keys: bool = False
    preferred_advanced_algorithm: AesCipher = AesCipher.AES256  # MQQB-3.1.3.1-12
    preferred_enhanced_algorithm: LegacyCipher = LegacyCipher.RC4  # MQQB-3.1.3.1-12
    preferred_base_algorithm: LegacyCipher = LegacyCipher.RC4  # MQQB-3.1.3.1-12
    send_enhanced_rc2_using_40_bit_keys: bool = False  # MQQB-3.1.3.1-13
    reject_enhanced_rc2_using_40_bit_keys: bool = False  # MQQB-3.1.3.1-14
    reject_unknown_certificates: bool = True
    send_md2: bool = False
    send_md4: bool = False
    send_md5: bool = False
    send_sha1: bool = True
    send_rc2: bool = False
    send_rc4: bool = False
    read_md2: bool = True
    read_md4: bool = True
    read_md5: bool = True
    read_sha1: bool = True
    read_rc2: bool = True
    read_rc4: bool = True
    security_per_origin_ms: int = 500
    security_total_ms: int = 750


@dataclass(frozen=True, slots=True)
class KeptSettings:
    """The settings that survive process and node failures: [MS-MQQB] 3.1.1.3. None: never given.

    Attributes:
        send_insecure_nacks: SendInsecureNacks.
        resend_timeouts_short, resend_timeouts_medium, resend_timeouts_long: seconds of entries 1 to 3, 4 to 6
            and 7 to 9 of ResendTimerTable.
        resend_timeouts_final: seconds of its last entry.
    """

    send_insecure_nacks: bool | None = None
    resend_timeouts_short: int | None = None
    resend_timeouts_medium: int | None = None
    resend_timeouts_long: int | None = None
    resend_timeouts_final: int | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The given settings, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def changed_by(self, later: KeptSettings) -> KeptSettings:
        """Return these settings, replaced by the later ones where given."""
        return replace(self, **later.given)

    def applied_to(self, settings: Settings) -> Settings:
        """Return all settings, replaced by the kept ones where given."""
        given = self.given
        insecure = given.pop("send_insecure_nacks", settings.send_insecure_nacks)  # MQQB-3.1.1.3-19
        table = settings.resend_timer_table
        if given:
            default = (RESEND_TIMES[0], RESEND_TIMES[3], RESEND_TIMES[6], RESEND_TIMES[9])
            times = (
                self.resend_timeouts_short, self.resend_timeouts_medium, self.resend_timeouts_long,
                self.resend_timeouts_final,
            )  # fmt: skip
            short, medium, long, final = (
                initial if time is None else time for time, initial in zip(times, default, strict=True)
            )
            table = (*[short] * 3, *[medium] * 3, *[long] * 3, final)  # MQQB-3.1.1.3-20 to -23
        return replace(settings, send_insecure_nacks=insecure, resend_timer_table=table)
