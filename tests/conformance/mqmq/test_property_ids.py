"""Property identifiers and their values, [MS-MQMQ] 2.3, copied independently from the specification."""

from __future__ import annotations

import re

import pytest

from msmqwire.constants import (
    CONNECTION_HISTORY_VECTORS,
    CONNECTION_STATUS,
    SERVICE_TYPES,
    SETTINGS_SERVICE_TYPES,
    SOURCE_INFO_VECTORS,
    AddressType,
    ComputerProperty,
    ConnectedNetworkProperty,
    DeletedObjectType,
    DeletionProperty,
    EnterpriseProperty,
    MachineForeign,
    MachineGroupInCluster,
    MachineOs,
    MachineProperty,
    ManagementConnected,
    ManagementMachineProperty,
    ManagementQueueForeign,
    ManagementQueueLocation,
    ManagementQueueProperty,
    ManagementQueueState,
    ManagementQueueType,
    ManagementQueueXact,
    MQUserProperty,
    PropId,
    QueueAuthenticate,
    QueueJournal,
    QueuePrivLevel,
    QueueProperty,
    QueueTransaction,
    RoutingLinkProperty,
    Scope,
    SettingsProperty,
    SiteProperty,
    UserProperty,
)


def proving(table, name=lambda row: row[1]):
    """The rows of a table as parameters, each marked with the requirement in its first column."""
    return [pytest.param(*row[1:], marks=pytest.mark.requirement(row[0]), id=str(name(row))) for row in table]


