"""Why ssh did not reach a host, told from what it wrote: each reason with what fixes it."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SshFailure:
    """One reason, by the words in which OpenSSH gives it."""

    pattern: str
    sentence: str
    """`{host}` stands for the host as the user named it."""


SSH_FAILURES = (
    SshFailure(
        r"Could not resolve hostname",
        "There is no host called {host}: check the name, or give it a HostName in ~/.ssh/config.",
    ),
    SshFailure(
        r"Connection refused",
        "{host} refuses ssh: start its ssh server, or name its port in ~/.ssh/config.",
    ),
    SshFailure(
        r"timed out|No route to host|Network is unreachable",
        "{host} does not answer: check that it is on and that this network leads there.",
    ),
    SshFailure(
        r"HOST IDENTIFICATION HAS CHANGED|Host key verification failed|host key is known",
        "ssh does not trust the key of {host}: run `ssh {host}` once by hand and look at what it asks.",
    ),
    SshFailure(
        r"Permission denied|Too many authentication failures",
        "{host} let nobody in: gputop can't type a password, so give your key to that account "
        "(`ssh-copy-id {host}`) and load it here (`ssh-add`).",
    ),
)


def ssh_sentence(host: str, said: str) -> str:
    """Return why ssh to a host failed, by all that it wrote; just that it failed if no reason is known."""
    for failure in SSH_FAILURES:
        if re.search(failure.pattern, said):
            return failure.sentence.format(host=host)
    return f"ssh to {host} failed."
