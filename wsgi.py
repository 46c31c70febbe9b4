"""The WSGI application: `app` for any server; `python wsgi.py` is `school-service serve`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from school_service.cli import main

    main(["serve", *sys.argv[1:]])
else:
    from school_service.app import create_app

    app = create_app()