# requirement, type of object, identifier, number, variant type
PROPERTIES = [
    ("MQMQ-2.3.1.1-01", QueueProperty, "PROPID_Q_INSTANCE", 101, 0x0048),
    ("MQMQ-2.3.1.2-01", QueueProperty, "PROPID_Q_TYPE", 102, 0x0048),
    ("MQMQ-2.3.1.3-01/a", QueueProperty, "PROPID_Q_PATHNAME", 103, 0x001F),
    ("MQMQ-2.3.1.4-01", QueueProperty, "PROPID_Q_JOURNAL", 104, 0x0011),
    ("MQMQ-2.3.1.5-01", QueueProperty, "PROPID_Q_QUOTA", 105, 0x0013),
    ("MQMQ-2.3.1.6-01", QueueProperty, "PROPID_Q_BASEPRIORITY", 106, 0x0002),
    ("MQMQ-2.3.1.7-01", QueueProperty, "PROPID_Q_JOURNAL_QUOTA", 107, 0x0013),
    ("MQMQ-2.3.1.8-01/a", QueueProperty, "PROPID_Q_LABEL", 108, 0x001F),
    ("MQMQ-2.3.1.9-01", QueueProperty, "PROPID_Q_CREATE_TIME", 109, 0x0003),
    ("MQMQ-2.3.1.10-01", QueueProperty, "PROPID_Q_MODIFY_TIME", 110, 0x0003),
    ("MQMQ-2.3.1.11-01", QueueProperty, "PROPID_Q_AUTHENTICATE", 111, 0x0011),
    ("MQMQ-2.3.1.12-01", QueueProperty, "PROPID_Q_PRIV_LEVEL", 112, 0x0013),
    ("MQMQ-2.3.1.13-01", QueueProperty, "PROPID_Q_TRANSACTION", 113, 0x0011),
    ("MQMQ-2.3.1.14-01", QueueProperty, "PROPID_Q_SCOPE", 114, 0x0011),
    ("MQMQ-2.3.1.15-01", QueueProperty, "PROPID_Q_QMID", 115, 0x0048),
    ("MQMQ-2.3.1.16-01", QueueProperty, "PROPID_Q_PARTITIONID", 116, 0x0048),
    ("MQMQ-2.3.1.17-01", QueueProperty, "PROPID_Q_SEQNUM", 117, 0x0041),
    ("MQMQ-2.3.1.18-01", QueueProperty, "PROPID_Q_HASHKEY", 118, 0x0013),
    ("MQMQ-2.3.1.19-01", QueueProperty, "PROPID_Q_LABEL_HASHKEY", 119, 0x0013),
    ("MQMQ-2.3.1.20-01", QueueProperty, "PROPID_Q_FULL_PATH", 121, 0x001F),
    ("MQMQ-2.3.1.21-01", QueueProperty, "PROPID_Q_NAME_SUFFIX", 123, 0x001F),
    ("MQMQ-2.3.1.22-01/a", QueueProperty, "PROPID_Q_PATHNAME_DNS", 124, 0x001F),
    ("MQMQ-2.3.1.23-01", QueueProperty, "PROPID_Q_MULTICAST_ADDRESS", 125, 0x001F),
    ("MQMQ-2.3.1.24-01", QueueProperty, "PROPID_Q_ADS_PATH", 126, 0x001F),
    ("MQMQ-2.3.1.25-01", QueueProperty, "PROPID_Q_SECURITY", 1101, 0x0041),
    ("MQMQ-2.3.1.26-01", QueueProperty, "PROPID_Q_OBJ_SECURITY", 1102, 0x0041),
    ("MQMQ-2.3.1.27-01", QueueProperty, "PROPID_Q_SECURITY_INFORMATION", 1103, 0x0013),
    ("MQMQ-2.3.2.1-01", MachineProperty, "PROPID_QM_SITE_ID", 201, 0x0048),
    ("MQMQ-2.3.2.2-01", MachineProperty, "PROPID_QM_MACHINE_ID", 202, 0x0048),
    ("MQMQ-2.3.2.3-01", MachineProperty, "PROPID_QM_PATHNAME", 203, 0x001F),
    ("MQMQ-2.3.2.4-01", MachineProperty, "PROPID_QM_ENCRYPTION_PK", 205, 0x1011),
    ("MQMQ-2.3.2.5-01", MachineProperty, "PROPID_QM_ADDRESS", 206, 0x0041),
    ("MQMQ-2.3.2.6-01", MachineProperty, "PROPID_QM_CNS", 207, 0x1048),
    ("MQMQ-2.3.2.7-01", MachineProperty, "PROPID_QM_OUTFRS", 208, 0x1048),
    ("MQMQ-2.3.2.8-01", MachineProperty, "PROPID_QM_INFRS", 209, 0x1048),
    ("MQMQ-2.3.2.9-01", MachineProperty, "PROPID_QM_SERVICE", 210, 0x0013),
    ("MQMQ-2.3.2.10-01", MachineProperty, "PROPID_QM_QUOTA", 214, 0x0013),
    ("MQMQ-2.3.2.11-01", MachineProperty, "PROPID_QM_PARTITIONID", 211, 0x0048),
    ("MQMQ-2.3.2.12-01", MachineProperty, "PROPID_QM_HASHKEY", 212, 0x0013),
    ("MQMQ-2.3.2.13-01", MachineProperty, "PROPID_QM_SEQNUM", 213, 0x0041),
    ("MQMQ-2.3.2.14-01", MachineProperty, "PROPID_QM_JOURNAL_QUOTA", 215, 0x0013),
    ("MQMQ-2.3.2.15-01", MachineProperty, "PROPID_QM_MACHINE_TYPE", 216, 0x001F),
    ("MQMQ-2.3.2.16-01", MachineProperty, "PROPID_QM_CREATE_TIME", 217, 0x0003),
    ("MQMQ-2.3.2.17-01", MachineProperty, "PROPID_QM_MODIFY_TIME", 218, 0x0003),
    ("MQMQ-2.3.2.18-01", MachineProperty, "PROPID_QM_FOREIGN", 219, 0x0011),
    ("MQMQ-2.3.2.19-01", MachineProperty, "PROPID_QM_OS", 220, 0x0013),
    ("MQMQ-2.3.2.20-01", MachineProperty, "PROPID_QM_FULL_PATH", 221, 0x001F),
    ("MQMQ-2.3.2.21-01", MachineProperty, "PROPID_QM_SITE_IDS", 222, 0x1048),
    ("MQMQ-2.3.2.22-01", MachineProperty, "PROPID_QM_OUTFRS_DN", 223, 0x101F),
    ("MQMQ-2.3.2.23-01", MachineProperty, "PROPID_QM_INFRS_DN", 224, 0x101F),
    ("MQMQ-2.3.2.24-01", MachineProperty, "PROPID_QM_SERVICE_ROUTING", 227, 0x0011),
    ("MQMQ-2.3.2.25-01", MachineProperty, "PROPID_QM_SERVICE_DSSERVER", 228, 0x0011),
    ("MQMQ-2.3.2.26-01", MachineProperty, "PROPID_QM_SERVICE_DEPCLIENTS", 229, 0x0011),
    ("MQMQ-2.3.2.27-01", MachineProperty, "PROPID_QM_ENCRYPTION_PK_BASE", 231, 0x1011),
    ("MQMQ-2.3.2.28-01", MachineProperty, "PROPID_QM_ENCRYPTION_PK_ENHANCED", 232, 0x1011),
    ("MQMQ-2.3.2.29-01", MachineProperty, "PROPID_QM_PATHNAME_DNS", 233, 0x001F),
    ("MQMQ-2.3.2.30-01", MachineProperty, "PROPID_QM_OBJ_SECURITY", 234, 0x0041),
    ("MQMQ-2.3.2.31-01", MachineProperty, "PROPID_QM_SECURITY_INFORMATION", 237, 0x0013),
    ("MQMQ-2.3.2.32-01", MachineProperty, "PROPID_QM_ENCRYPT_PKS", 238, 0x0041),
    ("MQMQ-2.3.2.33-01", MachineProperty, "PROPID_QM_SIGN_PKS", 239, 0x0041),
    ("MQMQ-2.3.2.34-01", MachineProperty, "PROPID_QM_OWNER_SID", 241, 0x0041),
    ("MQMQ-2.3.2.35-01", MachineProperty, "PROPID_QM_GROUP_IN_CLUSTER", 242, 0x0011),
    ("MQMQ-2.3.2.36-01", MachineProperty, "PROPID_QM_SECURITY", 1201, 0x0041),
    ("MQMQ-2.3.2.37-01", MachineProperty, "PROPID_QM_SIGN_PK", 1202, 0x0041),
    ("MQMQ-2.3.2.38-01", MachineProperty, "PROPID_QM_ENCRYPT_PK", 1203, 0x0041),
    ("MQMQ-2.3.2.39-01", MachineProperty, "PROPID_QM_UPGRADE_DACL", 1205, 0x0041),
    ("MQMQ-2.3.3.1-01", SiteProperty, "PROPID_S_PATHNAME", 301, 0x001F),
    ("MQMQ-2.3.3.2-01", SiteProperty, "PROPID_S_SITEID", 302, 0x0048),
    ("MQMQ-2.3.3.3-01", SiteProperty, "PROPID_S_GATES", 303, 0x1048),
    ("MQMQ-2.3.3.4-01", SiteProperty, "PROPID_S_PSC", 304, 0x001F),
    ("MQMQ-2.3.3.5-01", SiteProperty, "PROPID_S_INTERVAL1", 305, 0x0012),
    ("MQMQ-2.3.3.6-01", SiteProperty, "PROPID_S_INTERVAL2", 306, 0x0012),
    ("MQMQ-2.3.3.7-01", SiteProperty, "PROPID_S_PARTITIONID", 307, 0x0048),
    ("MQMQ-2.3.3.8-01", SiteProperty, "PROPID_S_SEQNUM", 308, 0x0041),
    ("MQMQ-2.3.3.9-01", SiteProperty, "PROPID_S_FULL_NAME", 309, 0x001F),
    ("MQMQ-2.3.3.10-01", SiteProperty, "PROPID_S_NT4_STUB", 310, 0x0012),
    ("MQMQ-2.3.3.11-01", SiteProperty, "PROPID_S_FOREIGN", 311, 0x0011),
    ("MQMQ-2.3.3.12-01", SiteProperty, "PROPID_S_DONOTHING", 312, 0x0011),
    ("MQMQ-2.3.3.13-01", SiteProperty, "PROPID_S_SECURITY", 1301, 0x0041),
    ("MQMQ-2.3.3.14-01", SiteProperty, "PROPID_S_PSC_SIGNPK", 1302, 0x0041),
    ("MQMQ-2.3.3.15-01", SiteProperty, "PROPID_S_SECURITY_INFORMATION", 1303, 0x0013),
    ("MQMQ-2.3.4.1-01", ConnectedNetworkProperty, "PROPID_CN_PROTOCOLID", 501, 0x0011),
    ("MQMQ-2.3.4.2-01", ConnectedNetworkProperty, "PROPID_CN_NAME", 502, 0x001F),
    ("MQMQ-2.3.4.3-01", ConnectedNetworkProperty, "PROPID_CN_GUID", 503, 0x0048),
    ("MQMQ-2.3.4.4-01", ConnectedNetworkProperty, "PROPID_CN_PARTITIONID", 504, 0x0048),
    ("MQMQ-2.3.4.5-01", ConnectedNetworkProperty, "PROPID_CN_SEQNUM", 505, 0x0041),
    ("MQMQ-2.3.4.6-01", ConnectedNetworkProperty, "PROPID_CN_SECURITY", 1501, 0x0041),
    ("MQMQ-2.3.5.1-01", EnterpriseProperty, "PROPID_E_NAME", 601, 0x001F),
    ("MQMQ-2.3.5.2-01", EnterpriseProperty, "PROPID_E_NAMESTYLE", 602, 0x0011),
    ("MQMQ-2.3.5.3-01", EnterpriseProperty, "PROPID_E_CSP_NAME", 603, 0x001F),
    ("MQMQ-2.3.5.4-01", EnterpriseProperty, "PROPID_E_PECNAME", 604, 0x001F),
    ("MQMQ-2.3.5.5-01", EnterpriseProperty, "PROPID_E_S_INTERVAL1", 605, 0x0012),
    ("MQMQ-2.3.5.6-01", EnterpriseProperty, "PROPID_E_S_INTERVAL2", 606, 0x0012),
    ("MQMQ-2.3.5.7-01", EnterpriseProperty, "PROPID_E_PARTITIONID", 607, 0x0048),
    ("MQMQ-2.3.5.8-01", EnterpriseProperty, "PROPID_E_SEQNUM", 608, 0x0041),
    ("MQMQ-2.3.5.9-01", EnterpriseProperty, "PROPID_E_ID", 609, 0x0048),
    ("MQMQ-2.3.5.10-01", EnterpriseProperty, "PROPID_E_CRL", 610, 0x0041),
    ("MQMQ-2.3.5.11-01", EnterpriseProperty, "PROPID_E_CSP_TYPE", 611, 0x0013),
    ("MQMQ-2.3.5.12-01", EnterpriseProperty, "PROPID_E_ENCRYPT_ALG", 612, 0x0013),
    ("MQMQ-2.3.5.13-01", EnterpriseProperty, "PROPID_E_SIGN_ALG", 613, 0x0013),
    ("MQMQ-2.3.5.14-01", EnterpriseProperty, "PROPID_E_HASH_ALG", 614, 0x0013),
    ("MQMQ-2.3.5.15-01", EnterpriseProperty, "PROPID_E_LONG_LIVE", 616, 0x0013),
    ("MQMQ-2.3.5.16-01", EnterpriseProperty, "PROPID_E_VERSION", 617, 0x0012),
    ("MQMQ-2.3.5.17-01", EnterpriseProperty, "PROPID_E_SECURITY", 1601, 0x0041),
    ("MQMQ-2.3.5.18-01", EnterpriseProperty, "PROPID_E_CIPHER_MODE", 615, 0x0013),
    ("MQMQ-2.3.6.1-01", UserProperty, "PROPID_U_SID", 701, 0x0041),
    ("MQMQ-2.3.6.2-01", UserProperty, "PROPID_U_PARTITIONID", 703, 0x0048),
    ("MQMQ-2.3.6.3-01", UserProperty, "PROPID_U_SEQNUM", 704, 0x0041),
    ("MQMQ-2.3.6.4-01", UserProperty, "PROPID_U_SIGN_CERT", 702, 0x0041),
    ("MQMQ-2.3.6.5-01/a", UserProperty, "PROPID_U_DIGEST", 705, 0x1048),
    ("MQMQ-2.3.6.6-01", UserProperty, "PROPID_U_ID", 706, 0x0048),
    ("MQMQ-2.3.7.1-01", RoutingLinkProperty, "PROPID_L_NEIGHBOR1", 801, 0x0048),
    ("MQMQ-2.3.7.2-01", RoutingLinkProperty, "PROPID_L_NEIGHBOR2", 802, 0x0048),
    ("MQMQ-2.3.7.3-01", RoutingLinkProperty, "PROPID_L_COST", 803, 0x0013),
    ("MQMQ-2.3.7.4-01", RoutingLinkProperty, "PROPID_L_PARTITIONID", 804, 0x0048),
    ("MQMQ-2.3.7.5-01", RoutingLinkProperty, "PROPID_L_SEQNUM", 805, 0x0041),
    ("MQMQ-2.3.7.6-01", RoutingLinkProperty, "PROPID_L_ID", 806, 0x0048),
    ("MQMQ-2.3.7.7-01", RoutingLinkProperty, "PROPID_L_GATES_DN", 807, 0x101F),
    ("MQMQ-2.3.7.8-01", RoutingLinkProperty, "PROPID_L_NEIGHBOR1_DN", 808, 0x001F),
    ("MQMQ-2.3.7.9-01", RoutingLinkProperty, "PROPID_L_NEIGHBOR2_DN", 809, 0x001F),
    ("MQMQ-2.3.7.10-01", RoutingLinkProperty, "PROPID_L_DESCRIPTION", 810, 0x001F),
    ("MQMQ-2.3.7.11-01", RoutingLinkProperty, "PROPID_L_FULL_PATH", 811, 0x001F),
    ("MQMQ-2.3.7.12-01", RoutingLinkProperty, "PROPID_L_ACTUAL_COST", 812, 0x0013),
    ("MQMQ-2.3.7.13-01", RoutingLinkProperty, "PROPID_L_GATES", 813, 0x1048),
    ("MQMQ-2.3.8.1-01", SettingsProperty, "PROPID_SET_NAME", 5101, 0x001F),
    ("MQMQ-2.3.8.2-01", SettingsProperty, "PROPID_SET_SERVICE", 5102, 0x0013),
    ("MQMQ-2.3.8.3-01", SettingsProperty, "PROPID_SET_QM_ID", 5103, 0x0048),
    ("MQMQ-2.3.8.4-01", SettingsProperty, "PROPID_SET_FULL_PATH", 5105, 0x001F),
    ("MQMQ-2.3.8.5-01", SettingsProperty, "PROPID_SET_NT4", 5106, 0x0011),
    ("MQMQ-2.3.8.6-01", SettingsProperty, "PROPID_SET_PARTITIONID", 5107, 0x0048),
    ("MQMQ-2.3.8.7-01", SettingsProperty, "PROPID_SET_SITENAME", 5108, 0x001F),
    ("MQMQ-2.3.8.8-01", SettingsProperty, "PROPID_SET_SERVICE_ROUTING", 5109, 0x0011),
    ("MQMQ-2.3.8.9-01", SettingsProperty, "PROPID_SET_SERVICE_DSSERVER", 5110, 0x0011),
    ("MQMQ-2.3.8.10-01", SettingsProperty, "PROPID_SET_SERVICE_DEPCLIENTS", 5111, 0x0011),
    ("MQMQ-2.3.8.11-01", SettingsProperty, "PROPID_SET_OLDSERVICE", 5112, 0x0013),
    ("MQMQ-2.3.9.1-01", MQUserProperty, "PROPID_MQU_SID", 5401, 0x0041),
    ("MQMQ-2.3.9.2-01", MQUserProperty, "PROPID_MQU_SIGN_CERT", 5402, 0x0041),
    ("MQMQ-2.3.9.3-01", MQUserProperty, "PROPID_MQU_DIGEST", 5405, 0x1048),
    ("MQMQ-2.3.9.4-01", MQUserProperty, "PROPID_MQU_ID", 5406, 0x0048),
    ("MQMQ-2.3.9.5-01", MQUserProperty, "PROPID_MQU_SECURITY", 5407, 0x0041),
    ("MQMQ-2.3.10.1-01", ComputerProperty, "PROPID_COM_FULL_PATH", 5201, 0x001F),
    ("MQMQ-2.3.10.2-01", ComputerProperty, "PROPID_COM_SAM_ACCOUNT", 5202, 0x001F),
    ("MQMQ-2.3.10.3-01", ComputerProperty, "PROPID_COM_ACCOUNT_CONTROL", 5204, 0x0013),
    ("MQMQ-2.3.10.4-01", ComputerProperty, "PROPID_COM_DNS_HOSTNAME", 5205, 0x001F),
    ("MQMQ-2.3.10.5-01", ComputerProperty, "PROPID_COM_SID", 5206, 0x0041),
    ("MQMQ-2.3.10.6-01", ComputerProperty, "PROPID_COM_SIGN_CERT", 5207, 0x0041),
    ("MQMQ-2.3.10.7-01", ComputerProperty, "PROPID_COM_DIGEST", 5208, 0x1048),
    ("MQMQ-2.3.10.8-01", ComputerProperty, "PROPID_COM_ID", 5209, 0x0048),
    ("MQMQ-2.3.11.1-01", ManagementMachineProperty, "PROPID_MGMT_MSMQ_ACTIVEQUEUES", 1, 0x101F),
    ("MQMQ-2.3.11.2-01", ManagementMachineProperty, "PROPID_MGMT_MSMQ_PRIVATEQ", 2, 0x101F),
    ("MQMQ-2.3.11.3-01", ManagementMachineProperty, "PROPID_MGMT_MSMQ_DSSERVER", 3, 0x001F),
    ("MQMQ-2.3.11.4-01", ManagementMachineProperty, "PROPID_MGMT_MSMQ_CONNECTED", 4, 0x001F),
    ("MQMQ-2.3.11.5-01", ManagementMachineProperty, "PROPID_MGMT_MSMQ_TYPE", 5, 0x001F),
    ("MQMQ-2.3.11.6-01", ManagementMachineProperty, "PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES", 6, 0x0014),
    ("MQMQ-2.3.12.1-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_PATHNAME", 1, 0x001F),
    ("MQMQ-2.3.12.2-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_FORMATNAME", 2, 0x001F),
    ("MQMQ-2.3.12.3-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_TYPE", 3, 0x001F),
    ("MQMQ-2.3.12.4-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_LOCATION", 4, 0x001F),
    ("MQMQ-2.3.12.5-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_XACT", 5, 0x001F),
    ("MQMQ-2.3.12.6-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_FOREIGN", 6, 0x001F),
    ("MQMQ-2.3.12.7-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_MESSAGE_COUNT", 7, 0x0013),
    ("MQMQ-2.3.12.8-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_BYTES_IN_QUEUE", 8, 0x0013),
    ("MQMQ-2.3.12.9-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT", 9, 0x0013),
    ("MQMQ-2.3.12.10-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL", 10, 0x0013),
    ("MQMQ-2.3.12.11-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_STATE", 11, 0x001F),
    ("MQMQ-2.3.12.12-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_NEXTHOPS", 12, 0x101F),
    ("MQMQ-2.3.12.13-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_LAST_ACK", 13, 0x0041),
    ("MQMQ-2.3.12.14-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME", 14, 0x0003),
    ("MQMQ-2.3.12.15-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT", 15, 0x0013),
    ("MQMQ-2.3.12.16-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK", 16, 0x0041),
    ("MQMQ-2.3.12.17-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK", 17, 0x0041),
    ("MQMQ-2.3.12.18-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_NEXT_SEQ", 18, 0x0041),
    ("MQMQ-2.3.12.19-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT", 19, 0x0013),
    ("MQMQ-2.3.12.20-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT", 20, 0x0013),
    ("MQMQ-2.3.12.21-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_RESEND_TIME", 21, 0x0003),
    ("MQMQ-2.3.12.22-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL", 22, 0x0013),
    ("MQMQ-2.3.12.23-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_RESEND_COUNT", 23, 0x0013),
    ("MQMQ-2.3.12.24-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_EOD_SOURCE_INFO", 24, 0x100C),
    ("MQMQ-2.3.12.25-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_CONNECTION_HISTORY", 25, 0x100C),
    ("MQMQ-2.3.12.26-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_SUBQUEUE_COUNT", 26, 0x0013),
    ("MQMQ-2.3.12.27-01", ManagementQueueProperty, "PROPID_MGMT_QUEUE_SUBQUEUE_NAMES", 27, 0x101F),
    ("MQMQ-2.3.13.1-01", DeletionProperty, "PROPID_D_SEQNUM", 1401, 0x0041),
    ("MQMQ-2.3.13.2-01", DeletionProperty, "PROPID_D_PARTITIONID", 1402, 0x0048),
    ("MQMQ-2.3.13.3-01", DeletionProperty, "PROPID_D_SCOPE", 1403, 0x0011),
    ("MQMQ-2.3.13.4-01", DeletionProperty, "PROPID_D_OBJTYPE", 1404, 0x0011),
    ("MQMQ-2.3.13.5-01", DeletionProperty, "PROPID_D_IDENTIFIER", 1405, 0x0048),
]

