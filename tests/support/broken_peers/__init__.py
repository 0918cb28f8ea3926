"""Peers written from the specifications alone, without the library, and with mistakes.

``python -m tests.support.broken_peers`` runs one; without ``--mistake`` it makes none. `mistakes` has the
table, and each mistake is one `makes("...")` at the place where the specification is not followed.

Where the text leaves a choice, the peer has made these:

- A null ServerGuid is accepted (CS 0), as 3.1.5.3.1 of [MS-MQQB] has it, not refused as in 2.2.1. After a
  response with CS 1 the session ends, as in the figure of the acceptor's states.
- Values outside the ranges of ConnectionParameters, and CS set in it, end the session.
- An express message is acknowledged after AckTimeout / 2, a recoverable one after RecoverableAckTimeout, and
  all of them as soon as half the smaller of the two windows is used. Acknowledgements never ride on messages.
- All messages of a session are counted and acknowledged: duplicates, refused ones, OrderAcks and FinalAcks.
- A null QueueManagerAddress means this queue manager. A direct name is looked up by its path, whatever its
  host. A message for another queue manager is not routed: it is refused as one for a queue that is not there.
- Administration acknowledgements of the five insecure classes are not sent (``--insecure-nacks`` sends them).
- A transactional message that is refused takes its place in the sequence: FinalAck, and then OrderAck.
- A sequence belongs to its sender and the destination as the message names it.
- Nothing is authenticated: to this queue manager by GUID, a signed message has a bad signature and an
  encrypted one a bad encryption; to a direct name both are taken as they are, see 3.1.5.8.3.
- Nobody reads the queues unless ``--reader`` is given; then every message is read at once.
- DataLength of SRMPEnvelopeHeader counts WCHARs, or bytes where only those end with the null of the text.
- A message without MessagePropertiesHeader, without destination or with an unknown DM ends the session.
- It remembers 4,096 messages for duplicates and 1,024 sequences. A session for which more than 4 MiB of
  acknowledgements wait is ended, as for QueueManagerQuota; for one that there is not yet, 64 KiB are kept.
"""
