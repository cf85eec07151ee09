#!/usr/bin/env bash
# Everything that needs a GPU, in one call: tests/gpu/run_all.sh FOLDER
#
# First results, peaks, the ladder, a recording, the sanitizers, the GPU tests. A step that fails or outlasts its time
# does not stop the next; a short summary ends the output and stands in FOLDER/summary.txt.
# PYTHON chooses the interpreter; BUDGET_S is the longest that all of it may take.
set -u
out=${1:?usage: run_all.sh FOLDER}
python=${PYTHON:-python3}
cd "$(dirname "$0")/../.." || exit 2
mkdir -p "$out"
out=$(cd "$out" && pwd)
: > "$out/summary.txt"
: > "$out/log.txt"
failed=0
ends=$(($(date +%s) + ${BUDGET_S:-540}))

# Caches of their own, empty at first: the first result is timed cold and then warm.
XDG_CACHE_HOME=$(mktemp -d)
# The worker's log is kept beside the rest, with how long each of its steps took.
XDG_STATE_HOME=$out/state
export XDG_CACHE_HOME XDG_STATE_HOME PYTHONUNBUFFERED=1 GPUTOP_TIMES=1
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT

gputop() { "$python" -m gputop "$@"; }
export -f gputop
export python

# step NAME SECONDS COMMAND...: its output into log.txt, its outcome into summary.txt.
step() {
    local name=$1 limit=$2 begun ended status left
    shift 2
    left=$((ends - $(date +%s)))
    [ "$left" -gt 5 ] || left=5
    [ "$limit" -le "$left" ] || limit=$left
    echo "=== $name: $*" >> "$out/log.txt"
    begun=$(date +%s.%N)
    timeout --kill-after=5 "$limit" bash -c '"$@"' step "$@" >> "$out/log.txt" 2>&1
    status=$?
    ended=$(date +%s.%N)
    [ "$status" -eq 0 ] || failed=1
    [ "$status" -ne 124 ] || status="out of time"
    awk -v n="$name" -v s="$status" -v b="$begun" -v e="$ended" \
        'BEGIN { printf "%-28s exit %-12s %7.1f s\n", n, s, e - b }' | tee -a "$out/summary.txt"
}

shared="tiled register-tiled split-k attention sass-fp32 wmma algebra flash megakernel"
# A binding asks the driver for entry points that it may not have; only what kernels do is to count.
sanitize() { compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 "$python" -m tests.gpu.sanitize "${@:2}"; }
export -f sanitize

step "doctor"               30 gputop doctor --backend cuda
step "first result, cold"   60 gputop run --backend cuda --rung coalesced --seconds 1 --csv "$out/run.csv"
step "first result, warm"   30 gputop run --backend cuda --rung coalesced --seconds 1
step "calibrate"            60 gputop calibrate --backend cuda --json "$out/ceilings.json"
step "naive to coalesced"   40 gputop compare naive coalesced --backend cuda --seconds 3 --csv "$out/compare.csv"
step "A/A"                  40 gputop compare coalesced --aa --backend cuda --seconds 3
step "ladder"               90 gputop ladder --backend cuda --seconds 15 --json "$out/ladder.json"
step "recording"           200 gputop record "$out/recording.jsonl" --backend cuda --seconds 0.5
step "memcheck"             60 sanitize memcheck naive coalesced oracle-fp32 $shared
step "synccheck"            30 sanitize synccheck $shared
step "racecheck"            60 sanitize racecheck tiled register-tiled attention wmma
# Spelled out, so that it also runs where pytest lacks the project's plugins.
step "tests/gpu"           240 "$python" -X faulthandler -m pytest tests/gpu -q -rfE --import-mode=importlib \
                               -o addopts= --junitxml="$out/tests.xml"

echo
cat "$out/summary.txt"
exit "$failed"
