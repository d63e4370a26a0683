"""The rule file: which rows of which relation are news, how severe they are, and who receives them.

[[rule]]
name = "GB sells below the floor"
relation = "report.flag"
where = "rule = 'floor_breach' AND market = 'GB'"
key = ["flag_id"]
severity = "critical"
who = ["revenue"]

[receiver.revenue]
webhook_from = "REVENUE_WEBHOOK"     # name of an environment variable; addresses are secrets
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pipeline.domain.errors import InputError
from pipeline.domain.texts import quoted, shortened, validation_text
from pipeline.lake.user_condition import refuse_unreadable
from pipeline.spec.bounds import MOST_ERRORS_SHOWN, Unreadable, read_bounded
from pipeline.spec.documents import Document, Place, read_toml, written

_NOTHING = "No alert was sent."
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w .:%+-]{0,79}$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Table):
    """Rows of a relation that are sent to receivers. Rows of two nights are the same if their keys are."""

    name: Name
    relation: str = Field(pattern=r"^(mart|report)\.[a-z_0-9]+$")
    where: str = Field("true", min_length=1)
    key: tuple[str, ...] = Field(("flag_id",), min_length=1)
    severity: Literal["critical", "warning", "info"] = "warning"
    who: tuple[str, ...] = Field(min_length=1)
    least: int = Field(1, ge=1)
    confirm: bool = False

    @field_validator("where")
    @classmethod
    def _is_a_condition(cls, value: str) -> str:
        try:
            refuse_unreadable(value)
        except InputError as error:
            raise ValueError(error.message) from None
        return value

    @model_validator(mode="after")
    def _only_flags_can_be_confirmed(self) -> Self:
        if self.confirm and self.relation != "report.flag":
            raise ValueError("only rows of report.flag can be confirmed")
        return self


class Receiver(_Table):
    """Where messages go: a webhook or e-mail, with its address in an environment variable, or a notification block."""

    webhook_from: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    mail_from: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    block: str | None = Field(None, pattern=r"^[a-z0-9-]+/[a-z0-9-]+$")

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if not (self.webhook_from or self.mail_from or self.block):
            raise ValueError("needs webhook_from, mail_from or block")
        return self


class AlertRules(_Table):
    """A rule file."""

    rule: tuple[Rule, ...] = Field(min_length=1)
    receiver: dict[str, Receiver] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = Counter(rule.name for rule in self.rule)
        if twice := next((name for name, times in names.items() if times > 1), None):
            raise ValueError(f"two rules are called {twice!r}")
        unknown = [(rule.name, who) for rule in self.rule for who in rule.who if who not in self.receiver]
        if unknown:
            rule, who = unknown[0]
            raise ValueError(f"rule {rule!r} is for {quoted(who)}, but there is no [receiver.{shortened(who, 80)}]")
        return self


def read_rules(file: Path) -> AlertRules:
    """Return the rules of a TOML file. Raises InputError that names each mistake with its line."""
    try:
        text = read_bounded(file).decode("utf-8-sig")
    except OSError as error:
        raise InputError(
            f"The rule file {file} cannot be read: {error.strerror}.",
            kept=_NOTHING,
            hint="Name a file that you can read with NIGHTAUDIT_ALERTS.",
        ) from None
    except Unreadable as error:
        raise InputError(
            f"The rule file {file} cannot be read: {error}.", kept=_NOTHING, hint="Split it, or remove unused rules."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"The rule file {file} is not UTF-8 text.", kept=_NOTHING, hint="Save it as UTF-8.") from None
    try:
        document = read_toml(text)
    except Unreadable as error:
        at = f"{file}:{error.line}" if error.line else f"{file}"
        raise InputError(
            f"The rule file cannot be read:\n  {at}: {error}",
            kept=_NOTHING,
            hint="Correct that line; the file is TOML.",
        ) from None
    try:
        return AlertRules.model_validate(document.data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        # If no rule can be used, pydantic also reports that there is none.
        faults = [item for item in found if item["type"] != "too_short" or len(found) == 1]
        lines = [
            _explained(file, document, item["loc"], _said(item["type"], item["loc"], item["msg"]))
            for item in faults[:MOST_ERRORS_SHOWN]
        ]
        if len(faults) > MOST_ERRORS_SHOWN:
            lines.append(f"  and {len(faults) - MOST_ERRORS_SHOWN:,} more")
    raise InputError(
        "The rule file cannot be used:\n" + "\n".join(lines),
        kept=_NOTHING,
        hint="Correct the rule file. Its keys are in flows/README.md, under Alerts.",
    )


def _explained(file: Path, document: Document, place: Place, message: str) -> str:
    line, where = document.nearest_line(place), written(place)
    return f"  {file}{f':{line}' if line else ''}: {f'{where}: ' if where else ''}{shortened(message, 300)}"


# The form of a text, by the last part of its place.
_FORMS = {
    "relation": "must be a relation of mart or report, such as report.flag",
    "name": "must be up to 80 letters, digits, blanks and . : % + -, beginning with a letter or digit",
    "webhook_from": "must be the name of an environment variable that holds the address, not the address itself",
    "mail_from": "must be the name of an environment variable that holds the address, not the address itself",
    "block": "must be a notification block as type/name, such as slack-webhook/watch",
}


def _said(kind: str, place: Place, message: str) -> str:
    if kind == "string_pattern_mismatch" and place[-1] in _FORMS:
        return _FORMS[str(place[-1])]
    if kind == "extra_forbidden":
        return "there is no such key"
    return validation_text(message)
