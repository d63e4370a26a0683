"""A night: all stages in order.

nightly          the steps of a night, in order: read this first
night            the value that each step takes and returns
night_sweep      begin or resume a sweep, and collect it
read_spec, choose_detail, supplier, search_body   what is requested: from whom, and how
senders, ask_block, aside     work that other machines or another process do
gate, tolerance               audit, then publish what passed; what counts as usable
send_alerts, step_lines, summary                  messages, log lines, the result
latest, done_steps, durations, metrics            what is known and recorded of nights and their steps
overview, outlook             the sweeps of a lake; what a night would request and cost
care             few files, retention, clean-up
verify, cross_checks, compare_raw, witnesses      damage: how it is found
damage, repair                what it affects, and how it is repaired
rebuild          everything after raw, built again offline
confirm, confirm_plan, confirm_settle             flagged cells, requested again
quotes           a run of quotes
"""
