#!/usr/bin/env bash
# Everything that needs a GPU, in one call: tests/gpu/run_all.sh FOLDER [PART...]
#
# Parts, in this order, all of them where none is named:
#   results    the first result cold and warm, peaks, two comparisons, the ladder
#   record     a recording
#   sanitize   memcheck and synccheck of every rung on mini, memcheck of the probes, racecheck of our own kernels
#   tests      the GPU tests but the planted faults
#   planted    the planted faults
#
# Whatever takes times has the GPU to itself; the rest runs side by side, JOBS at once: as many as half the cores
# and 8 GB of GPU memory for each allow.
#
# A step that fails or outlasts its time does not stop the others; any such makes the exit code 1, and a machine
# without a usable GPU 3. A short summary ends the output and stands in FOLDER/summary.txt, what each step said in a
# file of its own beside it: what a test was skipped for, too.
# PYTHON chooses the interpreter; BUDGET_S is the longest that all of it may take.
set -u
usage="usage: run_all.sh FOLDER [results] [record] [sanitize] [tests] [planted]"
out=${1:?$usage}
shift
parts=${*:-results record sanitize tests planted}
for part in $parts; do
    case $part in
        results | record | sanitize | tests | planted) ;;
        *) echo "run_all.sh: no part $part; $usage" >&2; exit 2 ;;
    esac
done
python=${PYTHON:-python3}
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
missing=$(cd "$(dirname "$0")/../.." && "$python" -c 'from gputop.backends.cuda.availability import available; print(available() or "")') || exit
[ -z "$missing" ] || { echo "run_all.sh: $missing" >&2; exit 3; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.." || exit 2
: > "$out/summary.txt"
ends=$(($(date +%s) + ${BUDGET_S:-2700}))

jobs_that_fit() {
    local by_memory by_cores=$(($(nproc) / 2))
    by_memory=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2> /dev/null | head -n 1)
    by_memory=$((${by_memory:-8000} / 8000))
    [ "$by_memory" -lt "$by_cores" ] && by_cores=$by_memory
    [ "$by_cores" -ge 1 ] && echo "$by_cores" || echo 1
}
jobs=${JOBS:-$(jobs_that_fit)}
[ "$jobs" -ge 1 ] 2> /dev/null || { echo "run_all.sh: JOBS is how many steps run at once, not '$jobs'" >&2; exit 2; }

# Caches of their own, empty at first: the first result is timed cold and then warm.
XDG_CACHE_HOME=$(mktemp -d)
# The workers' log is kept beside the rest, with how long each of their steps took.
XDG_STATE_HOME=$out/state
export XDG_CACHE_HOME XDG_STATE_HOME PYTHONUNBUFFERED=1 GPUTOP_TIMES=1
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
# What runs in the background would outlive this shell, and the cache that it uses.
stop() { kill $(jobs -p) 2> /dev/null; wait; exit 130; }
trap stop INT TERM

gputop() { "$python" -m gputop "$@"; }
# A binding asks the driver for entry points that it may not have; only what kernels do is to count.
# The probes' times are worth nothing then, so their cache is not the others'.
probes() { XDG_CACHE_HOME=$XDG_CACHE_HOME/probes sanitize "$1" --probes; }
sanitize() { compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 "$python" -m tests.gpu.sanitize "${@:2}"; }
# Spelled out, so that it also runs where pytest lacks the project's plugins.
tests() {
    "$python" -X faulthandler -m pytest -q -rfEs --import-mode=importlib -o addopts= --durations=10 "$@"
}
export -f gputop sanitize probes tests
export python

# step NAME SECONDS COMMAND...: what it says into NAME.txt, its outcome into summary.txt.
step() {
    local name=$1 limit=$2 begun ended status left said
    shift 2
    left=$((ends - $(date +%s)))
    [ "$left" -gt 5 ] || left=5
    [ "$limit" -le "$left" ] || limit=$left
    begun=$(date +%s.%N)
    # A shell heeds no signal while it waits for a command, but while it waits for a job.
    trap stop INT TERM
    timeout --kill-after=5 "$limit" bash -c '"$@"' step "$@" > "$out/$name.txt" 2>&1 &
    wait $!
    status=$?
    ended=$(date +%s.%N)
    [ "$status" -ne 124 ] || status="out of time"
    # How many tests passed and how many were skipped is what a test run ends with.
    case $name in test-*) said=$(tail -n 1 "$out/$name.txt") ;; *) said= ;; esac
    awk -v n="$name" -v s="$status" -v b="$begun" -v e="$ended" -v t="$said" \
        'BEGIN { printf "%-24s exit %-12s %7.1f s  %s\n", n, s, e - b, t }' | tee -a "$out/summary.txt"
}

# beside NAME SECONDS COMMAND...: a step that others may run beside.
beside() {
    while [ "$(jobs -pr | wc -l)" -ge "$jobs" ]; do wait -n; done
    step "$@" &
}

results() {
    step doctor             30 gputop doctor --backend cuda
    step first-result-cold  60 gputop run --backend cuda --rung coalesced --seconds 1 --csv "$out/run.csv"
    step first-result-warm  30 gputop run --backend cuda --rung coalesced --seconds 1
    step calibrate          60 gputop calibrate --backend cuda --json "$out/ceilings.json"
    step naive-to-coalesced 40 gputop compare naive coalesced --backend cuda --seconds 6 --csv "$out/compare.csv"
    step aa                 40 gputop compare coalesced --aa --backend cuda --seconds 3
    step ladder            180 gputop ladder --backend cuda --seconds 15 --json "$out/ladder.json"
}

for part in $parts; do
    case $part in
        results) results ;;
        record) step record 420 gputop record "$out/recording.jsonl" --backend cuda --seconds 0.5 ;;
    esac
done
# What test-rest leaves to other steps.
apart=()
for name in planted kernels gates timing ceilings faults; do apart+=(--ignore="tests/gpu/test_$name.py"); done
# The longest first: what comes last then fills the gaps.
for part in $parts; do
    case $part in
        sanitize)
            beside racecheck 480 sanitize racecheck --own
            beside memcheck  480 sanitize memcheck
            beside synccheck 480 sanitize synccheck
            beside memcheck-probes 480 probes memcheck
            ;;
        tests)
            beside test-kernels 900 tests tests/gpu/test_kernels.py
            beside test-gates   900 tests tests/gpu/test_gates.py
            beside test-rest    900 tests tests/gpu "${apart[@]}"
            ;;
        planted) beside test-planted 900 tests tests/gpu/test_planted.py ;;
    esac
done
wait
case " $parts " in
    *" tests "*)
        step test-clocks 300 tests tests/gpu/test_timing.py tests/gpu/test_ceilings.py tests/gpu/test_faults.py
        ;;
esac

echo
cat "$out/summary.txt"
! grep -qv 'exit 0 ' "$out/summary.txt"
