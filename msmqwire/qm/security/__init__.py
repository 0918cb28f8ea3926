"""Message security of a queue manager: [MS-MQQB] 3.1.5.8.3, 3.1.7.1.4 and 3.1.7.1.5.

The code that computes with keys (`msmqwire.crypto`) is loaded with the first message that needs it: it takes
a tenth of a second, and few messages do.
"""
