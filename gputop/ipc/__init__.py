"""The boundary between the two processes: protocol, client, worker."""
