"""The vocabulary: stays, parties, cells, codes, errors and the declarations of the tables. No I/O."""
