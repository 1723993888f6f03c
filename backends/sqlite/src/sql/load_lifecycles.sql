-- Every registered lifecycle.
select definition
from leasehold_lifecycles
order by name, revision
