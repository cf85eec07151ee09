"""What to run in what order: prepare, gate, warm up, sample alternately, read against the model.

A library: no threads, no screen.
"""

from gputop.session.opening import REPLAY, open_session
from gputop.session.replay import Replay
from gputop.session.session import Session

__all__ = ["REPLAY", "Replay", "Session", "open_session"]
