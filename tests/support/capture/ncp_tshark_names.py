"""The names of NCP fields in tshark, without its ``ncp.``."""

from __future__ import annotations

NAMES = {
    "Signature": "ip.signature", "Length": "ip.length", "Version": "ip.version",
    "ReplyBufferSize": "ip.replybufsize", "PacketSignature": "ip.packetsig",
    "RequestType": "type", "ReplyType": "type", "SequenceNumber": "seq", "TaskNumber": "task",
    "ConnectionNumber": "connection", "FunctionCode": "func", "CompletionCode": "completion_code",
    "ConnectionStatus": "connection_status", "StructureLength": "length", "SubFunctionCode": "subfunc",
    # queue calls
    "QueueID": "queue_id", "QueueType": "queue_type", "QueueName": "queue_name", "Path": "path",
    "QueueStatus": "queue_status", "ServerID": "server_id_number", "NewPosition": "new_position",
    "ServerCount": "current_servers", "ServiceType": "Service_type", "Charge": "charge_information",
    "ServerStatusRecord": "server_status_record", "FileSize": "file_size", "Priority": "priority",
    "TotalJobs": "total_queue_jobs", "JobCount": "job_count", "StartPosition": "queue_start_position",
    "FormCount": "form_type_count", "Form": "form_type", "DestinationQueueID": "dst_queue_id",
    "JobNumber": {2: "job_number", 4: "job_number_long"},
    "ServerStation": "server_station",
    # jobs
    "RecordInUse": "record_in_use", "PreviousRecord": "previous_record", "NextRecord": "next_record",
    "clientStation": {1: "client_station", 4: "client_station_long"},
    "clientTask": {1: "client_task_number", 4: "client_task_number_long"},
    "clientID": "client_id_number", "targetServerID": "target_server_id_number",
    "targetExecutionTime": "target_execution_time", "Year": "year", "Month": "s_month", "Day": "s_day",
    "Hour": "s_hour", "Minute": "s_minute", "Second": "s_second",
    "jobNumber": {2: "job_number", 4: "job_number_long"}, "jobType": "job_type",
    "jobPosition": {1: "job_position", 2: "job_position_word"},
    "jobControlFlags": {1: "job_control_flags", 2: "job_control_flags_word"},
    "jobFileName": "job_file_name", "jobFileHandle": {6: "job_file_handle", 4: "job_file_handle_long"},
    "servicingServerStation": {1: "server_station", 4: "server_station_long"},
    "servicingServerTaskNumber": {1: "server_task_number", 4: "server_task_number_long"},
    "servicingServerIDNumber": "server_id_number", "jobDescription": "text_job_description",
    "queueRecord": "client_record_area",
    # bindery and files
    "ObjectType": "object_type", "ObjectName": "object_name", "Password": "password", "ObjectID": "object_id",
    "LastObjectID": "object_id", "ObjectFlags": "object_flags", "ObjectSecurity": "object_security",
    "HasProperties": "object_has_properites", "PropertyName": "property_name", "HasValue": "value_available",
    "PropertyFlags": "property_type", "PropertySecurity": "object_security", "OldPassword": "password",
    "SearchInstance": "search_instance", "MoreProperties": "more_properties", "NewPassword": "new_password",
    "SegmentNumber": "property_segment", "PropertyValue": "property_data", "MemberType": "member_type",
    "MoreSegments": "property_has_more_segments", "MemberName": "member_name", "Reserved": "reserved",
    "FileHandle": "file_handle", "FileOffset": "file_offset", "ByteCount": "max_bytes",
    "DirectoryHandle": "dir_handle", "SearchAttributes": "sattr", "DesiredAccessRights": "access_rights_mask",
    "FileAttributes": "attr_def", "FileName": "file_name_14", "FileExecuteType": "file_execute_type",
    "CreationDate": "creation_date", "LastAccessedDate": "last_access_date", "ModifiedDate": "modified_date",
    "ModifiedTime": "modified_time", "Data": "",
    # the file server
    "VolumeNumber": "volume_number", "VolumeName": "volume_name_len",
    "SectorsPerCluster": "sectors_per_cluster", "TotalVolumeClusters": "total_volume_clusters",
    "AvailableClusters": "available_clusters",
    "TotalDirectorySlots": "total_directory_slots", "AvailableDirectorySlots": "available_directory_slots",
    "RemovableFlag": "removable_flag", "DayOfWeek": "s_day_of_week",
    "BufferSize": "buffer_size",
    "ProposedMaxSize": "proposed_max_size", "SecurityFlag": "security_flag", "EchoSocket": "echo_socket",
    "AcceptedMaxSize": "accepted_max_size", "ServerName": "server_name", "OSMajorVersion": "os_major_version",
    "OSMinorVersion": "os_minor_version", "ConnectionsSupportedMax": "connections_supported_max",
    "ConnectionsInUse": "connections_in_use", "VolumesSupportedMax": "volumes_supported_max",
    "OSRevision": "os_revision", "SFTSupportLevel": "sft_support_level", "TTSLevel": "tts_level",
    "ConnectionsMaxUsed": "connections_max_used", "AccountVersion": "acct_version",
    "VAPVersion": "vap_version", "QueueingVersion": "qms_version",
    "PrintServerVersion": "print_server_version", "VirtualConsoleVersion": "virtual_console_version",
    "SecurityRestrictionVersion": "security_restriction_version",
    "InternetBridgeVersion": "internet_bridge_version", "MixedModePathFlag": "mixed_mode_path_flag",
    "LocalLoginInfoCcode": "local_login_info_ccode", "ProductMajorVersion": "product_major_version",
    "ProductMinorVersion": "product_minor_version", "ProductRevisionVersion": "product_revision_version",
    "OSLanguageID": "os_language_id", "OESServer": "oes_server",
    "OESLinuxOrNetWare": "oeslinux_or_netware",
    "SixtyFourBitOffsetsSupportedFlag": "64_bit_flag",
    "TargetConnectionNumber": "target_connection_number", "UserID": "user_id", "UserType": "object_type",
    "UserName": "object_name_len", "NetworkAddress": "network_address",
    "NetworkNodeAddress": "network_node_address", "NetworkSocket": "network_socket",
    "ConnectionType": "connection_type", "LoginKey": "login_key", "AccessLevel": "object_security",
    "LoggedObjectID": "logged_object_id", "UserLoginAllowed": "user_login_allowed",
}  # fmt: skip
"""By our names of fields; where that depends on their size, by it."""

