"""Printers: processes that print, so many at once, each for so long, with nothing of the process that serves."""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

import school_service
from school_service.core.errors import Busy
from school_service.printing import printers as module
from school_service.printing.printers import NotPrinted, Printers
from tests.printing.pictures import png

pytestmark = pytest.mark.program

ROOT = Path(school_service.__file__).parents[1]

# A printer's steps to take tasks and to answer, so that programs of the tests can do other things in between.
SPEAKING = f"""
import os, sys
sys.path.append({str(ROOT)!r})
from school_service.printing import ANSWER, TASK

def take():
    number, length = TASK.unpack(os.read(0, TASK.size))
    while length:
        length -= len(os.read(0, length))
    return number

def answer(number, file, memory=0):
    os.write(1, ANSWER.pack(number, True, memory, len(file)) + file)

"""
ECHOING = "while True: answer(take(), b'%d' % os.getpid())"


def picture(image):
    return {"paper": "picture", "picture": b64encode(image).decode()}


def running(program):
    return (sys.executable, "-I", "-S", "-c", program)


def speaking(program):
    return running(SPEAKING + program)


@pytest.fixture
def make_printers():
    """Make printers, which end with the test."""
    made = []

    def make(limit=1, **options):
        made.append(Printers(limit, **options))
        return made[-1]

    yield make
    for printers in made:
        printers.close()


def is_running(pid):
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def wait_for(condition):
    until = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def standing(printers):
    """The process ids of printers that have no task."""
    return [printer._process.pid for _, printer in printers._idle._printers]


def test_a_picture_becomes_a_pdf_with_the_same_bytes_each_time(make_printers):
    printers = make_printers()

    printed = printers.print(picture(png()))

    assert printed.startswith(b"%PDF-")
    first = standing(printers)
    assert printers.print(picture(png(colour=(1, 2, 3)))) != printed
    assert printers.print(picture(png())) == printed
    # All of them by one printer, and the same by another.
    assert standing(printers) == first
    assert make_printers().print(picture(png())) == printed


@pytest.mark.parametrize(
    "broken", [png()[:60], b"GIF89a", b"", b"<svg/>", png().replace(b"IDAT", b"IDAX")], ids=range(5)
)
def test_a_broken_picture_is_not_printed_and_the_log_says_so(make_printers, shared, caplog, broken):
    before = standing(shared)

    with pytest.raises(NotPrinted):
        shared.print(picture(broken))

    (record,) = caplog.records
    assert record.getMessage() == "nothing was printed"
    assert 0 < len(record.printer) <= 2000
    # The printer goes on.
    assert shared.print(picture(png())).startswith(b"%PDF-")
    assert standing(shared) == before


@pytest.fixture(scope="module")
def shared():
    """A printer that has printed before."""
    printers = Printers(1)
    printers.print(picture(png()))
    yield printers
    printers.close()


def test_a_printer_that_hangs_is_killed_and_gone(make_printers):
    printers = make_printers(command=running("import time; time.sleep(600)"), timeout=0.2)

    with pytest.raises(Busy):
        printers.print(picture(png()))

    children = psutil.Process().children(recursive=True)
    assert not [child for child in children if "time.sleep(600)" in " ".join(child.cmdline())]
    # Its turn is free again, too.
    with pytest.raises(Busy):
        printers.print(picture(png()))


@pytest.mark.parametrize(
    "hangs",
    [
        "import time; time.sleep(600)",
        "os.write(1, ANSWER.pack(number, True, 0, 9) + b'part'); take()",
        "os.write(1, ANSWER.pack(number, True, 0, 9)[:3]); take()",
        "take()",
    ],
    ids=["sleeps", "within the file", "within the head", "reads on"],
)
def test_a_printer_that_hangs_later_is_killed_and_its_task_not_given_to_another(make_printers, hangs, caplog):
    program = f"answer(take(), b'%d' % os.getpid())\nnumber = take()\n{hangs}"
    printers = make_printers(command=speaking(program), timeout=60)
    pid = int(printers.print({}))
    printers._timeout = 0.1

    with pytest.raises(Busy):
        printers.print({})

    assert not is_running(pid)
    assert standing(printers) == []
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    printers._timeout = 60
    assert int(printers.print({})) != pid


def test_a_task_larger_than_any_buffer_that_nobody_reads_ends_in_time_too(make_printers):
    printers = make_printers(command=running("import time; time.sleep(600)"), timeout=0.1)

    with pytest.raises(Busy):
        printers.print({"paper": "x" * 4_000_000})


