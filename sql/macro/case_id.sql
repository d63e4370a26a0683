-- Id of a case: `case-` and a stable hash of its rule and its property and market; NULL parts are the wider scopes.
CREATE OR REPLACE MACRO mart.case_id(rule, property_id, market, base_currency, currency) AS printf(
    'case-%016x',
    mart.subject_key(
        rule,
        concat_ws(
            '|',
            'case',
            coalesce(property_id::VARCHAR, '~'),
            coalesce(market, '~'),
            coalesce(base_currency, '~'),
            coalesce(currency, '~')
        )
    )
)
