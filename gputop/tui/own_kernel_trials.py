"""The trial of the user's own kernel, from a save to a verdict: compiled, checked, then paired."""

from __future__ import annotations

from typing import Any

from gputop.tui import facts, own_kernel
from gputop.tui.exporting import Exporting
from gputop.tui.kernel_watch import KernelWatch
from gputop.tui.measure_thread import SavedKernels
from gputop.tui.messages import KernelChecked, KernelLost, KernelsBuilt, KernelsNotWatched, KernelsSaved


class OwnKernelTrials(Exporting):
    """Has what is saved tried, and shows how far it has come."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._kernel_watch: KernelWatch | None = None

    def on_load(self) -> None:
        # Another host's folder can't be watched from here.
        if self.options.kernels_dir is not None and self.options.remote is None:
            self._kernel_watch = KernelWatch(self.options.kernels_dir, self.post_message)
            self._kernel_watch.start()

    def on_unmount(self) -> None:
        if self._kernel_watch is not None:
            self._kernel_watch.finish()

    def on_kernels_saved(self, message: KernelsSaved) -> None:
        state = self.state
        if state.current is not None and not state.replaying:
            row = facts.selected_row(state)
            site = state.site or (row.phase if row else None)
            self._sampler.rebuild(SavedKernels(state.current, site, frozenset(message.changed)))

    def on_kernels_not_watched(self, message: KernelsNotWatched) -> None:
        self._show_error(message.reason)

    def on_kernels_built(self, message: KernelsBuilt) -> None:
        self._set_state(own_kernel.kernels_built(self.state, message.reports))

    def on_kernel_checked(self, message: KernelChecked) -> None:
        self._set_state(own_kernel.kernel_checked(self.state, message.report, message.gate))

    def on_kernel_lost(self, message: KernelLost) -> None:
        self._set_state(own_kernel.kernel_lost(self.state, message.report, message.reason))

    def action_own_kernel(self) -> None:
        if self.state.own is None:
            self._notice("No kernel of your own was saved so far: --kernels DIR names the folder to watch.")
            return
        self._main.open_or_close_own_kernel()