def test_a_killed_printer_is_in_the_log_without_its_task(make_printers, caplog):
    printers = make_printers(command=running("import time; time.sleep(600)"), timeout=0.01)

    with pytest.raises(Busy):
        printers.print({"paper": "picture", "picture": "Ògúnlẹ́yẹ"})

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "killed" in record.getMessage()
    assert "Ògúnlẹ́yẹ" not in str(vars(record))


@pytest.mark.parametrize(
    ("program", "exit_code"),
    [
        ("raise SystemExit(3)", 3),
        ("pass", 0),
        ("import os; os.abort()", -signal.SIGABRT),
        (SPEAKING + "take(); raise SystemExit(4)", 4),
        (SPEAKING + "number = take(); os.write(1, ANSWER.pack(number, True, 0, 9) + b'part')", 0),
        ("import os, time; os.close(0); os.close(1); time.sleep(600)", None),
    ],
    ids=["at once", "without a word", "abort", "with a task", "within the file", "closes and sleeps"],
)
def test_a_printer_that_ends_without_a_file_has_not_printed(
    make_printers, monkeypatch, caplog, program, exit_code
):
    monkeypatch.setattr(module, "_MOMENT", 60 if exit_code is not None else 0.1)
    program = f"import sys; print('words', file=sys.stderr, flush=True)\n{program}"

    with pytest.raises(NotPrinted):
        make_printers(command=running(program)).print(picture(png()))

    (record,) = caplog.records
    assert record.getMessage() == "nothing was printed"
    assert (record.exit_code, record.printer) == (exit_code, "words")
    assert "time.sleep(600)" not in str([child.cmdline() for child in psutil.Process().children()])


@pytest.mark.parametrize(
    "garbage",
    [
        "os.write(1, b'x' * 100); take()",
        "os.write(1, b'x'); raise SystemExit",
        "answer(number + 1, b'of another'); take()",
        "answer(0, b'of another'); take()",
    ],
    ids=["long", "short", "the next", "none"],
)
def test_a_printer_with_a_malformed_answer_has_not_printed(make_printers, caplog, garbage):
    printers = make_printers(command=speaking(f"number = take()\n{garbage}"))

    with pytest.raises(NotPrinted):
        printers.print({})

    assert standing(printers) == []
    assert [record.getMessage() for record in caplog.records] == ["nothing was printed"]


def test_a_second_answer_to_a_task_is_no_answer_to_the_next(make_printers, caplog):
    program = "number = take()\nanswer(number, b'%d' % os.getpid())\nanswer(number, b'again')\ntake()\ntake()"
    printers = make_printers(command=speaking(program))

    first, second = printers.print({}), printers.print({})

    assert second != first
    assert b"again" not in (first, second)
    assert [record.getMessage() for record in caplog.records] == ["a printer has ended, a new one prints"]


def test_a_task_gets_a_new_printer_where_the_last_has_ended(make_printers, caplog):
    printers = make_printers(command=speaking(ECHOING))
    pid = int(printers.print({}))
    assert int(printers.print({})) == pid
    assert not caplog.records
    os.kill(pid, signal.SIGKILL)

    other = int(printers.print({}))

    assert other != pid
    assert not is_running(pid)
    (record,) = caplog.records
    assert (record.exit_code, record.getMessage()) == (
        -signal.SIGKILL,
        "a printer has ended, a new one prints",
    )


def test_a_task_that_ends_its_printer_is_given_to_a_new_one_once(make_printers, caplog, tmp_path):
    begun = tmp_path / "begun"
    program = f"""
open({str(begun)!r}, "a").write("x")
if len(open({str(begun)!r}).read()) == 1:
    answer(take(), b"x")
take()
os.abort()
"""
    printers = make_printers(command=speaking(program))
    printers.print({})

    with pytest.raises(NotPrinted):
        printers.print({})

    assert begun.read_text() == "xx"
    assert [record.exit_code for record in caplog.records] == [-signal.SIGABRT] * 2


