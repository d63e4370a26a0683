"""Markets, boards and codes are those of the document."""

from __future__ import annotations

from pipeline.domain.codes import BOARDS, CONTRACT_VERSION, ERROR_CODES, MARKETS, SHAPE_CODES


def test_the_version_is_the_documents(facts):
    assert facts["version"] == CONTRACT_VERSION


def test_the_markets_are_the_documents_in_its_order(facts):
    assert facts["markets"] == list(MARKETS)
    assert len(set(MARKETS)) == 36


def test_every_board_has_its_name_qualifier_and_family(facts):
    ours = {str(board.id): [board.name, board.qualifier, board.family.value] for board in BOARDS.values()}
    assert facts["boards"] == ours
    assert all(key == board.id for key, board in BOARDS.items())


def test_every_code_has_its_kind_its_status_and_its_operations(facts):
    documented = {
        code: (kind, operations)
        for kind, groups in facts["codes"].items()
        for operations, codes in groups.items()
        for code in codes
    }
    order = ("multi", "single", "quote")
    ours = {
        code.code: (f"{code.kind} {code.http_status}", " ".join(name for name in order if name in code.operations))
        for code in ERROR_CODES.values()
    }
    assert documented == ours
    assert all(code.meaning for code in ERROR_CODES.values())


def test_only_dates_market_and_currency_can_be_refused_without_a_mistake_of_ours(facts):
    validation = {code for codes in facts["codes"]["validation 400"].values() for code in codes}
    assert validation - SHAPE_CODES == {1014, 1015, 1018, 1027}
