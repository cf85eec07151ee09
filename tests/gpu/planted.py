"""Faults planted in our kernels' own text, one at a time, each with where the gate is to find it.

A change names text that stands exactly once in its file, so that no fault can come to change nothing. The
altered folder is given to a session as a user's own kernels folder: nothing of the backend is replaced.

A missing barrier may by luck do no harm. Where one is left out, one warp or block is made late besides: alone
that costs time only, and without the barrier the others then surely read what it has not written.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from gputop.util.paths import kernels_dir

Change = tuple[str, str]
"""Text in the file, and what stands there instead."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one kernel."""

    name: str
    source: str
    """The .cu that is compiled with it, below kernels/."""
    change: Change
    word: str
    """The plan that runs it on mini."""
    where: str
    """Where it fails first; empty where that depends on what shared memory held before, or on who is late."""
    file: str = ""
    """The header that holds the text, where it is not the source."""
    late: Change | None = None
    """Makes one warp or block late, at a place where only a barrier helps."""
    also: tuple[Change, ...] = ()
    """What goes with the change, so that it is the only thing wrong."""

    @property
    def id(self) -> str:
        return f"{Path(self.source).stem}: {self.name}"

    @property
    def changes(self) -> tuple[Change, ...]:
        return (self.change, *self.also, *((self.late,) if self.late else ()))


def altered(folder: Path, file: str, changes: tuple[Change, ...]) -> Path:
    """A copy of our kernels in `folder`, with the changes in one file of it."""
    copy = folder / "kernels"
    shutil.copytree(kernels_dir(), copy)
    target = copy / file
    text = target.read_text(encoding="utf-8")
    for old, new in changes:
        found = text.count(old)
        assert found == 1, f"{file} has {found} times, not once: {old!r}"
        text = text.replace(old, new)
    target.write_text(text, encoding="utf-8")
    return copy


def planted(folder: Path, fault: Fault) -> Path:
    """Our kernels with the fault in them."""
    return altered(folder, fault.file or fault.source, fault.changes)


def without_barrier(before: str, after: str) -> Change:
    """The block's barrier between two lines, gone."""
    return f"{before}__syncthreads();\n{after}", f"{before}\n{after}"


def late_warp(at: str, which: str = "threadIdx.x < 32") -> Change:
    """Threads that sleep some microseconds before the line `at`."""
    return at, f"if ({which}) __nanosleep(4000);\n{at}"


STAGED = without_barrier("cp_async_wait_group<0>();\n        ", "        if (k0 + DEPTH < end)")
STAGED_LATE = late_warp("cp_async_wait_group<0>();")
RING = without_barrier(
    "cp_async_wait_group<STAGES - 2>();\n        ", "        if (step + STAGES - 1 < steps)"
)

TILED = "coalesced,w1:gemm_tiled"
REGISTER_TILED = "coalesced,w1:gemm_register_tiled"
SASS = "coalesced,w1:gemm_sass_fp32_square_1"
WMMA = "oracle-tf32,w1:gemm_wmma_short_1"
K_MAJOR = "oracle-tf32,layout=row,w1:gemm_k_major_short_1"
WARPGROUP = "oracle-tf32,layout=row,w1:gemm_warpgroup_96_4"
TMA_TOGETHER = "oracle-tf32,layout=row,batch=2,w1:gemm_tma_wide_together"
TMA_PINGPONG = "oracle-tf32,layout=row,batch=48,w1:gemm_tma_wide_pingpong"
"""So many rows that a block has several tiles, and its two warpgroups take turns."""
PARALLEL = "coalesced,attention:attention_parallel"
FLASH = "coalesced,attention:attention_flash"
FLASH_TENSOR = "oracle-tf32,attention:attention_flash_tensor"
FLASH_HEAD = "oracle-tf32,attention:attention_flash_head"
FLASH_WARPS = "coalesced,attention:attention_flash_warps"
FP32_K_MAJOR = "naive,w1:gemm_fp32_k_major_8x8_2"
FP32_CLUSTER = "naive,w1:gemm_fp32_cluster_8x8_2"
FP32_SLICES = "naive,w1:gemm_fp32_slices_48_1"
FP32_SLICES_CLUSTER = "naive,w1:gemm_fp32_slices_24_2"
TMA = "oracle-tf32,layout=row,wo:gemm_tma_24_2_paced"
TMA_ROWS = "oracle-tf32,layout=row,w2:gemm_tma_rows_56_8"
TMA_EIGHT = "oracle-tf32,layout=row,w2:gemm_tma_112_8_paced"
FIRST = " of layer 0"

