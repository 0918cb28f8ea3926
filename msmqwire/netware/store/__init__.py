"""The data of a queue service on disk: the rows of its store, and its volumes with the files of the queues.

The rows are the truth. Job structures at the head of queue files and the system files of a queue are made
from them. Job data is in the queue files only, durable there before a row says that the job was submitted.

`tables` and `rows` define the content of a store, `row_changes` and `contents` write and read it. `volume`
has the directories and files, `queue_files` the files of QMS in a queue directory.
"""
