"""What a printer runs: reads a task as JSON from standard input, writes the file to standard output."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

from typst import TypstError

from school_service.printing.papers import PAPERS

MOST_CPU = 60  # seconds of processor time, after which the system ends it: also where nobody waits any more


def main() -> None:
    """Print; ends with 1, and words on standard error, where typst refuses.

    Its words are about the template and about pictures, and repeat no text of a person.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU, MOST_CPU))
    # What was printed once is printed again, to the last digit: numbers stay the text that they are.
    task: dict[str, Any] = json.load(sys.stdin.buffer, parse_float=str)
    try:
        file = PAPERS[task.pop("paper")](**task)
    except TypstError as error:
        sys.exit(error.message)
    sys.stdout.buffer.write(file)


main()
