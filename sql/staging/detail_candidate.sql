-- One row per property chosen for the detail sweep, in the order of requests, with the first rule that chooses it.
-- reason: First of the given rules that chooses it.
-- place: Position in the order of requests, from the first.
-- detail_at: When a single search about it was last answered, since the given instant, UTC; NULL: not since then.
WITH latest AS (
    SELECT
        sweep_id,
        started_at
    FROM mart.sweep
    ORDER BY started_at DESC
    LIMIT 1
),

asked AS (
    SELECT unnest(given.properties) AS property_id
    FROM given
),

seen AS (
    SELECT
        cell.property_id,
        max(cell.searched_at) AS detail_at
    FROM lake.cell AS cell
    WHERE
        cell.operation = 'single'
        AND cell.status IN ('offered', 'no_offer')
        AND cell.searched_at >= (SELECT given.since FROM given)
    GROUP BY cell.property_id
),

-- State before the last night. A stay that was requested for the first time has not changed.
known AS (
    SELECT
        cell.property_id,
        cell.cell_key
    FROM mart.cell_history AS cell
    CROSS JOIN latest
    WHERE
        cell.operation = 'multi'
        AND cell.known_from < latest.started_at
        AND (cell.known_to IS NULL OR cell.known_to >= latest.started_at)
),

-- What the last night changed of list answers: the offers themselves, their price or their floor.
changed AS (
    SELECT DISTINCT history.property_id
    FROM mart.offer_history AS history
    INNER JOIN latest ON latest.started_at = history.valid_from
    LEFT JOIN mart.offer_history AS before
        ON
            before.source = history.source
            AND before.property_id = history.property_id
            AND before.offer_key = history.offer_key
            AND before.valid_to = history.valid_from
    SEMI JOIN known
        ON
            known.property_id = history.property_id
            AND known.cell_key = history.cell_key
    WHERE
        history.source = 'multi'
        AND (
            before.offer_key IS NULL
            OR before.is_offered <> history.is_offered
            OR before.total IS DISTINCT FROM history.total
            OR before.floor IS DISTINCT FROM history.floor
        )
),

available AS (
    SELECT DISTINCT cell.property_id
    FROM mart.cell_latest AS cell
    WHERE cell.operation = 'multi' AND cell.answered_status = 'offered'
),

candidate AS (
    SELECT
        unnest(given.watched) AS property_id,
        'watch' AS reason
    FROM given
    UNION ALL
    SELECT
        property_id,
        'changed' AS reason
    FROM changed
    UNION ALL
    SELECT
        property_id,
        'available' AS reason
    FROM available
    UNION ALL
    SELECT
        asked.property_id,
        'stale' AS reason
    FROM asked
    ANTI JOIN seen ON seen.property_id = asked.property_id
),

-- A property that several rules choose is searched once, for the first of them.
chosen AS (
    SELECT
        candidate.property_id,
        candidate.reason,
        list_position(given.rules, candidate.reason) AS rule_place
    FROM candidate
    CROSS JOIN given
    SEMI JOIN asked ON asked.property_id = candidate.property_id
    WHERE list_contains(given.rules, candidate.reason)
    QUALIFY row_number() OVER (PARTITION BY candidate.property_id ORDER BY rule_place) = 1
)

SELECT
    chosen.property_id,
    chosen.reason,
    seen.detail_at,
    row_number() OVER (ORDER BY chosen.rule_place, seen.detail_at NULLS FIRST, chosen.property_id) AS place
FROM chosen
LEFT JOIN seen ON seen.property_id = chosen.property_id
