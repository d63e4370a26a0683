"""What a sweep will request, by arithmetic, and what that will cost. Pure: no network and no lake."""

from pipeline.plan.plan import PLAN_VERSION, PlanCounts, SweepPlan

__all__ = ["PLAN_VERSION", "PlanCounts", "SweepPlan"]
