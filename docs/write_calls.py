"""The requests of the guide in other forms: curl, Python and TypeScript, made of the request and of the document.

docs/write_api_guide.py writes them into the page of the service. `client` is a client of the packages of a release,
`school` and `header` name the school.
"""

from __future__ import annotations

import builtins
import json
import keyword
import re
import shlex
from dataclasses import dataclass, field
from pprint import pformat
from typing import Any
from urllib.parse import parse_qs

LANGUAGES = {"http": "HTTP", "curl": "curl", "python": "Python", "typescript": "TypeScript"}


@dataclass(frozen=True)
class Call:
    """A request of the guide, and the status that it is answered with."""

    text: str
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    status: int = 200

    def forms(self, document: dict[str, Any]) -> dict[str, str]:
        """Write it in each form; a body that the document forbids has no typed one."""
        if self.status == 422:
            return {"curl": self._curl()}
        operation = Operation.of(document, self.method, self.path.partition("?")[0])
        return {
            "curl": self._curl(),
            "python": self._python(operation),
            "typescript": self._typescript(operation),
        }

    @property
    def _query(self) -> dict[str, list[str]]:
        return parse_qs(self.path.partition("?")[2])

    def _curl(self) -> str:
        words = [f'curl "$URL{self.path}"', *([] if self.method == "GET" else [f"-X {self.method}"])]
        if not self.path.startswith(("/auth/", "/verify/")):
            words += ['-H "Authorization: Bearer $TOKEN"', '-H "X-SCHOOL-ID: $SCHOOL"']
        words += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in self.headers.items()]
        words += [f"-F {shlex.quote(f'{name}=@{file}')}" for name, file in self.files.items()]
        if self.body is not None:
            content = json.dumps(self.body, ensure_ascii=False)
            words += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(content)}"]
        return " \\\n  ".join(words)

    def _python(self, operation: Operation) -> str:
        name = snake_case(operation.declared["operationId"])
        lines = [f"from school_service_client.api.{operation.tag} import {name}"]
        given = [operation.typed(parameter, operation.values[parameter]) for parameter in operation.values]
        given.append("client=client")
        if "X-SCHOOL-ID" in operation.parameters:
            given.append("x_school_id=school")
        headers = {name: [value] for name, value in self.headers.items()}
        for parameter, values in {**self._query, **headers}.items():
            if parameter in operation.parameters:
                given.append(f"{argument(parameter)}={operation.typed(parameter, *values)}")
        if model := operation.model:
            made, several = self._body(model), isinstance(self.body, list)
            records = ",\n    ".join(self._record(model, record) for record in self.body) if several else ""
            lines += [f"from school_service_client.models import {model}", ""]
            lines.append(f"body = [\n    {records},\n]" if several else f"body = {made}")
            given.append("body=body")
        elif self.body is not None:
            given.append(f"body={pformat(self.body, width=90, sort_dicts=False)}")
        lines += ["", f"answer = {name}.sync({', '.join(given)})"]
        text = "\n".join(lines)
        helpers = {"UUID(": "from uuid import UUID", "date.fromisoformat(": "from datetime import date"}
        helpers["File("] = "from school_service_client.types import File"
        used = [line for word, line in helpers.items() if re.search(rf"\b{re.escape(word)}", text)]
        enumerations = [enumeration for enumeration in operation.enumerations if f"{enumeration}(" in text]
        used += [f"from school_service_client.models import {enumeration}" for enumeration in enumerations]
        return "\n".join([*used, text])

    def _body(self, model: str) -> str:
        if self.files:
            files = (
                f'{argument(name)}=File(payload=open("{file}", "rb"), file_name="{file}")'
                for name, file in self.files.items()
            )
            return f"{model}({', '.join(files)})"
        return self._record(model, self.body)

    @staticmethod
    def _record(model: str, record: Any) -> str:
        return f"{model}.from_dict({pformat(record, width=90, sort_dicts=False)})"

    def _typescript(self, operation: Operation) -> str:
        params: list[str] = ["header"] if "X-SCHOOL-ID" in operation.parameters else []
        if self.headers:
            own = ", ".join(
                f"{json.dumps(name)}: {json.dumps(value)}" for name, value in self.headers.items()
            )
            params = [f"header: {{ ...header, {own} }}"]
        if operation.values:
            params.append(f"path: {json.dumps(operation.values)}")
        if self._query:
            values = {name: operation.plain(name, *given) for name, given in self._query.items()}
            params.append(f"query: {json.dumps(values, ensure_ascii=False)}")
        options = [f"params: {{ {', '.join(params)} }}"] if params else []
        lines: list[str] = []
        if self.files:
            lines = ["const form = new FormData();"]
            lines += [
                f"form.append({json.dumps(name)}, file); // {file}" for name, file in self.files.items()
            ]
            empty = json.dumps(dict.fromkeys(self.files, ""))
            options.append(f"body: {empty},\n  bodySerializer: () => form")
        elif self.body is not None:
            options.append(
                f"body: {json.dumps(self.body, ensure_ascii=False, indent=2)}".replace("\n", "\n  ")
            )
        written = ",\n  ".join(options)
        call = f"client.{self.method}({json.dumps(operation.path)}" + (
            f", {{\n  {written},\n}});" if written else ");"
        )
        return "\n".join([*lines, f"const {{ data, error }} = await {call}"])