MISSING_BARRIERS = (
    Fault(
        "missing barrier", "gemm/03_tiled.cu",
        without_barrier("", "#pragma unroll\n        for (int k = 0; k < TILE; ++k)"),
        TILED, "w1" + FIRST, late=late_warp("const bool a_inside", "ty < 2"),
    ),
    Fault(
        "missing barrier", "gemm/04_register_tiled.cu",
        without_barrier("            ", "#pragma unroll\n            for (int k = 0; k < DEPTH; ++k) {"),
        REGISTER_TILED, "w1" + FIRST, file="include/register_tile.cuh",
        late=late_warp("for (int i = thread; i < ROWS * DEPTH; i += THREADS) {", "thread < 32"),
    ),
    Fault("missing barrier", "gemm/08_sass_fp32.cu", STAGED, SASS, "w1" + FIRST, late=STAGED_LATE),
    Fault("missing barrier", "gemm/09_wmma.cu", STAGED, WMMA, "w1" + FIRST, late=STAGED_LATE),
    Fault(
        "missing barrier before the way out", "gemm/09_wmma.cu",
        without_barrier("    ", "    tile.store_tile("), WMMA, "w1" + FIRST,
        late=late_warp("tile.mma<DEPTH, Stage::A_LD, Stage::W_LD>("),
    ),
    Fault(
        "missing barrier", "gemm/11_k_major.cu", RING, K_MAJOR, "w1" + FIRST,
        late=late_warp("cp_async_wait_group<STAGES - 2>();"),
    ),
    Fault(
        "missing cluster barrier", "gemm/11_warpgroup.cu", ("    cluster_arrive_release();\n", ""),
        WARPGROUP, "w1" + FIRST, late=late_warp("float* const own = partial", "rank == 1"),
        also=(("cluster_wait_acquire();\n    for (int i = threadIdx.x;", "for (int i = threadIdx.x;"),),
    ),
    Fault(
        "missing cluster barrier", "gemm/11_fp32_cluster.cu", ("    cluster_arrive_release();\n", ""),
        FP32_CLUSTER, "w1" + FIRST, late=late_warp("Tile::multiply(args, shared,", "rank == 1"),
        also=(("        if (must_wait) cluster_wait_acquire();\n", ""),),
    ),
    Fault(
        "missing cluster barrier", "gemm/22_tma.cu",
        ("        cluster_wait_acquire();  // the tiles' last use in every block of the cluster\n", ""),
        TMA, "wo" + FIRST, file="include/tma_gemm.cuh",
        late=late_warp("float acc[COLUMNS / 2] = {};", "rank == 1"),
    ),
    Fault(
        "missing wait for the first stage", "gemm/26_fp32_slices.cu",
        ("        cp_async_wait_group<STAGES - 1>();\n", ""), FP32_SLICES, "",
    ),
    Fault(
        "missing barrier", "gemm/26_fp32_slices.cu",
        without_barrier("load_operands(operands, threadIdx.x, FLOAT4S);\n        ", "#pragma unroll"),
        FP32_SLICES, "w1" + FIRST, late=late_warp("Accumulators acc = {};"),
    ),
    Fault(
        "missing cluster barrier", "gemm/26_fp32_slices.cu", ("        cluster_arrive_release();\n", ""),
        FP32_SLICES_CLUSTER, "w1" + FIRST, late=late_warp("Accumulators acc = {};", "rank == 1"),
        also=(("        load_operands(operands, begin, end);\n        cluster_wait_acquire();\n",
               "        load_operands(operands, begin, end);\n"),),
    ),
    Fault(
        "missing barrier", "gemm/11_fp32_k_major.cu",
        without_barrier("cp_async_wait_group<0>();\n            ", "            if (step + 1 < steps) {"),
        FP32_K_MAJOR, "w1" + FIRST, late=late_warp("cp_async_wait_group<0>();"),
    ),
    Fault(
        "missing barrier", "gemm/09_one_row.cu",
        without_barrier("warp_sums[warp][lane] = acc;\n    ", ""), "register-tiled,head:gemm_one_row", "",
        file="include/one_row.cuh", late=late_warp("warp_sums[warp][lane] = acc;", "warp > 0"),
    ),
    Fault(
        "missing barrier", "attention/14_flash.cu",
        without_barrier("cp_async_wait_group<0>();\n        ", "        if (key0 + KEYS < block_keys)"),
        FLASH, "attention" + FIRST, file="include/flash.cuh", late=late_warp("cp_async_wait_group<0>();"),
    ),
    Fault(
        "missing barrier", "attention/14_flash_tensor.cu",
        without_barrier("", "    Partials& partials"), FLASH_TENSOR, "attention" + FIRST,
        late=late_warp("float out[COLUMN_FRAGMENTS][4] = {};"),
    ),
    *(
        Fault(
            f"a slot released to one block only, {name}", "gemm/37_tma_wide.cu",
            ("mbarrier_arrive_cluster(&shared.empty[slot], lane)",
             "mbarrier_arrive_cluster(&shared.empty[slot], rank)"),
            word, "w1" + FIRST,
            late=late_warp("const unsigned long long a = wgmma_descriptor(", "rank == 1"),
        )
        for name, word in (("together", TMA_TOGETHER), ("pingpong", TMA_PINGPONG))
    ),
    Fault(
        "missing barrier", "attention/27_flash_head.cu",
        without_barrier("round_and_interleave(buffer);\n                ", "            }"), FLASH_HEAD,
        "attention" + FIRST, late=late_warp("    griddep_wait();"),
    ),
    Fault(
        "missing barrier", "attention/14_flash_warps.cu",
        without_barrier("", "    Partials& partials"), FLASH_WARPS, "attention" + FIRST,
        late=late_warp("float out[QUERIES][COLUMNS] = {};"),
    ),
    Fault(
        "missing grid barrier after ln2", "megakernel/17_persistent.cu",
        ("grid.sync();", "if (task != LN2) grid.sync();"), "megakernel", "w1" + FIRST,
        late=late_warp("normalise(layernorm_args(pass, task, layer));", "blockIdx.x < 8"),
    ),
)  # fmt: skip

