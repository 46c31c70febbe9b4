"""The order of requests: shares of groups, their turns, and quick requests."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import pytest

from school_service.core.shares import GroupLimit
from school_service.serving.dispatcher import Dispatcher, Stranger, parts_of_strangers
from tests.cli.program import wait_for


@dataclass(eq=False)
class Request:
    """A task of the tests: it is under way until it is let go."""

    name: str
    log: list
    quick: bool = False
    fails: bool = False
    go: threading.Event = field(default_factory=threading.Event)
    refused: bool = False
    cancelled: bool = False
    thread: threading.Thread | None = None
    school: str | None = None  # as its token says, once that is verified

    def service(self):
        self.thread = threading.current_thread()
        self.log.append(self)
        if not self.refused:
            assert self.go.wait(60)
        if self.fails:
            raise SystemExit(self.name)

    def cancel(self):
        self.cancelled = True

    def share_key(self):
        return self.name

    def verify(self):
        self.name = self.school or self.name

    def is_quick(self):
        return self.quick

    def refuse(self):
        self.refused = True


@pytest.fixture
def begun():
    return []


@pytest.fixture
def dispatcher(begun):
    dispatcher = Dispatcher(4, share=2, waiting=3)
    yield dispatcher
    for task in begun:
        task.go.set()
    assert dispatcher.shutdown()


def names(tasks):
    return sorted(task.name for task in tasks)


def test_a_group_has_its_share_and_the_others_find_a_thread(dispatcher, begun):
    for _ in range(2):
        dispatcher.add_task(Request("a", begun))
    wait_for(lambda: len(begun) == 2, "two that run")
    for _ in range(2):
        dispatcher.add_task(Request("a", begun))
    dispatcher.add_task(Request("b", begun))

    wait_for(lambda: names(begun) == ["a", "a", "b"], "two of one, one of the other")
    next(task for task in begun if task.name == "a").go.set()
    wait_for(lambda: names(begun) == ["a", "a", "a", "b"], "the next of the first")


def test_a_request_beyond_the_queue_is_refused_at_once_and_other_groups_are_not(dispatcher, begun):
    for _ in range(2):
        dispatcher.add_task(Request("a", begun))
    wait_for(lambda: len(begun) == 2, "two that run")
    waiting = [Request("a", begun) for _ in range(3)]
    for task in waiting:
        dispatcher.add_task(task)
    beyond, other = Request("a", begun), Request("b", begun)
    dispatcher.add_task(beyond)
    dispatcher.add_task(other)

    wait_for(lambda: beyond in begun and other in begun, "the answers")
    assert (beyond.refused, other.refused) == (True, False)
    assert not any(task.refused or task in begun for task in waiting)


def test_the_thread_that_became_idle_last_works_first(dispatcher, begun):
    workers = dispatcher._requests

    def are_idle(number):
        wait_for(lambda: len(workers._idle) == number, f"{number} idle threads")

    are_idle(4)
    first, second = Request("a", begun), Request("b", begun)
    for task in (first, second):
        dispatcher.add_task(task)
    wait_for(lambda: len(begun) == 2, "two that run")
    for idle, task in ((3, second), (4, first)):
        task.go.set()
        are_idle(idle)
    for name in ("c", "d"):
        dispatcher.add_task(Request(name, begun))
    wait_for(lambda: len(begun) == 4, "the next two")

    assert {task.thread for task in begun[2:]} == {first.thread, second.thread}


def test_groups_take_turns(begun):
    dispatcher = Dispatcher(1, share=1, waiting=10)
    first = Request("a", begun)
    dispatcher.add_task(first)
    wait_for(lambda: begun == [first], "the first")
    for name in ("a", "a", "b", "c"):
        task = Request(name, begun)
        task.go.set()
        dispatcher.add_task(task)
    first.go.set()

    wait_for(lambda: len(begun) == 5, "all")
    assert [task.name for task in begun] == ["a", "b", "c", "a", "a"]
    assert dispatcher.shutdown()


def test_a_quick_request_is_done_while_every_thread_is_busy(dispatcher, begun):
    for name in ("a", "a", "b", "b"):
        dispatcher.add_task(Request(name, begun))
    wait_for(lambda: len(begun) == 4, "all threads")
    dispatcher.add_task(Request("c", begun))
    health = Request("health", begun, quick=True)
    dispatcher.add_task(health)

    wait_for(lambda: health in begun, "health")
    assert names(begun) == ["a", "a", "b", "b", "health"]


def test_a_task_that_fails_costs_no_thread_and_no_share(dispatcher, begun):
    for _ in range(12):
        task = Request("a", begun, fails=True)
        task.go.set()
        dispatcher.add_task(task)
        wait_for(lambda task=task: task in begun, "its turn")
    for _ in range(2):
        dispatcher.add_task(Request("a", begun))
    wait_for(lambda: len(begun) == 14, "two at once")


def test_a_request_that_waits_at_the_end_is_cancelled(begun):
    dispatcher = Dispatcher(1, share=1, waiting=5)
    running, waiting = Request("a", begun), Request("a", begun)
    dispatcher.add_task(running)
    wait_for(lambda: begun == [running], "the first")
    dispatcher.add_task(waiting)
    threading.Timer(0.1, running.go.set).start()

    assert dispatcher.shutdown()
    assert (waiting.cancelled, waiting in begun, running.cancelled) == (True, False, False)


def stranger(number, *, has_token):
    return Stranger(f"192.0.2.{number}", has_token)


@pytest.fixture
def of_strangers(begun):
    """A dispatcher of eight threads that knows strangers from schools."""
    groups = GroupLimit(
        8, lambda key: key.group if isinstance(key, Stranger) else None, parts_of_strangers(8)
    )
    dispatcher = Dispatcher(8, share=4, waiting=100, groups=groups)
    yield dispatcher
    for task in begun:
        task.go.set()
    assert dispatcher.shutdown()


def test_requests_without_a_token_take_no_thread_that_others_need(of_strangers, begun):
    crowd = [Request(stranger(number % 3, has_token=False), begun) for number in range(300)]
    for task in crowd:
        of_strangers.add_task(task)
    wait_for(lambda: len(begun) == 1, "the part of those without a token")
    # Three addresses, with a hundred each that wait: from these, too, a token comes through, and a school's request.
    first_uses = [Request(stranger(number % 3, has_token=True), begun) for number in range(4)]
    of_schools = [Request("a school", begun) for _ in range(3)]
    for task in (*first_uses, *of_schools):
        of_strangers.add_task(task)

    wait_for(lambda: len(begun) == 8, "all others")
    assert {*first_uses, *of_schools} <= {*begun}
    assert not any(task.refused for task in (*first_uses, *of_schools))
    for task in crowd:
        task.go.set()


def test_tokens_that_nobody_has_seen_leave_threads_to_the_schools(of_strangers, begun):
    for number in range(50):
        task = Request(stranger(number, has_token=True), begun)
        of_strangers.add_task(task)
    wait_for(lambda: len(begun) == 4, "the part of unseen tokens")
    for _ in range(4):
        of_strangers.add_task(Request("a school", begun))

    wait_for(lambda: len(begun) == 8, "the school's")
    assert sum(task.name == "a school" for task in begun) == 4
    for task in list(begun):
        task.go.set()
    wait_for(lambda: len(begun) >= 12, "the next of them")
    of_strangers._requests._turns.clear()


@pytest.fixture
def of_nodes(begun):
    """A dispatcher whose groups are on the node that their first letter names; those with a dash, on none."""

    def node_of(group):
        return None if str(group).startswith("-") else str(group)[:1]

    dispatcher = Dispatcher(4, share=2, waiting=3, groups=GroupLimit(3, node_of))
    yield dispatcher
    for task in begun:
        task.go.set()
    assert dispatcher.shutdown()


def test_a_node_that_does_not_answer_leaves_a_thread_to_the_others(of_nodes, begun):
    for name in ("x1", "x1", "x2", "x2", "x3"):
        of_nodes.add_task(Request(name, begun))
    wait_for(lambda: len(begun) == 3, "the share of the node")
    for name in ("y1", "y1"):
        task = Request(name, begun)
        task.go.set()
        of_nodes.add_task(task)

    wait_for(lambda: len(begun) == 5, "the other node's")
    assert [name[0] for name in names(begun)] == ["x", "x", "x", "y", "y"]
    # No request that had to wait is lost.
    begun[0].go.set()
    wait_for(lambda: len(begun) == 6, "the node's next")
    assert begun[-1].name[0] == "x"


def test_whose_node_is_not_known_is_bound_by_its_own_share_alone(of_nodes, begun):
    for name in ("-1", "-1", "-1", "-2", "-2"):
        of_nodes.add_task(Request(name, begun))

    wait_for(lambda: len(begun) == 4, "every thread")
    assert names(begun) == ["-1", "-1", "-2", "-2"]


def test_a_school_that_is_moved_meanwhile_is_counted_where_it_began(begun):
    nodes = {"a": "x"}
    dispatcher = Dispatcher(2, share=2, waiting=3, groups=GroupLimit(1, nodes.get))
    first = Request("a", begun)
    dispatcher.add_task(first)
    wait_for(lambda: begun == [first], "the first")
    nodes["a"] = "y"
    first.go.set()
    for _ in range(2):
        task = Request("a", begun)
        task.go.set()
        dispatcher.add_task(task)

    wait_for(lambda: len(begun) == 3, "the others")
    assert dispatcher.shutdown()
    assert not dispatcher._requests._turns._groups_under_way


def test_waiting_requests_are_counted_and_bear_their_arrival(dispatcher, begun):
    before = time.monotonic()
    for _ in range(2):
        dispatcher.add_task(Request("a", begun))
    wait_for(lambda: len(begun) == 2, "two that run")
    assert dispatcher.count_waiting() == 0

    waiting = [Request("a", begun) for _ in range(3)]
    for task in waiting:
        dispatcher.add_task(task)
    dispatcher.add_task(Request("b", begun))
    wait_for(lambda: len(begun) == 3, "the other")

    assert dispatcher.count_waiting() == 3
    assert all(before <= task.queued_at <= time.monotonic() for task in waiting)


def test_once_its_token_is_verified_a_request_is_of_its_school(of_strangers, begun):
    """As many as use a new token at once: all are answered, never more of them at a time than the school may."""
    requests = [Request(stranger(1, has_token=True), begun, school="a school") for _ in range(20)]
    for task in requests:
        of_strangers.add_task(task)
    wait_for(lambda: len(begun) == 4, "the school's share")
    # No stranger's thread is held by a waiting request.
    others = [Request(stranger(2, has_token=True), begun) for _ in range(4)]
    for task in others:
        of_strangers.add_task(task)
    wait_for(lambda: len(begun) == 8, "the others")
    assert {*others} <= {*begun}
    for task in (*requests, *others):
        task.go.set()

    wait_for(lambda: len(begun) == 24, "all")
    assert not any(task.refused for task in requests)


def test_beyond_the_schools_queue_it_is_refused_when_its_token_is_verified(begun):
    groups = GroupLimit(8, lambda key: getattr(key, "group", None), parts_of_strangers(8))
    dispatcher = Dispatcher(8, share=1, waiting=1, groups=groups)
    running, waiting = Request("a school", begun), Request("a school", begun)
    dispatcher.add_task(running)
    wait_for(lambda: begun == [running], "the first")
    dispatcher.add_task(waiting)
    beyond = Request(stranger(1, has_token=True), begun, school="a school")
    dispatcher.add_task(beyond)

    wait_for(lambda: beyond in begun, "its answer")
    assert (beyond.refused, waiting.refused, waiting in begun) == (True, False, False)
    # Where its client has gone meanwhile, the thread goes on.
    gone = Request(stranger(2, has_token=True), begun, school="a school", fails=True)
    dispatcher.add_task(gone)
    wait_for(lambda: len(dispatcher._requests._idle) == 7 and gone.refused, "seven idle threads")
    for task in (running, waiting):
        task.go.set()
    assert dispatcher.shutdown()
