"""Messages about cases: a line for each problem, in the words of the digest, over all its markets."""

from collections.abc import Mapping

from pipeline.domain.problem import Problem, Problems
from pipeline.notify.match import Line, in_a_line

# Cases of a problem whose ids its line names.
_IDS = 5


def problem_lines(problems: Problems, case_pages: Mapping[str, str], case_ids: tuple[str, ...]) -> list[Line]:
    """Return a line for each problem of some cases; `case_pages` has the pages of cases by id."""
    return [Line(tuple(each.cases), _words(each, case_pages)) for each in problems(case_ids)]


def _words(problem: Problem, case_pages: Mapping[str, str]) -> str:
    """Return a problem in a line with the ids of its cases, and below it the page of its most costly case.

    A page is about one market, so the line of several says which market it is, and what that one costs.
    """
    place = in_a_line(", ".join(filter(None, (problem.whom, problem.markets))))
    cost = f"Cost: {problem.cost}, found" if problem.cost else "Found"
    since = f"{cost} since {problem.since:%-d %b %Y}."
    back = " It is back: it had ended before." if problem.status == "back" else ""
    ended = f" Ended: {problem.why_it_ended}." if problem.why_it_ended else ""
    ids = [in_a_line(case_id) for case_id in problem.cases]
    more = f" and {len(ids) - _IDS:,} more" if len(ids) > _IDS else ""
    line = f"{place}: {problem.title}. {in_a_line(problem.finding)} {since}{back}{ended} ({' '.join(ids[:_IDS])}{more})"
    paged = next((case_id for case_id in problem.cases if case_id in case_pages), None)
    if paged is None:
        return line
    market = f"{in_a_line(problem.cases[paged])}: " if len(ids) > 1 else ""
    return f"{line}\n  {market}{case_pages[paged]}"
