"""The WSGI application: `app` for any server, with its log; `python wsgi.py` is `school-service serve`."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    from school_service.cli.program import main

    main(["serve", *sys.argv[1:]])
else:
    from school_service.app import create_app
    from school_service.config import Settings
    from school_service.release import log_release
    from school_service.web.request_log import configure_logging

    settings = Settings.load(os.environ)
    configure_logging(settings.log_level)
    log_release()
    app = create_app(settings)
    if settings.metrics_port is not None:
        from school_service.serving.monitoring import count_requests
        from school_service.serving.scraping import serve_in_background

        serve_in_background(count_requests(app), settings.metrics_address, settings.metrics_port)
