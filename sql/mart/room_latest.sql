-- One row per room that its property was last sold with.
SELECT known.*
FROM state.room AS known
WHERE known.change <> 'gone'