# requirement, enumeration, all its members
VALUES = [
    ("MQMQ-2.3.1.4-01", QueueJournal, {"MQ_JOURNAL_NONE": 0, "MQ_JOURNAL": 1}),
    ("MQMQ-2.3.1.11-01", QueueAuthenticate, {"MQ_AUTHENTICATE_NONE": 0, "MQ_AUTHENTICATE": 1}),
    (
        "MQMQ-2.3.1.12-01",
        QueuePrivLevel,
        {"MQ_PRIV_LEVEL_NONE": 0, "MQ_PRIV_LEVEL_OPTIONAL": 1, "MQ_PRIV_LEVEL_BODY": 2},
    ),
    ("MQMQ-2.3.1.13-01", QueueTransaction, {"MQ_TRANSACTIONAL_NONE": 0, "MQ_TRANSACTIONAL": 1}),
    ("MQMQ-2.3.1.14-01", Scope, {"MQDS_SITESCOPE": 0, "MQDS_ENTERPRISESCOPE": 1}),
    ("MQMQ-2.3.13.3-01", Scope, {"MQDS_SITESCOPE": 0, "MQDS_ENTERPRISESCOPE": 1}),
    ("MQMQ-2.3.2.18-01", MachineForeign, {"MSMQ_MACHINE": 0, "FOREIGN_MACHINE": 1}),
    (
        "MQMQ-2.3.2.19-01",
        MachineOs,
        {
            "MSMQ_OS_NONE": 0x000,
            "MSMQ_OS_FOREIGN": 0x100,
            "MSMQ_OS_95": 0x200,
            "MSMQ_OS_NTW": 0x300,
            "MSMQ_OS_NTS": 0x400,
            "MSMQ_OS_NTE": 0x500,
        },
    ),
    (
        "MQMQ-2.3.2.35-01",
        MachineGroupInCluster,
        {"MSMQ_GROUP_NOT_IN_CLUSTER": 0, "MSMQ_GROUP_IN_CLUSTER": 1},
    ),
    (
        "MQMQ-2.3.13.4-01",
        DeletedObjectType,
        {
            "MQDS_QUEUE": 1,
            "MQDS_MACHINE": 2,
            "MQDS_SITE": 3,
            "MQDS_DELETEDOBJECT": 4,
            "MQDS_CN": 5,
            "MQDS_ENTERPRISE": 6,
            "MQDS_USER": 7,
            "MQDS_ROUTINGLINK": 8,
        },
    ),
    (
        "MQMQ-2.3.11.4-01",
        ManagementConnected,
        {"MSMQ_CONNECTED": "CONNECTED", "MSMQ_DISCONNECTED": "DISCONNECTED"},
    ),
    (
        "MQMQ-2.3.12.3-01",
        ManagementQueueType,
        {
            "MGMT_QUEUE_TYPE_PUBLIC": "PUBLIC",
            "MGMT_QUEUE_TYPE_PRIVATE": "PRIVATE",
            "MGMT_QUEUE_TYPE_MACHINE": "MACHINE",
            "MGMT_QUEUE_TYPE_CONNECTOR": "CONNECTOR",
            "MGMT_QUEUE_TYPE_MULTICAST": "MULTICAST",
        },
    ),
    (
        "MQMQ-2.3.12.4-01",
        ManagementQueueLocation,
        {"MGMT_QUEUE_LOCAL_LOCATION": "LOCAL", "MGMT_QUEUE_REMOTE_LOCATION": "REMOTE"},
    ),
    (
        "MQMQ-2.3.12.5-01",
        ManagementQueueXact,
        {
            "MGMT_QUEUE_UNKNOWN_TYPE": "UNKNOWN",
            "MGMT_QUEUE_TRANSACTIONAL_TYPE": "YES",
            "MGMT_QUEUE_NOT_TRANSACTIONAL_TYPE": "NO",
        },
    ),
    (
        "MQMQ-2.3.12.6-01",
        ManagementQueueForeign,
        {
            "MGMT_QUEUE_UNKNOWN_TYPE": "UNKNOWN",
            "MGMT_QUEUE_FOREIGN_TYPE": "YES",
            "MGMT_QUEUE_NOT_FOREIGN_TYPE": "NO",
        },
    ),
    (
        "MQMQ-2.3.12.11-01",
        ManagementQueueState,
        {
            "MGMT_QUEUE_STATE_LOCAL": "LOCAL CONNECTION",
            "MGMT_QUEUE_STATE_NONACTIVE": "INACTIVE",
            "MGMT_QUEUE_STATE_WAITING": "WAITING",
            "MGMT_QUEUE_STATE_NEED_VALIDATE": "NEED VALIDATION",
            "MGMT_QUEUE_STATE_ONHOLD": "ONHOLD",
            "MGMT_QUEUE_STATE_CONNECTED": "CONNECTED",
            "MGMT_QUEUE_STATE_DISCONNECTING": "DISCONNECTING",
            "MGMT_QUEUE_STATE_DISCONNECTED": "DISCONNECTED",
        },
    ),
]

