-- One row per property or market in the weights file loaded last.
SELECT weighed.*
FROM lake.weight AS weighed
QUALIFY rank() OVER (ORDER BY weighed.input_id DESC) = 1
