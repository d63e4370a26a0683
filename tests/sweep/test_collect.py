"""Collecting: shards land whole, poisoned properties stand alone, and nothing grows without bound."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import threading

import pytest
from fake_supplier import SWEEP, answered, searches

from pipeline.domain.errors import CallsUsedUp, LakeFull, SupplierDown, TokenRefused
from pipeline.lake.raw import landed
from pipeline.supplier.answer import Answer, Failure
from pipeline.sweep.collect import ATTEMPTS_OF_A_HALF
from pipeline.sweep.open_shards import EXTRA_OPEN_SHARDS
from pipeline.sweep.outage import GIVE_UP_AFTER


def final(records):
    """Of each property: whether the search that asked for it in the end was answered."""
    found = {}
    for record in records:
        if not record.is_split:
            for property_id in json.loads(record.request)["ids"]:
                key = (record.search_id >> 8, property_id)
                assert key not in found, "a property was asked for twice"
                found[key] = not record.failure
    return found


async def until_still(look) -> None:
    """Wait until what is seen has begun, and stayed the same for some moments: nothing more happens by itself."""
    same, before = 0, 0
    while same < 20:
        await asyncio.sleep(0.001)
        same, before = (same + 1 if (seen := look()) == before > 0 else 0), seen


def test_every_search_lands_once_in_the_order_of_the_plan(collecting, supplier):
    tally = collecting.run(supplier(), collecting.shards(100), in_flight=7)
    records = collecting.records()
    assert [record.search_id for record in records] == [number * 256 + 1 for number in range(100)]
    assert set(final(records).values()) == {True}
    assert (tally.searches, tally.cells, len(collecting.landed)) == (100, 300, 4)


def test_no_more_is_in_flight_than_allowed(collecting, supplier):
    supplier = supplier()
    collecting.run(supplier, collecting.shards(100), in_flight=5)
    assert supplier.most_in_flight == 5


@pytest.mark.parametrize(
    "poisoned",
    [(1,), (100,), (50, 51), (1, 33, 66, 100), tuple(range(40, 60)), tuple(range(1, 100)), tuple(range(2, 101, 2))],
)
@pytest.mark.parametrize("in_flight", [1, 4])
def test_poisoned_properties_stand_alone_and_all_others_are_answered(collecting, supplier, poisoned, in_flight):
    healthy = collecting.shards(33, (500,))
    first, last = next(healthy), next(healthy)
    batch = (last[0], searches(32, 33, tuple(range(1, 101))))
    tally = collecting.run(supplier(poisoned), [first, batch], in_flight=in_flight)
    found = {key[1]: is_fine for key, is_fine in final(collecting.records()).items() if key[0] == 32}
    assert found == {property_id: property_id not in poisoned for property_id in range(1, 101)}
    assert tally.cells == 32 + 100


@pytest.mark.parametrize("ids", [(1,), (1, 2), tuple(range(1, 11))])
def test_a_batch_poisoned_through_and_through_ends_and_each_property_has_failed(collecting, supplier, ids):
    tally = collecting.run(supplier(ids), collecting.shards(1, ids), in_flight=1)
    assert set(final(collecting.records()).values()) == {False}
    assert tally.cells == len(ids)


def test_halves_are_given_fewer_attempts(collecting, supplier):
    supplier = supplier({2})
    collecting.run(supplier, collecting.shards(1, (1, 2)))
    assert supplier.attempts == [None, ATTEMPTS_OF_A_HALF, ATTEMPTS_OF_A_HALF]


@pytest.mark.parametrize("failure", [Failure.UNREACHABLE, Failure.THROTTLED, Failure.NO_TOKEN])
def test_a_failure_that_fewer_properties_cannot_fix_is_not_split(collecting, supplier, failure):
    at = supplier().how.started_at
    how = Answer(None, "", "", b"", at, at, 4, failure)
    collecting.run(supplier({1}, how), collecting.shards(2, (1, 2)))
    assert [record.is_split for record in collecting.records()] == [False, False]


def test_a_supplier_that_fails_everything_is_given_up(collecting, supplier):
    supplier = supplier({1, 2, 3})
    with pytest.raises(SupplierDown, match="20 searches in a row"):
        collecting.run(supplier, collecting.shards(500), in_flight=1)
    assert len(supplier.asked) == GIVE_UP_AFTER
    assert landed(collecting.lake, SWEEP) == set()


@pytest.mark.parametrize("failure", [Failure.UNREACHABLE, Failure.NO_TOKEN])
def test_no_property_is_blamed_for_a_lost_connection(collecting, supplier, failure):
    at = supplier().how.started_at
    with pytest.raises(SupplierDown):
        collecting.run(supplier({1}, Answer(None, "", "", b"", at, at, 4, failure)), collecting.shards(500, (1,)))


def test_one_property_that_always_fails_is_no_outage(collecting, supplier):
    tally = collecting.run(supplier({1}), collecting.shards(500, (1,)))
    assert [*final(collecting.records()).values()] == [False] * tally.cells
    assert tally.cells == 500


@pytest.mark.parametrize("in_flight", [1, 4, 64])
def test_a_property_that_is_poisoned_from_the_first_search_on_costs_itself_alone(collecting, supplier, in_flight):
    ids = tuple(range(1, 101))
    tally = collecting.run(supplier({1}), collecting.shards(100, ids), in_flight=in_flight)
    assert tally.cells == 100 * 100
    assert [*final(collecting.records()).values()].count(False) == 100


def test_a_supplier_that_goes_down_later_is_given_up_after_one_more_question(collecting, supplier):
    supplier = supplier()

    async def go_down(_shard) -> None:
        supplier.poisoned = {1, 2, 3}

    with pytest.raises(SupplierDown):
        collecting.run(supplier, collecting.shards(500), in_flight=1, on_landed=go_down)
    assert len(supplier.asked) == 32 + GIVE_UP_AFTER + 1
    assert supplier.asked[-1] == (1,)
    assert len(landed(collecting.lake, SWEEP)) == 1


def test_a_shard_that_is_there_already_is_left_as_it_is(collecting, supplier):
    collecting.run(supplier(), collecting.shards(10, (1,)))
    before = {path: path.read_bytes() for path in collecting.lake.root.rglob("*.parquet")}
    supplier = supplier({1})
    collecting.run(supplier, collecting.shards(10, (1,)))
    assert {path: path.read_bytes() for path in collecting.lake.root.rglob("*.parquet")} == before


def test_what_another_machine_has_landed_meanwhile_is_not_sent(collecting, supplier):
    supplier = supplier()

    async def has_landed(shard) -> bool:
        return shard.number in {0, 2}

    tally = collecting.run(supplier, collecting.shards(100), has_landed=has_landed)
    assert [record.search_id >> 8 for record in collecting.records()] == [*range(32, 64), *range(96, 100)]
    assert sorted(collecting.landed) == [f"multi-GB-00000{number}" for number in range(4)]
    assert (tally.searches, len(supplier.asked)) == (36, 36)


@pytest.mark.parametrize("in_flight", [1, 4])
def test_once_another_machine_has_landed_an_open_shard_no_more_of_its_searches_are_begun(
    collecting, supplier, in_flight
):
    supplier, looked = supplier(), []

    async def has_landed(shard) -> bool:
        if shard.number == 1:
            looked.append(len(supplier.asked))
        return shard.number == 1 and len(supplier.asked) >= 32 + 10

    tally = collecting.run(supplier, collecting.shards(96), in_flight=in_flight, has_landed=has_landed)
    # Those of the first shard, and of the second one what was in flight when it was found to have landed.
    assert 32 + 10 + 32 <= len(supplier.asked) <= 32 + 10 + 32 + in_flight - 1
    assert tally.searches == len(supplier.asked)
    assert sorted(collecting.landed) == [f"multi-GB-00000{number}" for number in range(3)]
    # It is left to the machine that has landed it.
    assert [record.search_id >> 8 for record in collecting.records()] == [*range(32), *range(64, 96)]
    # Once it is known, it is not looked up again.
    assert len(looked) <= 10 + 2 * in_flight


def test_halves_of_a_search_are_not_begun_either_once_its_shard_has_landed_elsewhere(collecting, supplier):
    supplier = supplier(poisoned=range(1, 9), how=answered(500, failure=Failure.SERVER_ERROR))

    async def has_landed(_shard) -> bool:
        return len(supplier.asked) >= 2

    collecting.run(supplier, collecting.shards(1, tuple(range(1, 9))), in_flight=1, has_landed=has_landed)
    assert len(supplier.asked) == 2
    assert (collecting.records(), len(collecting.landed)) == ([], 1)


@pytest.mark.parametrize("in_flight", [1, 4, 64])
def test_a_slow_search_does_not_let_open_shards_pile_up(collecting, supplier, in_flight):
    supplier = supplier()
    seen = []

    async def watch(_collector) -> None:
        await until_still(lambda: seen.append(len(collecting.opened) - len(collecting.landed)) or len(supplier.asked))
        supplier.slow[0].set()

    async def slowly(operation, body, *, attempts=None):
        supplier.slow.setdefault(0, asyncio.Event())
        return await type(supplier).ask(supplier, operation, body, attempts=attempts)

    supplier.ask = slowly
    collecting.run(supplier, collecting.shards(32 * 40), in_flight=in_flight, meanwhile=watch)
    # One more is pulled from the plan before it has to wait.
    assert max(seen) <= in_flight // 16 + EXTRA_OPEN_SHARDS + 1
    assert len(collecting.landed) == 40


def test_what_follows_holds_the_collection_back(collecting, supplier):
    supplier, gate = supplier(), []
    held = []

    async def wait(shard) -> None:
        collecting.landed.append(shard.name)
        gate.append(asyncio.Event())
        await gate[-1].wait()

    async def watch(_collector) -> None:
        await until_still(lambda: len(supplier.asked))
        held.append((len(supplier.asked), len(collecting.landed)))
        while len(collecting.landed) < 20 or any(not event.is_set() for event in gate):
            for event in gate:
                event.set()
            await asyncio.sleep(0.001)

    collecting.run(supplier, collecting.shards(32 * 20), in_flight=4, on_landed=wait, meanwhile=watch)
    asked, shards = held[0]
    assert shards <= 4
    assert asked <= 4 * 32 + 3 * 32
    assert len(collecting.records()) == 640


def test_bodies_of_landed_shards_do_not_wait_in_memory(collecting, supplier):
    opened = []

    async def wait(_shard) -> None:
        opened.append([len(task.get_coro().cr_frame.f_locals.get("opened").records) for task in workers()])

    def workers():
        tasks = (task for task in asyncio.all_tasks() if task.get_coro().__name__ == "_work")
        return [task for task in tasks if task.get_coro().cr_frame and "opened" in task.get_coro().cr_frame.f_locals]

    collecting.run(supplier(), collecting.shards(32), in_flight=1, on_landed=wait)
    assert opened == [[0]]


def test_stop_lands_the_open_shards_and_opens_no_other(collecting, supplier):
    supplier = supplier()

    async def stop(collector) -> None:
        while len(supplier.asked) < 40:  # noqa: ASYNC110 - the fake has no event to wait for
            await asyncio.sleep(0)
        collector.stop()

    collecting.run(supplier, collecting.shards(32 * 30), in_flight=4, meanwhile=stop)
    records = collecting.records()
    assert len(records) == len(supplier.asked) == 32 * len(collecting.landed)
    assert 2 <= len(collecting.landed) <= 4


@pytest.mark.parametrize(("cap", "shards_landed"), [(31, 0), (32, 1), (80, 2), (127, 3)])
@pytest.mark.parametrize("in_flight", [1, 8, 64])
def test_no_shard_is_begun_that_the_daily_cap_does_not_cover(collecting, supplier, cap, shards_landed, in_flight):
    supplier = supplier()
    with pytest.raises(CallsUsedUp, match="are not enough for the next 32 searches"):
        collecting.run(
            supplier,
            collecting.shards(128),
            in_flight=in_flight,
            covers=lambda calls: cap - len(supplier.asked) >= calls,
        )
    assert len(collecting.records()) == len(supplier.asked) == 32 * shards_landed


@pytest.mark.parametrize("in_flight", [1, 8, 64])
def test_a_cap_that_just_suffices_ends_no_sweep(collecting, supplier, in_flight):
    supplier = supplier()
    shards = collecting.shards(100)
    collecting.run(supplier, shards, in_flight=in_flight, covers=lambda calls: 100 - len(supplier.asked) >= calls)
    assert len(collecting.records()) == 100


def test_answers_that_had_not_landed_are_reported(collecting, supplier, caplog):
    supplier = supplier()

    async def stop_at_40(_operation, body, *, attempts=None):
        if json.loads(body)["number"] == 40:
            raise CallsUsedUp("by further attempts")
        return await type(supplier).ask(supplier, _operation, body, attempts=attempts)

    supplier.ask = stop_at_40
    with pytest.raises(CallsUsedUp):
        collecting.run(supplier, collecting.shards(64), in_flight=1)
    assert "8 answers of unfinished shards were discarded" in caplog.text


@pytest.mark.parametrize("error", [TokenRefused("no"), LakeFull("full")])
def test_an_error_of_several_workers_is_reported_once_and_as_itself(collecting, supplier, error):
    supplier = supplier()

    async def refuse(*_, **__):
        await asyncio.sleep(0.01)
        raise error

    supplier.ask = refuse
    with pytest.raises(type(error)) as reported:
        collecting.run(supplier, collecting.shards(64), in_flight=8)
    assert reported.value is error


def test_a_disk_that_is_full_for_two_shards_at_once_is_reported_once(collecting, supplier, monkeypatch, caplog):
    both = threading.Barrier(2)

    def full(*_):
        both.wait(60)
        raise LakeFull("full")

    monkeypatch.setattr(collecting.lake, "put_new", full)
    with pytest.raises(LakeFull):
        collecting.run(supplier(), collecting.shards(64), in_flight=64)
    # asyncio reports a failure that was never retrieved when the task is discarded.
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_mistake_of_ours_is_not_hidden_behind_an_error_of_the_supplier(collecting, supplier):
    supplier = supplier()
    errors = iter([TokenRefused("no"), ZeroDivisionError("ours")])

    async def refuse(*_, **__):
        error = next(errors)
        await asyncio.sleep(0.01)
        raise error

    supplier.ask = refuse
    with pytest.raises((ZeroDivisionError, TokenRefused)):
        collecting.run(supplier, collecting.shards(64), in_flight=2)


def test_a_shard_lands_whole_or_not_at_all(collecting, supplier):
    supplier = supplier()

    async def stop_at_40(_operation, body, *, attempts=None):
        if json.loads(body)["number"] == 40:
            raise TokenRefused("no")
        return await type(supplier).ask(supplier, _operation, body, attempts=attempts)

    supplier.ask = stop_at_40
    with pytest.raises(TokenRefused):
        collecting.run(supplier, collecting.shards(96), in_flight=1)
    assert len(collecting.records()) == 32
    files = [path.name for path in collecting.lake.root.rglob("*multi-GB*")]
    assert files == ["multi-GB-000000.parquet"]


def test_a_shape_error_is_reported_once_and_loudly(collecting, supplier, caplog):
    body = b'{"errors":[{"errorCode":1016,"errorDescription":"x"}]}'
    at = supplier().how.started_at
    how = Answer(400, "application/json", "", body, at, at, 1)
    collecting.run(supplier({1}, how), collecting.shards(5))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "1016" in caplog.text


@pytest.mark.parametrize("in_flight", [1, 4])
@pytest.mark.parametrize("failure", [Failure.REDIRECT, Failure.SERVER_ERROR])
def test_no_failure_of_an_outage_lands_where_partitions_are_small(collecting, supplier, failure, in_flight):
    supplier = supplier(range(1, 100), answered(302, failure=failure))
    with pytest.raises(SupplierDown):
        collecting.run(supplier, collecting.partitions(2, 12), in_flight=in_flight)
    assert landed(collecting.lake, SWEEP) == set()


def test_failures_after_the_last_answer_do_not_land_where_they_end_in_an_outage(collecting, supplier):
    supplier = supplier()

    async def go_down(_shard) -> None:
        supplier.poisoned = set(range(1, 100))

    with pytest.raises(SupplierDown):
        collecting.run(supplier, collecting.partitions(4, 8), in_flight=1, on_landed=go_down)
    assert len(landed(collecting.lake, SWEEP)) == 1


@pytest.mark.parametrize("searches", [3, 12, 19])
def test_a_small_sweep_without_one_answer_says_that_the_supplier_is_down(collecting, supplier, searches, caplog):
    supplier = supplier(range(1, 100), answered(302, failure=Failure.REDIRECT))
    with pytest.raises(SupplierDown, match=f"{searches} searches in a row failed"):
        collecting.run(supplier, collecting.partitions(1, searches))
    assert landed(collecting.lake, SWEEP) == set()
    assert f"{searches} answers of unfinished shards were discarded" in caplog.text


def test_a_sweep_that_the_supplier_leaves_at_its_end_says_so(collecting, supplier):
    supplier = supplier()

    async def go_down(_shard) -> None:
        supplier.poisoned = set(range(1, 100))

    with pytest.raises(SupplierDown):
        collecting.run(supplier, collecting.partitions(2, 5), in_flight=1, on_landed=go_down)
    assert len(landed(collecting.lake, SWEEP)) == 1


def test_failures_with_an_answer_between_them_land(collecting, supplier):
    supplier = supplier({1}, answered(302, failure=Failure.REDIRECT))
    ids = itertools.cycle([(1,)] * 19 + [(2,)])
    collecting.run(supplier, collecting.partitions(40, 5, ids), in_flight=1)
    assert len(collecting.records()) == 200
    assert len(collecting.landed) == 40


def test_one_property_that_fails_for_long_holds_no_shards_back(collecting, supplier):
    waiting = []

    async def note(shard) -> None:
        collecting.landed.append(shard.name)
        waiting.append(len(collecting.opened) - len(collecting.landed))

    collecting.run(supplier({1}), collecting.partitions(200, 1, itertools.repeat((1,))), in_flight=1, on_landed=note)
    assert len(waiting) == 200
    assert max(waiting) <= GIVE_UP_AFTER + EXTRA_OPEN_SHARDS


def test_what_lands_while_the_collection_ends_is_not_given_up(collecting, supplier, monkeypatch, caplog):
    supplier, is_landing, may_land = supplier(), threading.Event(), threading.Event()
    real = collecting.lake.put_new

    def slowly(path, data):
        is_landing.set()
        may_land.wait(60)
        return real(path, data)

    async def refuse(operation, body, *, attempts=None):
        if json.loads(body)["number"] == 32:
            await asyncio.to_thread(is_landing.wait, 60)
            asyncio.get_running_loop().call_later(0.05, may_land.set)
            raise TokenRefused("no")
        return await type(supplier).ask(supplier, operation, body, attempts=attempts)

    monkeypatch.setattr(collecting.lake, "put_new", slowly)
    supplier.ask = refuse
    with pytest.raises(TokenRefused):
        collecting.run(supplier, collecting.shards(64), in_flight=2)
    assert len(collecting.records()) == 32
    assert "given up" not in caplog.text
