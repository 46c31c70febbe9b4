"""The WSGI application: `app` for any server; `python wsgi.py` serves it with waitress."""

from __future__ import annotations

from school_service.app import create_app

app = create_app()

if __name__ == "__main__":
    from school_service.serving import serve

    serve(app)