@dataclass(frozen=True)
class Operation:
    """An operation of the document, with the values of its path."""

    path: str
    declared: dict[str, Any]
    parameters: dict[str, dict[str, Any]]
    values: dict[str, str]

    @classmethod
    def of(cls, document: dict[str, Any], method: str, path: str) -> Operation:
        """Find the operation at an address: that with the fewest parts that stand for others."""
        for template in sorted(document["paths"], key=lambda template: template.count("{")):
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template))
            match = re.fullmatch(pattern, path)
            if match and method.lower() in document["paths"][template]:
                item = document["paths"][template]
                declared = item[method.lower()]
                listed = [*item.get("parameters", []), *declared.get("parameters", [])]
                return cls(
                    template,
                    declared,
                    {parameter["name"]: parameter["schema"] for parameter in listed},
                    match.groupdict(),
                )
        raise LookupError(f"{method} {path}")

    @property
    def tag(self) -> str:
        """Name the module of its tag."""
        return str(self.declared["tags"][0]).replace("-", "_")

    @property
    def model(self) -> str | None:
        """Name the schema of its body, or of each record in that."""
        for content in self.declared.get("requestBody", {}).get("content", {}).values():
            schema = content["schema"]
            named = schema.get("$ref") or schema.get("items", {}).get("$ref")
            return named.rsplit("/", 1)[-1] if named else None
        return None

    @property
    def enumerations(self) -> list[str]:
        """Name the enumerations of its query."""
        return [
            name for schema in self.parameters.values() for name in re.findall(r"schemas/(\w+)", str(schema))
        ]

    def plain(self, name: str, *values: str) -> Any:
        """Give a parameter of the query, or the several values of one, as JSON has it."""
        schema = self.parameters.get(name, {})
        return list(values) if "items" in schema else plain_value(schema, values[0])

    def typed(self, name: str, *values: str) -> str:
        """Write a parameter of the path or the query, or the several values of one, as the Python client takes it."""
        schema = self.parameters[name]
        written = [typed_value(schema.get("items", schema), value) for value in values]
        return f"[{', '.join(written)}]" if "items" in schema else written[0]


def plain_value(schema: dict[str, Any], value: str) -> Any:
    """Give a value as JSON has it."""
    return json.loads(value) if schema.get("type") in ("integer", "boolean") else value


def typed_value(schema: dict[str, Any], value: str) -> str:
    """Write a value as the Python client takes it."""
    if match := re.search(r"schemas/(\w+)", str(schema)):
        return f'{match[1]}("{value}")'
    kind = schema.get("format", "")
    if "anyOf" in schema:  # a number, or an id
        kind = "" if value.isdigit() else "uuid"
    written = {"uuid": f'UUID("{value}")', "date": f'date.fromisoformat("{value}")'}
    return written.get(kind) or repr(plain_value(schema, value))


def snake_case(name: str) -> str:
    """Write a name as the Python client does."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


def argument(name: str) -> str:
    """Write the name of a parameter as the Python client does."""
    name = snake_case(name)
    return f"{name}_" if keyword.iskeyword(name) or (name in dir(builtins) and name != "id") else name
