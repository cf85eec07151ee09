"""The phase table's columns are those that the command line promises, in that order."""

from __future__ import annotations

from dataclasses import fields

import pytest

from gputop.perf.roofline import fit
from gputop.results.columns import COLUMNS, Column
from gputop.results.ladder import LadderEntry
from gputop.results.records import Ceiling, Ceilings, Comparison, Delta, PlanResult, Row, Window
from gputop.results.schemas import CEILINGS, COMPARE, LADDER, SCHEMAS, WINDOWS, Schema

PROMISED = """
    schema time_utc window samples backend device driver workload batch seq rung plan phase count kernel
    library_kernel math launches time_s time_mad_s timer cache_state gap_s overlap_s submit_s floor_s
    floor_term efficiency binds runner_up compute_s dram_s l2_s l1_s issue_s latency_s launch_s
    shape_factor unexplained_s flops dram_bytes l2_bytes grid block registers smem_bytes
    occupancy_theoretical occupancy_limiters occupancy_achieved waves warps_in_flight gate gate_error
    logit0 logit1 tokens_per_s sm_clock_hz power_w throttle pinned_plan delta_s delta_lo_s delta_hi_s
    ratio verdict cubin versions status
""".split()


def test_the_first_columns_are_the_promised_ones_and_others_come_behind() -> None:
    """The golden file of the phases holds the order of those that were added since."""
    assert [column.key for column in COLUMNS][: len(PROMISED)] == PROMISED


def test_columns_are_the_fields_of_a_row() -> None:
    assert [column.key for column in COLUMNS] == [field.name for field in fields(Row)]


def test_compare_columns_are_the_promised_ones() -> None:
    promised = """
        plan_a plan_b phase a_s b_s delta_s delta_lo_s delta_hi_s ratio ratio_lo ratio_hi windows samples
        aa_floor verdict status same_within
    """.split()
    assert [column.key for column in COMPARE.columns] == ["schema", *promised]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_every_column_says_what_it_is(schema: Schema) -> None:
    keys = [column.key for column in schema.columns]
    assert len(set(keys)) == len(keys)
    assert keys[0] == "schema"
    assert "status" in keys
    for column in schema.columns:
        assert column.doc.endswith("."), column.key
        assert column.title, column.key
        assert column.width >= len(column.title) or column.priority is None, column.key
        assert column.show(None) == "–", column.key


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.key)
def test_a_unit_in_the_name_is_the_unit(column: Column) -> None:
    for suffix, unit in (("_per_s", "1/s"), ("_bytes", "B"), ("_hz", "Hz"), ("_w", "W"), ("_s", "s")):
        if column.key.endswith(suffix):
            assert column.unit == unit
            return


@pytest.mark.parametrize(
    ("schema", "records"),
    [
        (COMPARE, (Comparison, Delta)),
        (WINDOWS, (Window, PlanResult)),
        (LADDER, (LadderEntry,)),
        (CEILINGS, (Ceilings, Ceiling)),
    ],
)
def test_every_number_measured_has_a_column(schema: Schema, records: tuple[type, ...]) -> None:
    keys = {column.key for column in schema.columns}
    numbers = {f.name for record in records for f in fields(record) if "float" in str(f.type)}
    assert numbers - keys - {"logits"} == set()


def test_a_screen_has_columns_to_drop_and_some_that_stay() -> None:
    priorities = [column.priority for column in COLUMNS if column.priority is not None]
    assert len(set(priorities)) == len(priorities) - 1
    assert [column.key for column in COLUMNS if column.priority == 0] == ["phase", "time_s"]


def test_the_shape_factors_column_says_what_is_computed() -> None:
    """Waves of 1.45 whole: what blocks share of an SM takes as long whether they come together or in turn."""
    doc = next(column.doc for column in COLUMNS if column.key == "shape_factor")
    assert "busiest SM" in doc
    assert "wave" not in doc
    assert fit(128, 3072, (8, 32), 1536, 132).shape_factor == pytest.approx(12 / (1536 / 132))


def test_unknown_is_explained() -> None:
    docs = {column.key: column.doc for column in COLUMNS}
    assert "unknown" in docs["binds"]
    assert "unknown" in docs["runner_up"], "there it is the largest term"
    assert "unknown" in docs["binds_share"], "there it is what is unexplained"