OTHER_NAMES = {
    "NcpCreateQueue.DirectoryHandle": "path_base",
    "NcpOldQueueCurrentStatus.JobCount": "current_entries",
    "NcpQueueCurrentStatus.JobCount": "current_entries",
    "NcpOldStation.ServerStation": "server_station_list",
    "NcpStation.ServerStation": "server_station_long",
    "23/129 reply.JobCount": "reply_queue_job_numbers",
    "NcpLogin.ObjectName": "client_name",
    "NcpNamedObject.ObjectName": "object_name_len",
    "NcpScannedObject.ObjectName": "object_name_len",
    "NcpScanProperty.SearchInstance": "last_instance",
    "NcpScannedProperty.PropertyName": "property_name_16",
    "NcpScannedProperty.PropertyFlags": "object_flags",
    "NcpWritePropertyValue.MoreSegments": "more_flag",
    "NcpWritePropertyValue.PropertyValue": "property_value",
    "NcpFileData.ByteCount": "num_bytes",
    "NcpOpenFile.Path": "file_name",
    "NcpCreateFile.Path": "file_name",
    "NcpOpenedFile.Reserved": "reserved2",
    "NcpVolumeInfo.VolumeName": "volume_name",
    "NcpFileServerInformation.Reserved": "reserved48",
}
"""The same where it depends on the structure, or on the packet."""

_STATUS = {
    "CantAddJobs": "queue_status_new_jobs",
    "ServersCantAttach": "queue_status_pserver",
    "CantServiceJobs": "queue_status_svc_jobs",
}
_FLAGS = {
    "NWCF_SERVICE_AUTO_START": "job_recovery",
    "NWCF_SERVICE_RESTART": "reservice",
    "NWCF_ENTRY_OPEN": "file_open",
    "NWCF_USER_HOLD": "user_hold",
    "NWCF_OPERATOR_HOLD": "operator_hold",
}
BITS = {
    "queue_status": _STATUS,
    "job_control_flags": {bit: f"job_control_{name}" for bit, name in _FLAGS.items()},
    "job_control_flags_word": {bit: f"job_control1_{name}" for bit, name in _FLAGS.items()},
}
"""The names of the bits by the name of their word."""
