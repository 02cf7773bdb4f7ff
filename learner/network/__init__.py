"""Sum-product networks in flat arrays: structure, editing, evaluation and storage.

Nothing here knows how a network is learned.
"""
