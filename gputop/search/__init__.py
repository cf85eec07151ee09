"""The search: a dispatch table found by measurements, with what is known of GPUs plugged in at five ports.

1 `menu`        what may be proposed: hard constraints, and resource knees only
2 `score`       how a result is scored: distance from reach, and when to stop
3 `prediction`  how a cost is predicted: the term model, and a regression of its residual (`residual`)
4 `experiment`  which experiment is next: what is uncertain and could win, paired with the incumbent
5 `rewrites`    what no setting contains: a hook that is left empty

Policy only: nothing here starts a process or knows a device. `measurer` says what it needs of one.
"""
