-- One row per property: its content as single (detail) answers last described it.
SELECT known.*
FROM state.property AS known
WHERE known.change <> 'gone'
