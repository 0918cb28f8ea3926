"""The deterministic simulator: queue managers, networks, disks and clocks in virtual time, from one seed."""
