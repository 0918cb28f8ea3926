"""Remote read: the RemoteRead interface and the messages that travel over it: [MS-MQRR]."""