def test_a_printer_inherits_no_environment_and_no_file(make_printers, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    program = """
import json
paths = [f"/proc/self/fd/{number}" for number in range(3, 200)]
files = [os.readlink(path) for path in paths if os.path.lexists(path)]
answer(take(), json.dumps([dict(os.environ), files, os.getcwd(), sys.path]).encode())
"""
    # A printer that stands beside it is none of its files either.
    make_printers(command=speaking(ECHOING)).print({})
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        report = json.loads(make_printers(command=speaking(program)).print({}))

    environment, files, folder, _ = report
    assert environment == {"LC_ALL": "C.UTF-8"}
    assert [file for file in files if not file.startswith("/proc/")] == []
    assert folder == "/"


def test_a_printer_imports_typst_and_no_module_of_the_server():
    command = list(module._command())
    command[command.index("-c") + 1] = (
        "import sys; sys.path += sys.argv[1:]; import school_service.printing.worker; print(*sys.modules)"
    )

    modules = subprocess.run(
        command, capture_output=True, check=True, encoding="utf-8", cwd="/", env={}
    ).stdout.split()

    assert "typst" in modules
    assert not {"flask", "sqlalchemy", "psycopg2", "orjson", "pathlib", "site"} & set(modules)


def test_output_of_a_library_is_no_part_of_a_file_and_each_task_has_its_processor_time(make_printers, caplog):
    program = """
import resource, sys
from school_service.printing import worker

def print_limit():
    print("much" * 10_000, flush=True)
    return str(resource.getrlimit(resource.RLIMIT_CPU)[0]).encode()

worker.PAPERS = {"limit": print_limit}
worker.main()
"""
    packages = f"import sys; sys.path += {list(module._command()[5:])!r}\n"
    printers = make_printers(command=running(packages + program))

    # All together it is more than a pipe holds.
    limits = [int(printers.print({"paper": "limit"})) for _ in range(3)]

    assert 60 < limits[0] <= limits[-1] < 65
    assert len(standing(printers)) == 1
    assert {record.printer for record in caplog.records} == {"much" * 500}


def test_a_caller_without_a_free_printer_is_refused_in_time(make_printers):
    printers = make_printers(command=speaking("answer(take(), b'x')"), patience=0.05)
    held, free = threading.Event(), threading.Event()

    def hold():
        with printers._turns.of(None):
            held.set()
            free.wait(60)

    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(hold)
        assert held.wait(60)
        with pytest.raises(Busy):
            printers.print({})
        free.set()
        other.result()

    assert printers.print({}) == b"x"


def test_a_school_never_has_every_printer(make_printers):
    # Each answers once there is a file.
    program = """
import json, time
while True:
    number, length = TASK.unpack(os.read(0, TASK.size))
    asked = json.loads(os.read(0, length))
    while not os.path.exists(asked["until"]):
        time.sleep(0.005)
    answer(number, b"printed")
"""
    printers = make_printers(3, command=speaking(program), patience=180)
    with TemporaryDirectory() as folder, ThreadPoolExecutor(9) as threads:
        gate = Path(folder) / "gate"
        crowd = [threads.submit(printers.print, {"until": str(gate)}, "A") for _ in range(8)]
        wait_for(lambda: printers._turns.count_waiting() == 6)

        assert printers.print({"until": folder}, "B") == b"printed"
        assert not any(future.done() for future in crowd)
        gate.touch()
        assert {future.result() for future in crowd} == {b"printed"}


def test_schools_have_the_one_printer_by_turns(make_printers):
    printed = "while True:\n    number = take()\n    answer(number, b'%d' % number)"
    printers = make_printers(1, command=speaking(printed), patience=180)
    order = {}

    def print_for(school):
        order[int(printers.print({}, school))] = school

    with ThreadPoolExecutor(8) as threads:
        with printers._turns.of("A"):
            sent = []
            for number, school in enumerate(("A", "A", "A", "A", "B")):
                sent.append(threads.submit(print_for, school))
                wait_for(lambda number=number: printers._turns.count_waiting() > number)
        for future in sent:
            future.result()

    # B has waited for the task under way, or for its answer to be noted.
    assert [order[number] for number in sorted(order)].index("B") <= 1


@pytest.mark.parametrize("limit", [1, 3])
def test_each_of_many_tasks_at_once_has_a_printer_alone_and_printers_stay_within_their_limit(
    make_printers, limit
):
    # A printer answers with its id and the bytes of its task: nobody gets the paper of another.
    program = """
while True:
    number, length = TASK.unpack(os.read(0, TASK.size))
    answer(number, b"%d " % os.getpid() + os.read(0, length))
"""
    printers = make_printers(limit, command=speaking(program))

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: printers.print({"number": number}), range(60)))

    told = [answer.split(b" ", 1) for answer in answers]
    assert [json.loads(task)["number"] for _, task in told] == list(range(60))
    assert 1 <= len({pid for pid, _ in told}) <= limit


