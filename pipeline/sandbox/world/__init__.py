"""The simulated market: properties, rooms, prices, promotions, policies and what is planted in them. Pure."""
