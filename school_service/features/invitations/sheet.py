"""Slips of invitations as a workbook, for a school to print or send in its own way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from school_service.sheets.report_writer import Report, ReportColumn, write_report

_COLUMNS = (
    ReportColumn("Name", least=20, most=40, text=True),
    ReportColumn("Class", least=8, most=20, text=True),
    ReportColumn("Username", least=14, most=36, text=True),
    ReportColumn("Code", least=17, most=17),
    ReportColumn("Valid until", least=18, most=18),
    ReportColumn("Address", least=30, most=70, text=True),
)
_INSTRUCTIONS = "Whoever has a code can set the password of the account: hand each to its owner alone."


def write_sheet(slips: Sequence[Mapping[str, Any]], *, school: str, title: str, time_zone: str) -> bytes:
    """Write a workbook with a row for each slip; texts stay texts, however they begin."""
    zone = ZoneInfo(time_zone)
    rows = [
        [
            slip["name"],
            slip["class"] or "",
            slip["username"],
            slip["code"],
            f"{datetime.fromisoformat(slip['expires_at']).astimezone(zone):%Y-%m-%d %H:%M}",
            slip["url"] or "",
        ]
        for slip in slips
    ]
    return write_report(
        [Report("Invitations", [school, title, _INSTRUCTIONS], _COLUMNS, rows, page_header=(school, title))]
    )
