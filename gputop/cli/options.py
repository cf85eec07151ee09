"""The options that commands share: which plan, how long to measure, where results go."""

from __future__ import annotations

import argparse
import math
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputop import backends
from gputop.util.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from gputop.plan.types import KernelChoice, PlanRequest, Workload

DEFAULT_WINDOWS = 1
LONGEST_WINDOW_S = 86_400.0
DEFAULT_WORKLOAD = "gpt2-small"
BACKENDS = ("auto", *backends.MODULES, "replay")


def add_plan_options(parser: ArgumentParser, *, rung: bool = True) -> None:
    """Add what is measured. Leave `rung` out if the command takes plan strings."""
    group = parser.add_argument_group("plan")
    add_backend_option(group)
    group.add_argument(
        "--device", metavar="INDEX|UUID|FILE", help="which device, where there are several; which recording"
    )
    add_workload_option(group)
    add_batch_option(group)
    if rung:
        group.add_argument(
            "--rung", type=_word, metavar="ID[,...]",
            help="a named plan (`gputop list rungs`), or a plan in one word as compare takes it",
        )  # fmt: skip
    add_change_options(group)
    group.add_argument("--remote", metavar="HOST", help="measure on HOST, through `ssh HOST gputop worker`")


class _Recording(Action):
    """`--replay NAME`: short for `--backend replay --device NAME`."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        if namespace.device is not None or namespace.backend != "auto":
            parser.error("--replay names what is looked up: leave --backend and --device out.")
        namespace.backend, namespace.device = "replay", values


def add_replay_option(parser: argparse._ActionsContainer) -> None:
    """Add the recording in which to look a plan up, after `add_plan_options`."""
    parser.add_argument(
        "--replay", action=_Recording, metavar="FILE|NAME",
        help="look it up in a recording instead of measuring: h200, or a file",
    )  # fmt: skip


def add_batch_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--batch", type=whole_number, metavar="N", help="sequences in one pass")


def add_change_options(parser: argparse._ActionsContainer) -> None:
    """Add how a plan differs from its rung, and the folder of kernels."""
    parser.add_argument(
        "--set", dest="sets", action="append", default=[], type=_pair("TOGGLE=VALUE"), metavar="TOGGLE=VALUE",
        help="flip a toggle of the plan (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--use", dest="uses", action="append", default=[], type=_use, metavar="SITE=KERNEL[/SPLITS]",
        help="choose the kernel of a site, and into how many parts it divides the inner axis (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--kernels", dest="kernels_dir", metavar="DIR",
        help="your own kernels, each with a record beside it or in place of ours there",
    )  # fmt: skip


def add_backend_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--backend", type=one_of("backend", BACKENDS), default="auto", metavar="|".join(BACKENDS),
        help="what measures (default: cuda where it is usable, else cpu)",
    )  # fmt: skip


def add_workload_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--workload", default=DEFAULT_WORKLOAD, metavar="NAME|FILE.toml|config.json",
        help=f"the model's sizes (default {DEFAULT_WORKLOAD}): a name (`gputop list workloads`), "
        "a TOML file, or a Hugging Face config.json of the GPT-2 family",
    )  # fmt: skip
    parser.add_argument(
        "--weights",
        metavar="FILE.safetensors",
        help="the model's weights, with GPT-2's names, in place of drawn ones",
    )
    parser.add_argument(
        "--seq", type=whole_number, metavar="N", help="tokens in a sequence, in place of the workload's own"
    )


def add_measuring_options(parser: ArgumentParser, *, windows: bool = True) -> None:
    """Add how long to measure."""
    group = parser.add_argument_group("measuring")
    if windows:
        group.add_argument(
            "--windows", type=whole_number, default=DEFAULT_WINDOWS, metavar="N",
            help=f"windows to measure (default {DEFAULT_WINDOWS})",
        )  # fmt: skip
    group.add_argument("--seconds", type=_duration, metavar="S", help="longest time that one window may take")


def add_output_options(parser: ArgumentParser) -> None:
    """Add where results go apart from the table."""
    group = parser.add_argument_group("output")
    for kind in ("csv", "json"):
        group.add_argument(
            f"--{kind}",
            metavar="FILE|-",
            help=f"write {kind.upper()} to FILE, or to stdout in the table's place",
        )


def add_theme_option(parser: ArgumentParser) -> None:
    """Add the screen's colours."""
    parser.add_argument(
        "--theme", choices=("dark", "light"), help="the screen's colours; default: those of the last time"
    )


def workload_of(options: Namespace) -> Workload:
    """UsageError for an unknown name, a file that is no workload, a length or weights that it can't have."""
    from gputop.model.workloads import parse_workload, with_seq

    workload = parse_workload(options.workload)
    if options.seq is not None:
        workload = with_seq(workload, options.seq)
    if options.weights is not None:
        from gputop.model.weights_file import with_weights

        workload = with_weights(workload, Path(options.weights))
    return workload


def kernels_dir_of(options: Namespace) -> str | None:
    """Return the folder as an absolute path, so that the worker may stand elsewhere; for a remote as given.

    Raise UsageError for a folder that nothing would be compiled from.
    """
    folder: str | None = options.kernels_dir
    if folder is None:
        return None
    if options.remote is None:
        backends.check_sources(options.backend, folder)
        return str(Path(folder).resolve())
    if options.backend == "replay":
        backends.check_sources(options.backend, folder)
    return folder


def request_of(options: Namespace, rung: str) -> PlanRequest:
    """The plan that these options ask for, from `rung` where they name none."""
    from gputop.plan.plan_string import parse_word
    from gputop.plan.types import PlanRequest

    return with_changes(parse_word(options.rung) if options.rung else PlanRequest(rung), options)


def with_changes(request: PlanRequest, options: Namespace) -> PlanRequest:
    """Return `request` with --batch, --set and --use added. Raise UsageError if one name gets two values."""
    from dataclasses import replace

    from gputop.plan.plan_string import checked_once

    batch = () if options.batch is None else (("batch", str(options.batch)),)
    sets, uses = (*options.sets, *batch), tuple(options.uses)
    return checked_once(replace(request, sets=(*request.sets, *sets), uses=(*request.uses, *uses)))


def whole_number(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise ArgumentTypeError(f"{text} is too small: at least 1")
    return value


def one_of(kind: str, allowed: Iterable[str]) -> Callable[[str], str]:
    """An argument type that names the nearest allowed word."""
    words = tuple(allowed)

    def parse(text: str) -> str:
        if text not in words:
            raise ArgumentTypeError(str(unknown_name(kind, text, words)))
        return text

    return parse


def _duration(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not math.isfinite(value) or not 0 < value <= LONGEST_WINDOW_S:
        raise ArgumentTypeError(
            f"{text} s is no length for a window: above 0, at most {LONGEST_WINDOW_S:.0f}"
        )
    return value


def _word(text: str) -> str:
    """A plan in one word, which its form must allow; names are looked up where the plan is."""
    from gputop.plan.plan_string import parse_word

    try:
        parse_word(text)
    except UsageError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def _use(text: str) -> tuple[str, KernelChoice]:
    """A site with its kernel."""
    from gputop.plan.plan_string import parse_choice

    site, kernel = _pair("SITE=KERNEL")(text)
    try:
        return site, parse_choice(kernel)
    except UsageError as error:
        raise ArgumentTypeError(str(error)) from None


def _pair(form: str) -> Callable[[str], tuple[str, str]]:
    def parse(text: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ArgumentTypeError(f"{text!r} is not of the form {form}")
        return name, value

    return parse
