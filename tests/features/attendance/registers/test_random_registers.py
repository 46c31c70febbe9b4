"""Random registers, corrections and moves: the sums equal plain Python's sums of the requests."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from tests.features.attendance.classes import Kept

KINDS = {"P": "PRESENT", "L": "LATE", "A": "ABSENT", "E": "EXCUSED"}
BEST = ("PRESENT", "LATE", "EXCUSED", "ABSENT")
PARTS = ("MORNING", "AFTERNOON")


class Model:
    """The marks that were sent, and their sums."""

    def __init__(self):
        self.state = {}
        self.marks = defaultdict(dict)
        self.fixes = defaultdict(dict)

    def sums(self, name):
        times = defaultdict(list)
        for (arm, *time), state in self.state.items():
            key = (arm, *time)
            kind = self.fixes[key].get(name) or self.marks[key].get(name)
            if state == "SUBMITTED" and kind:
                times[tuple(time)].append(kind)
        counted = [next(kind for kind in BEST if kind in kinds) for kinds in times.values()]
        present = counted.count("PRESENT") + counted.count("LATE")
        absent = counted.count("ABSENT") + counted.count("EXCUSED")
        return len(counted), present, counted.count("LATE"), absent, counted.count("EXCUSED")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_sums_equal_plain_pythons(api, make, rehearsed, seed):
    random = Random(seed)
    kept, model = Kept(make, 4, parts="HALF_DAYS"), Model()
    arms = [kept.batch, make.batch(kept.cohort)["id"]]
    kept.admit(2, arms[1])
    where = {name: arms[number >= 4] for number, name in enumerate(kept.students)}
    days = range(6)
    for _ in range(45):
        arm, back, part = random.choice(arms), random.choice(days), random.choice(PARTS)
        key = (arm, back, part)
        members = [name for name in where if where[name] == arm]
        inside = [
            name for name in where if where[name] == arm or name in {**model.marks[key], **model.fixes[key]}
        ]
        if not inside:
            continue
        chosen = random.sample(inside, random.randint(1, len(inside)))
        match random.choice(("mark", "mark", "mark", "submit", "submit", "correct", "move", "delete")):
            case "move":
                name = random.choice(list(where))
                where[name] = arms[where[name] == arms[0]]
                kept.move(name, where[name])
            case "delete":
                register_id = api.ok(kept.get(back, batch=arm, part=part))["id"]
                if register_id:
                    api.ok(api.delete(f"/registers/{register_id}"))
                for of_key in (model.marks, model.fixes, model.state):
                    of_key.pop(key, None)
            case "correct":
                codes = {name: random.choice([*KINDS, None]) for name in chosen}
                api.ok(kept.correct(back, codes=codes, batch=arm, part=part))
                for name, code in codes.items():
                    model.fixes[key].pop(name, None)
                    if code:
                        model.fixes[key][name] = KINDS[code]
            case act:
                codes = {name: random.choice([*KINDS]) for name in chosen}
                body = {"batch": arm, "part": part, "default": "P", "force": True, "submit": act == "submit"}
                api.ok(kept.put(back, codes=codes, **body))
                for name in members:
                    model.marks[key].setdefault(name, "PRESENT")
                model.marks[key].update({name: KINDS[code] for name, code in codes.items()})
                state = model.state.get(key, "DRAFT")
                model.state[key] = "SUBMITTED" if act == "submit" else state
    for arm in arms:
        for name, sums in kept.sums(arm).items():
            assert sums == model.sums(name), name
    for name in where:
        told = api.ok(kept.of_student(name))
        assert tuple(told[each] for each in ("opened", "present", "late", "absent", "excused")) == model.sums(
            name
        )
