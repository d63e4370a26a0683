"""Prefect flows: orchestration only. What they orchestrate lives in `pipeline` and runs without Prefect."""
