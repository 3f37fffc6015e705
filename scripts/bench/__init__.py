"""What `make bench` is made of: the machine's limits, the engines, workloads, agreement, the report and its plots."""