STALE = (
    Fault(
        "stale output", "attention/01_naive.cu",
        ("args.out[static_cast<long long>(sequence * args.queries + query) * args.ldo + column] = acc;", ""),
        "coalesced", "attention" + FIRST,
    ),
    Fault(
        "stale part", "gemm/06_split_k.cu",
        ("partial[static_cast<long long>(row)", "if (split > 0) partial[static_cast<long long>(row)"),
        "coalesced,w2:gemm_split_k_8", "w2" + FIRST,
    ),
    Fault(
        "stale row", "layernorm/01_warp_per_row.cu", ("out[i] = value;", "if (row != 77) out[i] = value;"),
        "coalesced", "ln1" + FIRST, file="include/layernorm_row.cuh",
    ),
    Fault(
        "NaN laundered by ReLU", "gemm/02_coalesced.cu",
        ("if (row >= args.rows", "if (row == 77 || row >= args.rows"),
        "register-tiled,w1:gemm_coalesced", "w1" + FIRST,
    ),
)  # fmt: skip

SKIPPED = (
    Fault(
        "skipped last depth", "gemm/03_tiled.cu",
        ("k0 < args.inner; k0 += TILE", "k0 + TILE < args.inner; k0 += TILE"), TILED, "w1" + FIRST,
    ),
    Fault(
        "skipped last columns", "gemm/02_coalesced.cu",
        ("column >= args.columns", "column >= args.columns - 32"),
        "coalesced", "qkv" + FIRST,
    ),
    Fault(
        "skipped last depth", "gemm/09_wmma.cu",
        ("k0 < end; k0 += DEPTH", "k0 + DEPTH < end; k0 += DEPTH"),
        WMMA, "w1" + FIRST,
    ),
    Fault(
        "skipped last part", "gemm/06_split_k.cu", ("split < args.splits;", "split < args.splits - 1;"),
        "coalesced,w2:gemm_split_k_8", "w2" + FIRST, file="include/split_k.cuh",
    ),
    Fault(
        "skipped last keys", "attention/14_flash.cu", ("key0 < block_keys;", "key0 + KEYS < block_keys;"),
        FLASH, "attention" + FIRST, file="include/flash.cuh",
    ),
    Fault(
        "skipped last part", "gemm/11_fp32_k_major.cu",
        ("split < splits; ++split", "split + 1 < splits; ++split"), FP32_K_MAJOR, "w1" + FIRST,
    ),
    Fault(
        "skipped last part", "gemm/11_fp32_cluster.cu",
        ("if (split < args.splits)", "if (split + 1 < args.splits)"), FP32_CLUSTER, "w1" + FIRST,
    ),
    Fault(
        "skipped last block's part", "gemm/22_tma.cu",
        ("split < (ALL_SEND ? SPLITS : 1)", "split + 1 < (ALL_SEND ? SPLITS : 1)"),
        TMA_EIGHT, "w2" + FIRST, file="include/tma_gemm.cuh",
    ),
    Fault(
        "skipped last block's part", "gemm/35_tma_rows.cu",
        ("split < SPLITS; ++split", "split + 1 < SPLITS; ++split"),
        TMA_ROWS, "w2" + FIRST, file="include/tma_rows.cuh",
    ),
    Fault(
        "skipped last warp's part", "gemm/26_fp32_slices.cu",
        ("for (int i = 1; i < WARPS; ++i)", "for (int i = 1; i + 1 < WARPS; ++i)"), FP32_SLICES, "w1" + FIRST,
    ),
    Fault(
        "skipped last block's part", "gemm/26_fp32_slices.cu",
        ("if (split < args.splits) acc = add", "if (split + 1 < args.splits) acc = add"),
        FP32_SLICES_CLUSTER, "w1" + FIRST,
    ),
    Fault(
        "skipped last part", "gemm/11_warpgroup.cu",
        ("split < args.splits; ++split", "split + 1 < args.splits; ++split"), WARPGROUP, "w1" + FIRST,
    ),
    Fault(
        "skipped last item", "megakernel/17_persistent.cu",
        ("item < tiles * args.splits;", "item + 1 < tiles * args.splits;"), "megakernel", "qkv" + FIRST,
    ),
)  # fmt: skip

