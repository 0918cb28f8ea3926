"""The rules of the bindery and of queues: the rights of callers, and the changes of calls."""
