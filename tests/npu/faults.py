"""Six kinds of faults, planted into generated text: each must be found by the checks that a right text passes."""

import dataclasses
import re

NAMES = ("wrong ring slot", "overlap", "misalignment", "overflow", "missing reduce", "one id for two")


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    pattern: str
    replacement: object  # text or function of the match

    def plant(self, text):
        changed, n = re.subn(self.pattern, self.replacement, text, count=1, flags=re.M)
        assert n == 1 and changed != text, f"{self.name}: nothing to change; the text has another form"
        return changed

    @staticmethod
    def signs(found):
        """What the checks said of a faulty text."""
        signs = [f"{kind}: {next(iter(found[kind]))}" for kind in ("misuse", "undefined", "races", "schedules") if found[kind]]
        return signs + (["values"] if found["ulp"] > 2 else [])


def of(kernel, language):
    return []
