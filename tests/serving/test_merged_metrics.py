"""The metrics of several workers, merged into the metrics of one service."""

import socket
import struct
import threading
import zlib
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from school_service.serving import merged_metrics
from school_service.serving.merged_metrics import MergedMetrics
from tests.cli.program import wait_for


class Worker:
    """A worker that has counted and shows so much."""

    def __init__(self, counted, waiting, schools=None):
        self.registry = CollectorRegistry()
        self.counter = Counter("school_service_sign_ins", "Counted.", ["of"], registry=self.registry)
        self.counter.labels("user").inc(counted)
        Gauge("school_service_queue_length", "Looked at.", registry=self.registry).set(waiting)
        Gauge("process_start_time_seconds", "The largest.", registry=self.registry).set(waiting)
        busiest = Gauge(
            "school_service_busiest_school_requests", "By school.", ["school"], registry=self.registry
        )
        for school, requests in (schools or {}).items():
            busiest.labels(school).set(requests)
        self.asked = []
        self.connection, self.theirs = socket.socketpair()
        self.silent = threading.Event()

    def tell(self):
        content = zlib.compress(generate_latest(self.registry))
        self.connection.sendall(struct.pack("!I", len(content)) + content)

    def answer(self):
        while word := self.connection.recv(1):
            self.asked.append(word)
            if not self.silent.is_set():
                self.tell()


@contextmanager
def merged(*workers):
    metrics = MergedMetrics(len(workers))
    threads = [threading.Thread(target=worker.answer) for worker in workers]
    for number, (worker, thread) in enumerate(zip(workers, threads, strict=True)):
        metrics.add(number, worker.theirs)
        thread.start()
    yield metrics
    for number in range(len(workers)):
        metrics.remove(number, died=False)
    read(metrics)
    for worker, thread in zip(workers, threads, strict=True):
        worker.theirs.close()
        thread.join()
        worker.connection.close()


def read(metrics):
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in metrics.collect()
        for sample in metric.samples
    }


def end(worker):
    worker.connection.shutdown(socket.SHUT_RDWR)


def test_counts_and_gauges_are_added_up_and_one_worker_asks_the_database():
    worker, other = Worker(3, 5, {"a": 4, "b": 1}), Worker(4, 6, {"a": 2})
    with merged(worker, other) as metrics:
        figures = read(metrics)
        assert (worker.asked, other.asked) == ([b"D"], [b"-"])
        end(worker), end(other)

    assert figures["school_service_sign_ins_total", "user"] == 7
    assert figures["school_service_queue_length",] == 11
    assert figures["process_start_time_seconds",] == 6
    assert (figures["school_service_busiest_school_requests", "a"], figures["school_service_workers",]) == (
        6,
        2,
    )


def test_the_counts_of_ended_workers_stay_counted():
    told, killed, stays = Worker(3, 5), Worker(4, 6), Worker(1, 2)
    with merged(told, killed, stays) as metrics:
        assert read(metrics)["school_service_sign_ins_total", "user"] == 8
        # One says its last words, the other none.
        told.counter.labels("user").inc(10)
        told.tell()
        end(told), end(killed)
        metrics.remove(0, died=False)
        metrics.remove(1, died=True)

        figures = read(metrics)
        end(stays)

    assert figures["school_service_sign_ins_total", "user"] == 18
    assert figures["school_service_queue_length",] == 2
    assert (figures["school_service_workers",], figures["school_service_workers_died_total",]) == (1, 1)
    assert figures["school_service_workers_wanted",] == 3


def test_a_worker_without_an_answer_is_shown_as_it_was_and_waited_for_once(monkeypatch, logs):
    worker = Worker(3, 5)
    with merged(worker) as metrics:
        monkeypatch.setattr(merged_metrics, "PATIENCE", 60)
        assert read(metrics)["school_service_sign_ins_total", "user"] == 3
        worker.silent.set()
        monkeypatch.setattr(merged_metrics, "PATIENCE", 0.05)
        assert read(metrics)["school_service_sign_ins_total", "user"] == 3
        wait_for(lambda: len(worker.asked) == 2, "the second question")
        # It owes an answer: nobody waits for it, nor is it asked a third time.
        monkeypatch.setattr(merged_metrics, "PATIENCE", 600)
        assert read(metrics)["school_service_sign_ins_total", "user"] == 3
        assert len(worker.asked) == 2
        worker.counter.labels("user").inc()
        worker.tell()
        worker.silent.clear()
        assert read(metrics)["school_service_sign_ins_total", "user"] == 4
        assert len(worker.asked) == 3
        worker.connection.shutdown(socket.SHUT_RDWR)
        metrics.remove(0, died=True, hung=True)
        assert read(metrics)["school_service_workers_hung_total",] == 1

    assert any("did not tell its metrics" in line["message"] for line in logs())
