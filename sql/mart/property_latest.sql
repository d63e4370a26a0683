-- One row per property, as single answers describe it.
SELECT known.*
FROM state.property AS known
WHERE known.change <> 'gone'
