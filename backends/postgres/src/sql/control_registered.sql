-- The hash of a registered lifecycle. $1 name, $2 revision.
select hash
from leasehold.lifecycles
where name = $1 and revision = $2