# requirement, number, a word of its description
STATES = [
    ("MQMQ-2.3.12.25-03", 0x00000000, "being established"),
    ("MQMQ-2.3.12.25-04", 0x00000001, "received"),
    ("MQMQ-2.3.12.25-05", 0x00000002, "^established"),
    ("MQMQ-2.3.12.25-06", 0x80000000, "unknown"),
    ("MQMQ-2.3.12.25-07", 0x80000001, "ping"),
    ("MQMQ-2.3.12.25-08", 0x80000002, "no socket"),
    ("MQMQ-2.3.12.25-09", 0x80000003, "bound"),
    ("MQMQ-2.3.12.25-10", 0x80000004, "not connect"),
    ("MQMQ-2.3.12.25-11", 0x80000005, "TCP"),
    ("MQMQ-2.3.12.25-12", 0x80000006, "on the socket"),
    ("MQMQ-2.3.12.25-13", 0x80000007, "not ready"),
    ("MQMQ-2.3.12.25-14", 0x80000008, "DNS"),
    ("MQMQ-2.3.12.25-15", 0x80000009, "certificate"),
    ("MQMQ-2.3.12.25-16", 0x8000000A, "limit"),
    ("MQMQ-2.3.12.25-17", 0x8000000B, "refused"),
    ("MQMQ-2.3.12.25-18", 0x8000000C, "directory"),
    ("MQMQ-2.3.12.25-19", 0x8000000D, "memory"),
]

