"""`python -m school_service` is `school-service`."""

from school_service.cli import main

if __name__ == "__main__":
    main()
