"""oSLRAU, the algorithm that grows a network in one pass (Hsu, Kalra and Poupart, 2017)."""
