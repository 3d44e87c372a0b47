"""Measurements of a whole cluster over days: docs/measure/campaigns.md.

`plan` reads the file, `journal` is what is on the disk, `keep` is the small process that brings one
measurement to the disk, `run` starts keepers, and `status` and `report` read what there is.
"""