ZEROED = (
    Fault(
        "zeroed row", "gemm/02_coalesced.cu",
        ("= epilogue(args, acc, row, column);", "= row == 77 ? 0.0f : epilogue(args, acc, row, column);"),
        "coalesced,fused_stores=on", "qkv" + FIRST, file="include/epilogue.cuh",
    ),
    Fault(
        "zeroed row", "gemm/09_wmma.cu",
        ("= epilogue(args, acc, row, column);", "= row == 77 ? 0.0f : epilogue(args, acc, row, column);"),
        "oracle-tf32,fused_stores=on,w1:gemm_wmma_short_1", "w1" + FIRST, file="include/epilogue.cuh",
    ),
    Fault(
        "zeroed row", "attention/07_parallel.cu",
        ("= acc / row_sum;", "= query == 77 ? 0.0f : acc / row_sum;"),
        PARALLEL, "attention" + FIRST,
    ),
)  # fmt: skip

LEAKS = (
    Fault(
        "leak from the fifth sequence before", "attention/01_naive.cu",
        ("(sequence * args.seq + key)", "((sequence < 5 ? sequence : sequence - 5) * args.seq + key)"),
        "coalesced,batch=7", "attention" + FIRST,
    ),
    Fault(
        "leak between sequences", "attention/01_naive.cu",
        ("args.v + static_cast<long long>(sequence)", "args.v + static_cast<long long>(sequence & ~1)"),
        "coalesced,batch=4", "attention" + FIRST,
    ),
    Fault(
        "leak between sequences", "attention/14_flash.cu",
        ("first_key = static_cast<long long>(sequence)", "first_key = static_cast<long long>(sequence & ~1)"),
        f"coalesced,batch=4,{FLASH.split(',')[1]}", "attention" + FIRST, file="include/flash.cuh",
    ),
    Fault(
        "leak between sequences", "attention/14_flash_tensor.cu",
        ("first_key = static_cast<long long>(sequence)", "first_key = static_cast<long long>(sequence & ~1)"),
        f"oracle-tf32,batch=4,{FLASH_TENSOR.split(',')[1]}", "attention" + FIRST,
        file="include/flash_split_kv.cuh",
    ),
    Fault(
        "leak between sequences", "attention/27_flash_head.cu",
        ("column = static_cast<long long>(sequence)", "column = static_cast<long long>(sequence & ~1)"),
        f"oracle-tf32,batch=4,{FLASH_HEAD.split(',')[1]}", "attention" + FIRST,
    ),
    Fault(
        "leak between sequences", "attention/14_flash_warps.cu",
        ("first_key = static_cast<long long>(sequence)", "first_key = static_cast<long long>(sequence & ~1)"),
        f"coalesced,batch=4,{FLASH_WARPS.split(',')[1]}", "attention" + FIRST,
        file="include/flash_split_kv.cuh",
    ),
    Fault(
        "leak between sequences", "gemm/09_one_row.cu",
        ("static_cast<long long>(row) * args.lda", "static_cast<long long>(row & ~1) * args.lda"),
        "coalesced,batch=4,head:gemm_one_row", "head" + FIRST, file="include/one_row.cuh",
    ),
)  # fmt: skip

