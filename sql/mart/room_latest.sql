-- One row per room that its property sold when last seen: its content as detail answers last described it.
SELECT known.*
FROM state.room AS known
WHERE known.change <> 'gone'