INNER_VECTORS = [
    ("MQMQ-2.3.12.24-02", SOURCE_INFO_VECTORS, 0, 0x101F),
    ("MQMQ-2.3.12.24-03", SOURCE_INFO_VECTORS, 1, 0x1048),
    ("MQMQ-2.3.12.24-04", SOURCE_INFO_VECTORS, 2, 0x1015),
    ("MQMQ-2.3.12.24-05", SOURCE_INFO_VECTORS, 3, 0x1013),
    ("MQMQ-2.3.12.24-06", SOURCE_INFO_VECTORS, 4, 0x1003),
    ("MQMQ-2.3.12.24-07", SOURCE_INFO_VECTORS, 5, 0x1013),
    ("MQMQ-2.3.12.25-02", CONNECTION_HISTORY_VECTORS, 0, 0x1013),
    ("MQMQ-2.3.12.25-20", CONNECTION_HISTORY_VECTORS, 1, 0x1003),
    ("MQMQ-2.3.12.25-21", CONNECTION_HISTORY_VECTORS, 2, 0x1003),
]

# requirement, type of object, its ranges
RANGES = [
    (QueueProperty, [(101, 126), (1101, 1103)]),
    (MachineProperty, [(201, 242), (1201, 1205)]),
    (SiteProperty, [(301, 312), (1301, 1303)]),
    (ConnectedNetworkProperty, [(501, 505), (1501, 1501)]),
    (EnterpriseProperty, [(601, 617), (1601, 1601)]),
    (UserProperty, [(701, 706)]),
    (RoutingLinkProperty, [(801, 813)]),
    (DeletionProperty, [(1401, 1405)]),
    (SettingsProperty, [(5101, 5112)]),
    (ComputerProperty, [(5201, 5209)]),
    (MQUserProperty, [(5401, 5407)]),
    (ManagementMachineProperty, [(1, 6)]),
    (ManagementQueueProperty, [(1, 27)]),
]