FOLDS = (
    Fault(
        "fold by a neighbour's gain", "measure/fill.cu", ("* args.gain[column]", "* args.gain[column ^ 1]"),
        "coalesced,fold=on", "qkv" + FIRST,
    ),
    Fault(
        "fold without the shift", "measure/fill.cu", ("* args.shift[i];", "* 0.0;"),
        "oracle-tf32,fold=on", "qkv" + FIRST,
    ),
)  # fmt: skip

MASKS = (
    Fault(
        "mask one late", "attention/07_parallel.cu",
        ("visible_keys = args.seq - args.queries + query + 1;", "visible_keys = min(args.seq, query + 2);"),
        PARALLEL, "attention" + FIRST,
    ),
    Fault(
        "mask one late", "attention/14_flash.cu",
        (
            "position = query_offset + first_query + query;",
            "position = query_offset + first_query + query + 1;",
        ),
        FLASH, "attention" + FIRST, file="include/flash.cuh",
    ),
    Fault(
        "mask one late", "attention/14_flash_tensor.cu",
        ("flash.first_query + row;", "flash.first_query + row + 1;"),
        FLASH_TENSOR, "attention" + FIRST,
    ),
    Fault(
        "mask one late", "attention/27_flash_head.cu",
        ("<= first + g + c / 2 * 8;", "<= first + g + c / 2 * 8 + 1;"), FLASH_HEAD, "attention" + FIRST,
    ),
    Fault(
        "mask one late", "attention/14_flash_warps.cu",
        ("key0 + lane <= flash.query_offset", "key0 + lane <= 1 + flash.query_offset"),
        FLASH_WARPS, "attention" + FIRST,
    ),
    Fault(
        "position one late", "embed/01_gather.cu",
        ("position = row % args.seq;", "position = (row + 1) % args.seq;"),
        "coalesced", "embed" + FIRST, file="include/embed_element.cuh",
    ),
)  # fmt: skip

