-- Every registered lifecycle.
select definition
from leasehold.lifecycles
order by name, revision
