"""Metrics of many queue managers for Prometheus: targets are asked by [MS-MQMR] when they are scraped."""
