"""The image, compose.yaml and the example for Kubernetes: version, settings, verbs and probes are the program's.

That the image's steps work is tried by `.ci/release.py`, without Docker.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from school_service import __version__
from school_service.cli.program import program
from school_service.config import Settings
from tests.docs.test_recovery import shell as shell
from tests.postgres import on_postgresql_alone

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "docs" / "deployment" / "container" / "kubernetes.yaml"
PAGE = (ROOT / "docs" / "deployment" / "container.md").read_text(encoding="utf-8")
OURS = "school-service"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8")))


def pods(objects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """List the pods of the example."""
    for object_ in objects:
        if "template" in object_.get("spec", {}):
            yield object_["spec"]["template"]["spec"]


def check_command(words: list[str]) -> None:
    command: click.Command = program
    for word in words:
        if not isinstance(command, click.Group):
            break
        assert word in command.commands, words
        command = command.commands[word]
    assert not isinstance(command, click.Group), words


def check_settings(names: list[str]) -> None:
    assert names
    for name in names:
        assert re.search(rf"\b{name}\b", Settings.__doc__), name


def test_every_image_is_of_this_release(compose, objects):
    ours = [service["image"] for service in compose["services"].values() if service["image"].startswith(OURS)]
    assert (set(ours), len(ours)) == ({f"{OURS}:${{VERSION:-{__version__}}}"}, 4)
    images = [container["image"] for pod in pods(objects) for container in pod["containers"]]
    assert set(images) == {f"registry.example.org/{OURS}:{__version__}"}
    dashed = __version__.replace(".", "-")
    assert {object_["metadata"]["name"] for object_ in objects if object_["kind"] == "Job"} == {
        f"{OURS}-init-{dashed}",
        f"{OURS}-migrate-{dashed}",
    }
    pages = [
        (ROOT / "docs" / "deployment" / name).read_text(encoding="utf-8")
        for name in ("container.md", "debian.md")
    ]
    for page in pages:
        named = re.findall(r"(?:school-service[:-]|release-)(\d+\.\d+\.\d+)", page)
        assert set(named) == {__version__}


def test_settings_and_verbs_are_the_programs(compose, objects):
    for service in compose["services"].values():
        if service["image"].startswith(OURS):
            check_settings(list(service["environment"]))
            check_command(service.get("command", ["serve"]))
    for pod in pods(objects):
        (container,) = pod["containers"]
        check_settings([setting["name"] for setting in container["env"]])
        check_command(container.get("args", ["serve"]))


def test_a_container_has_a_worker_for_each_processor_that_it_may_use(compose, objects):
    command = json.loads(re.search(r"^CMD (.*)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.M)[1])
    (pod,) = pods([object_ for object_ in objects if object_["kind"] == "Deployment"])
    (container,) = pod["containers"]

    assert command[-2:] == ["--workers", "auto"]
    # Compose starts the image's own.
    assert "command" not in compose["services"]["api"]
    assert container["args"] == command
    # Else a node of 64 processors would start 64, beyond the limit of memory.
    assert int(container["resources"]["limits"]["cpu"]) == 2


def test_the_order_is_registry_schools_processes(compose, objects):
    services = compose["services"]
    assert services["api"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert services["migrate"]["depends_on"] == {"init": {"condition": "service_completed_successfully"}}
    assert services["init"]["depends_on"] == {"database": {"condition": "service_healthy"}}

    commands = re.findall(r"^kubectl .*$", PAGE, re.M)
    applied = [
        re.search(r"--selector (\w+)=(\w+)|$", line).groups() for line in commands if " apply " in line
    ]
    assert applied == [("step", "registry"), ("step", "schools"), (None, None)]
    labels = [(object_["kind"], *object_["metadata"].get("labels", {}).values()) for object_ in objects]
    assert labels[:4] == [
        ("Secret", "registry"),
        ("Secret", "registry"),
        ("Job", "registry"),
        ("Job", "schools"),
    ]
    assert {len(label) for label in labels[4:]} == {1}
    waited = [re.search(r" job/(\S+)|$", line)[1] for line in commands if " wait " in line]
    assert waited == [object_["metadata"]["name"] for object_ in objects if object_["kind"] == "Job"]


# The backup and the way back, with the programs of docs/deployment/recovery.md's test.

COMPOSE = """
docker() {{
    [ "$1" = compose ] || return 1
    case "$2" in
    up)
        case "$*" in *database) make_cluster; start_postgres; sql_of postgres "CREATE DATABASE schools" ;; esac ;;
    run)
        shift 4; school_service "$@" ;;
    exec)
        shift 4; name=$1; shift; $PGBIN/$name "$@" ;;
    esac
}}
# The operator of compose.yaml is PostgreSQL's superuser.
school_service() {{
    DATABASE_URL="postgresql://school_service@/schools?host={folder}&port=$PGPORT" \\
    ADMIN_DATABASE_URL="postgresql://postgres@/schools?host={folder}&port=$PGPORT" \\
    {python} -P -m school_service "$@"
}}
sql_of() {{ $PGBIN/psql --quiet --tuples-only --no-align --username postgres "$1" --command "$2"; }}
"""


@pytest.mark.program
@pytest.mark.release
@on_postgresql_alone
def test_the_backup_of_containers_brings_every_school_into_an_empty_server(shell):
    blocks = {
        name: block.replace(" backups/", f" {shell.folder}/backups/")
        for name, block in re.findall(r"^```sh\n# (\w+)\n(.*?)^```", PAGE, re.S | re.M)
    }
    compose = COMPOSE.format(folder=shell.folder, python=sys.executable)
    shell(
        f"{compose}docker compose up --detach --wait database\n"
        "school_service tenants init\n"
        'school_service tenants create "Queen\'s College"\n'
        'school_service tenants create "King\'s College"\n' + blocks["dump"]
    )

    said = shell(f"cluster second 5502\n{compose}{blocks['undump']}")

    assert "2 schools verified, 0 of them wrong." in said
    assert [line for line in said.splitlines() if "ERROR" in line] == [
        line for line in said.splitlines() if 'role "postgres" already exists' in line
    ]


def test_containers_run_with_few_rights(compose, objects):
    for service in compose["services"].values():
        if service["image"].startswith(OURS):
            assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
            # The operator's login is for the operator's verbs alone.
            serves = "command" not in service and "profiles" not in service
            assert ("admin_database_url" in service["secrets"]) != serves
    for pod in pods(objects):
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == 10001
        for container in pod["containers"]:
            context = container["securityContext"]
            assert (context["readOnlyRootFilesystem"], context["capabilities"]) == (True, {"drop": ["ALL"]})


def test_each_probe_asks_its_own_path(objects, app):
    (pod,) = pods([object_ for object_ in objects if object_["kind"] == "Deployment"])
    (container,) = pod["containers"]
    asked = {
        name: container[name]["httpGet"]["path"]
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    assert asked == {
        "startupProbe": "/health/live",
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }
    health = re.search(r"http://127\.0\.0\.1:8000(/\S+?)'", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    for path in {*asked.values(), health[1]}:
        assert app.test_client().get(path).status_code == 200
