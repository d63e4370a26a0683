"""A night: all stages in order.

steps          begin or resume a sweep, collect it, close what an earlier day left open
gate           audit, then publish what passed
summary        the result of the night
overview       the sweeps of a lake and how far each has come
care           few files, retention, clean-up
choose_detail  which properties a detail sweep covers
confirm        flagged cells, requested again
outlook        what a night would request and cost
quotes         a run of quotes
rebuild        everything after raw, built again offline
"""
