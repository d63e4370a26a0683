"""What the parameters of runs are: shown as a form by Prefect's UI, and checked by its server before a run is made."""

from __future__ import annotations

from typing import Annotated

from pydantic import WithJsonSchema

from pipeline.domain.codes import MARKETS

Market = Annotated[str, WithJsonSchema({"type": "string", "enum": sorted(MARKETS)})]