TENSOR = "oracle-tf32"
"""Products of the library in TF32; all else is ours, in fp32."""
NORM, NORM_ROW = "layernorm/01_warp_per_row.cu", "include/layernorm_row.cuh"
STORE = "pointwise/01_store.cu"
CUT_TO_BF16 = """for (int i = 0; i < M_FRAGMENTS; ++i)
            for (int j = 0; j < N_FRAGMENTS; ++j)
                for (int h = 0; h < 4; ++h)
                    acc[i][j][h] = __uint_as_float(__float_as_uint(acc[i][j][h]) & 0xffff0000u);
        """

IN_TF32 = (
    Fault("bias missing in 4 columns", STORE, ("if (args.bias)", "if (args.bias && column >= 4)"),
          TENSOR, "qkv" + FIRST),
    Fault("one element doubled", STORE,
          ("*c = value;", "*c = row == 5 && column == 7 ? 2.0f * value : value;"), TENSOR, "qkv" + FIRST),
    Fault("one element of each row 10 % off", STORE,
          ("*c = value;", "*c = row == column ? 1.1f * value : value;"), TENSOR, "qkv" + FIRST),
    Fault("residual missing in 4 elements of one row", STORE,
          ("if (args.residual)", "if (args.residual && !(row == 9 && column / 4 == 10))"),
          TENSOR, "wo" + FIRST),
    Fault("eps left out", NORM, ("args.columns + args.eps)", "args.columns)"), TENSOR, "ln1" + FIRST,
          file=NORM_ROW),
    Fault("scale 1 % off", NORM, ("(x[i] - mean) * scale;", "(x[i] - mean) * scale * 1.01f;"),
          TENSOR, "ln1" + FIRST, file=NORM_ROW),
    Fault("scale 5 % off", "attention/14_flash_tensor.cu",
          ("score[i][j] * args.scale", "score[i][j] * args.scale * 1.05f"),
          FLASH_TENSOR, "attention" + FIRST),
    Fault("sums cut to bf16", "gemm/11_k_major.cu",
          ("stage = stage + 1 == STAGES ? 0 : stage + 1;\n        fetch_stage",
           f"{CUT_TO_BF16}stage = stage + 1 == STAGES ? 0 : stage + 1;\n        fetch_stage"),
          K_MAJOR, "w1" + FIRST),
    Fault("parts' totals not rescaled", "attention/14_flash_tensor.cu",
          ("partials.row_sum[warp][query] * rescale;", "partials.row_sum[warp][query];"),
          FLASH_TENSOR, "attention" + FIRST, file="include/flash_split_kv.cuh"),
)  # fmt: skip
"""What the norm of a row sees in TF32."""

SLIGHT = (
    Fault("variance over d - 1", NORM, ("/ args.columns + args.eps", "/ (args.columns - 1) + args.eps"),
          TENSOR, "ln1" + FIRST, file=NORM_ROW),
    Fault("stored in TF32", NORM,
          ("out[i] = value;", "out[i] = __uint_as_float(__float_as_uint(value) & 0xffffe000u);"),
          TENSOR, "ln1" + FIRST, file=NORM_ROW),
    Fault("one gain 0.02 % off", NORM,
          ("value *= args.gain[i];", "value *= i == 3 ? args.gain[i] * 1.0002f : args.gain[i];"),
          TENSOR, "ln1" + FIRST, file=NORM_ROW),
    Fault("positions cut to TF32", "embed/01_gather.cu",
          ("args.position[position * args.columns + column];",
           "__uint_as_float(__float_as_uint(args.position[position * args.columns + column])"
           " & 0xffffe000u);"),
          TENSOR, "embed" + FIRST, file="include/embed_element.cuh"),
    Fault("ReLU with a slope of 0.001 below zero", STORE,
          ("activation(value)", "fmaxf(value, 0.001f * value)"), TENSOR, "w1" + FIRST),
    Fault("one element of each row 1 % off", STORE,
          ("*c = value;", "*c = row == column ? 1.01f * value : value;"), TENSOR, "qkv" + FIRST),
    Fault("last product missing in one column", "gemm/11_k_major.cu",
          ("store(args, x, row, column);",
           "const int last = args.inner - 1;\n"
           "const float product = args.a[row * args.lda + last] * args.w[column * args.ldw + last];\n"
           "store(args, column == 200 ? x - product : x, row, column);"),
          K_MAJOR, "w1" + FIRST),
    Fault("scores' scale 0.1 % off beside tensor cores", "attention/07_parallel.cu",
          ("dot * args.scale;", "dot * args.scale * 1.001f;"),
          "oracle-tf32,attention:attention_parallel", "attention" + FIRST),
)  # fmt: skip
"""What hides below what TF32 may do to a row: for bounds of elements, and for fp32's tolerance where no
tensor core is at work."""

