"""The demo: weeks of simulated nights, swept, audited and published one by one, with truth planted in them."""

from pipeline.demo.nights import Demo, DemoProgress, make_demo, refuse_demo

__all__ = ["Demo", "DemoProgress", "make_demo", "refuse_demo"]
