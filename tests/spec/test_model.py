import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.domain.errors import SpecError
from pipeline.domain.search import Operation
from pipeline.plan import SweepPlan
from pipeline.spec import SAMPLE_SPEC, SweepSpec, read_spec, spec_keys

contents = st.fixed_dictionaries(
    {
        "properties": st.sampled_from(
            [{"ids": [2**63 - 1, 1]}, {"file": "ids.csv"}, {"query": "SELECT 'å'"}, {"sandbox": 3}]
        ),
        "stays": st.fixed_dictionaries(
            {"nights": st.sampled_from([[1], [7, 2]]), "horizon": st.just([{"to_days": 9, "every_days": 2}])},
            optional={"anchor": st.just("calendar"), "check_in": st.just(["2027-01-05"])},
        ),
        "ask": st.fixed_dictionaries(
            {"markets": st.sampled_from(["all", ["NO", "GB"]]), "parties": st.just(["2c9-5+1", "2"])},
            optional={
                "currencies": st.just(["EUR"]),
                "currency_by_market": st.just({"GB": "GBP"}),
                "operations": st.just(["single"]),
                "batch": st.integers(1, 100),
            },
        ),
    }
)


@given(contents)
def test_the_canonical_form_gives_the_spec_back_and_has_the_same_bytes(content):
    spec = SweepSpec.model_validate(content)
    canonical = spec.canonical_json()
    assert SweepSpec.from_canonical(canonical) == spec
    assert SweepSpec.from_canonical(canonical).canonical_json() == canonical


def test_the_canonical_form_does_not_depend_on_the_order_of_keys():
    content = json.loads(read_spec(SAMPLE_SPEC).canonical_json())
    backwards = {key: dict(reversed(content[key].items())) for key in reversed(content)}
    assert SweepSpec.model_validate(backwards).canonical_json() == read_spec(SAMPLE_SPEC).canonical_json()


@pytest.mark.parametrize("stored", [b"", b"{", b"[]", b"{}", b'{"properties":{"ids":[1]},"later":1}'])
def test_a_canonical_form_of_another_version_is_refused(stored):
    with pytest.raises(SpecError, match="stored sweep spec"):
        SweepSpec.from_canonical(stored)


def test_a_spec_cannot_be_changed():
    with pytest.raises(ValidationError):
        read_spec(SAMPLE_SPEC).ask.batch = 1


def test_the_sample_asks_the_same_number_of_searches_every_night():
    spec = read_spec(SAMPLE_SPEC)
    for day in range(1, 32):
        asked = SweepPlan.of(spec, range(1, 301), date(2027, 1, day)).counts().searches_by_operation
        assert asked == {Operation.MULTI: 216, Operation.SINGLE: 144}
    assert "216 searches of a hundred" in SAMPLE_SPEC.read_text(encoding="utf-8")


def test_every_key_is_described_and_named_in_the_sample():
    sample = SAMPLE_SPEC.read_text(encoding="utf-8")
    keys = list(spec_keys())
    assert {key.address for key in keys} >= {"properties.ids", "stays.horizon.to_days", "ask.batch"}
    assert "stays.horizon" not in {key.address for key in keys}
    for key in keys:
        assert key.description.endswith("."), key
        assert key.address.rsplit(".", 1)[1] in sample


def test_the_defaults_in_the_table_of_keys_read_as_they_are_written():
    defaults = {key.address: key.default for key in spec_keys()}
    assert defaults["ask.markets"] == "required"
    assert defaults["ask.product_types"] == '["Hotel"]'
    assert defaults["stays.anchor"] == '"lead_days"'
    assert defaults["ask.batch"] == "100"
    assert defaults["ask.currencies"] == "none"