IN_BF16 = (
    Fault("stored truncated", "embed/29_bf16_gather.cu", ("cvt.rn.bf16x2", "cvt.rz.bf16x2"),
          "bf16", "embed" + FIRST, file="include/bf16.cuh"),
    Fault("weights truncated", "measure/fill.cu", ("cvt.rn.bf16.f32", "cvt.rz.bf16.f32"),
          "bf16", "ln1+qkv" + FIRST),
    Fault("squares of the lower rows mixed", "gemm/29_bf16_tma.cu",
          ("(second, a, rows_8_15);", "(second, a, rows_0_7);"),
          "bf16", "ln1+qkv" + FIRST, file="include/tma_gemm.cuh"),
    Fault("one of two keys counted twice", "attention/29_bf16_flash.cu",
          ("row_sum[j >> 1] += exponential[i][j];", "row_sum[j >> 1] += exponential[i][0];"),
          "bf16", "attention" + FIRST, file="include/flash_tma.cuh"),
    Fault("keys of the future seen", "attention/29_bf16_flash.cu",
          ("+ (j & 1) <= position", "<= position"),
          "bf16", "attention" + FIRST, file="include/flash_tma.cuh"),
    Fault("a load's last word left out", "gemm/29_bf16_one_row.cu",
          ("add(a.z, w.z), add(a.w, w.w);", "add(a.z, w.z);"), "bf16", "ln1+kv+q@1 of layer 1"),
)  # fmt: skip
"""Of what is stored in two bytes: operands are then exact, and a result is rounded once."""

FAULTS = (*MISSING_BARRIERS, *STALE, *SKIPPED, *ZEROED, *LEAKS, *FOLDS, *MASKS, *IN_TF32, *SLIGHT, *IN_BF16)


def lapse(name: str, source: str, threads: str, at: str, fails: str, word: str, constant: str) -> Fault:
    """A kernel that leaves its output as it was in launches for which `fails` holds.

    `launch` counts them from 0: every thread draws a number, `threads` in each launch. `constant`: the line
    of the file behind which the counter is declared.
    """
    count = f"    const int launch = atomicAdd(&drawn, 1) / ({threads});\n    if ({fails}) return;\n"
    counter = (constant, f"{constant}\n__device__ int drawn;")
    return Fault(name, source, (at, f"{count}{at}"), word, "", also=(counter,))


def tiled_lapse(name: str, fails: str) -> Fault:
    """Of a product that a pass of mini has twice."""
    return lapse(
        name, "gemm/03_tiled.cu", "gridDim.x * gridDim.y * TILE * TILE",
        "    const int tx = threadIdx.x", fails, TILED, "constexpr int TILE = 16;",
    )  # fmt: skip


def head_lapse(name: str, fails: str) -> Fault:
    """Of the last product, whose output no other kernel of the pass touches."""
    return lapse(
        name, "gemm/09_one_row.cu", "gridDim.x * gridDim.y * blockDim.x",
        "    const int column = blockIdx.x * 32", fails, "coalesced,head:gemm_one_row",
        "constexpr int WARPS = 32, UNROLL = 8;",
    )  # fmt: skip


LAPSES = (
    tiled_lapse("computes in its first three passes", "launch >= 6"),
    tiled_lapse("fails at each seventh launch", "launch % 7 == 6"),
    head_lapse("computes in its first three passes", "launch >= 3"),
    head_lapse("fails at each seventh launch", "launch % 7 == 6"),
)
"""Caught by the logits of timed passes. Before those a plan is proved by one pass and gated by two."""
