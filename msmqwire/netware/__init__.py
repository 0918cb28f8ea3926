"""NetWare's Queue Management System: a bindery, queues and their jobs.

`model` has the values, `rules` the operations on them. `rules` does no I/O, reads no clock and draws no
random numbers; its entrance is `msmqwire.netware.rules.service.QueueService`, and its owner does this for
each call:

1. It has one `Caller` for each connection and sets ``caller.task`` from the request.
2. It calls a method of a part, ``service.jobs.create(caller, queue_id, request, now)``. The method raises
   `NcpRefused`, whose ``code`` is the completion code, and has changed nothing; or has done all of it in
   memory.
3. It performs ``service.take()``, a list of `msmqwire.netware.model.changes`: the changes in ``FIRST`` are
made and synced, then all rows are written in one transaction, then the files and directories in ``LAST`` are
   deleted. Only then does it answer. If that fails it discards the service and restores one from the store.

============== =====================================================================================
``service``    ``login``, ``logout``, ``connection_lost``, ``take``, and the class method ``restore``
``bindery``    ``create_object``, ``delete_object``, ``get_id``, ``get_name``, ``scan``
``properties`` ``create``, ``delete``, ``scan``, ``read``, ``write``, ``add_member``,
               ``delete_member``, ``check_member``, ``join_group``, ``make_equivalent``
``logins``     ``change_password``
``queues``     ``create``, ``destroy``, ``read_status``, ``set_status``
``jobs``       ``create``, ``close_and_start``, ``close_and_abort``, ``remove``, ``read_entry``,
               ``file_size``, ``numbers``, ``listed``, ``change_entry``, ``change_position``, ``move``
``servicing``  ``attach``, ``detach``, ``service``, ``finish``, ``abort``,
               ``change_to_client_rights``, ``restore_server_rights``, ``read_server_status``,
               ``set_server_status``
``files``      ``read``, ``write``, ``close``, ``set_size``
``volumes``    ``create_directory``, ``create_file``, ``open_file``, ``set_trustee``,
               ``effective_rights``
``objects``    lookups without rights: ``named``, ``objects[id]``, iteration
``queue_table`` the queues without rights: ``queue_table[id].entry(number)``
============== =====================================================================================

Reading and writing files is the owner's work: ``files.read`` and ``files.write`` return the file of a handle
and the number of bytes. An administrator without a login has ``Caller(0, object_id=SUPERVISOR_ID)``;
connections of the network count from 1.

``msmqwire.netware.connect("10.0.0.5:524", name="ALICE")`` uses the queues of a file server. The bytes of
requests, replies and jobs are `msmqwire.ncp`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msmqwire.netware.client import connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    """Import the client on first use: the server does not need it."""
    if name == "connect":
        from msmqwire.netware.client import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
