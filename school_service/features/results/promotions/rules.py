"""The verdict of a rule of promotion on a session result, with reasons.

The figures are those of frozen cards. Rules are applied here alone: a dry run and the commit both come here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from school_service.core.columns import Enumeration
from school_service.features.results.models import (
    GRADUATED,
    NO_RESULT,
    PROMOTED,
    PROMOTED_ON_TRIAL,
    REPEATED,
)
from tenants.wording import counted

AVERAGE, SUBJECT, FAILED, TERMS, _ = REASONS = Enumeration(
    "PromotionReasonCode", "AVERAGE", "SUBJECT", "FAILED", "TERMS", NO_RESULT
)
"""Why a rule does not promote a student."""

Reason = dict[str, str]
"""A `code` of REASONS, and a `message` in words with the figures."""

WITHOUT_FIGURES = {
    AVERAGE: "The average is too low.",
    SUBJECT: "A required subject is too low, or was not taken.",
    FAILED: "Too many subjects were failed.",
    TERMS: "There are results of too few terms.",
    NO_RESULT: "There is no result of this session.",
}
"""The words of a reason for callers without the right to read results."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The conditions for promotion.

    Averages and percents are of 100; `required` are subjects of the school, the name by the id.
    """

    minimum_average: Decimal = Decimal(40)
    trial_average: Decimal | None = None
    required: Mapping[str, str] | None = None
    required_percent: Decimal = Decimal(40)
    maximum_failed: int | None = None
    minimum_terms: int = 1

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Rule:
        """Read a rule of a row; its required subjects have an `id` and a `name`."""
        return cls(
            row["minimum_average"],
            row["trial_average"],
            {subject["id"]: subject["name"] for subject in row["required_subjects"]},
            row["required_percent"],
            row["maximum_failed"],
            row["minimum_terms"],
        )


DEFAULT = Rule()
"""The rule of a level without one, if there is none for all others."""


@dataclass(frozen=True, slots=True)
class SessionResult:
    """The result of a student's session, as their latest card says.

    `percents` are those of the session, by the id of the school's subject, of the subjects of the latest term: one
    dropped earlier is neither failed nor taken.
    """

    average: Decimal
    terms: int
    pass_mark: Decimal
    percents: Mapping[str, Decimal]

    @property
    def failed(self) -> int:
        """Count the subjects not passed."""
        return sum(percent < self.pass_mark for percent in self.percents.values())


def judge(rule: Rule, result: SessionResult | None, *, last_class: bool) -> tuple[str, Sequence[Reason]]:
    """Give the verdict of a rule on a student, one of BY_RULE, and all reasons against their promotion.

    From the last class they graduate, and nobody is on trial.
    """
    if result is None:
        return NO_RESULT, [_reason(NO_RESULT, WITHOUT_FIGURES[NO_RESULT])]
    reasons = list(_reasons(rule, result))
    if not reasons:
        return GRADUATED if last_class else PROMOTED, []
    on_trial = not last_class and rule.trial_average is not None and result.average >= rule.trial_average
    return PROMOTED_ON_TRIAL if on_trial else REPEATED, reasons


def _reasons(rule: Rule, result: SessionResult) -> Sequence[Reason]:
    reasons = []
    if result.average < rule.minimum_average:
        words = f"The average is {result.average}, below {_plain(rule.minimum_average)}."
        reasons.append(_reason(AVERAGE, words))
    for subject, name in (rule.required or {}).items():
        percent = result.percents.get(subject)
        if percent is None:
            reasons.append(_reason(SUBJECT, f"{name} was not taken, and is required."))
        elif percent < rule.required_percent:
            reasons.append(_reason(SUBJECT, f"{name} is {percent}, below {_plain(rule.required_percent)}."))
    if rule.maximum_failed is not None and result.failed > rule.maximum_failed:
        words = f"Failed {counted(result.failed, 'subject')}, more than {rule.maximum_failed}."
        reasons.append(_reason(FAILED, words))
    if result.terms < rule.minimum_terms:
        words = f"There are results of {counted(result.terms, 'term')}, fewer than {rule.minimum_terms}."
        reasons.append(_reason(TERMS, words))
    return reasons


def _reason(code: str, message: str) -> Reason:
    return {"code": code, "message": message}


def _plain(number: Decimal) -> str:
    """Write a number without zeros at its end."""
    return f"{number.normalize():f}"
