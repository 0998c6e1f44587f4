"""What many rooms need and none owns: clocks, backoff, work queues."""
