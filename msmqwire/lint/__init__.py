from msmqwire.lint.finding import Finding, Severity
from msmqwire.lint.packet import checks, lint_packet