def test_a_printer_without_a_task_ends_after_a_while(make_printers):
    printers = make_printers(command=speaking(ECHOING), idle=0.02)
    pid = int(printers.print({}))

    wait_for(lambda: not psutil.pid_exists(pid))

    assert standing(printers) == []
    # So does the next.
    other = int(printers.print({}))
    assert other != pid
    wait_for(lambda: not psutil.pid_exists(other))


def test_a_printer_that_has_a_task_now_and_then_stays(make_printers):
    printers = make_printers(command=speaking(ECHOING), idle=30)
    pid = int(printers.print({}))
    since, printer = printers._idle._printers[0]

    # It is looked at 30 seconds after it came first, when it has printed since.
    printers.print({})
    printers._idle.end_old()
    assert standing(printers) == [pid]
    printers._idle._printers = [(since - 31, printer)]
    printers._idle.end_old()
    assert standing(printers) == []


@pytest.mark.parametrize(("bound", "value"), [("MOST_TASKS", 2), ("MOST_MEMORY", 1500)])
def test_a_printer_is_replaced_after_so_many_tasks_or_beyond_so_much_memory(
    make_printers, monkeypatch, bound, value
):
    monkeypatch.setattr(module, bound, value)
    growing = "memory = 0\nwhile True:\n    memory += 1000\n    answer(take(), b'%d' % os.getpid(), memory)"
    printers = make_printers(command=speaking(growing))

    pids = [int(printers.print({})) for _ in range(4)]

    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert not is_running(pids[0])
    assert standing(printers) == []


def test_a_printer_says_how_much_memory_it_has(shared):
    ((_, printer),) = shared._idle._printers

    assert printer.memory == pytest.approx(psutil.Process(printer._process.pid).memory_info().rss, rel=0.2)
    assert printer.memory < module.MOST_MEMORY / 2


def test_printers_leave_nothing_open(make_printers):
    printers = make_printers(command=speaking(ECHOING))
    printers.print({})
    printers.close()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        printers.print({})
        printers.close()
        os.kill(int(printers.print({})), signal.SIGKILL)
        printers.print({})
        printers.close()

    assert len(os.listdir("/proc/self/fd")) <= before


def test_printers_that_nobody_has_any_more_end():
    printers = Printers(1, command=speaking(ECHOING))
    pid = int(printers.print({}))

    del printers
    gc.collect()

    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=lambda end: end.name)
def test_a_printer_ends_with_the_process_that_serves_however_it_ends(end):
    ours, theirs = os.pipe()
    serving = os.fork()
    if serving == 0:
        with suppress(BaseException):
            printers = Printers(1, command=speaking(ECHOING))
            pid = int(printers.print({}))
            # Another process that it has forked holds the printer's standard input no longer than it does itself.
            other = os.fork()
            if other:
                os.write(theirs, b"%d %d" % (pid, other))
            time.sleep(600)
        os._exit(1)
    pid, other = map(int, os.read(ours, 100).split())
    os.close(ours)
    os.close(theirs)
    try:
        assert is_running(pid)

        os.kill(serving, end)
        os.waitpid(serving, 0)

        wait_for(lambda: not is_running(pid))
        assert is_running(other)
    finally:
        os.kill(other, signal.SIGKILL)


def test_a_printer_ends_with_an_interpreter_that_ends():
    program = f"""
from school_service.printing.printers import Printers
printers = Printers(1, command={speaking(ECHOING)!r})
print(printers.print({{}}).decode())
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        encoding="utf-8",
        check=True,
        cwd=ROOT,
    )

    assert done.stderr == ""
    assert not psutil.pid_exists(int(done.stdout))


def test_a_process_that_is_forked_has_printers_of_its_own(make_printers):
    printers = make_printers(command=speaking(ECHOING))
    pid = int(printers.print({}))
    ours, theirs = os.pipe()
    with printers._turns.of(None):  # by somebody who is not there in the other process
        child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.write(theirs, printers.print({}))
            printers.close()
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answer:
        other = int(answer.read())
    os.waitpid(child, 0)

    assert other != pid
    assert not is_running(other)
    assert int(printers.print({})) == pid


def test_an_application_has_as_many_printers_as_its_settings_say(app):
    assert app.extensions["printers"]._limit == 2
