"""Counters of what was served, so that a user can compare the number of offers stored with it."""

from __future__ import annotations

from typing import Any

from pipeline.sandbox.server.answers import Answer


class Served:
    """Counts requests by operation and outcome, and what the intact 200 answers held."""

    def __init__(self) -> None:
        self._requests: dict[str, dict[str, int]] = {}
        self._properties: dict[str, int] = {}
        self._products: dict[str, int] = {}
        self._unattributed: dict[str, int] = {}

    def count(self, operation: str, outcome: int | str, answer: Answer | None = None) -> None:
        """Count one request: its status, or the way in which its answer was broken.

        `answer` is given only where it went out whole and readable; its properties and products are then served.
        """
        outcomes = self._requests.setdefault(operation, {})
        outcomes[str(outcome)] = outcomes.get(str(outcome), 0) + 1
        if answer is not None and answer.status == 200:
            self._properties[operation] = self._properties.get(operation, 0) + answer.properties
            self._products[operation] = self._products.get(operation, 0) + answer.products
            self._unattributed[operation] = self._unattributed.get(operation, 0) + answer.unattributed

    def as_form(self) -> dict[str, Any]:
        """Return the counters for `GET /sandbox/served`."""
        return {
            "requests": self._requests,
            "properties_served": self._properties,
            "products_served": self._products,
            "products_without_property_id": self._unattributed,
        }