@pytest.mark.parametrize("of, name, number, variant_type", proving(PROPERTIES, name=lambda row: row[2]))
def test_a_property_has_its_number_and_its_type(of, name, number, variant_type):
    assert of[name] == number
    assert of[name].vt == variant_type
    assert of(number) is of[name]


def test_there_is_no_other_property():
    names = {name for property_type in PropId.__subclasses__() for name in property_type.__members__}
    assert names == {name for _, _, name, _, _ in PROPERTIES}


@pytest.mark.parametrize("kind, members", proving(VALUES, name=lambda row: row[1].__name__))
def test_a_property_is_limited_to_its_values(kind, members):
    assert {name: member.value for name, member in kind.__members__.items()} == members


SERVICES = {
    0x00: "none",
    0x01: "routing server",
    0x02: "backup site controller",
    0x04: "primary site controller",
    0x08: "primary enterprise controller",
}


@pytest.mark.requirement("MQMQ-2.3.8.2-01", "MQMQ-2.3.8.11-01")
def test_service_types_of_a_settings_object():
    assert dict(SETTINGS_SERVICE_TYPES) == SERVICES


@pytest.mark.requirement("MQMQ-2.3.2.9-01")
def test_service_types_of_a_queue_manager():
    assert dict(SERVICE_TYPES) == {**SERVICES, 0x10: "remote access server"}


