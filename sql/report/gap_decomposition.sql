-- One row per match grade, source, market, product type and currency: the parts of gaps to the reference market.
-- Sums in currency over all pairs that do not meet: policy + board + tax_and_fee + promotion + fx + residual = gap. A
-- part that is unknown for a pair adds nothing to its sum and is in the residual.
-- planned: Number of requested cells of the market whose stay is in the future.
-- answered: Number of requested cells whose latest request was answered.
-- comparable: Number of pairs whose prices differ, and whose gap is split here.
-- gap: Sum of the gaps, in currency; > 0: dearer than the reference market.
-- policy: Sum of the parts due to different cancellation penalties, in currency; NULL: known for no pair.
-- board: Sum of the parts due to different boards, in currency; NULL: known for no pair.
-- tax_and_fee: Sum of the parts due to included charges, in currency; NULL: known for no pair, as in lists.
-- promotion: Sum of the parts due to promotions, in currency; NULL: known for no pair.
-- fx: Sum of the parts due to the supplier's exchange rate, in currency; NULL: known for no pair.
-- residual: Sum of the residuals, in currency.
-- residual_pct: Sum of absolute residuals in percent of the sum of absolute gaps; NULL: no gap.
-- explained_pct: Percentage of the gaps that the known parts account for: 100 - residual_pct, at least 0.
-- unstated_pct: Part of residual_pct from pairs with an unknown part: fx, or charges, as in every list answer.
-- own_price_pct: Rest of residual_pct: another price for the same offer (below the exact grade, perhaps another room).
SELECT
    part.match_grade,
    part.source,
    part.market,
    part.reference_market,
    part.product_type,
    part.currency,
    any_value(coverage.planned) AS planned,
    any_value(coverage.answered) AS answered,
    count(*) AS comparable,
    sum(part.gap)::DECIMAL(38, 4) AS gap,
    sum(part.policy)::DECIMAL(38, 4) AS policy,
    sum(part.board)::DECIMAL(38, 4) AS board,
    sum(part.tax_and_fee)::DECIMAL(38, 4) AS tax_and_fee,
    sum(part.promotion)::DECIMAL(38, 4) AS promotion,
    sum(part.fx)::DECIMAL(38, 4) AS fx,
    sum(part.residual)::DECIMAL(38, 4) AS residual,
    100 * sum(abs(part.residual))::DOUBLE / nullif(sum(abs(part.gap)), 0)::DOUBLE AS residual_pct,
    greatest(100 - residual_pct, 0) AS explained_pct,
    100 * coalesce(sum(abs(part.residual)) FILTER (WHERE part.parts_known < 5), 0)::DOUBLE
    / nullif(sum(abs(part.gap)), 0)::DOUBLE AS unstated_pct,
    100 * coalesce(sum(abs(part.residual)) FILTER (WHERE part.parts_known = 5), 0)::DOUBLE
    / nullif(sum(abs(part.gap)), 0)::DOUBLE AS own_price_pct
FROM mart.gap_decomposition AS part
LEFT JOIN mart.market_coverage AS coverage
    ON
        coverage.source = part.source
        AND coverage.market = part.market
        AND coverage.product_type = part.product_type
GROUP BY part.match_grade, part.source, part.market, part.reference_market, part.product_type, part.currency
