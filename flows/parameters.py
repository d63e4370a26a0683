"""Types of the runs' parameters, for the form in Prefect's UI; its server checks values before it creates a run."""

from __future__ import annotations

from typing import Annotated

from pydantic import WithJsonSchema

from pipeline.domain.codes import MARKETS
from pipeline.lake.relations import finding_rules

Market = Annotated[str, WithJsonSchema({"type": "string", "enum": sorted(MARKETS)})]
Rule = Annotated[str, WithJsonSchema({"type": "string", "enum": sorted(finding_rules())})]
