"""Measurements of a whole cluster over days: docs/measure/campaigns.md.

`plan` is a campaign's plan and `plan_file` reads its file. `journal` is the campaign's folder on the disk.
`run` starts keepers, and `keep` is the keeper: the small process that makes one measurement and writes its
records. `status` and `report` show the results.
"""
