"""Stream capture: a pass as one graph, and what kernels a call really launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.status_codes import check, explained

Call = Callable[[], None]


@dataclass(frozen=True, slots=True)
class KernelNode:
    """One kernel in a captured graph."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem_bytes: int
    registers: int | None


def capture(context: Context, calls: Iterable[Call], what: str) -> Any:
    """A CuPy graph of everything that `calls` enqueue, uploaded and ready to launch."""
    with explained(f"capturing {what}"):
        context.stream.begin_capture()
        try:
            for call in calls:
                call()
        except BaseException:
            _abandon(context)
            raise
        graph = context.stream.end_capture()
        graph.upload(context.stream)
        return graph


def kernel_nodes(context: Context, calls: Iterable[Call], what: str) -> tuple[KernelNode, ...]:
    """The kernels that `calls` would launch, by capturing and not running them."""
    from cuda.bindings import driver

    graph = capture(context, calls, what)
    handle = driver.CUgraph(graph.graph)
    _, count = check(driver.cuGraphGetNodes(handle), what)
    nodes, _ = check(driver.cuGraphGetNodes(handle, count), what)
    kernel = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
    return tuple(
        _kernel_node(driver, node)
        for node in nodes[:count]
        if check(driver.cuGraphNodeGetType(node), what) == kernel
    )


def _kernel_node(driver: Any, node: Any) -> KernelNode:
    params = check(driver.cuGraphKernelNodeGetParams(node), "a graph node")
    function = params.func
    if int(function) == 0:
        function = check(driver.cuKernelGetFunction(params.kern), "a graph node")
    name = check(driver.cuFuncGetName(function), "a graph node")
    status, registers = driver.cuFuncGetAttribute(
        driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function
    )
    return KernelNode(
        name.decode(errors="replace"),
        (params.gridDimX, params.gridDimY, params.gridDimZ),
        (params.blockDimX, params.blockDimY, params.blockDimZ),
        params.sharedMemBytes,
        int(registers) if status == 0 else None,
    )


def _abandon(context: Context) -> None:
    """Leave capture mode after a failure: the stream is unusable until its capture is ended."""
    try:
        context.stream.end_capture()
    except Exception:
        # Ending an invalidated capture reports the failure that is already on its way up.
        return