@pytest.mark.requirement("MQMQ-2.3.4.1-01")
def test_protocols_of_a_connected_network_are_address_types():
    assert AddressType.IP_ADDRESS_TYPE == 0x01
    assert AddressType.IPX_ADDRESS_TYPE == 0x03
    assert AddressType.FOREIGN_ADDRESS_TYPE == 0x05


@pytest.mark.parametrize("number, word", proving(STATES, name=lambda row: f"{row[1]:08X}"))
def test_a_state_of_the_connection_history(number, word):
    assert re.search(rf"\b{word}\b", CONNECTION_STATUS[number])


def test_there_is_no_other_state_of_the_connection_history():
    assert list(CONNECTION_STATUS) == [number for _, number, _ in STATES]


@pytest.mark.parametrize("vectors, index, number", proving(INNER_VECTORS, name=lambda row: row[0]))
def test_an_inner_vector_has_its_type(vectors, index, number):
    assert vectors[index] == number


@pytest.mark.requirement("MQMQ-2.3.12.24-01", "MQMQ-2.3.12.25-01")
def test_the_number_of_inner_vectors():
    assert (len(SOURCE_INFO_VECTORS), len(CONNECTION_HISTORY_VECTORS)) == (6, 4)


@pytest.mark.requirement("MQMQ-2.3.12.25-22")
def test_connection_history_addresses_are_a_list_of_lists():
    assert CONNECTION_HISTORY_VECTORS[3] == 0x100C


@pytest.mark.requirement("MQMQ-2.3-01")
def test_property_identifiers_are_unsigned_32_bit_numbers():
    assert all(0 <= member < 1 << 32 for of in PropId.__subclasses__() for member in of)


@pytest.mark.requirement("MQMQ-2.3-04")
@pytest.mark.parametrize("of, ranges", RANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_numbers_of_a_type_of_object_are_in_its_ranges(of, ranges):
    for low, high in ranges:
        inside = [member for member in of if low <= member <= high]
        assert (min(inside), max(inside)) == (low, high)
    assert all(any(low <= member <= high for low, high in ranges) for member in of)
