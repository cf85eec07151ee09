"""One pass of each named rung on the small workload, for compute-sanitizer.

python -m tests.gpu.sanitize RUNG...
"""

from __future__ import annotations

import sys
import traceback

from gputop import fill
from gputop.backends.cuda import context, open_backend
from gputop.catalog import plan_dims
from gputop.errors import BadInput, NotHere
from gputop.spec import PlanRequest
from tests.gpu.plans import STANDARD, catalog

PATIENCE_S = 600.0
"""A sanitizer makes a kernel a thousand times slower."""


def main(rungs: list[str]) -> int:
    context.DEADLINE_S = PATIENCE_S
    workload = STANDARD["mini"]
    backend = open_backend(workload, None, print)
    failed = 0
    for rung in rungs:
        try:
            plan = catalog().resolve(PlanRequest(rung), workload.dims, "cuda")
            dims = plan_dims(workload, plan)
            prepared = backend.prepare(plan, catalog().steps(plan, dims), print)
        except (BadInput, NotHere) as error:
            print(f"{rung}: left out: {error}")
            continue
        except Exception:
            # The next rung's kernels are still to be looked at.
            traceback.print_exc()
            failed = 1
            continue
        logits = prepared.run(fill.tokens(workload, 1, plan.batch), 1e30)
        print(f"{rung}: {logits[0, 0]:.6f} {logits[0, 1]:.6f}")
        prepared.close()
    backend.close()
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
