"""The program: `school-service`, or `python -m school_service`."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line."""
    # Imported modules stay until the program ends. To look for garbage in it, meanwhile and at the end, would take a
    # quarter of the time of a verb that is quickly done.
    gc.disable()
    from school_service.cli import program

    gc.freeze()
    gc.enable()
    program.main()


if __name__ == "__main__":
    main()
